//! What is installed: `install.json` beside the files of each version.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use proctor_traces::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::HarnessName;
use crate::id::Version;
use crate::install::InstallError;

/// `<cache>/harnesses/<name>/<version>/install.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallManifest {
    /// Which harness.
    pub name: HarnessName,
    /// Its version.
    pub version: Version,
    /// Every file kept, in the order of their paths.
    pub files: Vec<InstalledFile>,
    /// The packages they came from.
    pub packages: Vec<InstalledPackage>,
    /// Whether every executable was compared with a digest that is part of proctor.
    pub pinned: bool,
    /// When.
    pub installed_at: Timestamp,
}

/// A file of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledFile {
    /// Its path, relative to the installation.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Digest of its bytes.
    pub digest: Digest,
}

/// A package that was installed from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPackage {
    /// What `npm` was asked for.
    pub spec: String,
    /// The integrity value that `npm` checked, if it wrote one down.
    pub integrity: Option<String>,
}

/// An installed version of a harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The folder to mount read-only; executables are in its `bin/`.
    pub dir: PathBuf,
    /// What is in it.
    pub manifest: InstallManifest,
}

impl InstallManifest {
    /// Name of the file.
    pub const FILE_NAME: &'static str = "install.json";

    /// Digest over the names and digests of all files: equal exactly if the same bytes run.
    pub fn digest(&self) -> Digest {
        let parts: Vec<(&str, String)> =
            self.files.iter().map(|file| (file.path.as_str(), file.digest.to_string())).collect();
        Digest::of_parts(parts.iter().map(|(path, digest)| (*path, digest.as_bytes())))
    }
}

/// Where a version is, or will be, installed.
pub(crate) fn install_dir(cache: &Path, name: HarnessName, version: &Version) -> PathBuf {
    harness_dir(cache, name).join(&**version)
}

fn harness_dir(cache: &Path, name: HarnessName) -> PathBuf {
    cache.join("harnesses").join(name.as_str())
}

/// Everything installed in `cache`, by name and version. Folders that hold no readable manifest, or files of another
/// size than it says, are no installations; installing that version again replaces them.
pub fn installed(cache: &Path) -> Vec<Installed> {
    let mut found = Vec::new();
    for name in HarnessName::ALL {
        let Ok(entries) = fs::read_dir(harness_dir(cache, name)) else { continue };
        for entry in entries.flatten() {
            let version = entry.file_name().to_str().and_then(|text| text.parse::<Version>().ok());
            found.extend(version.and_then(|version| read(cache, name, &version)));
        }
    }
    found.sort_by(|a, b| (a.manifest.name, &a.manifest.version).cmp(&(b.manifest.name, &b.manifest.version)));
    found
}

/// The installation of one version, if it is whole.
pub(crate) fn read(cache: &Path, name: HarnessName, version: &Version) -> Option<Installed> {
    let dir = install_dir(cache, name, version);
    let manifest: InstallManifest =
        serde_json::from_slice(&fs::read(dir.join(InstallManifest::FILE_NAME)).ok()?).ok()?;
    let is_whole = manifest.name == name
        && manifest.version == *version
        && manifest.files.iter().all(|file| {
            fs::symlink_metadata(dir.join(&file.path))
                .is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.bytes)
        });
    is_whole.then_some(Installed { dir, manifest })
}

/// Reads every file of an installation and compares it with the manifest. Takes about a second for each GB; listings
/// and runs are content with the sizes.
pub fn verify(installed: &Installed) -> Result<(), InstallError> {
    for file in &installed.manifest.files {
        let path = installed.dir.join(&file.path);
        let found = digest_of(&path).map_err(|source| InstallError::Io {
            action: "reading",
            path: path.clone(),
            source,
        })?;
        if found.digest != file.digest {
            return Err(InstallError::Changed { path, expected: file.digest, found: found.digest });
        }
    }
    Ok(())
}

/// Digest and size of the file at `path`.
pub(crate) struct FileDigest {
    pub(crate) digest: Digest,
    pub(crate) bytes: u64,
}

pub(crate) fn digest_of(path: &Path) -> io::Result<FileDigest> {
    let (digest, bytes) = Digest::of_reader(File::open(path)?)?;
    Ok(FileDigest { digest, bytes })
}
