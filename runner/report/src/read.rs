//! Reads a run in one pass: for each planned trial its outcome, the state of its rendering, and its marks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use proctor_store::{Outcome, RunDir, StoreError, TaskRecord, TrialDir, TrialId, read_json};
use proctor_traces::{ArtifactState, Digest, Ending, EventKind, Millis, OffsetMs, TraceEvent};
use serde::Deserialize;

use crate::row::{Ended, Judged, Marks, RenderState, Row, RowState, Rows};
use crate::words::{agreeing, counted};

/// More readers than this make a disk no faster.
const MOST_READERS: usize = 4;

/// So much of the end of a trace is searched for the last change of the artifact, in bytes.
const TRACE_TAIL: u64 = 4 << 20;

/// How many problems of one kind are told one by one.
const TOLD: usize = 20;

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// What is in the outcome and its rendering's record.
    Outcomes,
    /// Marks as well, and for what timed out the last change of the artifact.
    Everything,
}

/// The part of `render.json` that counts here.
#[derive(Deserialize)]
struct RenderPart {
    status: String,
    source: Digest,
    image: ImagePart,
    duration_ms: u64,
    #[serde(default)]
    digest: Option<Digest>,
}

/// The picture that a rendering gave, if it is there.
pub(crate) fn shown(place: &Path) -> Option<Digest> {
    let record: RenderPart = read_json(&place.join("render.json"), "rendering").ok()?;
    record.digest.filter(|_| record.status == "rendered" && place.join("output.png").is_file())
}

#[derive(Deserialize)]
struct ImagePart {
    id: String,
}

/// A planned trial before anything is read of it.
struct Slot {
    trial: TrialId,
    task: Arc<TaskRecord>,
    method: usize,
}

impl Rows {
    /// Reads all planned trials of a run, with the marks of whoever judged each first.
    pub fn read(run: &RunDir, depth: Depth) -> Result<Self, StoreError> {
        Self::read_by(run, depth, None)
    }

    /// The same with the marks of `judge`.
    pub fn read_by(run: &RunDir, depth: Depth, judge: Option<&str>) -> Result<Self, StoreError> {
        let record = run.record()?;
        let tasks: Vec<Arc<TaskRecord>> = record.tasks.iter().cloned().map(Arc::new).collect();
        let methods = record.methods.len().max(1);
        let planned = record.trials().map_err(|error| StoreError::Malformed {
            path: run.root().join("run.json"),
            what: "run",
            message: error.to_string(),
        })?;
        // The plan goes attempt by attempt, task by task, method by method.
        let slots: Vec<Slot> = planned
            .into_iter()
            .enumerate()
            .map(|(at, trial)| Slot {
                trial,
                task: Arc::clone(&tasks[at / methods % tasks.len().max(1)]),
                method: at % methods,
            })
            .collect();
        let reader = Reader { run, depth, judge, image: &record.image.id, methods: &record.methods };
        let readers = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let share = slots.len().div_ceil(readers).max(1);
        let mut rows = Vec::with_capacity(slots.len());
        let mut problems = Vec::new();
        thread::scope(|scope| {
            let shares: Vec<_> =
                slots.chunks(share).map(|slots| scope.spawn(|| reader.read_all(slots))).collect();
            for (share, slots) in shares.into_iter().zip(slots.chunks(share)) {
                match share.join() {
                    Ok((read, found)) => {
                        rows.extend(read);
                        problems.extend(found);
                    }
                    // A reader that panicked is a defect of ours; what it had to read stays unresolved, and is told.
                    Err(_) => rows.extend(slots.iter().map(|slot| {
                        problems.push(format!("{}: reading it failed", slot.trial));
                        slot.row(slot.trial.clone(), 0, RowState::Unreadable)
                    })),
                }
            }
        });
        let mut read = Self { record, rows, problems };
        read.find_mixtures();
        Ok(read)
    }

