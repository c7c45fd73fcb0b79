//! What can be wrong with a request to launch a harness, before anything is started.

use crate::command_line::CommandLineError;
use crate::id::HarnessName;

/// A harness that does not exist, or a launch that lacks something.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HarnessError {
    /// No harness of that name.
    #[error("there is no harness `{given}`; there are {known}", known = HarnessName::listing())]
    Unknown {
        /// What was asked for, shortened.
        given: String,
    },
    /// A version that could name something else than a version: a path, an option, a range.
    #[error("`{given}` is not a version like 0.171.0")]
    BadVersion {
        /// What was asked for, shortened.
        given: String,
    },
    /// A version of something that has none.
    #[error("`{name}` is part of proctor and has no versions; leave out `@…`")]
    NoVersions {
        /// The harness.
        name: HarnessName,
    },
    /// The launch lacks something that this harness needs.
    #[error("the harness `{harness}` needs {what}")]
    Missing {
        /// The harness.
        harness: HarnessName,
        /// What it needs, as in "a command line".
        what: &'static str,
    },
    /// `--command` could not be split into words.
    #[error("the command line cannot be read")]
    CommandLine(#[from] CommandLineError),
}

impl HarnessError {
    /// What the user can do about it, if there is more to say than the message says.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unknown { .. } => {
                Some("`proctor harness list` shows every harness and the installed versions")
            }
            Self::BadVersion { .. } => Some("give one exact version, as in `codex@0.171.0`"),
            Self::Missing { what: LaunchNeed::COMMAND, .. } => Some("add `--command 'bash -c …'`"),
            Self::Missing { what: LaunchNeed::INSTALL, .. } => {
                Some("`proctor harness install NAME@VERSION` installs it once for all trials")
            }
            Self::NoVersions { .. } | Self::Missing { .. } | Self::CommandLine(_) => None,
        }
    }
}

/// The things a launch may lack, by the words used in messages.
pub(crate) struct LaunchNeed;

impl LaunchNeed {
    pub(crate) const COMMAND: &'static str = "a command line";
    pub(crate) const INSTALL: &'static str = "its CLI installed";
    pub(crate) const MODEL: &'static str = "a model name";
    pub(crate) const ORACLE: &'static str = "the task's target program";
    pub(crate) const PROMPT: &'static str = "a prompt";
}
