//! Task packages that a test changes.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::sample;

/// A copy of a sample package.
pub(crate) struct Package {
    _folder: TempDir,
    path: PathBuf,
}

impl Package {
    /// Copies the sample `id`.
    pub(crate) fn of(id: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("pkg-").tempdir().expect("a temporary folder");
        let (from, path) = (sample(id), folder.path().join(id));
        for entry in
            walkdir::WalkDir::new(&from).into_iter().map(|entry| entry.expect("the samples are readable"))
        {
            let target = path.join(entry.path().strip_prefix(&from).expect("it lies below"));
            if entry.file_type().is_dir() {
                fs::create_dir_all(target).expect("a folder");
            } else {
                fs::copy(entry.path(), target).expect("a copy");
            }
        }
        Self { _folder: folder, path }
    }

    /// With this text in one of its files.
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.path.join(name), text).expect("a file");
        self
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
