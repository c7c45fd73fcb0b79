//! The judging of trials as a stage: reads what was rendered, writes `verdict.json` and `score.json`.

use std::path::PathBuf;

use proctor_store::{MarksPlace, Score, StoreError, TrialDir, read_json, write_json};
use proctor_tasks::Task;
use proctor_traces::Digest;

use super::{Flag, Inputs, JUDGE, PointVerdict, Reference, Settings, Verdict};
use crate::PictureError;
use crate::candidate::{Failure, JudgeError, candidate, digest_of_points, not_the_solvers, read};

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
    if let Some(ending) = not_the_solvers(&outcome) {
        return Ok(Standing::NotTheSolvers(ending));
    }
    let (candidate, failure) = candidate(folder, &outcome)?;
    let [source, target] = pictures;
    let inputs = Inputs { candidate, source, target, points: digest_of_points(task) };
    let task_changed = outcome.digests.task != task.digest();
    let place = place(folder)?;
    if let Some(verdict) = verdict(&place)
        && verdict.is_current(&inputs, failure.as_ref(), settings)
        && verdict.flags.contains(&Flag::TaskChanged) == task_changed
        && read_json::<Score>(&place.score(), "score").is_ok_and(|score| score == verdict.score())
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
    let place = place(folder)?;
    place.make()?;
    write_json(&place.score(), &verdict.score())?;
    write_json(&place.verdict(), &verdict)?;
    Ok(verdict)
}

/// Where this judge keeps its marks; those by an older version of its rules are replaced.
fn place(folder: &TrialDir) -> Result<MarksPlace, StoreError> {
    let ours =
        folder.scores()?.into_iter().map(|it| it.judge).find(|it| it.starts_with(&format!("{JUDGE}/")));
    folder.marks_of(&ours.unwrap_or_else(Verdict::signature))
}

/// The verdict that is there. One of an older format, or broken, is made anew.
fn verdict(place: &MarksPlace) -> Option<Verdict> {
    read_json(&place.verdict(), "verdict").ok()
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
