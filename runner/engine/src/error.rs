//! What can go wrong on our side. Inside a try every one of these becomes an [`proctor_traces::Ending::InfraError`].

use std::path::{Path, PathBuf};

use proctor_gateway::client::AskError;
use proctor_gateway::{GatewayError, ScriptError};
use proctor_harnesses::HarnessError;
use proctor_sandbox::SandboxError;
use proctor_store::{IdError, MethodId, StoreError};
use proctor_tasks::TaskError;
use proctor_traces::JournalError;

use crate::disk;

/// A failure of the engine or of something below it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The results directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The container.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The model gateway.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The scripted model.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The way to the gateway.
    #[error("the gateway cannot be asked")]
    Client {
        /// Why.
        #[source]
        source: AskError,
    },
    /// The harness.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// The task package.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The trace.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A name.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A file of a try.
    #[error("{action} {path}", path = path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The task has no script, and the method's model is the scripted one.
    #[error("task {task} has no script.toml for the scripted model to play")]
    NoScript {
        /// The task.
        task: String,
    },
    /// A method needs what another leaves that is not in the plan.
    #[error("a method needs what `{method}` leaves, and the plan has no such method")]
    NoSuchMethod {
        /// The one that is missing.
        method: MethodId,
    },
    /// The workspace has a file of this name already.
    #[error("`needs` cannot give a file as `{name}`: the workspace has one of that name")]
    TakenName {
        /// The name.
        name: String,
    },
    /// What a trial left has changed since.
    #[error("{path} is not what its trial left", path = path.display())]
    Altered {
        /// The file.
        path: PathBuf,
    },
    /// There is no room for evidence.
    #[error("the disk of the results directory is full: {message}")]
    DiskFull {
        /// What showed it.
        message: String,
    },
    /// A part of ours panicked or was stopped.
    #[error("{part} ended unexpectedly")]
    Broken {
        /// Which.
        part: &'static str,
    },
}

impl EngineError {
    /// For `map_err`: wraps what the file system said.
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    /// Whether it is for want of room on the disk.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Self::DiskFull { .. }) || disk::is_full(&self.chain())
    }

    /// The error and its causes in one line.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
