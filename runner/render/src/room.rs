//! Rooms for renderings: opened with what all of them share, and closed whatever happens.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proctor_sandbox::{
    KIND_LABEL, Mount, OpenRoom, OutputChunk, Room, RoomSpec, Sandbox, SandboxError, TRIAL_LABEL, Tmpfs,
};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::{RenderError, RendererOptions};

/// Where the guest is in every room.
pub(crate) const GUEST: &str = "/opt/proctor/guest";
/// The working directory of every tool: a memory file system.
pub(crate) const WORK: &str = "/work";

/// A room that is closed when it is dropped, if nobody closed it before.
pub(crate) struct RenderRoom {
    room: Option<Arc<dyn Room>>,
    /// What is printed in the room.
    pub(crate) output: mpsc::Receiver<OutputChunk>,
    /// Host files of this room; removed after it.
    _folder: TempDir,
}

/// What one room has beyond the common.
pub(crate) struct Furniture<'a> {
    /// Names the job in the label of the room.
    pub(crate) label: &'a str,
    /// Beside the control socket.
    pub(crate) mounts: Vec<Mount>,
    /// Beside the shared memory.
    pub(crate) tmpfs: Vec<Tmpfs>,
}

/// A private folder for the host files of one room. Its path is short, because sockets lie in it.
pub(crate) fn folder(options: &RendererOptions) -> Result<TempDir, RenderError> {
    tempfile::Builder::new()
        .prefix("r")
        .rand_bytes(8)
        .tempdir_in(&options.scratch)
        .map_err(RenderError::io("making a folder in", &options.scratch))
}

/// Makes a subfolder that the room's user can enter; only `mode` says whether it can write there.
pub(crate) fn subfolder(parent: &Path, name: &str, mode: u32) -> Result<PathBuf, RenderError> {
    let path = parent.join(name);
    fs::create_dir(&path)
        .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode)))
        .map_err(RenderError::io("making the folder", &path))?;
    Ok(path)
}

/// Writes a file that the room's user can read.
pub(crate) fn file(parent: &Path, name: &str, content: &[u8]) -> Result<PathBuf, RenderError> {
    let path = parent.join(name);
    fs::write(&path, content)
        .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o444)))
        .map_err(RenderError::io("writing", &path))?;
    Ok(path)
}

/// Opens a room whose host files are in `folder`.
pub(crate) async fn open(
    sandbox: &dyn Sandbox,
    options: &RendererOptions,
    folder: TempDir,
    furniture: Furniture<'_>,
) -> Result<RenderRoom, RenderError> {
    let control = subfolder(folder.path(), "c", 0o755)?;
    let mut labels: BTreeMap<String, String> = options.labels.clone();
    labels.insert(KIND_LABEL.to_owned(), "render".to_owned());
    labels.insert(TRIAL_LABEL.to_owned(), furniture.label.chars().take(200).collect());
    let spec = RoomSpec {
        name: name(furniture.label),
        labels,
        image: options.image.id.clone(),
        user: options.user,
        control,
        mounts: furniture.mounts,
        tmpfs: furniture.tmpfs,
        limits: options.limits,
    };
    let OpenRoom { room, output } = sandbox.open(spec).await?;
    Ok(RenderRoom { room: Some(room), output, _folder: folder })
}

/// A container name that tells a person what it is and that nobody else has.
fn name(label: &str) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-') { c } else { '-' };
    let label: String = label.chars().map(plain).take(80).collect();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    // The process id alone repeats after a crash, before the leftovers are swept.
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map(|it| it.as_millis()).unwrap_or_default();
    format!("proctor-render-{label}-{}-{now:x}-{count}", std::process::id())
}

impl RenderRoom {
    /// The room itself.
    pub(crate) fn room(&self) -> Result<&Arc<dyn Room>, RenderError> {
        self.room.as_ref().ok_or_else(|| RenderError::Room { message: "it is closed".to_owned() })
    }

    /// Removes the room and waits until it is gone.
    pub(crate) async fn close(mut self) -> Result<(), SandboxError> {
        // Taken only afterwards: a caller that is dropped meanwhile leaves the closing to `drop`.
        let Some(room) = self.room.clone() else { return Ok(()) };
        let closed = room.close().await;
        self.room = None;
        closed.map(drop)
    }
}

impl Drop for RenderRoom {
    fn drop(&mut self) {
        let Some(room) = self.room.take() else { return };
        // Without a runtime the process is ending: the guest takes everything down, and a sweep removes the rest.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = room.close().await {
                    tracing::warn!(%error, "a render room could not be closed");
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_are_fit_for_the_engine_and_differ() {
        let (one, two) = (name("vao/chart é#1"), name("vao/chart é#1"));
        assert!(one.starts_with("proctor-render-vao-chart---1-"), "{one}");
        assert_ne!(one, two);
        assert!(name(&"x".repeat(500)).len() < 200);
    }
}
