//! What there is to judge of a trial, for whichever judge.

use std::path::PathBuf;

use proctor_store::{Outcome, StoreError, TrialDir, read_json};
use proctor_tasks::Task;
use proctor_traces::{ArtifactState, Digest, Ending, ModelCause};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metrics::MetricError;
use crate::{Picture, PictureError};

/// Why a trial, or all of a task, could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A picture cannot be read.
    #[error("{path}", path = path.display())]
    Picture {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PictureError,
    },
    /// Pictures cannot be measured.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// There is an artifact, and nothing says how it renders.
    #[error("its artifact has not been rendered")]
    NotRendered,
    /// What is in `render/` is not what `render.json` says.
    #[error("its rendering is {0}")]
    Rendering(&'static str),
}

/// The part of `render.json` that counts here.
#[derive(Deserialize)]
struct RenderPart {
    status: String,
    source: Digest,
    digest: Option<Digest>,
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The solver left no artifact.
    NoArtifact,
    /// It cannot be rendered: the status in `render.json`.
    Render(String),
}

/// Whether a trial ended by no fault of the solver's, so that it is not judged: the name of its ending then.
pub(crate) fn not_the_solvers(outcome: &Outcome) -> Option<&'static str> {
    (!is_the_solvers(&outcome.ending)).then(|| outcome.ending.name())
}

/// Whether a trial that ended so is the solver's to answer for: not if the user, our side or the provider broke it off.
pub fn is_the_solvers(ending: &Ending) -> bool {
    !matches!(
        ending,
        Ending::Cancelled
            | Ending::InfraError { .. }
            | Ending::ModelError { cause: ModelCause::Provider, .. }
    )
}

/// Reads a picture of a task or a trial.
pub(crate) fn read(path: PathBuf) -> Result<(Picture, Digest), JudgeError> {
    Picture::read(&path).map_err(|source| JudgeError::Picture { path, source })
}

/// What there is to judge: the digest of the picture, or why there is none.
pub(crate) fn candidate(
    folder: &TrialDir,
    outcome: &Outcome,
) -> Result<(Option<Digest>, Option<Failure>), JudgeError> {
    let artifact = outcome.artifacts.iter().find_map(|it| match it.state {
        ArtifactState::Present { digest, .. } => Some(digest),
        _ => None,
    });
    let Some(artifact) = artifact else { return Ok((None, Some(Failure::NoArtifact))) };
    let record = folder.render().join("render.json");
    let record: RenderPart = match read_json(&record, "rendering") {
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Err(JudgeError::NotRendered);
        }
        read => read?,
    };
    if record.source != artifact {
        return Err(JudgeError::Rendering("that of another artifact"));
    }
    match (record.status.as_str(), record.digest) {
        ("rendered", Some(digest)) => Ok((Some(digest), None)),
        ("rendered", None) => Err(JudgeError::Rendering("without a picture")),
        (status, _) => Ok((None, Some(Failure::Render(status.chars().take(40).collect())))),
    }
}

/// The digest of the points of a task.
pub(crate) fn digest_of_points(task: &Task) -> Digest {
    // Numbers and texts are always written.
    Digest::of(&serde_json::to_vec(&task.hidden.annotations.scoring_points).unwrap_or_default())
}
