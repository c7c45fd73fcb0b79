//! The guest program, embedded, and where it lies on the host to be mounted.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proctor_traces::Digest;

use crate::SandboxError;

static PROGRAM: &[u8] = include_bytes!(env!("PROCTOR_GUEST"));

/// Where the guest is mounted in every room.
pub(crate) const INSIDE: &str = "/opt/proctor/guest";

/// Writes the guest below `cache` unless it is there, and returns its path. The name holds its digest, so that several
/// versions of the runner never share one.
pub(crate) fn install(cache: &Path) -> Result<PathBuf, SandboxError> {
    let folder = cache.join("guest");
    let path = folder.join(Digest::of(PROGRAM).short());
    if fs::metadata(&path).is_ok_and(|file| file.len() == PROGRAM.len() as u64) {
        return Ok(path);
    }
    let write = || {
        fs::create_dir_all(&folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(PROGRAM)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|source| SandboxError::Io {
        action: "writing the guest to",
        path: path.clone(),
        source,
    })?;
    Ok(path)
}
