//! What can be wrong with a package that cannot even be loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

use crate::id::TaskId;

/// A package that cannot be loaded, or a set of packages that cannot be used together.
#[derive(Debug, Error, Diagnostic)]
pub enum TaskError {
    /// A TOML file that does not say what it must; with the place.
    #[error("{}: {message}", file.display())]
    #[diagnostic(code(proctor::tasks::toml))]
    Toml {
        /// The file.
        file: PathBuf,
        /// What is wrong, in lower case, without the place.
        message: String,
        /// What to write instead, where that can be guessed.
        #[help]
        hint: Option<String>,
        /// The text of the file.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// Where in the text.
        #[label("here")]
        span: Option<SourceSpan>,
    },
    /// A file that must be there is not.
    #[error("{}: the package has no {name}", dir.display())]
    #[diagnostic(code(proctor::tasks::missing))]
    Missing {
        /// The package.
        dir: PathBuf,
        /// The file's path inside the package.
        name: String,
        /// How to get it.
        #[help]
        hint: String,
    },
    /// Something in the package that no package may hold: a link, a device, a file that is too large.
    #[error("{}: {reason}", path.display())]
    #[diagnostic(code(proctor::tasks::refused))]
    Refused {
        /// The thing.
        path: PathBuf,
        /// Why it is refused.
        reason: String,
        /// What to do.
        #[help]
        hint: &'static str,
    },
    /// The folder has another name than the task.
    #[error("{}: the folder holds task `{id}`", dir.display())]
    #[diagnostic(
        code(proctor::tasks::folder_name),
        help("name the folder `{id}`, or change `metadata.id` to the folder's name")
    )]
    FolderName {
        /// The package.
        dir: PathBuf,
        /// The task in it.
        id: TaskId,
    },
    /// Two packages with one name.
    #[error("task `{id}` is there twice: {} and {}", first.display(), second.display())]
    #[diagnostic(
        code(proctor::tasks::duplicate),
        help("give one of them another id and folder name, or name only one of the two paths")
    )]
    Duplicate {
        /// The name.
        id: TaskId,
        /// The package that was found first.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// A path without any package.
    #[error("{}: no task package here", path.display())]
    #[diagnostic(
        code(proctor::tasks::none),
        help("a package is a folder with a `task.toml`; name such a folder, or one that holds some")
    )]
    NoTask {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file system said no.
    #[error("{}: cannot be read", path.display())]
    #[diagnostic(code(proctor::tasks::io))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A record that could not be written back.
    #[error("{}: cannot be written", path.display())]
    #[diagnostic(code(proctor::tasks::write))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A text for the solver that could not be made from its template.
    #[error("template {template} cannot be rendered: {reason}")]
    #[diagnostic(code(proctor::tasks::template))]
    Template {
        /// The template's name.
        template: &'static str,
        /// The engine's message.
        reason: String,
    },
    /// Several packages that cannot be loaded, named all at once.
    #[error("{} task packages cannot be loaded", failures.len())]
    #[diagnostic(code(proctor::tasks::several))]
    Several {
        /// What is wrong with each.
        #[related]
        failures: Vec<TaskError>,
    },
}

impl TaskError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn refused(path: &Path, reason: impl Into<String>, hint: &'static str) -> Self {
        Self::Refused { path: path.to_owned(), reason: reason.into(), hint }
    }
}
