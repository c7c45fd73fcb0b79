//! Who runs a trial. A lease is a file that names its owner; it is taken by creating it, and a dead owner's is taken
//! over by renaming it away first, which only one of several takers can do.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{Owner, StoreError};

/// The right to run a trial, given back when dropped.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
}

/// What came of asking for a lease.
#[derive(Debug)]
pub enum LeaseHolder {
    /// It is ours.
    Ours(Lease),
    /// A living process has it.
    Other(String),
}

impl Lease {
    /// Takes the lease at `path` for `owner`, from a dead owner if need be.
    pub fn take(path: &Path, owner: &Owner) -> Result<LeaseHolder, StoreError> {
        // A lease can vanish or appear between looking and taking; whoever keeps losing that race meets a living owner.
        for _ in 0..16 {
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(mut file) => {
                    file.write_all(owner.to_string().as_bytes()).map_err(StoreError::io("writing", path))?;
                    return Ok(LeaseHolder::Ours(Self { path: path.to_owned() }));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(StoreError::io("writing", path)(error));
                }
                Err(_) => {}
            }
            let holder = match fs::read(path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // Something that we never wrote names no owner.
                Err(_) => String::new(),
            };
            match Owner::parse(&holder) {
                Some(other) if other.is_alive() => return Ok(LeaseHolder::Other(holder)),
                // Just created and not yet written: its owner is alive a moment longer than this file is young.
                None if is_young(path) => {
                    return Ok(LeaseHolder::Other("a process that is just starting".into()));
                }
                _ => {}
            }
            let grave = path.with_extension(format!("dead-{}", std::process::id()));
            if fs::rename(path, &grave).is_ok() {
                // Another taker may have been faster, so that what we moved away is its new lease: put it back.
                if fs::read(&grave).is_ok_and(|moved| String::from_utf8_lossy(&moved) != holder) {
                    let _ = fs::hard_link(&grave, path);
                }
                // Only a leftover name now.
                let _ = fs::remove_file(&grave);
            }
        }
        Ok(LeaseHolder::Other("another process that keeps taking it".into()))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A lease that stays is taken over when its owner is gone.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_young(path: &Path) -> bool {
    let age = fs::metadata(path).and_then(|file| file.modified()).ok().and_then(|time| time.elapsed().ok());
    age.is_none_or(|age| age.as_secs() < 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_keeps_it_and_a_dead_one_loses_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let us = Owner::this_process().unwrap();
        let LeaseHolder::Ours(lease) = Lease::take(&path, &us).unwrap() else { panic!("it was free") };
        assert!(matches!(Lease::take(&path, &us).unwrap(), LeaseHolder::Other(_)));
        drop(lease);
        fs::write(&path, "another-boot:1:1").unwrap();
        assert!(matches!(Lease::take(&path, &us).unwrap(), LeaseHolder::Ours(_)));
        assert!(!path.exists(), "given back when dropped");
    }

    #[test]
    fn what_names_no_owner_holds_nothing_up_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        let us = Owner::this_process().unwrap();
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(Lease::take(&path, &us).unwrap(), LeaseHolder::Other(_)), "it may be just written");
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        fs::File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(matches!(Lease::take(&path, &us).unwrap(), LeaseHolder::Ours(_)));
    }
}
