//! What is known of each planned trial, and nothing more than a table needs.

use std::sync::Arc;

use proctor_store::{MethodId, PointKind, Price, Rating, RunRecord, Runner, Score, TaskRecord, TrialId};
use proctor_traces::{Digest, Ending, Millis, OffsetMs, Timestamp, Usage};
use serde::Serialize;

use crate::words::{agreeing, counted};

/// All planned trials of a run.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The plan.
    pub record: RunRecord,
    /// One row per planned trial, in the order of the plan.
    pub rows: Vec<Row>,
    /// What is wrong with the files, one line each; the trials concerned are unresolved.
    pub problems: Vec<String>,
}

impl Rows {
    /// What to say of figures of a run that goes on: how many of its trials have ended. None once all have.
    pub fn not_final(&self) -> Option<String> {
        let planned = self.rows.len();
        let ended = self.rows.iter().filter(|row| row.ended().is_some()).count();
        let have = agreeing(ended, "has", "have");
        (ended < planned).then(|| {
            format!("{ended} of {} {have} ended: the figures are not final", counted(planned, "trial"))
        })
    }
}

/// One planned trial: a task by a method, at an attempt.
#[derive(Clone, Debug)]
pub struct Row {
    /// The trial that stands for it now.
    pub trial: TrialId,
    /// The task.
    pub task: Arc<TaskRecord>,
    /// Position of the method in the plan.
    pub method: usize,
    /// Older attempts that it stands in for. They are kept, and not counted.
    pub superseded: u32,
    /// How far it came.
    pub state: RowState,
}

/// How far a planned trial came.
#[derive(Clone, Debug)]
pub enum RowState {
    /// It has no outcome.
    Pending {
        /// Tries that were begun.
        tries: u32,
    },
    /// It has an outcome that cannot be read, or that is another trial's.
    Unreadable,
    /// It has an outcome.
    Ended(Box<Ended>),
}

/// The outcome of a trial, with what later stages found.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How it ended.
    pub ending: Ending,
    /// Name of the designated artifact.
    pub designated: Option<String>,
    /// What stood at the artifact's path.
    pub artifact: &'static str,
    /// State of its canonical rendering.
    pub render: RenderState,
    /// Time that the rendering took.
    pub render_ms: Option<Millis>,
    /// State of its marks.
    pub judged: Judged,
    /// Its marks.
    pub score: Option<Marks>,
    /// Whether the agent was started, so that there is a time of it.
    pub started_at: Option<Timestamp>,
    /// When nothing could run any more.
    pub ended_at: Option<Timestamp>,
    /// Budget.
    pub budget_ms: Millis,
    /// Time of the agent, from exec to freeze.
    pub agent_ms: Millis,
    /// Time with a model request under way.
    pub model_ms: Millis,
    /// Time lost to failures of the provider.
    pub provider_wait_ms: Millis,
    /// Time that a trial occupies a place: from its start to its end.
    pub place_ms: Millis,
    /// Time that the machine slept, or was stopped.
    pub asleep_ms: u64,
    /// From the deadline to the freeze.
    pub overrun_ms: Option<i64>,
    /// When the artifact was last seen to change, for a trial that timed out.
    pub last_write_ms: Option<OffsetMs>,
    /// Tokens.
    pub tokens: Usage,
    /// Model requests.
    pub exchanges: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Versions of the artifact.
    pub versions: u64,
    /// Tries, the last included.
    pub tries: u32,
    /// Who ran it.
    pub runner: Option<Runner>,
    /// Digest of all that the agent was told and shown.
    pub prompt: Digest,
    /// What it was made with that is not what the plan says.
    pub strange: Vec<&'static str>,
}

/// State of a canonical rendering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderState {
    /// There is no artifact to render.
    NoArtifact,
    /// It was not tried, or what is there is no rendering of this artifact.
    NotTried,
    /// There is a picture.
    Rendered,
    /// There is none, for this reason.
    Failed(String),
}

