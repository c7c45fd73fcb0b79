//! A [`RoomSpec`] in the engine's words. The hardening is here, and it is not configurable.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, ResourcesUlimits};
use proctor_guest::CONTROL_DIR;

use crate::control::SOCKET;
use crate::{Mount, RoomSpec, User, guest};

/// The container to create for `spec`, with the guest program that lies at `program` on the host.
pub(crate) fn container(spec: &RoomSpec, program: &Path) -> ContainerCreateBody {
    let own = [Mount::read_only(program, guest::INSIDE), Mount::read_only(&spec.control, CONTROL_DIR)];
    let binds = own.iter().chain(&spec.mounts).map(bind).collect();
    let limits = spec.limits;
    let host = HostConfig {
        network_mode: Some("none".into()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into()]),
        // The guest is PID 1: an init of the engine's would stand between it and its children.
        init: Some(false),
        ipc_mode: Some("private".into()),
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        binds: Some(binds),
        tmpfs: Some(
            spec.tmpfs.iter().map(|it| (it.inside.clone(), tmpfs_options(it.bytes, spec.user))).collect(),
        ),
        memory: Some(signed(limits.memory_bytes)),
        // Equal to memory: no swap.
        memory_swap: Some(signed(limits.memory_bytes)),
        pids_limit: Some(limits.pids.into()),
        nano_cpus: Some(i64::from(limits.cpu_millis) * 1_000_000),
        shm_size: Some(signed(limits.shm_bytes)),
        ulimits: Some(vec![
            ulimit("fsize", signed(limits.file_bytes)),
            ulimit("nofile", limits.open_files.into()),
            ulimit("core", 0),
        ]),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        hostname: Some("room".into()),
        user: Some(format!("{}:{}", spec.user.uid, spec.user.gid)),
        working_dir: Some("/".into()),
        entrypoint: Some(vec![guest::INSIDE.into()]),
        cmd: Some(vec!["init".into(), format!("{CONTROL_DIR}/{SOCKET}")]),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        network_disabled: Some(true),
        labels: Some(spec.labels.clone().into_iter().collect::<HashMap<_, _>>()),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn bind(mount: &Mount) -> String {
    let mode = if mount.writable { "rw" } else { "ro" };
    format!("{}:{}:{mode}", mount.host.display(), mount.inside)
}

/// Over a folder that the image has, the engine keeps that folder's mode instead of ours: hence the owner.
fn tmpfs_options(bytes: u64, User { uid, gid }: User) -> String {
    format!("rw,nosuid,nodev,exec,size={bytes},mode=1777,uid={uid},gid={gid}")
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.into()), soft: Some(value), hard: Some(value) }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
