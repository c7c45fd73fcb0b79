//! What Figure 6 shows: when the agents of each method did what, on the same tasks.

use std::collections::HashMap;
use std::io::{self, Write};

use proctor_store::{LabelledCall, RunDir};
use proctor_traces::ToolStatus;
use proctor_traces::actions::Action;
use proctor_traces::export::harmless;
use serde::Serialize;

use super::choice::{Choice, stratified};
use super::read::{Reading, labels};
use crate::accounting::{Coverage, Verdict};
use crate::report::control;
use crate::row::{Row, Rows, float};
use crate::words::{agreeing, counted};

/// The data of Figure 6.
#[derive(Clone, Debug, Serialize)]
pub struct Strategies {
    /// Name of the run.
    pub run: String,
    /// Seed of the sample.
    pub seed: u64,
    /// Tasks that all methods left traces of; those shown were drawn of them.
    pub candidates: usize,
    /// Tasks of the plan that not every method left a trace of, as `suite/task`: they cannot be shown.
    pub left_out: Vec<String>,
    /// Why the figure is not final, of a run that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_final: Option<String>,
    /// The tasks, in the order of the rows of every panel.
    pub tasks: Vec<ShownTask>,
    /// A panel per method.
    pub panels: Vec<Panel>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// A task that is shown.
#[derive(Clone, Debug, Serialize)]
pub struct ShownTask {
    /// Suite.
    pub suite: String,
    /// Task.
    pub task: String,
    /// Category.
    pub category: String,
    /// Difficulty.
    pub difficulty: String,
    /// Source artifact.
    pub source: String,
}

/// A method.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// Its name.
    pub method: String,
    /// Its budget in milliseconds.
    pub budget_ms: u64,
    /// Its trials, one per task.
    pub rows: Vec<Shown>,
}

/// A trial.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its id.
    pub trial: String,
    /// How it came out.
    pub end: End,
    /// Time of the agent.
    pub agent_ms: u64,
    /// Its calls, in causal order.
    pub marks: Vec<Mark>,
}

/// How a trial came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Normally completed.
    Completed,
    /// Stopped at the deadline.
    TimedOut,
    /// Failed otherwise.
    Failed,
    /// Not resolved.
    Unresolved,
}

impl End {
    /// Its name in data.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Unresolved => "unresolved",
        }
    }
}

impl From<Coverage> for End {
    fn from(coverage: Coverage) -> Self {
        match coverage {
            Coverage::Completed => Self::Completed,
            Coverage::TimedOut => Self::TimedOut,
            Coverage::Failed(_) => Self::Failed,
            Coverage::Unresolved(_) => Self::Unresolved,
        }
    }
}

/// A call.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Its id.
    pub call: String,
    /// When it began.
    pub start_ms: u64,
    /// When it ended; the end of the agent for one that was cut off.
    pub end_ms: u64,
    /// Its actions.
    pub actions: Vec<Action>,
}

/// Why there is no figure.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFigure {
    /// The run has no such method.
    #[error("the run has no method `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Nobody left a trace.
    #[error("no method of this run left traces of its trials")]
    NoTraces,
    /// No task has a trace of every method.
    #[error("no task has a trace of each of {}", methods.join(", "))]
    NothingCommon {
        /// The methods.
        methods: Vec<String>,
    },
}

impl Strategies {
    /// Chooses tasks and reads their trials.
    pub fn read(
        run: &RunDir,
        rows: &Rows,
        verdicts: &[Verdict],
        choice: &Choice,
        reading: Reading,
    ) -> Result<Self, NoFigure> {
        let traced = traced(run, rows);
        let methods = methods(rows, &traced, choice)?;
        let (common, missing): (Vec<&proctor_store::TaskRecord>, Vec<_>) =
            rows.record.tasks.iter().partition(|task| {
                methods.iter().all(|it| traced.contains_key(&(&*task.suite, &*task.id, *it)))
            });
        let candidates: Vec<((String, usize, String), String)> = common
            .iter()
            .map(|it| {
                let difficulty = it.facts.difficulty.clone();
                (
                    (it.facts.category.clone(), rank(&difficulty), difficulty),
                    format!("{}/{}", it.suite, it.id),
                )
            })
            .collect();
        let chosen = stratified(&candidates, choice.tasks, choice.seed);
        if chosen.is_empty() {
            let methods = methods.iter().map(|at| rows.record.methods[*at].id.to_string()).collect();
            return Err(NoFigure::NothingCommon { methods });
        }
        let tasks: Vec<&proctor_store::TaskRecord> = chosen.into_iter().map(|at| common[at]).collect();
        let mut it = Self {
            run: rows.record.name.clone(),
            seed: choice.seed,
            candidates: candidates.len(),
            left_out: missing.into_iter().map(|it| format!("{}/{}", it.suite, it.id)).collect(),
            not_final: rows.not_final(),
            tasks: Vec::new(),
            panels: Vec::new(),
            problems: Vec::new(),
        };
        for method in methods {
            let places: Vec<usize> = tasks
                .iter()
                .filter_map(|task| traced.get(&(&*task.suite, &*task.id, method)).copied())
                .collect();
            let shown: Vec<&Row> = places.iter().map(|at| &rows.rows[*at]).collect();
            let told = labels(run, &shown, reading, |it| it.calls);
            let panel = places.iter().zip(told).map(|(at, told)| {
                it.problems.extend(told.problem);
                Shown::of(&rows.rows[*at], verdicts[*at], told.taken.unwrap_or_default())
            });
            let rows_of_panel = panel.collect();
            let record = &rows.record.methods[method];
            it.panels.push(Panel {
                method: record.id.to_string(),
                budget_ms: record.budget_ms.0,
                rows: rows_of_panel,
            });
        }
        it.tasks = tasks
            .into_iter()
            .map(|task| ShownTask {
                suite: task.suite.clone(),
                task: task.id.clone(),
                category: task.facts.category.clone(),
                difficulty: task.facts.difficulty.clone(),
                source: task.facts.source.clone(),
            })
            .collect();
        Ok(it)
    }