    /// Rows that are different experiments are never mixed silently (DESIGN §3.10).
    fn find_mixtures(&mut self) {
        let mut strange: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut prompts: BTreeMap<(&str, &str, usize), (Digest, bool)> = BTreeMap::new();
        let mut judges: BTreeMap<&str, u64> = BTreeMap::new();
        for row in &self.rows {
            let Some(ended) = row.ended() else { continue };
            let method = self.record.methods[row.method].id.as_str();
            for what in &ended.strange {
                *strange.entry((method, what)).or_default() += 1;
            }
            // Of two attempts at one task a method is told the same.
            let key = (row.trial.suite(), row.trial.task(), row.method);
            let seen = prompts.entry(key).or_insert((ended.prompt, false));
            seen.1 |= seen.0 != ended.prompt;
            if let Some(marks) = &ended.score {
                *judges.entry(&marks.judge).or_default() += 1;
            }
        }
        let mut problems: Vec<String> = strange
            .into_iter()
            .map(|((method, what), count)| {
                format!(
                    "{method}: {} {} made with another {what} than the plan says",
                    counted(count, "trial"),
                    agreeing(count, "was", "were")
                )
            })
            .collect();
        let mixed = prompts.values().filter(|(_, mixed)| *mixed).count();
        if mixed > 0 {
            problems.push(format!(
                "{} {} given with different prompts to the attempts of one method",
                counted(mixed, "task"),
                agreeing(mixed, "was", "were")
            ));
        }
        if judges.len() > 1 {
            let list: Vec<String> =
                judges.iter().map(|(judge, count)| format!("{judge} ({count})")).collect();
            problems.push(format!("marks of different judges are mixed: {}", list.join(", ")));
        }
        self.problems.extend(problems);
    }
}

impl Slot {
    fn row(&self, trial: TrialId, superseded: u32, state: RowState) -> Row {
        Row { trial, task: Arc::clone(&self.task), method: self.method, superseded, state }
    }
}

struct Reader<'a> {
    run: &'a RunDir,
    depth: Depth,
    judge: Option<&'a str>,
    image: &'a str,
    methods: &'a [proctor_store::MethodRecord],
}

impl Reader<'_> {
    fn read_all(&self, slots: &[Slot]) -> (Vec<Row>, Vec<String>) {
        let mut problems = Vec::new();
        let rows = slots.iter().map(|slot| self.read(slot, &mut problems)).collect();
        let more = problems.len().saturating_sub(TOLD);
        if more > 0 {
            problems.truncate(TOLD);
            problems.push(format!(
                "{} that {} not as {} should be",
                counted(more, "more file"),
                agreeing(more, "is", "are"),
                agreeing(more, "it", "they")
            ));
        }
        (rows, problems)
    }

    fn read(&self, slot: &Slot, problems: &mut Vec<String>) -> Row {
        let mut folder = self.run.trial(&slot.trial);
        let mut superseded = 0;
        loop {
            let again = self.run.trial(&folder.id().at(folder.id().attempt().again()));
            match again.rerun() {
                Ok(None) => break,
                Ok(Some(_)) => {}
                // It was asked for; what is unreadable is only why.
                Err(error) => problems.push(one_line(&error)),
            }
            (folder, superseded) = (again, superseded + 1);
        }
        let state = match folder.outcome() {
            Ok(None) => RowState::Pending { tries: folder.tries() },
            Ok(Some(outcome)) => RowState::Ended(Box::new(self.ended(slot, &folder, outcome, problems))),
            Err(error) => {
                problems.push(one_line(&error));
                RowState::Unreadable
            }
        };
        slot.row(folder.id().clone(), superseded, state)
    }

    fn ended(&self, slot: &Slot, folder: &TrialDir, it: Outcome, problems: &mut Vec<String>) -> Ended {
        let (artifact, digest) = artifact(&it);
        let mut strange = Vec::new();
        let method = &self.methods[slot.method];
        let compared = [
            ("image", it.digests.image.id == self.image),
            ("task package", it.digests.task == slot.task.digest),
            ("harness", it.digests.harness == method.harness_digest),
            ("budget", it.budget_ms == method.budget_ms),
        ];
        strange.extend(compared.iter().filter(|(_, same)| !same).map(|(what, _)| *what));
        let (render, render_ms) = match digest {
            None => (RenderState::NoArtifact, None),
            Some(digest) => self.rendering(folder, digest, &mut strange, problems),
        };
        let (mut judged, mut score) = (Judged::No, None);
        if self.depth == Depth::Everything {
            match self.judge.map_or_else(|| folder.score(), |judge| folder.score_by(judge)) {
                Ok(None) => {}
                Ok(Some(found)) if found.candidate.is_some() && !found.is_of(shown(&folder.render())) => {
                    let by = &found.judge;
                    problems.push(format!("{}: the marks of {by} are of another picture than the one that is there: judge it again", folder.id()));
                }
                Ok(Some(found)) => {
                    judged = if found.is_complete() { Judged::Yes } else { Judged::Partly };
                    let marks = Marks::from(&found);
                    if render != RenderState::Rendered && marks.satisfied.iter().any(|n| *n > 0) {
                        problems.push(format!("{}: it has marks for a picture that it has not", folder.id()));
                    }
                    score = Some(marks);
                }
                Err(error) => problems.push(one_line(&error)),
            }
        }
        let last_write_ms = (self.depth == Depth::Everything && it.ending == Ending::TimedOut)
            .then(|| last_change(&folder.evidence("trace.jsonl")).ok().flatten())
            .flatten();
        Ended {
            designated: it.artifacts.first().map(|it| it.name.clone()),
            artifact,
            render,
            render_ms,
            judged,
            score,
            started_at: it.started_at,
            ended_at: it.frozen_at,
            budget_ms: it.budget_ms,
            agent_ms: it.timing.agent_ms,
            model_ms: it.model_wait_ms,
            provider_wait_ms: it.provider_wait_ms,
            place_ms: Millis(it.timing.wall_ms.0.saturating_sub(it.timing.queue_ms.0)),
            asleep_ms: it.timing.suspended_ms.0.saturating_add(it.timing.clock_step_ms.unsigned_abs()),
            overrun_ms: it.overrun_ms,
            last_write_ms,
            tokens: it.tokens,
            exchanges: it.exchanges,
            tool_calls: it.tool_calls,
            versions: it.artifacts.iter().map(|it| it.versions).sum(),
            tries: it.r#try,
            runner: it.runner,
            prompt: it.digests.prompt,
            strange,
            ending: it.ending,
        }
    }

    fn rendering(
        &self,
        folder: &TrialDir,
        artifact: Digest,
        strange: &mut Vec<&'static str>,
        problems: &mut Vec<String>,
    ) -> (RenderState, Option<Millis>) {
        let place = folder.render();
        let record: RenderPart = match read_json(&place.join("render.json"), "rendering") {
            Ok(record) => record,
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return (RenderState::NotTried, None);
            }
            Err(error) => {
                problems.push(one_line(&error));
                return (RenderState::NotTried, None);
            }
        };
        if record.source != artifact {
            problems.push(format!("{}: its rendering is that of another artifact", folder.id()));
            return (RenderState::NotTried, None);
        }
        if record.image.id != self.image {
            strange.push("image for its rendering");
        }
        let took = Some(Millis(record.duration_ms));
        match record.status.as_str() {
            "rendered" if place.join("output.png").is_file() => (RenderState::Rendered, took),
            "rendered" => {
                problems.push(format!("{}: the picture of its rendering is gone", folder.id()));
                (RenderState::NotTried, None)
            }
            why => (RenderState::Failed(why.chars().take(40).collect()), took),
        }
    }
}

