//! Installing a CLI, once, into a cache; trials mount it read-only from there.
//!
//! `npm` is only the carrier: it runs no script of any package, and only the few files that are needed leave its tree.
//! Each installation is made in a folder of its own and moved into place whole, so that any number of them may run
//! at once and a killed one leaves nothing that could be taken for an installation.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use proctor_traces::{Digest, Timestamp};
use serde_json::Value;

use crate::HarnessName;
use crate::id::Version;
use crate::kept_tree::{KeptTree, keep_tree};
use crate::manifest::{
    InstallManifest, Installed, InstalledFile, InstalledPackage, digest_of, install_dir, read,
};

/// How a version of a harness is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallSpec {
    /// Which harness.
    pub name: HarnessName,
    /// Which version.
    pub version: Version,
    /// What `npm` is asked for.
    pub packages: Vec<NpmPackage>,
    /// The files that are kept.
    pub files: Vec<KeptFile>,
    /// Whole packages that are kept, of CLIs that are more than a few files.
    pub tree: Option<KeptTree>,
    /// The day (as in `2026-11-30`) after which nothing published is taken. It makes ranges of versions, by which packages
    /// name what they depend on, mean the same on every day.
    pub before: Option<String>,
}

/// A package to ask `npm` for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpmPackage {
    /// Its name and version, as an argument of `npm install`.
    pub spec: String,
    /// Its folder in `node_modules`.
    pub folder: String,
}

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// Where it lies in `node_modules`.
    pub from: String,
    /// Where it is to lie in the installation.
    pub to: String,
    /// Whether the harness cannot work without it.
    pub required: bool,
    /// What its digest must be, for versions that were looked at when this was written.
    pub pin: Option<Digest>,
}

/// The `npm` to run. It inherits the environment of this process, where proxies and mirrors are set.
#[derive(Clone, Debug)]
pub struct NpmCommand {
    /// The program, as a path or a name to be looked up.
    pub program: OsString,
    /// Further environment.
    pub env: Vec<(OsString, OsString)>,
}

impl Default for NpmCommand {
    fn default() -> Self {
        Self { program: "npm".into(), env: Vec::new() }
    }
}

/// How far an installation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallStep {
    /// `npm` is fetching; some hundred MB.
    Downloading {
        /// What it was asked for.
        specs: Vec<String>,
    },
    /// The files are read and compared with their pins.
    Checking,
    /// It is in place.
    Done {
        /// Whether it had been there before.
        already: bool,
    },
}

/// An installation that failed. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no `npm`.
    #[error("`{program}` cannot be started")]
    NoNpm {
        /// What was tried.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// `npm` failed.
    #[error("npm could not install {specs}: {message}")]
    Npm {
        /// What it was asked for.
        specs: String,
        /// The end of what it said.
        message: String,
    },
    /// The packages do not hold what is needed.
    #[error("version {version} of {name} has no file {file}: it is laid out in a way that is not known")]
    Layout {
        /// The harness.
        name: HarnessName,
        /// The version.
        version: Version,
        /// The file missed.
        file: String,
    },
    /// A file is not the one that was looked at when its digest was written down, or not the one installed.
    #[error("{path} has the digest {found}, and not {expected}", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: Digest,
        /// What is there.
        found: Digest,
    },
    /// The file system refused.
    #[error("{action} {path}", path = path.display())]
    Io {
        /// As in "creating".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl InstallError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoNpm { .. } => Some("install npm (on Debian: `apt-get install npm`)"),
            Self::Npm { .. } => Some(
                "is that a published version, and can this machine reach an npm registry? proxies and mirrors are \
                 taken from npm's own settings",
            ),
            Self::Layout { .. } => {
                Some("try a newer version; `proctor harness list` shows the ones that are known")
            }
            Self::Changed { .. } => {
                Some("the file was replaced or damaged: remove its folder and install again; do not use it")
            }
            Self::Io { .. } => None,
        }
    }
}

/// How long a folder of a killed installation is left alone.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// Beginning of the names of folders in which installations are made.
const SCRATCH: &str = ".installing-";

/// Installs what `spec` describes into `<cache>/harnesses/<name>/<version>/`, unless it is there. Blocks for as long
/// as `npm` takes.
pub fn install(
    spec: &InstallSpec,
    cache: &Path,
    npm: &NpmCommand,
    progress: &mut dyn FnMut(InstallStep),
) -> Result<Installed, InstallError> {
    if let Some(installed) = read(cache, spec.name, &spec.version) {
        progress(InstallStep::Done { already: true });
        return Ok(installed);
    }
    let root = cache.join("harnesses");
    fs::create_dir_all(&root).map_err(failed("creating", &root))?;
    remove_stale(&root);
    let scratch =
        tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&root).map_err(failed("creating", &root))?;

    progress(InstallStep::Downloading { specs: spec.packages.iter().map(|p| p.spec.clone()).collect() });
    let carried = scratch.path().join("npm");
    fs::create_dir(&carried).map_err(failed("creating", &carried))?;
    run_npm(spec, npm, &carried)?;

    progress(InstallStep::Checking);
    let tree = scratch.path().join("tree");
    let manifest = keep(spec, &carried, &tree)?;
    move_into_place(spec, cache, scratch.path(), &tree)?;
    progress(InstallStep::Done { already: false });
    Ok(Installed { dir: install_dir(cache, spec.name, &spec.version), manifest })
}

