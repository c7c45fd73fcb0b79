//! Folders that live as long as their owner: for rooms and for sockets. A runner that was killed leaves them behind;
//! the file that names their owner says whose they were.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::{Owner, StoreError, remove_tree};

/// How their names begin.
const PREFIX: &str = "proctor-";
/// The file that names the owner.
const OWNER: &str = "owner";

/// A new folder in `parent` that belongs to `owner`.
pub fn owned_folder(parent: &Path, owner: &Owner) -> Result<TempDir, StoreError> {
    let folder = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(parent)
        .map_err(StoreError::io("creating", parent))?;
    let path = folder.path().join(OWNER);
    fs::write(&path, owner.to_string()).map_err(StoreError::io("writing", &path))?;
    Ok(folder)
}

/// Removes every such folder in `parent` whose owner is gone. What names no owner is left alone.
pub fn remove_orphans(parent: &Path) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(parent) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let owner = fs::read_to_string(entry.path().join(OWNER)).ok().and_then(|text| Owner::parse(&text));
        if owner.is_some_and(|owner| !owner.is_alive()) {
            remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_owner_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let ours = owned_folder(parent.path(), &Owner::this_process().unwrap()).unwrap();
        let dead = owned_folder(parent.path(), &Owner::parse("another-boot:1:1").unwrap()).unwrap().keep();
        let nobodys = parent.path().join("proctor-x");
        fs::create_dir(&nobodys).unwrap();
        remove_orphans(parent.path()).unwrap();
        assert!(ours.path().exists() && nobodys.exists() && !dead.exists());
    }
}
