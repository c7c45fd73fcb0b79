//! Whole packages, as CLIs that run on node consist of them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proctor_traces::Digest;

use crate::install::{InstallError, failed};
use crate::manifest::{InstalledFile, digest_of};

/// All packages that `npm` laid down, kept as `node_modules`: node looks for packages in folders of that name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptTree {
    /// Folders in `node_modules` that are not kept.
    pub except: Vec<String>,
    /// What the digests of packages must be.
    pub pins: Vec<PackagePin>,
}

/// A package whose bytes are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagePin {
    /// Its folder in `node_modules`.
    pub folder: String,
    /// Digest over the names and digests of those of its files that are kept, without packages inside it.
    pub digest: Digest,
}

/// The folder that packages are kept in.
const FOLDER: &str = "node_modules";
/// Endings of files that no program reads: type declarations and maps for debuggers, half of all files.
const UNREAD: [&str; 4] = [".map", ".d.ts", ".d.mts", ".d.cts"];
/// Deepest nesting of folders that is followed.
const DEPTH_CAP: usize = 40;

/// Moves the packages in `from` into `tree`, and compares them with their pins.
pub(crate) fn keep_tree(
    kept: &KeptTree,
    from: &Path,
    tree: &Path,
) -> Result<Vec<InstalledFile>, InstallError> {
    let mut paths = Vec::new();
    walk(from, Path::new(""), kept, 0, &mut paths)?;
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let (old, new) = (from.join(&path), tree.join(FOLDER).join(&path));
        let found = digest_of(&old).map_err(failed("reading", &old))?;
        let parent = new.parent().unwrap_or(tree);
        fs::create_dir_all(parent).map_err(failed("creating", parent))?;
        fs::rename(&old, &new).map_err(failed("moving", &old))?;
        open_up(&new).map_err(failed("opening up", &new))?;
        let name = Path::new(FOLDER).join(&path).to_string_lossy().into_owned();
        files.push(InstalledFile { path: name, bytes: found.bytes, digest: found.digest });
    }
    for pin in &kept.pins {
        let found = package_digest(&pin.folder, &files);
        if found != pin.digest {
            let path = PathBuf::from(&pin.folder);
            return Err(InstallError::Changed { path, expected: pin.digest, found });
        }
    }
    let folder = tree.join(FOLDER);
    open_folders(&folder, 0).map_err(failed("opening up", &folder))?;
    Ok(files)
}

/// Digest of one package among `files`.
fn package_digest(folder: &str, files: &[InstalledFile]) -> Digest {
    let prefix = format!("{FOLDER}/{folder}/");
    let own = files.iter().filter_map(|file| {
        let path = file.path.strip_prefix(&prefix)?;
        (!path.starts_with("node_modules/")).then(|| (path, file.digest.to_string()))
    });
    let own: Vec<_> = own.collect();
    Digest::of_parts(own.iter().map(|(path, digest)| (*path, digest.as_bytes())))
}

/// Every plain file worth keeping, relative to `root`. Links are left out: npm makes some to programs that nobody
/// starts, and others could lead anywhere.
fn walk(
    root: &Path,
    inside: &Path,
    kept: &KeptTree,
    depth: usize,
    paths: &mut Vec<PathBuf>,
) -> Result<(), InstallError> {
    let folder = root.join(inside);
    if depth > DEPTH_CAP || kept.except.iter().any(|except| inside == Path::new(except)) {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).map_err(failed("reading", &folder))? {
        let entry = entry.map_err(failed("reading", &folder))?;
        let kind = entry.file_type().map_err(failed("reading", &folder))?;
        let path = inside.join(entry.file_name());
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if kind.is_dir() {
            walk(root, &path, kept, depth + 1, paths)?;
        } else if kind.is_file()
            && name != ".package-lock.json"
            && !UNREAD.iter().any(|ending| name.ends_with(ending))
        {
            paths.push(path);
        }
    }
    Ok(())
}

/// The agent runs as another user than the one who installs, whose umask may be narrow.
fn open_up(file: &Path) -> io::Result<()> {
    let is_program = fs::metadata(file)?.permissions().mode() & 0o100 != 0;
    fs::set_permissions(file, fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))
}

fn open_folders(folder: &Path, depth: usize) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && depth <= DEPTH_CAP {
            open_folders(&entry.path(), depth + 1)?;
        }
    }
    Ok(())
}
