//! Who runs a trial. A lease is a file that names its holder. It appears whole, by `link`, so that of several takers one
//! succeeds; it lives on by the heartbeat of its holder, the time of its last change; that of a dead holder is renamed
//! away first, which again only one of several takers can do.
//!
//! A holder of this machine is asked for, by its process. One of another machine is believed dead when its heart has not
//! beaten for a while by *our* monotonic clock: the clocks of two machines are never compared.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use proctor_traces::Timestamp;

use crate::atomic::TEMPORARY;
use crate::owner::Life;
use crate::{Holder, StoreError};

/// How often a holder gives a sign of life, and how long others wait for one.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTerms {
    /// Pause between two signs of life.
    pub heartbeat: Duration,
    /// Silence after which a holder that cannot be asked for is taken for dead.
    pub expiry: Duration,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self { heartbeat: Duration::from_secs(10), expiry: Duration::from_secs(60) }
    }
}

/// The leases of others that were seen, each with its last heartbeat and when that was first seen.
#[derive(Debug, Default)]
pub struct Sightings(Mutex<HashMap<PathBuf, Sighting>>);

#[derive(Clone, Copy, Debug)]
struct Sighting {
    inode: u64,
    beat: SystemTime,
    since: Instant,
}

/// The right to run a trial, given back when dropped.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    file: File,
}

/// What came of asking for a lease.
#[derive(Debug)]
pub enum LeaseHolder {
    /// It is ours.
    Ours(Lease),
    /// Somebody else has it.
    Other(String),
}

impl Lease {
    /// Takes the lease at `path` for `us`, from a dead holder if need be.
    pub fn take(
        path: &Path,
        us: &Holder,
        terms: LeaseTerms,
        sightings: &Sightings,
    ) -> Result<LeaseHolder, StoreError> {
        let failed = |error| StoreError::io("writing", path)(error);
        // A lease can vanish or appear between looking and taking; whoever keeps losing that race meets a living holder.
        for _ in 0..16 {
            if let Some(lease) = create(path, us).map_err(failed)? {
                sightings.forget(path);
                return Ok(LeaseHolder::Ours(lease));
            }
            let Some(found) = Found::read(path).map_err(StoreError::io("reading", path))? else { continue };
            let life = found.holder.as_ref().map_or(Life::Unknown, Holder::life);
            let dead = match life {
                Life::Alive => false,
                Life::Dead => true,
                Life::Unknown => sightings.silence(path, &found) >= terms.expiry,
            };
            if !dead {
                let name = found.holder.map_or_else(|| "somebody unknown".to_owned(), |it| it.to_string());
                return Ok(LeaseHolder::Other(name));
            }
            bury(path, &found);
            sightings.forget(path);
        }
        Ok(LeaseHolder::Other("another process that keeps taking it".into()))
    }

    /// Gives a sign of life. Returns whether the lease is still ours: it is not when others took us for dead.
    ///
    /// The beat goes to the file that we made, not to what now has its name: another's lease is never prolonged.
    pub fn beat(&self) -> bool {
        // A beat that fails is one that others miss; they wait for several.
        let _ = self.file.set_modified(SystemTime::now());
        self.is_held()
    }

