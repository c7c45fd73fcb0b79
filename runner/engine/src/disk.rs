//! Room on our own disk. When there is none, an agent's writes fail as well as ours: what came of its trial is then not
//! its doing.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Bytes that must be free for the evidence of a trial to be trusted.
pub(crate) const RESERVE: u64 = 16 << 20;

/// Bytes that are free for us at `path`; none if the file system does not tell.
pub(crate) fn free(path: &Path) -> Option<u64> {
    let told = statvfs(path).ok()?;
    Some(told.blocks_available().saturating_mul(told.fragment_size()))
}

/// Whether what failed says that a disk is full, ours or the engine's.
pub(crate) fn is_full(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("no space left on device") || message.contains("quota exceeded")
}