fn run_npm(spec: &InstallSpec, npm: &NpmCommand, prefix: &Path) -> Result<(), InstallError> {
    let specs: Vec<&str> = spec.packages.iter().map(|package| package.spec.as_str()).collect();
    let output = Command::new(&npm.program)
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
        .arg(prefix)
        .args(spec.before.iter().map(|day| format!("--before={day}")))
        .args(&specs)
        .envs(npm.env.iter().map(|(name, value)| (name, value)))
        // Settings of a project that the user happens to stand in are none of ours.
        .current_dir(prefix)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| InstallError::NoNpm {
            program: npm.program.to_string_lossy().into_owned(),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let message = match lines[lines.len().saturating_sub(6)..].join("; ") {
        empty if empty.is_empty() => output.status.to_string(),
        tail => tail,
    };
    Err(InstallError::Npm { specs: specs.join(" "), message })
}

/// Moves the files that are needed from npm's tree into `tree`, and writes down what they are.
fn keep(spec: &InstallSpec, carried: &Path, tree: &Path) -> Result<InstallManifest, InstallError> {
    let mut files = Vec::new();
    for file in &spec.files {
        let from = carried.join("node_modules").join(&file.from);
        // A link could lead out of the tree; no package of these holds one.
        if !fs::symlink_metadata(&from).is_ok_and(|metadata| metadata.is_file()) {
            if file.required {
                let (name, version) = (spec.name, spec.version.clone());
                return Err(InstallError::Layout { name, version, file: file.from.clone() });
            }
            continue;
        }
        let found = digest_of(&from).map_err(failed("reading", &from))?;
        if let Some(expected) = file.pin.filter(|pin| *pin != found.digest) {
            return Err(InstallError::Changed {
                path: PathBuf::from(&file.from),
                expected,
                found: found.digest,
            });
        }
        let to = tree.join(&file.to);
        let parent = to.parent().unwrap_or(tree);
        fs::create_dir_all(parent).map_err(failed("creating", parent))?;
        fs::rename(&from, &to).map_err(failed("moving", &from))?;
        // The agent runs as another user than the one who installs, whose umask may be narrow.
        for path in [parent, &to, tree] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
                .map_err(failed("opening up", path))?;
        }
        files.push(InstalledFile { path: file.to.clone(), bytes: found.bytes, digest: found.digest });
    }
    if let Some(kept) = &spec.tree {
        files.extend(keep_tree(kept, &carried.join("node_modules"), tree)?);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));

    let lock = fs::read(carried.join("node_modules/.package-lock.json")).unwrap_or_default();
    let lock: Value = serde_json::from_slice(&lock).unwrap_or_default();
    let package = |package: &NpmPackage| InstalledPackage {
        spec: package.spec.clone(),
        integrity: lock["packages"][format!("node_modules/{}", package.folder)]["integrity"]
            .as_str()
            .map(str::to_owned),
    };
    let manifest = InstallManifest {
        name: spec.name,
        version: spec.version.clone(),
        pinned: spec.files.iter().filter(|file| file.required).all(|file| file.pin.is_some())
            && spec.tree.as_ref().is_none_or(|tree| !tree.pins.is_empty()),
        packages: spec.packages.iter().map(package).collect(),
        files,
        installed_at: Timestamp::now(),
    };
    let path = tree.join(InstallManifest::FILE_NAME);
    let json =
        serde_json::to_vec_pretty(&manifest).map_err(io::Error::from).map_err(failed("writing", &path))?;
    fs::write(&path, json).map_err(failed("writing", &path))?;
    Ok(manifest)
}

/// Moves a whole installation to its place. If another process was first, its installation stays.
fn move_into_place(
    spec: &InstallSpec,
    cache: &Path,
    scratch: &Path,
    tree: &Path,
) -> Result<(), InstallError> {
    let place = install_dir(cache, spec.name, &spec.version);
    let parent = place.parent().unwrap_or(cache);
    fs::create_dir_all(parent).map_err(failed("creating", parent))?;
    if fs::rename(tree, &place).is_ok() || read(cache, spec.name, &spec.version).is_some() {
        return Ok(());
    }
    // What is there is no whole installation: it goes away with the scratch folder.
    fs::rename(&place, scratch.join("broken")).map_err(failed("removing", &place))?;
    match fs::rename(tree, &place) {
        Err(_) if read(cache, spec.name, &spec.version).is_some() => Ok(()),
        moved => moved.map_err(failed("moving into place", &place)),
    }
}

/// Removes what killed installations left. Failing at it is no reason to fail.
fn remove_stale(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        let is_scratch = entry.file_name().to_string_lossy().starts_with(SCRATCH);
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if is_scratch && age.is_some_and(|age| age > STALE) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

pub(crate) fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> InstallError + 'a {
    move |source| InstallError::Io { action, path: path.to_owned(), source }
}

/// What npm calls the processor of this machine; none where the CLIs are not published.
pub(crate) fn npm_cpu() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("x64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

/// The digest written down for a file of a version; only x86-64 was looked at.
pub(crate) fn pinned(pins: &[(&str, &str, &str)], cpu: &str, version: &str, file: &str) -> Option<Digest> {
    let (_, _, hex) = pins.iter().find(|(v, f, _)| cpu == "x64" && *v == version && *f == file)?;
    format!("sha256:{hex}").parse().ok()
}
