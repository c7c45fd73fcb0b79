//! What went wrong, for people: one message, one hint, one exit code. Errors of the libraries become messages here.

use std::io::ErrorKind;
use std::process::ExitCode;

use proctor_engine::EngineError;
use proctor_experiment::ExperimentError;
use proctor_gateway::{CassetteError, GatewayError, ProvidersError, ScriptError, UpstreamError};
use proctor_harnesses::{HarnessError, InstallError};
use proctor_render::RenderError;
use proctor_sandbox::SandboxError;
use proctor_sandbox::image::ImageError;
use proctor_store::StoreError;
use proctor_tasks::TaskError;

use crate::printing;

/// Exit codes, as `proctor --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A failure of proctor itself.
    Internal = 1,
    /// Bad input.
    Input = 2,
    /// Something is missing on this machine.
    Missing = 3,
    /// Some trials have no valid outcome, or a model that was asked gave no answer that can be used.
    Incomplete = 4,
    /// A check found errors.
    Findings = 5,
    /// The user stopped it.
    Stopped = 130,
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        Self::from(kind as u8)
    }
}

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// A report with the place in a file, where there is one.
    report: Option<miette::Report>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, report: None }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(Kind::Input, message)
    }

    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(Kind::Missing, message)
    }

    /// A model that was asked gave no answer that can be used.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Self::new(Kind::Incomplete, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// It and its hint in one line, for what is no failure yet.
    pub(crate) fn in_a_line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        printing::in_a_line(&format!("{}{hint}", self.message))
    }

    /// Prints it to stderr.
    pub(crate) fn report(self) -> ExitCode {
        if let Some(report) = self.report {
            printing::styled(&format!("{report:?}"));
        } else {
            eprintln!("error: {}", self.message);
        }
        if let Some(hint) = self.hint {
            eprintln!("hint: {hint}");
        }
        self.kind.into()
    }
}

/// An error and its causes in one line, without saying anything twice.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        cause = error.source();
    }
    text
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        let message = chain(&error);
        Self { report: Some(miette::Report::new(error)), ..Self::input(message) }
    }
}

/// Whether it lies in the path that was given, not in what was done with it.
fn is_about_the_path(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::AlreadyExists
            | ErrorKind::InvalidFilename
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    )
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = chain(&error);
        match error {
            StoreError::Foreign { .. } => Self::input(message).hint("give --out a new or empty folder"),
            StoreError::OtherPlan { differences, .. } if differences.changed.is_empty() => {
                Self::input(message).hint("all of it is new: --extend adds it to the run")
            }
            StoreError::Conflict { .. } => {
                Self::input(message).hint("both are kept as they are: move one of the two away")
            }
            StoreError::IntoItself { .. } => {
                Self::input(message).hint("name another folder with -o: the parts stay as they are")
            }
            StoreError::Extending { .. } => Self::input(message).hint("try again when it has ended"),
            StoreError::OtherPlan { .. } => Self::input(message).hint(
                "a run keeps its plan: use another --out for another one, or the old arguments to continue",
            ),
            StoreError::Malformed { what: "outcome", .. } => {
                Self::input(message).hint("move this file away, and the same command runs the trial again")
            }
            StoreError::Malformed { what: "run", .. } => Self::input(message).hint(
                "put back a copy of this file; or make it anew: the command that started the run, with --no-start and \
                 another --out, writes the same run.json there, to be copied here. The trials are as they were",
            ),
            StoreError::Malformed { .. } => Self::input(message),
            StoreError::Io { action: "reading", source, .. } if source.kind() == ErrorKind::NotFound => {
                Self::input(message).hint("is this the folder of a run?")
            }
            StoreError::Io { action: "reading", source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                Self::input(message).hint("whoever runs this must be allowed to read it")
            }
            StoreError::Io { action: "reading", source, .. } if is_about_the_path(source.kind()) => {
                Self::input(message).hint("a run is a folder, the one with run.json in it; a trial is RUN/trials/SUITE/TASK/METHOD/ATTEMPT")
            }
            StoreError::Io { source, .. } if is_about_the_path(source.kind()) => {
                Self::input(message).hint("name a place in a folder that can be made and written")
            }
            _ => Self::internal(message),
        }
    }
}

impl From<SandboxError> for Failure {
    fn from(error: SandboxError) -> Self {
        let message = chain(&error);
        match error {
            SandboxError::NoEngine { .. } => Self::missing(message).hint(NO_ENGINE),
            _ => Self::internal(message).hint("`proctor doctor` checks the engine"),
        }
    }
}

/// How to get an engine.
pub(crate) const NO_ENGINE: &str = "start Docker (`systemctl start docker`, or as root `apt-get install docker.io && dockerd &`), or set DOCKER_HOST to the socket of an engine that runs";

impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        let hint = error.hint();
        Self::missing(chain(&error)).hint(hint)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Sandbox(error) => error.into(),
            EngineError::Task(error) => error.into(),
            EngineError::Harness(error) => error.into(),
            EngineError::Script(error) => error.into(),
            EngineError::Gateway(error) => error.into(),
            EngineError::Id(error) => Self::input(chain(&error)),
            EngineError::TakenName { .. } => Self::input(chain(&error)).hint("choose another with `as`"),
            EngineError::NoSuchMethod { .. } => {
                Self::input(chain(&error)).hint("add that method to the plan")
            }
            other => Self::internal(chain(&other)),
        }
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Self {
        let message = chain(&error);
        match error {
            ExperimentError::InFile { .. } => {
                Self { report: Some(miette::Report::new(error)), ..Self::input(message) }
            }
            ExperimentError::Input { hint, .. } => Self { hint, ..Self::input(message) },
            ExperimentError::Read { .. } => Self::input(message),
        }
    }
}

impl From<HarnessError> for Failure {
    fn from(error: HarnessError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::input(chain(&error)) }
    }
}

impl From<InstallError> for Failure {
    fn from(error: InstallError) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { hint, ..Self::missing(chain(&error)) }
    }
}

impl From<ScriptError> for Failure {
    fn from(error: ScriptError) -> Self {
        Self::input(chain(&error))
    }
}

impl From<CassetteError> for Failure {
    fn from(error: CassetteError) -> Self {
        Self::input(chain(&error))
    }
}

impl From<ProvidersError> for Failure {
    fn from(error: ProvidersError) -> Self {
        Self::input(chain(&error))
    }
}

impl From<UpstreamError> for Failure {
    fn from(error: UpstreamError) -> Self {
        Self::input(chain(&error))
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        Self::internal(chain(&error))
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self::internal(chain(&error)).hint("`proctor doctor` checks the engine")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_read_is_not_told_where_to_write() {
        let hint = |action, kind: ErrorKind| {
            let error = StoreError::Io { action, path: "run".into(), source: kind.into() };
            Failure::from(error).hint.unwrap_or_default()
        };
        assert!(hint("reading", ErrorKind::PermissionDenied).contains("allowed to read"));
        assert!(hint("reading", ErrorKind::NotADirectory).contains("run.json"));
        assert!(hint("writing", ErrorKind::PermissionDenied).contains("can be made and written"));
    }
}