impl RenderState {
    /// A word for it.
    pub fn name(&self) -> &str {
        match self {
            Self::NoArtifact => "no_artifact",
            Self::NotTried => "not_tried",
            Self::Rendered => "rendered",
            Self::Failed(why) => why,
        }
    }
}

/// State of a trial's marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// There are none.
    No,
    /// The judge came to no verdict on some of it.
    Partly,
    /// All marks are there.
    Yes,
}

impl Judged {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Partly => "partly",
            Self::Yes => "yes",
        }
    }
}

/// The marks of a trial, added up by the kind of point ([`PointKind::ALL`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Points satisfied.
    pub satisfied: [u32; 3],
    /// Points that the task has.
    pub points: [u32; 3],
    /// Visual quality.
    pub visual_quality: Option<Rating>,
    /// Domain validity.
    pub domain_quality: Option<Rating>,
    /// Who judged.
    pub judge: Arc<str>,
}

impl From<&Score> for Marks {
    fn from(score: &Score) -> Self {
        let count = |kind, all: bool| {
            let points = score.points.iter().filter(|it| it.kind == kind);
            u32::try_from(points.filter(|it| all || it.satisfied == Some(true)).count()).unwrap_or(u32::MAX)
        };
        Self {
            satisfied: PointKind::ALL.map(|kind| count(kind, false)),
            points: PointKind::ALL.map(|kind| count(kind, true)),
            visual_quality: score.visual_quality,
            domain_quality: score.domain_quality,
            judge: score.judge.as_str().into(),
        }
    }
}

impl Row {
    /// The outcome, if there is one that can be read.
    pub fn ended(&self) -> Option<&Ended> {
        match &self.state {
            RowState::Ended(ended) => Some(ended),
            _ => None,
        }
    }

    /// Name of its ending; `pending` and `unreadable` for what has none.
    pub fn ending(&self) -> &'static str {
        match &self.state {
            RowState::Pending { .. } => "pending",
            RowState::Unreadable => "unreadable",
            RowState::Ended(ended) => ended.ending.name(),
        }
    }
}

impl Ended {
    /// What its tokens cost in USD.
    pub fn cost(&self, price: &Price) -> f64 {
        let cached = self.tokens.cached_input_tokens.min(self.tokens.input_tokens);
        let plain = self.tokens.input_tokens - cached;
        let million = |tokens: u64, usd: f64| float(tokens) * usd / 1e6;
        million(plain, price.input)
            + million(cached, price.cached_input.unwrap_or(price.input))
            + million(self.tokens.output_tokens, price.output)
    }

    /// Time of the run for the means (B.4): of the agent; of the model where there is none of the agent; none without a
    /// timing record.
    pub fn time_ms(&self) -> Option<Millis> {
        let of_agent = self.started_at.map(|_| self.agent_ms);
        of_agent.or_else(|| Some(self.model_ms).filter(|it| it.0 > 0))
    }

    /// Whether it waited for a failing provider for more than a tenth of its time.
    pub fn is_throttled(&self) -> bool {
        self.provider_wait_ms.0.saturating_mul(10) > self.agent_ms.0
    }
}

impl Rows {
    /// Whether any trial has marks. If none has, "scored" stands for "has a valid canonical rendering" (DESIGN §5).
    pub fn is_judged(&self) -> bool {
        self.rows.iter().filter_map(Row::ended).any(|it| it.judged != Judged::No)
    }

    /// Name of a row's method.
    pub fn method(&self, row: &Row) -> &MethodId {
        &self.record.methods[row.method].id
    }

    /// What a million tokens of a row's model cost.
    pub fn price(&self, method: usize) -> Option<&Price> {
        self.record.prices.get(self.record.methods.get(method)?.model.as_deref()?)
    }
}

/// A count as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "counts and milliseconds here are far below 2^53")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}
