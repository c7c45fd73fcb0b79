//! What can go wrong with a results directory.

use std::path::{Path, PathBuf};

use crate::TrialId;

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
        source: std::io::Error,
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
    #[error("{path} holds a run with another plan:\n{differences}", path = path.display())]
    OtherPlan {
        /// The run.
        path: PathBuf,
        /// One difference a line.
        differences: String,
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

impl StoreError {
    /// For `map_err`: wraps what the file system said.
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
