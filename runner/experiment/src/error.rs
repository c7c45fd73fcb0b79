//! What can be wrong with an experiment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use proctor_tasks::toml_text;

/// An experiment that cannot be run.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExperimentError {
    /// The file says something that cannot be; with the place.
    #[error("{}: {message}", file.display())]
    #[diagnostic(code(proctor::experiment))]
    InFile {
        /// The file.
        file: PathBuf,
        /// What is wrong, without the place.
        message: String,
        /// What to write instead, where that is known.
        #[help]
        hint: Option<String>,
        /// The text of the file.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// Where in the text.
        #[label("here")]
        span: Option<SourceSpan>,
    },
    /// What was typed cannot be, or what was asked for is not there.
    #[error("{message}")]
    Input {
        /// What is wrong.
        message: String,
        /// What to do.
        #[help]
        hint: Option<String>,
    },
    /// A file that cannot be read.
    #[error("{}: cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl ExperimentError {
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::Input { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, text: impl Into<String>) -> Self {
        match &mut self {
            Self::InFile { hint, .. } | Self::Input { hint, .. } => *hint = Some(text.into()),
            Self::Read { .. } => {}
        }
        self
    }

    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().trim_end().to_owned();
        Self::InFile {
            file: file.to_owned(),
            hint: toml_text::hint(&message),
            message,
            text: toml_text::named(file, text),
            span: error.span().map(Into::into),
        }
    }

    /// What to do about it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::InFile { hint, .. } | Self::Input { hint, .. } => hint.as_deref(),
            Self::Read { .. } => None,
        }
    }
}
