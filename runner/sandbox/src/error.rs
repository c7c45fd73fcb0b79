//! What can go wrong with a room that is not its tenant's doing.

use std::path::PathBuf;

/// A failure of the engine, of the guest or of the host: always ours, never the agent's.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No engine answers.
    #[error("no container engine answers at {address}")]
    NoEngine {
        /// Where it was looked for.
        address: String,
        /// Why not.
        #[source]
        source: bollard::errors::Error,
    },
    /// The engine refused or failed.
    #[error("{action} failed")]
    Engine {
        /// What was being done, as in "creating the container".
        action: &'static str,
        /// What the engine said.
        #[source]
        source: bollard::errors::Error,
    },
    /// The engine did not answer in time.
    #[error("{action} took longer than {seconds} s")]
    Slow {
        /// What was being done.
        action: &'static str,
        /// The limit that was passed.
        seconds: u64,
    },
    /// The guest did not come up, or said something unexpected.
    #[error("the guest in room {room}: {message}")]
    Guest {
        /// Name of the room.
        room: String,
        /// What happened.
        message: String,
    },
    /// The agent's program could not be started.
    #[error("`{program}` could not be started in the container: {message}")]
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        message: String,
    },
    /// A file of ours could not be written.
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
}

impl SandboxError {
    /// For `map_err`: wraps what the engine said.
    pub(crate) fn engine(action: &'static str) -> impl FnOnce(bollard::errors::Error) -> Self {
        move |source| Self::Engine { action, source }
    }
}
