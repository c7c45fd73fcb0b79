//! Folders that live as long as their owner: for rooms and for sockets. A runner that was killed leaves them behind;
//! the file that names their owner says whose they were.
//!
//! A runner can be killed between any two steps here, so each leaves something that the next can tell: a folder has its
//! owner in it, or nothing that counts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use crate::{Holder, StoreError, remove_tree};

/// How their names begin; six letters or digits follow.
const PREFIX: &str = "proctor-";
/// The file that names the owner.
const OWNER: &str = "owner";
/// The same while it is being written.
const UNSIGNED: &str = "owner.new";
/// Who clears up may be faster than who makes a folder, but not again and again.
const ATTEMPTS: u32 = 64;

/// A new folder in `parent`, which is made if need be, that belongs to `owner`.
pub fn owned_folder(parent: &Path, owner: &Holder) -> Result<TempDir, StoreError> {
    let make = || -> io::Result<TempDir> {
        fs::create_dir_all(parent)?;
        let _quiet = undisturbed(parent);
        // What is in it is for rooms, which are given folders of it, and for nobody else on the host.
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(parent)?;
        let unsigned = folder.path().join(UNSIGNED);
        // Some of these folders are mounted into rooms, where the name of this machine is nobody's business.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unsigned)?;
        file.write_all(&serde_json::to_vec(owner)?)?;
        fs::rename(&unsigned, folder.path().join(OWNER))?;
        Ok(folder)
    };
    for _ in 1..ATTEMPTS {
        match make() {
            // Another process has removed the folder, or its parent, while it was empty: before we came to use it, or
            // between the two looks that `create_dir_all` takes at it.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {}
            made => return made.map_err(StoreError::io("creating", parent)),
        }
    }
    make().map_err(StoreError::io("creating", parent))
}

/// Removes every such folder in `parent` whose owner is gone. Those of another machine are left alone.
pub fn remove_orphans(parent: &Path) -> Result<(), StoreError> {
    let Ok(entries) = fs::read_dir(parent) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| is_ours(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        match Holder::read(&path.join(OWNER)) {
            Some(owner) if owner.is_gone() => claim_and_remove(&path)?,
            Some(_) => {}
            None => {
                // Its owner was killed before it was signed, or when all else had been removed. If one is just about to
                // sign it, that fails and it makes another. What holds anything else is not ours, and stays.
                let _quiet = undisturbed(parent);
                if path.join(OWNER).exists() {
                    continue;
                }
                let _ = fs::remove_file(path.join(UNSIGNED));
                let _ = fs::remove_dir(&path);
            }
        }
    }
    Ok(())
}

/// While this is held, nobody takes a folder that is just being made for one that was left behind. Where a file system knows no
/// locks, trying again has to do.
fn undisturbed(parent: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(parent).ok()?, FlockArg::LockExclusive).ok()
}

/// Of several who remove a folder at once the last to give it a name of its own does; the others find nothing any more.
fn claim_and_remove(path: &Path) -> Result<(), StoreError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.split('.').next().unwrap_or_default();
    let claimed = path.with_file_name(format!("{name}.{}", std::process::id()));
    match fs::rename(path, &claimed) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.map_err(StoreError::io("removing", path)).and_then(|()| remove_tree(&claimed)),
    }
}

/// Whether a folder has a name as they have, or as one that is being removed.
fn is_ours(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let (letters, claim) = rest.split_once('.').unwrap_or((rest, ""));
    letters.len() == 6
        && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && claim.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn us() -> Holder {
        Holder::this_process(None).unwrap()
    }

    fn dead() -> Holder {
        Holder { start: us().start + 1, ..us() }
    }

    #[test]
    fn only_what_a_dead_owner_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |owner: &Holder| owned_folder(parent.path(), owner).unwrap().keep();
        let elsewhere = Holder { host: "another".into(), boot: "another".into(), ..dead() };
        let elsewhen = Holder { boot: "an earlier one".into(), ..us() };
        let unseen = Holder { namespace: "pid:[1]".into(), ..dead() };
        let kept = [folder(&us()), folder(&elsewhere), folder(&unseen)];
        let gone = [folder(&dead()), folder(&elsewhen)];
        fs::create_dir_all(gone[0].join("work/deep")).unwrap();
        let strangers = [parent.path().join("proctor-notes1"), parent.path().join("proctor-x")];
        for stranger in &strangers {
            fs::create_dir(stranger).unwrap();
        }
        fs::write(strangers[0].join("letter"), "").unwrap();
        remove_orphans(parent.path()).unwrap();
        assert!(kept.iter().chain(&strangers).all(|it| it.exists()));
        assert!(gone.iter().all(|it| !it.exists()));
    }

    #[test]
    fn what_was_killed_on_the_way_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let names = ["proctor-aaaaaa", "proctor-bbbbbb", "proctor-cccccc.17", "proctor-dddddd.17"];
        let folders = names.map(|name| parent.path().join(name));
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        fs::write(folders[1].join(UNSIGNED), "{").unwrap();
        fs::write(folders[3].join(OWNER), serde_json::to_vec(&dead()).unwrap()).unwrap();
        remove_orphans(parent.path()).unwrap();
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    /// Whoever waits for this goes on waiting if nobody says it, a failed test included.
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn folders_are_made_and_removed_while_others_clear_up() {
        let parent = tempfile::tempdir().unwrap();
        let rooms = parent.path().join("rooms");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = Ended(&stop);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        remove_orphans(&rooms).unwrap();
                        let _ = fs::remove_dir(&rooms);
                        // Nobody clears up without a pause.
                        std::thread::sleep(std::time::Duration::from_micros(300));
                    }
                });
            }
            for _ in 0..300 {
                let ours = owned_folder(&rooms, &us()).unwrap();
                let orphan = owned_folder(&rooms, &dead()).unwrap().keep();
                // It may be gone by now, which nobody may undo.
                let _ = fs::create_dir(orphan.join("a")).and_then(|()| fs::create_dir(orphan.join("a/b")));
                assert!(ours.path().join(OWNER).exists());
            }
            drop(ended);
        });
        remove_orphans(&rooms).unwrap();
        let left: Vec<_> = fs::read_dir(&rooms).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
