//! The folder of one trial and of its tries.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use proctor_traces::Timestamp;

use crate::atomic::{TEMPORARY, check_schema, write_json_once};
use crate::{
    Holder, Lease, LeaseHolder, LeaseTerms, Outcome, RerunRecord, Sightings, Standing, StoreError, TrialId,
    TryRecord, read_json, write_evidence,
};

/// The entries that a final try hands up to its trial.
/// The trace is last: where it is, all is.
const EVIDENCE: [&str; 6] = ["raw", "model", "artifacts", "history", "prompt", "trace.jsonl"];

/// A folder with a higher number is none of ours.
const MOST_TRIES: u32 = 1_000_000;

/// `trials/<suite>/<task>/<method>/<attempt>/`.
#[derive(Clone, Debug)]
pub struct TrialDir {
    path: PathBuf,
    id: TrialId,
}

impl TrialDir {
    pub(crate) fn new(path: PathBuf, id: TrialId) -> Self {
        Self { path, id }
    }

    /// The trial.
    pub fn id(&self) -> &TrialId {
        &self.id
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the trial for `us`. It must not be done, nor run by somebody who is alive.
    pub fn lease(&self, us: &Holder, terms: LeaseTerms, sightings: &Sightings) -> Result<Lease, StoreError> {
        fs::create_dir_all(self.path.join("tries")).map_err(StoreError::io("creating", &self.path))?;
        match Lease::take(&self.lease_path(), us, terms, sightings)? {
            LeaseHolder::Ours(_) if self.is_done() => Err(StoreError::AlreadyDone { trial: self.id.clone() }),
            LeaseHolder::Ours(lease) => Ok(lease),
            LeaseHolder::Other(owner) => Err(StoreError::Busy { trial: self.id.clone(), owner }),
        }
    }

    /// Takes the canonical rendering of the trial for `us`; none while somebody else is at it.
    pub fn lease_rendering(
        &self,
        us: &Holder,
        terms: LeaseTerms,
        sightings: &Sightings,
    ) -> Result<Option<Lease>, StoreError> {
        match Lease::take(&self.path.join("render.lease"), us, terms, sightings)? {
            LeaseHolder::Ours(lease) => Ok(Some(lease)),
            LeaseHolder::Other(_) => Ok(None),
        }
    }

    /// Who has a lease on it, and when that process last gave a sign of life by the clock of its own machine. Whoever it
    /// is may be dead.
    pub fn holder(&self) -> Option<(Holder, SystemTime)> {
        crate::lease::look(&self.lease_path())
    }

    /// Whether it has an outcome.
    pub fn is_done(&self) -> bool {
        self.outcome_path().exists()
    }

    /// Its outcome; none while it is not done.
    pub fn outcome(&self) -> Result<Option<Outcome>, StoreError> {
        if !self.is_done() {
            return Ok(None);
        }
        let outcome: Outcome = read_json(&self.outcome_path(), "outcome")?;
        check_schema(&self.outcome_path(), "outcome", outcome.schema, Outcome::SCHEMA)?;
        if outcome.trial != self.id {
            let message = format!("it is that of {}", outcome.trial);
            return Err(StoreError::Malformed { path: self.outcome_path(), what: "outcome", message });
        }
        Ok(Some(outcome))
    }

    /// Number of the last try on disk, 0 if there is none.
    pub fn tries(&self) -> u32 {
        let Ok(entries) = fs::read_dir(self.path.join("tries")) else { return 0 };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|number| *number <= MOST_TRIES).max().unwrap_or(0)
    }