    /// Whether the lease is still ours.
    pub fn is_held(&self) -> bool {
        let ours = self.file.metadata().map(|it| (it.dev(), it.ino()));
        let there = fs::symlink_metadata(&self.path).map(|it| (it.dev(), it.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A lease that stays is taken over when its holder is gone.
        if self.is_held() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Sightings {
    /// How long the heart of the holder has been silent, as far as we have seen.
    fn silence(&self, path: &Path, found: &Found) -> Duration {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Sighting { inode: found.inode, beat: found.beat, since: Instant::now() };
        let before = seen.entry(path.to_owned()).or_insert(now);
        if (before.inode, before.beat) != (now.inode, now.beat) {
            *before = now;
        }
        before.since.elapsed()
    }

    fn forget(&self, path: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}

/// A lease that is there.
struct Found {
    holder: Option<Holder>,
    inode: u64,
    beat: SystemTime,
}

impl Found {
    /// None if it has vanished meanwhile.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        Ok(Some(Self { holder: Holder::read(path), inode: metadata.ino(), beat: metadata.modified()? }))
    }
}

/// Who holds the lease at `path`, and when that process last gave a sign of life by the clock of its own machine.
pub(crate) fn look(path: &Path) -> Option<(Holder, SystemTime)> {
    let beat = fs::symlink_metadata(path).ok()?.modified().ok()?;
    Holder::read(path).map(|holder| (holder, beat))
}

/// None if there is one already.
fn create(path: &Path, us: &Holder) -> io::Result<Option<Lease>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
    file.write_all(&serde_json::to_vec(&Holder { since: Timestamp::now(), ..us.clone() })?)?;
    match fs::hard_link(file.path(), path) {
        Ok(()) => Ok(Some(Lease { path: path.to_owned(), file: file.as_file().try_clone()? })),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        // The trial was finished meanwhile, and cleared up; or it is gone, which the next attempt shows.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves the lease of a dead holder away.
fn bury(path: &Path, dead: &Found) {
    let grave = path.with_extension(format!("dead-{}-{:x}", std::process::id(), dead.inode));
    if fs::rename(path, &grave).is_ok() {
        // Another taker may have been faster, so that what we moved away is its new lease: put it back.
        let moved = fs::symlink_metadata(&grave).map(|it| it.ino()).ok();
        // Both, since the number of a file that is gone is soon given to another.
        if moved != Some(dead.inode) || Holder::read(&grave) != dead.holder {
            let _ = fs::hard_link(&grave, path);
        }
        // Only a leftover name now.
        let _ = fs::remove_file(&grave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: LeaseTerms =
        LeaseTerms { heartbeat: Duration::from_secs(10), expiry: Duration::from_secs(3600) };

    fn take(path: &Path, terms: LeaseTerms, sightings: &Sightings) -> LeaseHolder {
        Lease::take(path, &Holder::this_process(None).unwrap(), terms, sightings).unwrap()
    }

    fn write(path: &Path, change: impl FnOnce(&mut Holder)) {
        let mut holder = Holder::this_process(None).unwrap();
        change(&mut holder);
        fs::write(path, serde_json::to_vec(&holder).unwrap()).unwrap();
    }

    #[test]
    fn a_living_holder_keeps_it_and_a_dead_one_loses_it() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sightings) = (dir.path().join("lease"), Sightings::default());
        let LeaseHolder::Ours(lease) = take(&path, PATIENT, &sightings) else { panic!("it was free") };
        assert!(matches!(take(&path, PATIENT, &sightings), LeaseHolder::Other(_)));
        assert!(lease.beat());
        drop(lease);
        assert!(!path.exists(), "given back when dropped");
        write(&path, |holder| holder.start += 1);
        assert!(matches!(take(&path, PATIENT, &sightings), LeaseHolder::Ours(_)));
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|it| it.file_name()).collect();
        assert!(names.is_empty(), "{names:?}");
    }

    #[test]
    fn a_holder_elsewhere_is_dead_when_its_heart_is_silent_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sightings) = (dir.path().join("lease"), Sightings::default());
        write(&path, |holder| holder.boot = "another machine's".into());
        // However old the file: its clock may be any.
        File::options().append(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let brief = LeaseTerms { expiry: Duration::from_millis(40), ..PATIENT };
        assert!(
            matches!(take(&path, brief, &sightings), LeaseHolder::Other(_)),
            "it is seen for the first time"
        );
        for beat in 1..4 {
            std::thread::sleep(Duration::from_millis(50));
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(beat);
            File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
            assert!(matches!(take(&path, brief, &sightings), LeaseHolder::Other(_)), "its heart beats");
        }
        std::thread::sleep(Duration::from_millis(50));
        assert!(matches!(take(&path, brief, &sightings), LeaseHolder::Ours(_)));
    }

    #[test]
    fn a_process_of_another_namespace_cannot_be_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sightings) = (dir.path().join("lease"), Sightings::default());
        write(&path, |holder| (holder.namespace, holder.pid) = ("pid:[1]".into(), 1));
        assert!(matches!(take(&path, PATIENT, &sightings), LeaseHolder::Other(_)));
    }

    #[test]
    fn what_names_no_holder_holds_nothing_up_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sightings) = (dir.path().join("lease"), Sightings::default());
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(take(&path, PATIENT, &sightings), LeaseHolder::Other(_)));
        let brief = LeaseTerms { expiry: Duration::ZERO, ..PATIENT };
        assert!(matches!(take(&path, brief, &sightings), LeaseHolder::Ours(_)));
    }

    #[test]
    fn who_was_taken_for_dead_neither_prolongs_nor_removes_the_lease_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let (path, sightings) = (dir.path().join("lease"), Sightings::default());
        let LeaseHolder::Ours(old) = take(&path, PATIENT, &sightings) else { panic!("it was free") };
        bury(&path, &Found::read(&path).unwrap().unwrap());
        let LeaseHolder::Ours(new) = take(&path, PATIENT, &sightings) else { panic!("it was free again") };
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        File::options().append(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(!old.beat());
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
        drop(old);
        assert!(path.exists() && new.beat());
    }

    #[test]
    fn of_many_who_take_over_from_a_dead_holder_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lease");
        for _ in 0..50 {
            write(&path, |holder| holder.start += 1);
            let sightings = Sightings::default();
            let takers: Vec<LeaseHolder> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(|| take(&path, PATIENT, &sightings))).collect();
                all.into_iter().map(|it| it.join().unwrap()).collect()
            });
            let held = takers.iter().filter(|it| matches!(it, LeaseHolder::Ours(lease) if lease.is_held()));
            assert_eq!(held.count(), 1);
        }
    }
}
