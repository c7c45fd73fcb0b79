//! The judging of a trial as a stage: how it stands, the question about it, and the writing down.

use proctor_store::{MarksPlace, Outcome, StoreError, TrialDir, read_json, write_json};
use proctor_tasks::Task;
use proctor_traces::Digest;

use super::prompt::Subject;
use super::{Answered, Question, SentPicture, Settings, Verdict, VisionInputs};
use crate::candidate::{Failure, JudgeError, candidate, digest_of_points, not_the_solvers, read};
use crate::{Picture, PictureError};

/// How a trial stands with a vision judge.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It has no outcome yet.
    Pending,
    /// It ended by no fault of the solver's, and is not judged: this is the name of its ending.
    NotTheSolvers(&'static str),
    /// Its verdict is of these very inputs and settings, and has enough answers: nothing is asked.
    Current(Box<Verdict>),
    /// It is to be judged.
    Due(Work),
}

/// A trial that is to be judged.
#[derive(Clone, Debug)]
pub struct Work {
    inputs: VisionInputs,
    failure: Option<Failure>,
}

impl Work {
    /// Whether a model must be asked: there is a picture.
    pub fn asks(&self) -> bool {
        self.failure.is_none()
    }
}

/// The pictures of a task, and what is asked of them.
#[derive(Debug)]
pub struct Case<'a> {
    task: &'a Task,
    source: Picture,
    reference: Picture,
    digests: [Digest; 2],
}

/// Reads what all trials of a task are judged against.
pub fn case(task: &Task) -> Result<Case<'_>, JudgeError> {
    let (source, source_digest) = read(task.source_picture())?;
    let (reference, reference_digest) = read(task.hidden.target_picture.clone())?;
    Ok(Case { task, source, reference, digests: [source_digest, reference_digest] })
}

/// Looks how a trial stands. `answers` says which answers are wanted, each by whether the order is swapped.
pub fn look(
    folder: &TrialDir,
    case: &Case<'_>,
    settings: &Settings,
    answers: &[bool],
) -> Result<Standing, JudgeError> {
    let Some(outcome) = folder.outcome()? else { return Ok(Standing::Pending) };
    if let Some(ending) = not_the_solvers(&outcome) {
        return Ok(Standing::NotTheSolvers(ending));
    }
    let (candidate, failure) = candidate(folder, &outcome)?;
    let inputs = of_task(case.task, candidate, case.digests);
    let place = folder.marks_of(&settings.signature())?;
    if let Some(verdict) = verdict(&place)?
        && (verdict.schema, &verdict.settings) == (Verdict::SCHEMA, settings)
        && (&verdict.inputs, &verdict.failure) == (&inputs, &failure)
        && verdict.is_scored()
        && (failure.is_some() || verdict.answers.iter().map(|it| it.swapped).eq(answers.iter().copied()))
    {
        return Ok(Standing::Current(Box::new(verdict)));
    }
    Ok(Standing::Due(Work { inputs, failure }))
}

fn of_task(task: &Task, candidate: Option<Digest>, [source, reference]: [Digest; 2]) -> VisionInputs {
    VisionInputs {
        candidate,
        source,
        reference,
        instruction: Digest::of(task.solver.instruction.as_bytes()),
        points: digest_of_points(task),
    }
}

/// What whoever looks at a trial is shown, and why there is no picture, if there is none.
pub(crate) fn inputs(
    folder: &TrialDir,
    outcome: &Outcome,
    task: &Task,
) -> Result<(VisionInputs, Option<Failure>), JudgeError> {
    let (candidate, failure) = candidate(folder, outcome)?;
    Ok((of_task(task, candidate, crate::pixel::pictures(task)?), failure))
}

impl Case<'_> {
    /// The question about the rendering of a trial.
    pub fn question(&self, folder: &TrialDir, work: &Work, swapped: bool) -> Result<Question, JudgeError> {
        let path = folder.render().join("output.png");
        let (candidate, found) = read(path.clone())?;
        if Some(found) != work.inputs.candidate {
            return Err(JudgeError::Rendering("another picture than `render.json` says"));
        }
        let subject = Subject {
            instruction: &self.task.solver.instruction,
            category: self.task.metadata.category,
            points: &self.task.hidden.annotations.scoring_points,
            source: &self.source,
            reference: &self.reference,
            candidate: &candidate,
        };
        Question::new(&subject, swapped).map_err(|source: PictureError| JudgeError::Picture { path, source })
    }
}

/// Writes what came of it: the verdict, and the marks that follow.
pub fn write(
    folder: &TrialDir,
    case: &Case<'_>,
    work: Work,
    settings: &Settings,
    pictures: Vec<SentPicture>,
    answers: Vec<Answered>,
) -> Result<Verdict, JudgeError> {
    let verdict = Verdict {
        schema: Verdict::SCHEMA,
        judge: settings.signature(),
        settings: settings.clone(),
        inputs: work.inputs,
        failure: work.failure,
        pictures,
        answers,
    };
    let place = folder.marks_of(&verdict.judge)?;
    place.make()?;
    // The verdict is last: where it is current, the marks are.
    write_json(&place.score(), &verdict.score(&case.task.hidden.annotations.scoring_points))?;
    write_json(&place.verdict(), &verdict)?;
    Ok(verdict)
}

/// The verdict that is there, if it can be read; one of an older format, or broken, is made anew.
fn verdict(place: &MarksPlace) -> Result<Option<Verdict>, JudgeError> {
    match read_json(&place.verdict(), "verdict") {
        Ok(verdict) => Ok(Some(verdict)),
        Err(StoreError::Io { source, .. }) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { action: "reading", path: place.verdict(), source }.into())
        }
        Err(_) => Ok(None),
    }
}
