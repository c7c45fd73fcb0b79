//! The judging of trials as a stage: reads what was rendered, writes `verdict.json` and `score.json`.

use std::path::PathBuf;

use proctor_store::{Outcome, StoreError, TrialDir, read_json, write_json};
use proctor_tasks::Task;
use proctor_traces::{ArtifactState, Digest, Ending, ModelCause};
use serde::Deserialize;

use super::{Failure, Flag, Inputs, JUDGE, PointVerdict, Reference, Settings, Verdict};
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
    /// There is a verdict of somebody else, which is not thrown away.
    #[error("it has been judged by {0}")]
    OtherJudge(String),
}

/// The part of `render.json` that counts here.
#[derive(Deserialize)]
struct RenderPart {
    status: String,
    source: Digest,
    digest: Option<Digest>,
}

/// The part of a verdict that says whose it is.
#[derive(Deserialize)]
struct Whose {
    judge: String,
}

/// How a trial stands with this judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has no outcome yet.
    Pending,
    /// It ended by no fault of the solver's, and is not judged: this is the name of its ending.
    NotTheSolvers(&'static str),
    /// Its verdict is of these very inputs.
    Current,
    /// It is to be judged.
    Due(Work),
}

/// A trial that is to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    inputs: Inputs,
    failure: Option<Failure>,
    task_changed: bool,
}

/// Looks how a trial of `task` stands. `pictures` are the digests of source and target.
pub fn look(
    folder: &TrialDir,
    task: &Task,
    pictures: [Digest; 2],
    settings: &Settings,
) -> Result<Standing, JudgeError> {
    let Some(outcome) = folder.outcome()? else { return Ok(Standing::Pending) };
    match outcome.ending {
        Ending::Cancelled
        | Ending::InfraError { .. }
        | Ending::ModelError { cause: ModelCause::Provider, .. } => {
            return Ok(Standing::NotTheSolvers(outcome.ending.name()));
        }
        _ => {}
    }
    let (candidate, failure) = candidate(folder, &outcome)?;
    let [source, target] = pictures;
    let inputs = Inputs { candidate, source, target, points: digest_of_points(task) };
    let task_changed = outcome.digests.task != task.digest();
    if let Some(verdict) = verdict(folder)?
        && verdict.is_current(&inputs, failure.as_ref(), settings)
        && verdict.flags.contains(&Flag::TaskChanged) == task_changed
        && folder.score()?.is_some_and(|score| score == verdict.score())
    {
        return Ok(Standing::Current);
    }
    Ok(Standing::Due(Work { inputs, failure, task_changed }))
}

/// Judges a trial that is due, and writes what came of it.
pub fn judge(
    folder: &TrialDir,
    work: Work,
    reference: &Reference,
    settings: &Settings,
) -> Result<Verdict, JudgeError> {
    let mut flags = Vec::new();
    let (findings, points): (_, Vec<PointVerdict>) = match work.inputs.candidate {
        None => (None, reference.without_picture()),
        Some(digest) => {
            let path = folder.render().join("output.png");
            let (picture, found) = read(path)?;
            if found != digest {
                return Err(JudgeError::Rendering("another picture than `render.json` says"));
            }
            let (findings, points) = reference.judge(&picture)?;
            (Some(findings), points)
        }
    };
    if let Some(findings) = &findings {
        let told = [
            (Flag::Blank, findings.blank),
            (Flag::CandidateFitted, !findings.candidate.is_exact(findings.canvas)),
            (Flag::SizesDiffer, findings.source.original != findings.target.original),
        ];
        flags.extend(told.iter().filter(|(_, holds)| *holds).map(|(flag, _)| *flag));
    }
    flags.extend(reference.is_without_edit().then_some(Flag::NoEdit));
    flags.extend(work.task_changed.then_some(Flag::TaskChanged));
    let verdict = Verdict {
        schema: Verdict::SCHEMA,
        judge: JUDGE.to_owned(),
        version: Verdict::VERSION,
        settings: *settings,
        inputs: work.inputs,
        failure: work.failure,
        findings,
        points,
        flags,
    };
    // The verdict is last: where it is current, the marks are.
    write_json(&folder.score_path(), &verdict.score())?;
    write_json(&folder.verdict_path(), &verdict)?;
    Ok(verdict)
}

/// Reads a picture of a task or a trial.
fn read(path: PathBuf) -> Result<(Picture, Digest), JudgeError> {
    Picture::read(&path).map_err(|source| JudgeError::Picture { path, source })
}

/// What there is to judge: the digest of the picture, or why there is none.
fn candidate(folder: &TrialDir, outcome: &Outcome) -> Result<(Option<Digest>, Option<Failure>), JudgeError> {
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

/// The verdict of this judge, if there is one that can be read. That of another judge is an error.
fn verdict(folder: &TrialDir) -> Result<Option<Verdict>, JudgeError> {
    let path = folder.verdict_path();
    match read_json::<Whose>(&path, "verdict") {
        Ok(whose) if whose.judge != JUDGE => return Err(JudgeError::OtherJudge(whose.judge)),
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        // One of an older format, or broken, is made anew.
        _ => return Ok(read_json(&path, "verdict").ok()),
    }
    match folder.score() {
        Ok(Some(score)) if !score.judge.starts_with(JUDGE) => Err(JudgeError::OtherJudge(score.judge)),
        _ => Ok(None),
    }
}

fn digest_of_points(task: &Task) -> Digest {
    // Numbers and texts are always written.
    Digest::of(&serde_json::to_vec(&task.hidden.annotations.scoring_points).unwrap_or_default())
}

/// Digests of the source and the target picture of a task, for [`look`].
pub fn pictures(task: &Task) -> Result<[Digest; 2], JudgeError> {
    let digest = |path: PathBuf| match std::fs::File::open(&path).and_then(Digest::of_reader) {
        Ok((digest, _)) => Ok(digest),
        Err(source) => {
            let source = PictureError::Io { path: path.clone(), source };
            Err(JudgeError::Picture { path, source })
        }
    };
    Ok([digest(task.source_picture())?, digest(task.hidden.target_picture.clone())?])
}

impl Reference {
    /// The reference of a task.
    pub fn of_task(task: &Task, settings: Settings) -> Result<Self, JudgeError> {
        let (source, _) = read(task.source_picture())?;
        let (target, _) = read(task.hidden.target_picture.clone())?;
        Ok(Self::new(&source, &target, &task.hidden.annotations, settings)?)
    }
}
