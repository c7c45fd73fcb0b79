//! Files that are whole or absent, whatever kills us in between.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;

use crate::StoreError;

/// How the names of files begin that are not whole yet.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// Largest JSON file of ours that is read back, in bytes.
const JSON_CAP: u64 = 64 << 20;

/// Writes `bytes` to `path` so that a reader sees the old file or the new one, and a crash leaves one of them.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    let file = temporary(path, bytes).and_then(synced).map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    sync_folder_of(path).map_err(failed)
}

/// [`write_atomic`] of `value` as indented JSON.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    write_atomic(path, &json(path, value)?)
}

/// [`write_json`] for the evidence of a try: whole or absent when we are killed, but not forced to the disk, where it
/// counts for nothing before the outcome is there.
pub fn write_evidence(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    let file = temporary(path, &json(path, value)?).map_err(failed)?;
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// [`write_evidence`] of plain bytes, for what can be worked out again.
pub(crate) fn write_derived(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    let file = temporary(path, bytes).map_err(failed)?;
    // Some file systems wait for the disk where one file takes the place of another. What can be worked out again may be
    // missing for a moment.
    let _ = fs::remove_file(path);
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}

/// Writes a file that a user asked for, in pieces, so that `path` holds all of it or what it held before. What is no plain
/// file (a pipe, `/dev/stdout`) is written as it is, and a link stays one.
pub fn write_in_pieces(
    path: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    if fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        return filled(file, fill).map(drop).map_err(failed);
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if target.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let file = temporary(&target, b"").and_then(|file| filled(file, fill)).map_err(failed)?;
    file.persist(&target).map(drop).map_err(|error| failed(error.error))
}

fn filled<F: io::Write>(file: F, fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<F> {
    let mut to = BufWriter::new(file);
    fill(&mut to)?;
    to.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Writes `value` as JSON to a `path` that must not exist: of several writers exactly one succeeds, the others get
/// `Ok(false)` and leave its file alone (DESIGN §3.8).
pub(crate) fn write_json_once(path: &Path, value: &impl Serialize) -> Result<bool, StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    let file = temporary(path, &json(path, value)?).and_then(synced).map_err(failed)?;
    let linked = fs::hard_link(file.path(), path);
    // Before the disk is waited for: whoever kills us then leaves no second name.
    drop(file);
    match linked {
        Ok(()) => sync_folder_of(path).map_err(failed).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Somebody was faster, and has cleared up after itself already.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.exists() => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Reads back a JSON file of ours.
pub fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<T, StoreError> {
    let malformed = |message| StoreError::Malformed { path: path.to_owned(), what, message };
    // Whatever lies there, opening it neither follows nor waits.
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::ELOOP as i32) => {
            return Err(malformed("it is a link".to_owned()));
        }
        opened => opened.map_err(StoreError::io("reading", path))?,
    };
    let metadata = file.metadata().map_err(StoreError::io("reading", path))?;
    let size = metadata.len();
    if !metadata.is_file() {
        return Err(malformed("it is not a file".to_owned()));
    }
    if size > JSON_CAP {
        return Err(malformed(format!("it has {size} bytes")));
    }
    // It may grow meanwhile, if somebody means us ill.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(JSON_CAP).read_to_end(&mut bytes).map_err(StoreError::io("reading", path))?;
    let reader = &mut serde_json::Deserializer::from_slice(&bytes);
    let value =
        serde_path_to_error::deserialize(&mut *reader).map_err(|error| malformed(error.to_string()))?;
    reader.end().map_err(|error| malformed(error.to_string()))?;
    Ok(value)
}

/// Refuses a file of another version of its format, which would be understood wrongly.
pub(crate) fn check_schema(
    path: &Path,
    what: &'static str,
    found: u32,
    known: u32,
) -> Result<(), StoreError> {
    if found == known {
        return Ok(());
    }
    let message = format!("it has version {found} of the format, and this proctor knows {known}");
    Err(StoreError::Malformed { path: path.to_owned(), what, message })
}

/// Appends `value` as one line of JSON, with a single write.
pub fn append_line(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::io("writing", path)(error);
    let mut line = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    file.write_all(&line).map_err(failed)
}

fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| StoreError::io("writing", path)(error.into()))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A temporary file beside `path`, as readable as the umask lets results be.
fn temporary(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let readable = Permissions::from_mode(0o644);
    let mut file =
        tempfile::Builder::new().prefix(TEMPORARY).permissions(readable).tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    Ok(file)
}

fn synced(file: NamedTempFile) -> io::Result<NamedTempFile> {
    file.as_file().sync_data()?;
    Ok(file)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder that a file lies in; that of a bare name is the current one.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_writer_of_a_write_once_file_loses_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("outcome.json");
        assert!(write_json_once(&path, &1).unwrap());
        assert!(!write_json_once(&path, &2).unwrap());
        assert_eq!(read_json::<u32>(&path, "number").unwrap(), 1);
        let names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["outcome.json"], "no temporary file is left");
    }

    #[test]
    fn what_could_not_be_written_in_full_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.json");
        write_in_pieces(&path, |to| to.write_all(b"whole")).unwrap();
        let broken = write_in_pieces(&path, |to| {
            to.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(broken.unwrap_err().is_disk_full());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        // A link leads to what is written; nothing is left beside it.
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        write_in_pieces(&dir.path().join("link"), |to| to.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(dir.path().join("link").is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert!(write_in_pieces(Path::new("/dev/full"), |to| to.write_all(b"x")).is_err());
        assert!(write_in_pieces(dir.path(), |to| to.write_all(b"x")).is_err());
    }

    #[test]
    fn a_bare_name_lies_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("x.png")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/x.png")), Path::new("a"));
    }

    #[test]
    fn what_is_no_plain_file_is_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(path("file"), "1").unwrap();
        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for name in ["fifo", "link", "folder"] {
            let read = read_json::<u32>(&path(name), "number");
            assert!(matches!(read, Err(StoreError::Malformed { .. })), "{name}: {read:?}");
        }
    }

    #[test]
    fn an_error_in_a_file_names_the_place() {
        #[derive(Debug, serde::Deserialize)]
        struct Record {
            #[expect(dead_code, reason = "only its reading is of interest")]
            trial: String,
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "{\"trial\": \"a\"}\n x").unwrap();
        let error = read_json::<Record>(&path, "record").unwrap_err().to_string();
        assert!(error.contains("trailing characters"), "{error}");
        fs::write(&path, r#"{"trial": 1}"#).unwrap();
        let error = read_json::<Record>(&path, "record").unwrap_err().to_string();
        assert!(error.contains("trial: invalid type"), "{error}");
    }
}
