//! Room on our own disk. When there is none, an agent's writes fail as well as ours: what came of its trial is then not
//! its doing.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::EngineError;

/// Bytes that must be free for the evidence of a trial to be trusted.
pub(crate) const RESERVE: u64 = 16 << 20;

/// Bytes that are free for us at `path`; none if the file system does not tell.
pub(crate) fn free(path: &Path) -> Option<u64> {
    let told = statvfs(path).ok()?;
    Some(told.blocks_available().saturating_mul(told.fragment_size()))
}

/// Fails if so little is free at `path` that what was written there last may be missing.
pub(crate) fn enough(path: &Path) -> Result<(), EngineError> {
    match free(path).filter(|free| *free < RESERVE) {
        Some(free) => {
            Err(EngineError::DiskFull { message: format!("{free} bytes were free at the end of a try") })
        }
        None => Ok(()),
    }
}

/// Whether what failed says that a disk is full, ours or the engine's.
pub(crate) fn is_full(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["no space left on device", "quota exceeded", "disk of the results directory is full"]
        .iter()
        .any(|it| message.contains(it))
}
