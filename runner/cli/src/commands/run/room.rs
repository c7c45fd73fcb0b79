//! Bounds of rooms, and how many fit into this machine.

use std::collections::BTreeMap;

use proctor_engine::{DiskLimits, rooms_that_fit};
use proctor_experiment::{self as experiment, Cpus, Schedule, Size};
use proctor_sandbox::Limits;

use crate::failure::Failure;
use crate::laboratory::{memory, processors};

/// The engine refuses more processors than there are, and would do so for each trial.
pub(super) fn check_processors(limits: &experiment::Limits) -> Result<(), Failure> {
    let there = processors();
    match limits.cpus {
        Some(cpus) if u64::from(cpus.millis()) > 1000 * there as u64 => {
            Err(Failure::input(format!("--cpus {cpus}: this machine has {there}")).hint("give that or fewer"))
        }
        _ => Ok(()),
    }
}

/// What the kernel enforces.
pub(super) fn limits(limits: &experiment::Limits) -> Limits {
    let default = Limits::default_for(processors());
    Limits {
        memory_bytes: limits.memory.bytes(),
        pids: limits.pids.as_u32(),
        cpu_millis: limits.cpus.map_or(default.cpu_millis, Cpus::millis),
        ..default
    }
}

/// What is watched.
pub(super) fn disk(limits: &experiment::Limits) -> DiskLimits {
    DiskLimits { bytes: limits.disk.bytes(), inodes: limits.inodes.get() }
}

/// Both, as the run keeps them.
pub(super) fn bounds(plan: &experiment::Limits) -> BTreeMap<String, String> {
    let (limits, disk) = (limits(plan), disk(plan));
    let all = [
        ("memory_bytes", limits.memory_bytes),
        ("pids", limits.pids.into()),
        ("cpu_millis", limits.cpu_millis.into()),
        ("disk_bytes", disk.bytes),
        ("disk_inodes", disk.inodes),
    ];
    all.map(|(name, value)| (name.to_owned(), value.to_string())).into()
}

/// Trials at a time: as many as are planned, if all their rooms fit into memory. Says so if they do not.
pub(super) fn that_fit(schedule: &Schedule, limits: &experiment::Limits) -> usize {
    let planned = schedule.jobs.as_usize();
    let Some(total) = memory().filter(|_| !schedule.overcommit) else { return planned };
    let fit = rooms_that_fit(total, limits.memory.bytes());
    if fit < planned {
        eprintln!("{}", too_many(planned, fit, limits.memory, total));
    }
    planned.min(fit)
}

fn too_many(planned: usize, fit: usize, each: Size, total: u64) -> String {
    let rooms = if fit == 1 { "one room".to_owned() } else { format!("{fit} rooms") };
    format!(
        "{fit} at a time, not {planned}: only {rooms} of {each} fit into the {} GiB of this machine \
         (--memory SIZE makes them smaller, --overcommit opens them all the same)",
        total >> 30
    )
}
