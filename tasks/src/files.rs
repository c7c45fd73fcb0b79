//! The files of a package: listed without following links, read within caps.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use proctor_traces::Digest;
use walkdir::WalkDir;

use crate::error::TaskError;

/// The most files that a package may hold.
pub const MAX_FILES: usize = 500;
/// The largest file of a package, in bytes.
pub const MAX_FILE_BYTES: u64 = 32 << 20;
/// The largest package, in bytes.
pub const MAX_PACKAGE_BYTES: u64 = 128 << 20;
/// The largest TOML file of a package, in bytes.
pub(crate) const MAX_TEXT_BYTES: u64 = 1 << 20;
const MAX_DEPTH: usize = 8;

/// The regular files of one package by their path inside it (with `/`), each with its size in bytes.
#[derive(Clone, Debug)]
pub(crate) struct PackageFiles {
    dir: PathBuf,
    sizes: BTreeMap<String, u64>,
}

impl PackageFiles {
    /// Lists `dir`. Anything but plain files and folders within the caps is an error.
    pub(crate) fn list(dir: &Path) -> Result<Self, TaskError> {
        let mut sizes = BTreeMap::new();
        let mut total = 0;
        for entry in WalkDir::new(dir).min_depth(1).follow_links(false).follow_root_links(false) {
            let entry = entry.map_err(|error| {
                let path = error.path().unwrap_or(dir).to_owned();
                let source =
                    error.into_io_error().unwrap_or_else(|| std::io::Error::other("a loop of links"));
                TaskError::Io { path, source }
            })?;
            let path = entry.path();
            if entry.depth() > MAX_DEPTH {
                return Err(TaskError::refused(
                    path,
                    "too deep in the package",
                    "keep at most 8 levels of folders",
                ));
            }
            if entry.file_type().is_dir() {
                continue;
            }
            if !entry.file_type().is_file() {
                let hint = "packages hold plain files and folders only; put a copy of the file there";
                return Err(TaskError::refused(path, "is a link or a special file", hint));
            }
            let size = fs::symlink_metadata(path).map_err(|error| TaskError::io(path, error))?.len();
            if size > MAX_FILE_BYTES {
                let reason = format!("has {size} bytes, more than {MAX_FILE_BYTES}");
                return Err(TaskError::refused(path, reason, "make the file smaller"));
            }
            total += size;
            if sizes.len() >= MAX_FILES || total > MAX_PACKAGE_BYTES {
                let reason =
                    format!("more than {MAX_FILES} files or {MAX_PACKAGE_BYTES} bytes in one package");
                return Err(TaskError::refused(dir, reason, "remove what does not belong to the task"));
            }
            sizes.insert(inside_name(dir, path)?, size);
        }
        Ok(Self { dir: dir.to_owned(), sizes })
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.sizes.contains_key(name)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.sizes.keys().map(String::as_str)
    }

    /// The size of a file in bytes.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        self.sizes.get(name).copied()
    }

    /// The content of a file, of at most `cap` bytes.
    pub(crate) fn bytes(&self, name: &str, cap: u64) -> Result<Vec<u8>, TaskError> {
        let path = self.path(name);
        let file = File::open(&path).map_err(|error| TaskError::io(&path, error))?;
        let mut bytes = Vec::new();
        file.take(cap + 1).read_to_end(&mut bytes).map_err(|error| TaskError::io(&path, error))?;
        if bytes.len() as u64 > cap {
            return Err(TaskError::refused(
                &path,
                format!("has more than {cap} bytes"),
                "make the file smaller",
            ));
        }
        Ok(bytes)
    }

    /// The content of a text file in UTF-8, of at most 1 MiB.
    pub(crate) fn text(&self, name: &str) -> Result<String, TaskError> {
        String::from_utf8(self.bytes(name, MAX_TEXT_BYTES)?)
            .map_err(|_| TaskError::refused(&self.path(name), "is not UTF-8", "save the file as UTF-8"))
    }

    /// The digest of all names and contents.
    pub(crate) fn digest(&self) -> Result<Digest, TaskError> {
        let mut contents = Vec::with_capacity(self.sizes.len());
        for name in self.names() {
            contents.push((name, Digest::of(&self.bytes(name, MAX_FILE_BYTES)?).to_string()));
        }
        Ok(Digest::of_parts(contents.iter().map(|(name, digest)| (*name, digest.as_bytes()))))
    }
}

/// The path of a file inside its package, with `/`. Names that are not UTF-8 are refused: they could not be written
/// into a TOML file or a table.
fn inside_name(dir: &Path, path: &Path) -> Result<String, TaskError> {
    let inside = path.strip_prefix(dir).unwrap_or(path);
    inside
        .to_str()
        .map(str::to_owned)
        .ok_or_else(|| TaskError::refused(path, "has a name that is not UTF-8", "rename the file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_refused_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "x").unwrap();
        assert!(PackageFiles::list(dir.path()).unwrap().contains("a"));
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("b")).unwrap();
        assert!(matches!(PackageFiles::list(dir.path()), Err(TaskError::Refused { .. })));
        fs::remove_file(dir.path().join("b")).unwrap();
        std::os::unix::fs::symlink("/etc", dir.path().join("folder")).unwrap();
        assert!(matches!(PackageFiles::list(dir.path()), Err(TaskError::Refused { .. })));
    }

    #[test]
    fn a_huge_file_is_refused_without_reading_it() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("huge")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        assert!(matches!(PackageFiles::list(dir.path()), Err(TaskError::Refused { .. })));
    }

    #[test]
    fn the_digest_sees_names_and_contents() {
        let digest = |files: &[(&str, &str)]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, content) in files {
                let path = dir.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            PackageFiles::list(dir.path()).unwrap().digest().unwrap()
        };
        assert_eq!(digest(&[("a", "1"), ("b/c", "2")]), digest(&[("b/c", "2"), ("a", "1")]));
        assert_ne!(digest(&[("a", "1")]), digest(&[("b", "1")]));
        assert_ne!(digest(&[("a", "1")]), digest(&[("a", "2")]));
    }
}
