//! What can go wrong that is not the artifact's doing.

use std::path::PathBuf;

use proctor_sandbox::SandboxError;

/// A failure of ours: of the engine, the host, or a browser before it saw the artifact. Trying again may help.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// No room could be had, or it was lost.
    #[error("the render room failed")]
    Sandbox(#[from] SandboxError),
    /// A file of ours, or the artifact itself, could not be read or written.
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
    /// The artifact is a link, a folder or a device: nothing that a collector should have handed over.
    #[error("{path} is not a regular file", path = path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// An asset's name leads out of the working directory.
    #[error("asset name `{name}` is not a plain relative path")]
    AssetName {
        /// The name.
        name: String,
    },
    /// The browser could not be started or reached.
    #[error("the browser {message}")]
    Browser {
        /// What happened, as in "did not start within 30 s".
        message: String,
    },
    /// The room did not say what was asked of it.
    #[error("the render room answered nonsense: {message}")]
    Room {
        /// What it said.
        message: String,
    },
}

impl RenderError {
    /// For `map_err`: an error about one file.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn browser(message: impl Into<String>) -> Self {
        Self::Browser { message: message.into() }
    }
}