    /// A folder for the next try. It is ours alone: two owners of one trial, one of which was taken for dead, never mix
    /// their evidence.
    pub fn new_try(&self) -> Result<TryDir, StoreError> {
        self.unsettle()?;
        let mut number = self.tries();
        loop {
            number += 1;
            let path = self.try_path(number);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(TryDir { path, number }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MOST_TRIES => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let tries = self.path.join("tries");
                    fs::create_dir_all(&tries).map_err(StoreError::io("creating", &tries))?;
                    number -= 1;
                }
                Err(error) => return Err(StoreError::io("creating", &path)(error)),
            }
        }
    }

    /// Puts evidence that lies in the trial's own place, although it has no outcome, among the tries: somebody has taken the
    /// outcome away, for the trial to be run again.
    fn unsettle(&self) -> Result<(), StoreError> {
        if self.is_done() || EVIDENCE.iter().all(|name| !self.path.join(name).exists()) {
            return Ok(());
        }
        let last = self.tries().max(1);
        let taken = EVIDENCE.iter().any(|name| self.try_path(last).join(name).exists());
        let to = self.try_path(if taken { last + 1 } else { last });
        fs::create_dir_all(&to).map_err(StoreError::io("creating", &to))?;
        for name in EVIDENCE {
            let from = self.path.join(name);
            match fs::rename(&from, to.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("moving", &from)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a try the final one: writes the outcome, once. The trial is done from then on, and its evidence is read from
    /// where it is until [`TrialDir::settle`] has moved it up.
    pub fn finish(&self, final_try: &TryDir, outcome: &Outcome) -> Result<(), StoreError> {
        let record = TryRecord {
            r#try: final_try.number,
            ending: outcome.ending.clone(),
            ended_at: Timestamp::now(),
            outcome: None,
        };
        final_try.close(&record)?;
        if write_json_once(&self.outcome_path(), outcome)? {
            Ok(())
        } else {
            Err(StoreError::AlreadyDone { trial: self.id.clone() })
        }
    }

    /// Moves the evidence of the final try up to the trial, as far as it is not there yet. Whoever does it, and however
    /// often, the result is the same: the outcome says which try it is.
    pub fn settle(&self, final_try: u32) -> Result<(), StoreError> {
        self.remove_unfinished();
        let from = self.try_path(final_try);
        for name in EVIDENCE {
            let (from, to) = (from.join(name), self.path.join(name));
            match fs::rename(&from, &to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("moving", &from)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Does for a trial that is done what a runner that was killed had not come to: its evidence is moved to its place,
    /// and its lease removed.
    pub fn tidy(&self, us: &Holder, terms: LeaseTerms, sightings: &Sightings) -> Result<(), StoreError> {
        if self.lease_path().exists() {
            // That of a dead holder becomes ours, and is given back at once.
            drop(Lease::take(&self.lease_path(), us, terms, sightings)?);
        }
        if self.path.join("trace.jsonl").exists() {
            self.remove_unfinished();
            return Ok(());
        }
        match self.outcome()? {
            Some(outcome) => self.settle(outcome.r#try),
            None => Ok(()),
        }
    }

    /// Removes files that whoever was killed had not finished writing. One that is just being written is missed by nobody:
    /// the trial is done.
    fn remove_unfinished(&self) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY)) {
            // It costs a little room if it stays.
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Where it stands, from what is on disk alone.
    pub fn standing(&self) -> Standing {
        Standing { done: self.is_done(), rerun: self.rerun_path().exists(), tries: self.tries() }
    }

    /// A file or folder of the evidence (`trace.jsonl`, `raw/stdout.jsonl`, …), where it is now.
    pub fn evidence(&self, name: &str) -> PathBuf {
        let settled = self.path.join(name);
        if settled.exists() {
            return settled;
        }
        let unsettled = self.outcome().ok().flatten().map(|it| self.try_path(it.r#try).join(name));
        unsettled.filter(|path| path.exists()).unwrap_or(settled)
    }

    /// That it is a rerun, if it is one.
    pub fn rerun(&self) -> Result<Option<RerunRecord>, StoreError> {
        let path = self.rerun_path();
        if !path.exists() {
            return Ok(None);
        }
        let record: RerunRecord = read_json(&path, "rerun")?;
        check_schema(&path, "rerun", record.schema, RerunRecord::SCHEMA)?;
        Ok(Some(record))
    }

    pub(crate) fn rerun_path(&self) -> PathBuf {
        self.path.join("rerun.json")
    }

    fn lease_path(&self) -> PathBuf {
        self.path.join("lease")
    }

    /// `render/`, where the canonical rendering is kept.
    pub fn render(&self) -> PathBuf {
        self.path.join("render")
    }

    /// The kept copy of an artifact.
    pub fn artifact(&self, name: &str) -> PathBuf {
        self.evidence("artifacts").join(name)
    }

    fn outcome_path(&self) -> PathBuf {
        self.path.join("outcome.json")
    }

    fn try_path(&self, number: u32) -> PathBuf {
        self.path.join("tries").join(number.to_string())
    }
}

/// `tries/<n>/`: the evidence of one try.
#[derive(Clone, Debug)]
pub struct TryDir {
    path: PathBuf,
    number: u32,
}

impl TryDir {
    /// Number of the try, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `trace.jsonl`.
    pub fn trace(&self) -> PathBuf {
        self.path.join("trace.jsonl")
    }

    /// A folder of the evidence (`raw`, `raw/session`, `model/blobs`, `artifacts`, `history`, `prompt`), made if need be.
    pub fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(StoreError::io("creating", &path))?;
        Ok(path)
    }

    /// Writes `try.json`.
    pub fn close(&self, record: &TryRecord) -> Result<(), StoreError> {
        write_evidence(&self.path.join("try.json"), record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_runner_had_not_finished_goes_when_the_trial_is_settled() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialDir::new(dir.path().to_owned(), "vao/t/m/1".parse().unwrap());
        let one = trial.new_try().unwrap();
        fs::write(one.trace(), "").unwrap();
        fs::write(dir.path().join(format!("{TEMPORARY}x1Y2z3")), "{").unwrap();
        trial.settle(1).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().flatten().map(|it| it.file_name()).collect();
        names.sort();
        assert_eq!(names, ["trace.jsonl", "tries"]);
    }

    #[test]
    fn an_outcome_that_was_taken_away_leaves_its_evidence_to_its_try() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialDir::new(dir.path().to_owned(), "vao/t/m/1".parse().unwrap());
        for number in 1..=3 {
            // The outcome of the one before is gone: nothing but its evidence tells of it.
            let one = trial.new_try().unwrap();
            assert_eq!(one.number(), number);
            fs::write(one.folder("raw").unwrap().join("stdout.jsonl"), number.to_string()).unwrap();
            fs::write(one.trace(), number.to_string()).unwrap();
            trial.settle(number).unwrap();
        }
        for number in 1..=2 {
            let kept = dir.path().join(format!("tries/{number}"));
            for name in ["raw/stdout.jsonl", "trace.jsonl"] {
                assert_eq!(fs::read_to_string(kept.join(name)).unwrap(), number.to_string());
            }
        }
        assert_eq!(fs::read_to_string(dir.path().join("trace.jsonl")).unwrap(), "3");
    }
}
