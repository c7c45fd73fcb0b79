//! Takes over what an agent left. It is hostile data (DESIGN §3.6): nothing is followed, nothing special is opened,
//! and there are caps on everything. The room is frozen meanwhile.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use proctor_tasks::Artifact;
use proctor_traces::{ArtifactState, Digest};
use serde::Serialize;

use crate::EngineError;

/// Caps on a collected tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// Largest file that is taken.
    pub(crate) file_bytes: u64,
    /// Bytes taken in all.
    pub(crate) bytes: u64,
    /// Entries looked at.
    pub(crate) entries: usize,
    /// Deepest folder that is entered.
    pub(crate) depth: usize,
}

impl Caps {
    /// For the workspace: what an agent made beside its artifact is of interest, but not at any price.
    pub(crate) const WORKSPACE: Self =
        Self { file_bytes: 16 << 20, bytes: 64 << 20, entries: 5_000, depth: 32 };
    /// For session files, which the trace is read from.
    pub(crate) const SESSION: Self =
        Self { file_bytes: 256 << 20, bytes: 512 << 20, entries: 5_000, depth: 32 };
}

/// What became of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Collected {
    /// Files taken.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// What was left behind, the first hundred by name with the reason.
    pub(crate) left: Vec<Left>,
    /// How many were left behind in all.
    pub(crate) left_count: u64,
}

/// Something that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Left {
    /// Its name, with what is not text replaced.
    pub(crate) path: String,
    /// Why.
    pub(crate) why: &'static str,
}

impl Collected {
    const SHOWN: usize = 100;

    fn leave(&mut self, path: &Path, why: &'static str) {
        self.left_count += 1;
        if self.left.len() < Self::SHOWN {
            self.left.push(Left { path: path.to_string_lossy().into_owned(), why });
        }
    }
}

/// Takes the artifact out of `workspace` into `folder`, and says what stood there. Each way of not being a proper
/// file is a state of its own, not an error.
pub(crate) fn artifact(
    workspace: &Path,
    artifact: &Artifact,
    folder: &Path,
) -> Result<ArtifactState, EngineError> {
    let path = workspace.join(&artifact.name);
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ArtifactState::Missing),
        Err(error) => return Ok(ArtifactState::Unreadable { message: error.to_string() }),
    };
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return Ok(ArtifactState::Link);
    } else if !kind.is_file() {
        return Ok(ArtifactState::NotAFile);
    } else if metadata.len() == 0 {
        return Ok(ArtifactState::Empty);
    } else if metadata.len() > artifact.size_cap {
        return Ok(ArtifactState::TooLarge { bytes: metadata.len() });
    }
    let bytes = match open(&path).and_then(|file| read(file, artifact.size_cap)) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(ArtifactState::Unreadable { message: error.to_string() }),
    };
    let target = folder.join(&artifact.name);
    fs::write(&target, &bytes).map_err(EngineError::io("writing", &target))?;
    Ok(ArtifactState::Present { digest: Digest::of(&bytes), bytes: bytes.len() as u64 })
}

/// Copies the regular files below `from` to `to`, within `caps`. Entries for which `skip` holds are passed over.
pub(crate) fn tree(
    from: &Path,
    to: &Path,
    caps: Caps,
    skip: impl Fn(&Path) -> bool,
) -> Result<Collected, EngineError> {
    let mut collected = Collected::default();
    let walk = walkdir::WalkDir::new(from).follow_links(false).max_depth(caps.depth).sort_by_file_name();
    for (number, entry) in walk.into_iter().enumerate() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                collected.leave(error.path().unwrap_or(from), "unreadable");
                continue;
            }
        };
        let Ok(inside) = entry.path().strip_prefix(from) else { continue };
        let kind = entry.file_type();
        if kind.is_dir() || skip(inside) {
            continue;
        }
        let size = entry.metadata().map_or(0, |it| it.len());
        if number >= caps.entries {
            collected.leave(inside, "too many files");
            break;
        } else if !kind.is_file() {
            collected.leave(inside, if kind.is_symlink() { "a link" } else { "not a regular file" });
        } else if size > caps.file_bytes || collected.bytes + size > caps.bytes {
            collected.leave(inside, "too large");
        } else {
            match copy(entry.path(), &to.join(safe(inside)), caps.file_bytes) {
                Ok(bytes) => {
                    collected.files += 1;
                    collected.bytes += bytes;
                }
                Err(Copy::Source) => collected.leave(inside, "unreadable"),
                Err(Copy::Name) => collected.leave(inside, "its name cannot be kept"),
                Err(Copy::Target(error)) => return Err(EngineError::io("writing", to)(error)),
            }
        }
    }
    Ok(collected)
}

enum Copy {
    Source,
    /// No room for it: the name is too long here, or what prints of it is another's already.
    Name,
    Target(io::Error),
}

