//! What can go wrong with a results directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Differences, TrialId};

/// Whether an error of the file system says that there is no space left.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A failure of the results directory.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system refused.
    #[error("{action} {path}", path = path.display())]
    Io {
        /// What was being done, as in "writing".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of ours does not hold what it should.
    #[error("{path} is not a valid {what}: {message}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Where and why not.
        message: String,
    },
    /// The folder holds something else.
    #[error("{path} is not empty and holds no run of proctor", path = path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The run exists with another plan.
    #[error("{path} holds a run with another plan:{}", lines(differences), path = path.display())]
    OtherPlan {
        /// The run.
        path: PathBuf,
        /// How they differ.
        differences: Differences,
    },
    /// Another process is extending the run.
    #[error("{path} is being extended by another process", path = path.display())]
    Extending {
        /// The run.
        path: PathBuf,
    },
    /// A run is to be merged into one of its parts.
    #[error("{path} is one of the runs to be merged", path = path.display())]
    IntoItself {
        /// The run.
        path: PathBuf,
    },
    /// Two results directories disagree.
    #[error("{left} and {right} hold different {what}", left = left.display(), right = right.display())]
    Conflict {
        /// What differs.
        what: String,
        /// One.
        left: PathBuf,
        /// The other.
        right: PathBuf,
    },
    /// The trial has an outcome already: another owner was first.
    #[error("trial {trial} has an outcome already")]
    AlreadyDone {
        /// The trial.
        trial: TrialId,
    },
    /// Another process is running the trial.
    #[error("trial {trial} is being run by {owner}")]
    Busy {
        /// The trial.
        trial: TrialId,
        /// Who.
        owner: String,
    },
}

fn lines(differences: &Differences) -> String {
    let added = differences.added.iter().map(|line| format!("\n  new {line}"));
    added.chain(differences.changed.iter().map(|line| format!("\n  {line}"))).collect()
}

impl StoreError {
    /// Whether the disk, or what this user may have of it, is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_disk_full(source))
    }

    /// For `map_err`: wraps what the file system said.
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
