//! The folder of one trial and of its tries.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_traces::Timestamp;

use crate::atomic::{check_schema, write_json_once};
use crate::{Lease, LeaseHolder, Outcome, Owner, StoreError, TrialId, TryRecord, read_json, write_evidence};

/// The entries that a final try hands up to its trial.
const EVIDENCE: [&str; 6] = ["trace.jsonl", "raw", "model", "artifacts", "history", "prompt"];

/// A folder with a higher number is none of ours.
const MOST_TRIES: u32 = 1_000_000;

/// Where a trial stands, from what is on disk alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialState {
    /// It has an outcome.
    Done,
    /// It has been tried, without an outcome.
    Begun,
    /// Nothing has happened.
    Untouched,
}

/// Where a trial stands: a pure function of whether it has an outcome, and of how many tries it has.
pub fn state_of(has_outcome: bool, tries: u32) -> TrialState {
    match (has_outcome, tries) {
        (true, _) => TrialState::Done,
        (false, 0) => TrialState::Untouched,
        (false, _) => TrialState::Begun,
    }
}

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

    /// Takes the trial for `owner`. It must not be done, nor run by a living process.
    pub fn lease(&self, owner: &Owner) -> Result<Lease, StoreError> {
        fs::create_dir_all(self.path.join("tries")).map_err(StoreError::io("creating", &self.path))?;
        match Lease::take(&self.path.join("lease"), owner)? {
            LeaseHolder::Ours(_) if self.is_done() => Err(StoreError::AlreadyDone { trial: self.id.clone() }),
            LeaseHolder::Ours(lease) => Ok(lease),
            LeaseHolder::Other(owner) => Err(StoreError::Busy { trial: self.id.clone(), owner }),
        }
    }

    /// Where it stands.
    pub fn state(&self) -> TrialState {
        state_of(self.is_done(), self.tries())
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

    /// A folder for the next try. Evidence that a killed runner had begun to hand up goes back to the try it is from.
    pub fn new_try(&self) -> Result<TryDir, StoreError> {
        let last = self.tries();
        if last > 0 {
            move_entries(&self.path, &self.try_path(last))?;
        }
        let path = self.try_path(last + 1);
        fs::create_dir_all(&path).map_err(StoreError::io("creating", &path))?;
        Ok(TryDir { path, number: last + 1 })
    }

    /// Makes a try the final one: its evidence becomes the trial's, then the outcome is written, once.
    pub fn finish(&self, final_try: &TryDir, outcome: &Outcome) -> Result<(), StoreError> {
        if self.is_done() {
            return Err(StoreError::AlreadyDone { trial: self.id.clone() });
        }
        let record = TryRecord {
            r#try: final_try.number,
            ending: outcome.ending.clone(),
            ended_at: Timestamp::now(),
            outcome: None,
        };
        final_try.close(&record)?;
        move_entries(&final_try.path, &self.path)?;
        if write_json_once(&self.outcome_path(), outcome)? {
            Ok(())
        } else {
            Err(StoreError::AlreadyDone { trial: self.id.clone() })
        }
    }

    /// `render/`, where the canonical rendering is kept.
    pub fn render(&self) -> PathBuf {
        self.path.join("render")
    }

    /// The kept copy of an artifact.
    pub fn artifact(&self, name: &str) -> PathBuf {
        self.path.join("artifacts").join(name)
    }

    fn outcome_path(&self) -> PathBuf {
        self.path.join("outcome.json")
    }

    fn try_path(&self, number: u32) -> PathBuf {
        self.path.join("tries").join(number.to_string())
    }
}

fn move_entries(from: &Path, to: &Path) -> Result<(), StoreError> {
    for name in EVIDENCE {
        let (from, to) = (from.join(name), to.join(name));
        if from.exists() && !to.exists() {
            fs::rename(&from, &to).map_err(StoreError::io("moving", &from))?;
        }
    }
    Ok(())
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
