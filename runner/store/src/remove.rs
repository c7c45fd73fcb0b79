//! Removes trees that an agent may have made hard to remove.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// How often a removal begins again because of others. Every round but the last removes something, or another does.
const MOST_ROUNDS: u32 = 10_000;

/// Removes a tree that an agent may have made hard to remove: folders without permissions are opened first, and
/// folders within folders are moved to its top before they are emptied, so that no path is too long and nothing
/// recurses, however deep they lie. Links are removed, never followed. What lies at the top goes last: the file there
/// that names the owner is gone only when all else is. A tree that is not there is fine.
///
/// Others may be removing the same tree: processes that end together clear up after the same dead one.
pub fn remove_tree(path: &Path) -> Result<(), StoreError> {
    let mut rounds = 0;
    loop {
        rounds += 1;
        match remove(path) {
            // Something vanished, or came to lie at the top, under our hands.
            Err(error) if is_anothers_doing(&error) && rounds < MOST_ROUNDS && is_there(path) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other.map_err(StoreError::io("removing", path)),
        }
    }
}

fn is_anothers_doing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn remove(top: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(top)?.is_dir() {
        return fs::remove_file(top);
    }
    open_up(top);
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        let kind = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
        kind.push(entry.path());
    }
    let mut number = 0;
    while let Some(folder) = folders.pop() {
        open_up(&folder);
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                let moved = free_name(top, &mut number);
                // A folder that moves has its own `..` rewritten, for which it must be writable.
                open_up(&entry.path());
                fs::rename(entry.path(), &moved)?;
                folders.push(moved);
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_dir(&folder)?;
    }
    files.iter().try_for_each(fs::remove_file)?;
    fs::remove_dir(top)
}

/// A name in `top` that nothing has.
fn free_name(top: &Path, number: &mut u64) -> PathBuf {
    loop {
        *number += 1;
        let name = top.join(format!(".gone-{number}"));
        if fs::symlink_metadata(&name).is_err() {
            return name;
        }
    }
}

fn open_up(folder: &Path) {
    // What cannot be opened shows as the error of the removal.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_without_permissions_is_removed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        std::os::unix::fs::symlink(&kept, tree.join("a/link")).unwrap();
        fs::set_permissions(tree.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(tree.join("a"), Permissions::from_mode(0o000)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(kept.join("file").exists());
    }

    #[test]
    fn many_who_remove_one_tree_all_succeed_and_nothing_of_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            let tree = dir.path().join("tree");
            for folder in 0..8 {
                let path = tree.join(format!("{folder}/a/b"));
                fs::create_dir_all(&path).unwrap();
                for file in 0..8 {
                    fs::write(path.join(file.to_string()), "x").unwrap();
                }
            }
            std::thread::scope(|scope| {
                let removals: Vec<_> = (0..4).map(|_| scope.spawn(|| remove_tree(&tree))).collect();
                for it in removals {
                    it.join().unwrap().unwrap();
                }
            });
            assert!(!tree.exists());
        }
    }

    #[test]
    fn a_tree_deeper_than_any_path_and_any_stack_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        // Built from the inside out, since no path reaches the innermost folder.
        fs::create_dir(&tree).unwrap();
        for _ in 0..3_000 {
            let around = dir.path().join("around");
            fs::create_dir(&around).unwrap();
            fs::rename(&tree, around.join("d")).unwrap();
            fs::rename(&around, &tree).unwrap();
        }
        fs::create_dir(tree.join(".gone-1")).unwrap();
        std::thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(move || remove_tree(&tree).unwrap())
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
