//! Reading the artifact: a file that somebody hostile has left.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use proctor_traces::Digest;

use crate::RenderError;

/// The largest artifact that is rendered; a program of this size was not written by anyone.
pub(crate) const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// An artifact's bytes; `None` when there are too many.
pub(crate) struct Source {
    pub(crate) digest: Digest,
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Reads the artifact without following a link and without waiting for a pipe.
pub(crate) fn read(path: &Path) -> Result<Source, RenderError> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_CLOEXEC)
        .open(path);
    let file = match opened {
        Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => {
            return Err(RenderError::NotAFile { path: path.to_owned() });
        }
        other => other.map_err(RenderError::io("opening the artifact", path))?,
    };
    let details = file.metadata().map_err(RenderError::io("reading the artifact", path))?;
    if !details.is_file() {
        return Err(RenderError::NotAFile { path: path.to_owned() });
    }
    bounded(file).map_err(RenderError::io("reading the artifact", path))
}

fn bounded(mut file: File) -> std::io::Result<Source> {
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_SOURCE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= MAX_SOURCE_BYTES {
        return Ok(Source { digest: Digest::of(&bytes), bytes: Some(bytes) });
    }
    let (digest, _) = Digest::of_reader(bytes.as_slice().chain(file))?;
    Ok(Source { digest, bytes: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_sane_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.dot");
        std::fs::write(&file, b"graph {}").unwrap();
        let source = read(&file).unwrap();
        assert_eq!(source.bytes.as_deref(), Some(b"graph {}".as_slice()));
        assert_eq!(source.digest, Digest::of(b"graph {}"));

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(matches!(read(&link), Err(RenderError::NotAFile { .. })));
        assert!(matches!(read(folder.path()), Err(RenderError::NotAFile { .. })));
        assert!(matches!(read(Path::new("/dev/null")), Err(RenderError::NotAFile { .. })));

        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(read(&pipe), Err(RenderError::NotAFile { .. })));

        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(MAX_SOURCE_BYTES + 1).unwrap();
        assert!(read(&large).unwrap().bytes.is_none());
    }
}
