//! Whether it makes sense to start another trial: a full disk or a broken engine would fail one after the other.

use std::path::PathBuf;

use proctor_store::{Outcome, RunDir};
use proctor_traces::Ending;

use super::RunEnd;
use crate::disk::{RESERVE, free};

/// A reason to start no more trials.
pub(super) enum Illness {
    DiskFull { free: u64 },
    Failing { trials: u32, message: String },
}

impl From<Illness> for RunEnd {
    fn from(illness: Illness) -> Self {
        match illness {
            Illness::DiskFull { free } => Self::DiskFull { free },
            Illness::Failing { trials, message } => Self::Failing { trials, message },
        }
    }
}

/// What is watched.
pub(super) struct Health {
    run: PathBuf,
    /// Trials in a row that failed on our side.
    failed: u32,
    patience: u32,
}

impl Health {
    /// Of a run with so many trials at a time.
    pub(super) fn new(run: &RunDir, jobs: usize) -> Self {
        let jobs = u32::try_from(jobs).unwrap_or(u32::MAX);
        Self { run: run.root().to_owned(), failed: 0, patience: jobs.saturating_mul(2).max(5) }
    }

    /// Whether there is room for the evidence of another trial.
    pub(super) fn before_a_start(&self) -> Option<Illness> {
        let free = free(&self.run)?;
        (free < 2 * RESERVE).then_some(Illness::DiskFull { free })
    }

    /// A trial has ended.
    pub(super) fn after(&mut self, outcome: &Outcome) -> Option<Illness> {
        let Ending::InfraError { message, .. } = &outcome.ending else {
            self.failed = 0;
            return None;
        };
        self.failed += 1;
        let message = message.clone();
        (self.failed >= self.patience).then_some(Illness::Failing { trials: self.failed, message })
    }

    /// A trial could not be kept for it.
    pub(super) fn disk_is_full(&self) -> Illness {
        Illness::DiskFull { free: free(&self.run).unwrap_or(0) }
    }
}