impl Copy {
    fn target(error: io::Error) -> Self {
        use io::ErrorKind::{AlreadyExists, InvalidFilename, IsADirectory, NotADirectory};
        match error.kind() {
            AlreadyExists | InvalidFilename | IsADirectory | NotADirectory => Self::Name,
            _ => Self::Target(error),
        }
    }
}

fn copy(from: &Path, to: &Path, cap: u64) -> Result<u64, Copy> {
    let bytes = open(from).and_then(|file| read(file, cap)).map_err(|_| Copy::Source)?;
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(Copy::target)?;
    let mut file = File::create_new(to).map_err(Copy::target)?;
    file.write_all(&bytes).map_err(Copy::Target)?;
    file.set_permissions(fs::Permissions::from_mode(0o644)).map_err(Copy::Target)?;
    Ok(bytes.len() as u64)
}

/// A name that prints: control characters and what is not text become `_`, since results are listed and archived.
fn safe(path: &Path) -> PathBuf {
    path.iter()
        .map(|part| {
            OsStr::from_bytes(part.as_bytes()).to_string_lossy().replace(|c: char| c.is_control(), "_")
        })
        .collect()
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // It was a regular file when it was listed; make sure that this is what was opened.
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

fn read(file: File, cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(cap + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= cap { Ok(bytes) } else { Err(io::Error::other("grew while it was read")) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proctor_tasks::RenderMode;

    use super::*;

    fn states(make: impl FnOnce(&Path)) -> ArtifactState {
        let dir = tempfile::tempdir().unwrap();
        make(&dir.path().join("artifact.dot"));
        let kind = Artifact { size_cap: 10, ..Artifact::program(RenderMode::Dot) };
        let taken = tempfile::tempdir().unwrap();
        let state = artifact(dir.path(), &kind, taken.path()).unwrap();
        let present = matches!(state, ArtifactState::Present { .. });
        assert_eq!(taken.path().join("artifact.dot").exists(), present, "{state:?}");
        state
    }

    #[test]
    fn each_way_of_not_being_an_artifact_has_its_name() {
        assert_eq!(states(|_| ()), ArtifactState::Missing);
        assert_eq!(states(|path| fs::write(path, "").unwrap()), ArtifactState::Empty);
        assert_eq!(states(|path| symlink("/etc/hostname", path).unwrap()), ArtifactState::Link);
        assert_eq!(states(|path| fs::create_dir(path).unwrap()), ArtifactState::NotAFile);
        let fifo = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(states(fifo), ArtifactState::NotAFile);
        assert_eq!(
            states(|path| fs::write(path, "12345678901").unwrap()),
            ArtifactState::TooLarge { bytes: 11 }
        );
        let digest = Digest::of(b"graph");
        assert_eq!(
            states(|path| fs::write(path, "graph").unwrap()),
            ArtifactState::Present { digest, bytes: 5 }
        );
    }

    #[test]
    fn a_sparse_terabyte_is_too_large_and_not_read() {
        let state = states(|path| File::create(path).unwrap().set_len(1 << 40).unwrap());
        assert_eq!(state, ArtifactState::TooLarge { bytes: 1 << 40 });
    }

    #[test]
    fn trees_are_copied_without_links_and_within_caps() {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        fs::create_dir_all(from.path().join("a/b")).unwrap();
        fs::write(from.path().join("a/b/kept\n"), "12").unwrap();
        fs::write(from.path().join("big"), vec![0; 100]).unwrap();
        symlink("/etc", from.path().join("etc")).unwrap();
        symlink("/etc/hostname", from.path().join("a/hostname")).unwrap();
        let caps = Caps { file_bytes: 10, bytes: 100, entries: 100, depth: 10 };
        let collected = tree(from.path(), to.path(), caps, |_| false).unwrap();
        assert_eq!((collected.files, collected.bytes, collected.left_count), (1, 2, 3));
        assert_eq!(fs::read(to.path().join("a/b/kept_")).unwrap(), b"12");
        assert!(!to.path().join("etc").exists() && !to.path().join("a/hostname").exists());
    }

    #[test]
    fn names_that_cannot_be_kept_are_left_and_fail_nothing() {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        for folder in ["a_", "b\n"] {
            fs::create_dir(from.path().join(folder)).unwrap();
            fs::write(from.path().join(folder).join("inside"), folder).unwrap();
        }
        for name in ["a\n", "b_", "c\n", "c_", "kept"] {
            fs::write(from.path().join(name), name).unwrap();
        }
        // Three times as long as text.
        fs::write(from.path().join(OsStr::from_bytes(&[0xff; 255])), "x").unwrap();
        let collected = tree(from.path(), to.path(), Caps::WORKSPACE, |_| false).unwrap();
        assert_eq!((collected.files, collected.left_count), (4, 4), "{collected:?}");
        assert!(collected.left.iter().all(|left| left.why == "its name cannot be kept"));
        assert_eq!(fs::read(to.path().join("c_")).unwrap(), b"c\n", "the first of its name");
    }
}
