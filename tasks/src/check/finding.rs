//! One thing that is wrong with a package.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use serde::Serialize;

use crate::toml_text::{Step, locate, named};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The task cannot be used as it is.
    Error,
    /// It can, but somebody should look.
    Warning,
}

/// Something that a check found; shown as a report with the place in the file.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub file: PathBuf,
    /// What, as a sentence without a full stop.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The bytes of the file that it is about, if it is a text.
    pub span: Option<Range<usize>>,
    #[serde(skip)]
    text: Option<Arc<NamedSource<String>>>,
}

impl Finding {
    /// A finding about a whole file.
    pub fn whole(
        severity: Severity,
        file: PathBuf,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { severity, file, message: message.into(), hint: hint.into(), span: None, text: None }
    }

    /// A finding about the value at `path` in the TOML document `text`.
    pub(crate) fn at(
        severity: Severity,
        file: PathBuf,
        text: &str,
        path: &[Step<'_>],
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let span = locate(text, path);
        let text = Some(named(&file, text));
        Self { severity, file, message: message.into(), hint: hint.into(), span, text }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.message)
    }
}

impl std::error::Error for Finding {}

impl Diagnostic for Finding {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.hint.is_empty()).then(|| Box::new(&self.hint) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.span.as_ref()?;
        self.text.as_ref().map(|text| text as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some("here".to_owned()), span))))
    }
}
