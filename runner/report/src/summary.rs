//! A run in short: what `proctor run` and `proctor show` print. A view of the same rows and verdicts as a report.

use proctor_store::{MethodId, RunDir, StoreError, TrialId};
use proctor_traces::{Ending, Millis};
use serde::Serialize;

use crate::accounting::{Class, Open, ProviderErrors, Recover, Verdict};
use crate::figures::{Accounts, Figures};
use crate::read::Depth;
use crate::report::judge;
use crate::row::{RenderState, Row, Rows};

/// All trials of a run that have an outcome, and how many have none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Name of the run.
    pub run: String,
    /// One line per method, in the order of the plan.
    pub methods: Vec<MethodSummary>,
    /// One line per planned trial with an outcome, in order of its name.
    pub trials: Vec<TrialLine>,
    /// What is wrong with its files.
    pub problems: Vec<String>,
}

/// A method's trials, counted. Registered = completed + timed out + other failures + unresolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodSummary {
    /// The method.
    pub method: MethodId,
    /// Trials that the plan has for it.
    pub registered: u64,
    /// Ended by themselves in their budget, with an artifact that renders.
    pub completed: u64,
    /// Stopped at the deadline.
    pub timed_out: u64,
    /// Those of them whose artifact renders all the same.
    pub recovered: u64,
    /// Every other ending that is the agent's, the model's or the artifact's.
    pub other_failures: u64,
    /// No outcome yet, an artifact that was not rendered, or a failure of ours or of the provider that outlasted its tries.
    pub unresolved: u64,
    /// Those of them that completed, if what they left renders: nobody has tried.
    pub unrendered: u64,
    /// Artifacts with a valid canonical picture.
    pub rendered: u64,
    /// Mean time of the run over the executed trials with a timing record, timeouts and failures included.
    pub mean_agent_ms: Option<Millis>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialLine {
    /// The trial.
    pub trial: TrialId,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
    /// State of its canonical rendering.
    pub render: RenderState,
    /// Time of the agent.
    pub agent_ms: Millis,
    /// From the deadline to the freeze, for those that were stopped.
    pub overrun_ms: Option<i64>,
    /// Tool calls in its stream.
    pub tool_calls: u64,
    /// Model requests.
    pub exchanges: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Versions of the artifact.
    pub versions: u64,
    /// Tries.
    pub tries: u32,
}

impl RunSummary {
    /// Reads a run.
    pub fn read(run: &RunDir) -> Result<Self, StoreError> {
        Ok(Self::of(&Rows::read(run, Depth::Outcomes)?))
    }

    /// The summary of rows that were read. No judge is waited for: it is about what was run and rendered.
    pub fn of(rows: &Rows) -> Self {
        let (rules, verdicts) = judge(rows, ProviderErrors::Unresolved, Recover::Timeouts);
        let accounts = Accounts::new(rows, &verdicts, rules.basis);
        let methods = rows.record.methods.iter().enumerate().map(|(at, method)| {
            let places: Vec<usize> = (0..rows.rows.len()).filter(|it| rows.rows[*it].method == at).collect();
            count(method.id.clone(), &accounts.figures(&places, false), &places, rows, &verdicts)
        });
        let mut trials: Vec<TrialLine> = rows.rows.iter().filter_map(line).collect();
        trials.sort_by(|a, b| a.trial.cmp(&b.trial));
        Self {
            run: rows.record.name.clone(),
            methods: methods.collect(),
            trials,
            problems: rows.problems.clone(),
        }
    }

    /// Trials without a valid outcome.
    pub fn unresolved(&self) -> u64 {
        self.methods.iter().map(|method| method.unresolved - method.unrendered).sum()
    }
}

fn count(
    method: MethodId,
    figures: &Figures,
    places: &[usize],
    rows: &Rows,
    verdicts: &[Verdict],
) -> MethodSummary {
    let mean = figures.means.get("time_s").and_then(|it| it.value);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of times")]
    let mean_agent_ms = mean.map(|seconds| Millis((seconds * 1000.0).round() as u64));
    let unrendered = places.iter().filter(|at| {
        let ended = rows.rows[**at].ended().is_some_and(|it| it.ending == Ending::Completed);
        ended && verdicts[**at].open == Some(Open::Unrendered)
    });
    MethodSummary {
        method,
        registered: figures.registered,
        completed: figures.completed.numerator,
        timed_out: figures.timeouts.numerator,
        recovered: figures.classes[&Class::R],
        other_failures: figures.failures.numerator,
        unresolved: figures.unresolved.numerator,
        unrendered: unrendered.count() as u64,
        rendered: figures.rendered,
        mean_agent_ms,
    }
}

fn line(row: &Row) -> Option<TrialLine> {
    let ended = row.ended()?;
    Some(TrialLine {
        trial: row.trial.clone(),
        ending: ended.ending.clone(),
        render: ended.render.clone(),
        agent_ms: ended.agent_ms,
        overrun_ms: ended.overrun_ms.filter(|ms| *ms >= 0),
        tool_calls: ended.tool_calls,
        exchanges: ended.exchanges,
        tokens: ended.tokens.input_tokens.saturating_add(ended.tokens.output_tokens),
        versions: ended.versions,
        tries: ended.tries,
    })
}
