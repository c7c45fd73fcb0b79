//! What happens in a trial, as the engine sees it: turns, inputs, workspace operations, artifacts. A suite is data here.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::TaskError;
use crate::render_mode::RenderMode;
use crate::task::Task;
use crate::wording::{self, Facts};

/// One message to the solver, with what is put into its workspace before and what it must leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Files that the solver gets.
    pub inputs: Vec<Input>,
    /// Changes to the workspace before the turn, in order. (`TASK.md` is not among them: it may tell facts of the run,
    /// so the engine writes it from [`crate::task_md`].)
    pub operations: Vec<WorkspaceOperation>,
    /// The message.
    pub prompt: PromptSource,
    /// The budget of this turn; `None` = the run's.
    pub budget: Option<Duration>,
    /// What must be there at its end.
    pub artifact: Artifact,
}

/// A file of the package that the solver gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Where it is on the host.
    pub host: PathBuf,
    /// Its path inside the workspace, relative, with `/`.
    pub inside: String,
    /// It is the picture that an attached image would show.
    pub is_source_picture: bool,
}

/// A change to the workspace by the runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceOperation {
    /// A file that must not be there yet.
    Put {
        /// Its path inside the workspace.
        inside: String,
        /// What is in it.
        content: Content,
    },
    /// A file that takes the place of the one that is there, if there is one.
    Replace {
        /// Its path inside the workspace.
        inside: String,
        /// What is in it.
        content: Content,
    },
    /// A file that goes.
    Delete {
        /// Its path inside the workspace.
        inside: String,
    },
}

/// What a workspace operation writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A copy of this file of the host.
    File(PathBuf),
}

/// Where a turn's message comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptSource {
    /// The suite's template.
    Template,
    /// This text.
    Text(String),
}

impl PromptSource {
    /// The message, byte for byte as it is delivered.
    pub fn text(&self, task: &Task, facts: &Facts) -> Result<String, TaskError> {
        match self {
            Self::Template => wording::prompt(task, facts),
            Self::Text(text) => Ok(text.clone()),
        }
    }
}

/// A designated file. A kind of artifact is data: nothing else in the engine knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its path inside the workspace.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// The most bytes that it may have.
    pub size_cap: u64,
    /// How it is rendered; `None` = it is not a picture's program (an answer file).
    pub mode: Option<RenderMode>,
}

impl Artifact {
    /// The most bytes that a program may have.
    pub const PROGRAM_CAP: u64 = 8 << 20;

    /// The program of a picture.
    pub fn program(mode: RenderMode) -> Self {
        Self {
            name: mode.artifact_name().to_owned(),
            media_type: mode.media_type().to_owned(),
            size_cap: Self::PROGRAM_CAP,
            mode: Some(mode),
        }
    }

    /// The most bytes that a picture may have that a model returns instead of a program.
    pub const PICTURE_CAP: u64 = 32 << 20;

    /// The names of such a picture, by its kind.
    pub const PICTURES: [(&'static str, &'static str); 3] =
        [("artifact.png", "image/png"), ("artifact.jpg", "image/jpeg"), ("artifact.webp", "image/webp")];

    /// Whether a file of this name is such a picture, and no program.
    pub fn is_picture(name: &str) -> bool {
        Self::PICTURES.iter().any(|(picture, _)| *picture == name)
    }
}
