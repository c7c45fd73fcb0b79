//! Reads what the agents of a run did, trial by trial, on all cores, keeping no more than is counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proctor_store::{Labels, LabelsAsked, RunDir, StoreError};
use proctor_traces::Behaviour;

use crate::row::{Ended, Row, Rows};

/// More readers than this wait for each other.
const MOST_READERS: usize = 16;

/// So many problems are told one by one.
const TOLD: usize = 20;

/// How labels are come by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Whether `actions.jsonl` is written beside the trial's other files.
    pub keep: bool,
    /// Whether the one that is there is not looked at.
    pub anew: bool,
}

/// What the agents of a run did.
#[derive(Clone, Debug, Default)]
pub struct Behaviours {
    /// By row; none for a trial that has not ended, or that left no trace.
    pub of: Vec<Option<Behaviour>>,
    /// Trials whose labels were found.
    pub found: u64,
    /// Trials whose labels were made.
    pub made: u64,
    /// What could not be read, one line each.
    pub problems: Vec<String>,
}

/// What reading one trial gave.
pub(super) struct Told<T> {
    /// What was taken of its labels.
    pub(super) taken: Option<T>,
    found: bool,
    /// What was wrong with it.
    pub(super) problem: Option<String>,
}

impl Behaviours {
    /// Reads all trials of a run.
    pub fn read(run: &RunDir, rows: &Rows, reading: Reading) -> Self {
        let all: Vec<&Row> = rows.rows.iter().collect();
        let told = labels(run, &all, reading, |labels| labels.head.behaviour);
        let mut it = Self::default();
        let mut problems = 0;
        for told in told {
            if told.taken.is_some() {
                it.found += u64::from(told.found);
                it.made += u64::from(!told.found);
            }
            problems += usize::from(told.problem.is_some());
            it.problems.extend(told.problem.filter(|_| problems <= TOLD));
            it.of.push(told.taken);
        }
        if problems > TOLD {
            it.problems.push(format!("{} more traces that are not as they should be", problems - TOLD));
        }
        it
    }
}

/// What `take` makes of the labels of each of these rows, in their order.
pub(super) fn labels<T: Send>(
    run: &RunDir,
    rows: &[&Row],
    reading: Reading,
    take: impl Fn(Labels) -> T + Sync,
) -> Vec<Told<T>> {
    let next = AtomicUsize::new(0);
    let readers = thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let mut all: Vec<Option<Told<T>>> = rows.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let work = || {
            let mut mine = Vec::new();
            loop {
                // Traces differ in size by far: whoever is free takes the next.
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(row) = rows.get(at) else { return mine };
                mine.push((at, one(run, row, reading, &take)));
            }
        };
        let workers: Vec<_> = (0..readers).map(|_| scope.spawn(work)).collect();
        // What a reader that panicked had read is told as missing below.
        for (at, told) in workers.into_iter().filter_map(|it| it.join().ok()).flatten() {
            if let Some(place) = all.get_mut(at) {
                *place = Some(told);
            }
        }
    });
    let missing = |row: &Row| Told {
        taken: None,
        found: false,
        problem: Some(format!("{}: reading its trace failed", row.trial)),
    };
    all.into_iter().zip(rows).map(|(told, row)| told.unwrap_or_else(|| missing(row))).collect()
}

fn one<T>(run: &RunDir, row: &Row, reading: Reading, take: impl Fn(Labels) -> T) -> Told<T> {
    let nothing = |problem| Told { taken: None, found: false, problem };
    let Some(ended) = row.ended() else { return nothing(None) };
    let asked = LabelsAsked {
        artifact: ended.designated.as_deref(),
        agent_ms: ended.started_at.map(|_| ended.agent_ms.0),
        keep: reading.keep,
        anew: reading.anew,
    };
    let problem = |error: &StoreError| {
        let mut text = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            text = format!("{text}: {source}");
        }
        Some(text.replace('\n', " "))
    };
    match run.trial(&row.trial).labels(&asked) {
        Ok(None) => nothing(None),
        Ok(Some(mut it)) => {
            let lost = lost(&mut it.labels.head.behaviour, ended);
            let lost = (!lost.is_empty()).then(|| format!("{}: {}", row.trial, lost.join("; ")));
            let problem = it.not_kept.as_ref().and_then(problem).or(lost);
            Told { taken: Some(take(it.labels)), found: it.found, problem }
        }
        Err(error) => nothing(problem(&error)),
    }
}

/// What the runner counted when the trial ended and the files that are left no longer tell. A number that rests on what is
/// lost is none.
fn lost(behaviour: &mut Behaviour, ended: &Ended) -> Vec<String> {
    let mut lost = Vec::new();
    match behaviour.versions {
        None => lost.push(
            "its journal is missing or torn, so that versions of the artifact are not counted".to_owned(),
        ),
        Some(versions) if versions < ended.versions => {
            let all = ended.versions;
            lost.push(format!("its journal tells of {versions} of {all} versions of the artifact"));
            behaviour.versions = None;
        }
        Some(_) => {}
    }
    if behaviour.calls < ended.tool_calls {
        lost.push(format!("its files tell of {} of {} tool calls", behaviour.calls, ended.tool_calls));
    }
    lost
}