    /// Which tasks are not among those that could be shown, in a sentence.
    pub fn left_out_text(&self) -> Option<String> {
        const NAMED: usize = 10;
        let all = self.candidates + self.left_out.len();
        let named: Vec<&str> = self.left_out.iter().take(NAMED).map(String::as_str).collect();
        let more = self.left_out.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!named.is_empty()).then(|| {
            format!(
                "left out, as not every method left a trace of {}: {}{more} ({} of {})",
                agreeing(self.left_out.len(), "it", "them"),
                named.join(", "),
                self.left_out.len(),
                counted(all, "task")
            )
        })
    }

    /// A line for each action of each call; a call without an action has a line without one, and so has a trial without calls.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record([
            "row",
            "suite",
            "task",
            "category",
            "difficulty",
            "source",
            "method",
            "trial",
            "end",
            "agent_s",
            "call",
            "action",
            "phase",
            "start_s",
            "end_s",
        ])?;
        for panel in &self.panels {
            for (number, (task, row)) in (1..).zip(self.tasks.iter().zip(&panel.rows)) {
                let mut line = |mark: Option<&Mark>, action: Option<Action>| {
                    let seconds = |ms: u64| float(ms) / 1000.0;
                    let number: u64 = number;
                    writer.serialize((
                        (number, &task.suite, &task.task, &task.category, &task.difficulty, &task.source),
                        (&panel.method, &row.trial, row.end.as_str(), seconds(row.agent_ms)),
                        mark.map(|it| harmless(&it.call)),
                        action.map(Action::as_str),
                        action.map(|it| it.phase().as_str()),
                        mark.map(|it| seconds(it.start_ms)),
                        mark.map(|it| seconds(it.end_ms)),
                    ))
                };
                if row.marks.is_empty() {
                    line(None, None)?;
                }
                for mark in &row.marks {
                    if mark.actions.is_empty() {
                        line(Some(mark), None)?;
                    }
                    mark.actions.iter().try_for_each(|action| line(Some(mark), Some(*action)))?;
                }
            }
        }
        writer.flush()
    }
}

impl Shown {
    fn of(row: &Row, verdict: Verdict, calls: Vec<LabelledCall>) -> Self {
        let agent_ms = row.ended().map_or(0, |it| it.agent_ms.0);
        let inside = |ms: i64| u64::try_from(ms).unwrap_or(0).min(agent_ms);
        let marks = calls.into_iter().filter_map(|it| {
            let start_ms = inside(it.start_ms?);
            let end_ms = match it.end_ms {
                Some(ms) => inside(ms).max(start_ms),
                None if it.status == ToolStatus::Unfinished => agent_ms,
                None => start_ms,
            };
            Some(Mark { call: it.call.0, start_ms, end_ms, actions: it.actions })
        });
        Self { trial: row.trial.to_string(), end: verdict.coverage.into(), agent_ms, marks: marks.collect() }
    }
}

/// Trials that left a trace, by suite, task and method: of several attempts the first.
fn traced<'a>(run: &RunDir, rows: &'a Rows) -> HashMap<(&'a str, &'a str, usize), usize> {
    let mut traced = HashMap::new();
    for (at, row) in rows.rows.iter().enumerate().filter(|it| it.1.ended().is_some()) {
        let key = (row.task.suite.as_str(), row.task.id.as_str(), row.method);
        let folder = run.trial(&row.trial);
        let left = ["trace.jsonl", "raw"].iter().any(|name| folder.evidence(name).exists());
        if left && !traced.contains_key(&key) {
            traced.insert(key, at);
        }
    }
    traced
}

/// Places of the methods that have a panel.
fn methods(
    rows: &Rows,
    traced: &HashMap<(&str, &str, usize), usize>,
    choice: &Choice,
) -> Result<Vec<usize>, NoFigure> {
    let known: Vec<String> = rows.record.methods.iter().map(|it| it.id.to_string()).collect();
    let methods: Vec<usize> = if choice.methods.is_empty() {
        let contestants = |at: &usize| control(&rows.record.methods[*at].harness).is_none();
        (0..known.len()).filter(contestants).filter(|at| traced.keys().any(|it| it.2 == *at)).collect()
    } else {
        let place = |name: &String| {
            let unknown = || NoFigure::Unknown { name: name.clone(), known: known.clone() };
            known.iter().position(|it| it == name).ok_or_else(unknown)
        };
        choice.methods.iter().map(place).collect::<Result<_, _>>()?
    };
    if methods.is_empty() { Err(NoFigure::NoTraces) } else { Ok(methods) }
}

fn rank(difficulty: &str) -> usize {
    ["easy", "medium", "hard"].iter().position(|it| *it == difficulty).unwrap_or(3)
}