/// What stood at the artifact's path, and its digest if that was an artifact.
fn artifact(outcome: &Outcome) -> (&'static str, Option<Digest>) {
    let present = outcome.artifacts.iter().find_map(|it| match it.state {
        ArtifactState::Present { digest, .. } => Some(digest),
        _ => None,
    });
    if present.is_some() {
        return ("present", present);
    }
    let state = outcome.artifacts.first().map(|it| match it.state {
        ArtifactState::Present { .. } => "present",
        ArtifactState::Missing => "missing",
        ArtifactState::Empty => "empty",
        ArtifactState::Link => "link",
        ArtifactState::NotAFile => "not_a_file",
        ArtifactState::TooLarge { .. } => "too_large",
        ArtifactState::Unreadable { .. } => "unreadable",
    });
    (state.unwrap_or("missing"), None)
}

/// When the artifact was last seen to change, from the end of a trace.
fn last_change(trace: &Path) -> io::Result<Option<OffsetMs>> {
    let mut file = File::open(trace)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TRACE_TAIL)))?;
    let mut tail = Vec::new();
    file.take(TRACE_TAIL).read_to_end(&mut tail)?;
    let changes = tail.rsplit(|byte| *byte == b'\n').filter(|line| {
        // Most lines are something else, and parsing them would take most of the time.
        line.windows(18).any(|it| it == b"\"artifact_changed\"")
    });
    let events = changes.filter_map(|line| serde_json::from_slice::<TraceEvent>(line).ok());
    let mut changes = events.filter(|it| matches!(it.kind, EventKind::ArtifactChanged { .. }));
    Ok(changes.next().map(|it| it.offset_ms))
}

/// An error and its causes, in one line.
fn one_line(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect()
}
