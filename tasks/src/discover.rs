//! Finding packages below the paths that a user names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::error::TaskError;
use crate::id::TaskId;
use crate::task::{TASK_FILE, Task};

/// How deep below a named path a package may be.
const MAX_DEPTH: usize = 6;

/// Loads every package at or below `paths`, sorted by name. A path without a package, two packages with one name and
/// packages that cannot be loaded are errors; of the last, all are named at once.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<Task>, TaskError> {
    discover_with(paths, Task::load)
}

/// As [`discover`], but the pictures need not be there yet.
pub fn discover_unrendered(paths: &[PathBuf]) -> Result<Vec<Task>, TaskError> {
    discover_with(paths, Task::load_unrendered)
}

fn discover_with(
    paths: &[PathBuf],
    load: fn(&Path) -> Result<Task, TaskError>,
) -> Result<Vec<Task>, TaskError> {
    let mut seen = BTreeSet::new();
    let mut tasks: BTreeMap<TaskId, Task> = BTreeMap::new();
    let mut failures = Vec::new();
    for path in paths {
        let dirs = package_dirs(path)?;
        if dirs.is_empty() {
            failures.push(TaskError::NoTask { path: path.clone() });
        }
        for dir in dirs {
            let real = dir.canonicalize().map_err(|error| TaskError::io(&dir, error))?;
            if !seen.insert(real) {
                continue;
            }
            match load(&dir) {
                Err(error) => failures.push(error),
                Ok(task) => match tasks.get(task.id()) {
                    Some(first) => failures.push(TaskError::Duplicate {
                        id: task.id().clone(),
                        first: first.dir.clone(),
                        second: dir,
                    }),
                    None => {
                        tasks.insert(task.id().clone(), task);
                    }
                },
            }
        }
    }
    match failures.len() {
        0 => Ok(tasks.into_values().collect()),
        1 => Err(failures.remove(0)),
        _ => Err(TaskError::Several { failures }),
    }
}

/// The packages at or below `path`, sorted. Packages are not nested, links below the path are not followed.
fn package_dirs(path: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let kind = fs::metadata(path).map_err(|error| TaskError::io(path, error))?;
    if !kind.is_dir() {
        // Naming the file inside is an easy slip with one obvious meaning.
        let named = path.file_name().is_some_and(|name| name == TASK_FILE);
        let dir = path.parent().map(|dir| if dir.as_os_str().is_empty() { Path::new(".") } else { dir });
        return Ok(dir.filter(|_| named).map(Path::to_owned).into_iter().collect());
    }
    let mut found = Vec::new();
    let mut walk = WalkDir::new(path).max_depth(MAX_DEPTH).sort_by_file_name().into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry.map_err(|error| {
            let at = error.path().unwrap_or(path).to_owned();
            let source = error.into_io_error().unwrap_or_else(|| std::io::Error::other("a loop of links"));
            TaskError::Io { path: at, source }
        })?;
        let is_dir = entry.file_type().is_dir() || entry.depth() == 0;
        if is_dir && fs::symlink_metadata(entry.path().join(TASK_FILE)).is_ok() {
            found.push(entry.path().to_owned());
            walk.skip_current_dir();
        } else if is_dir && entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".") {
            walk.skip_current_dir();
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn tree(packages: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for package in packages {
            let dir = root.path().join(package);
            let id = dir.file_name().unwrap().to_str().unwrap().to_owned();
            fixture::write(&dir, &id);
        }
        root
    }

    fn names(paths: &[PathBuf]) -> Vec<String> {
        discover(paths).unwrap().iter().map(|task| task.id().to_string()).collect()
    }

    #[test]
    fn trees_and_packages_mix_and_are_sorted() {
        let root = tree(&["x/vao/b", "x/vao/a", "y/c", ".git/d"]);
        let at = |name: &str| root.path().join(name);
        assert_eq!(names(&[at("")]), ["a", "b", "c"]);
        assert_eq!(names(&[at("y/c"), at("x")]), ["a", "b", "c"]);
        assert_eq!(names(&[at("x"), at("x/vao/a"), at("x/vao/a/task.toml")]), ["a", "b"]);
    }

    #[test]
    fn two_packages_with_one_name_are_an_error() {
        let root = tree(&["x/a", "y/a"]);
        assert!(matches!(discover(&[root.path().to_owned()]), Err(TaskError::Duplicate { .. })));
    }

    #[test]
    fn all_unreadable_packages_are_named_at_once() {
        let root = tree(&["a", "b", "c"]);
        for name in ["a", "b"] {
            fs::write(root.path().join(name).join("task.toml"), "x").unwrap();
        }
        let error = discover(&[root.path().to_owned()]).unwrap_err();
        assert!(matches!(error, TaskError::Several { failures } if failures.len() == 2));
    }

    #[test]
    fn a_path_without_packages_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(discover(&[root.path().to_owned()]), Err(TaskError::NoTask { .. })));
        assert!(matches!(discover(&[root.path().join("none")]), Err(TaskError::Io { .. })));
    }
}
