//! Which trials count as what (VAO-Bench, appendix B.4; DESIGN §5): every registered trial is exactly one of J, R, F, U.

use std::collections::BTreeSet;

use proctor_traces::{Ending, ModelCause};
use serde::Serialize;

use crate::row::{Judged, RenderState, Row, RowState, Rows};

/// The set that a trial belongs to. E = J ∪ R ∪ F ∪ U.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Class {
    /// Normally completed and scored.
    J,
    /// Timed out, but what was left at the deadline is scored.
    R,
    /// A confirmed failure.
    F,
    /// Unresolved: not known yet, or never to be known, and not by fault of the method.
    U,
}

/// What a trial counts as when coverage is reported: completed + timed out + failed + unresolved = E.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "as", content = "why")]
pub enum Coverage {
    /// Normally completed: it ended in its budget by itself, left an artifact, and that renders. Judged or not.
    Completed,
    /// Stopped at the deadline, whatever was left.
    TimedOut,
    /// Another failure.
    Failed(Cause),
    /// None of these can be said.
    Unresolved(Open),
}

/// Whose failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The model server refused, or, if so asked for, was not there.
    Model,
    /// The agent failed, or left no artifact.
    Code,
    /// The artifact does not render.
    Render,
    /// The agent left the bounds of its room: memory, disk, output, tokens, cost.
    Limit,
}

impl Cause {
    /// All, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::Model, Self::Code, Self::Render, Self::Limit];
}

/// Why a trial is unresolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Open {
    /// It has no outcome yet.
    Pending,
    /// The user stopped it.
    Cancelled,
    /// Our side failed, and its tries are used up.
    Infra,
    /// The provider was not there, and its tries are used up.
    Provider,
    /// Its artifact has not been rendered.
    Unrendered,
    /// It is rendered, and there is no verdict.
    Unjudged,
    /// Its files cannot be read.
    Unreadable,
}

impl Open {
    /// All, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Cancelled,
        Self::Infra,
        Self::Provider,
        Self::Unrendered,
        Self::Unjudged,
        Self::Unreadable,
    ];
}

/// Where outages of the provider go that outlasted all tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderErrors {
    /// Into U: they say nothing about the method.
    #[default]
    Unresolved,
    /// Into F, as the paper reads.
    Fail,
}

/// What may be recovered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recover {
    /// What timed out.
    #[default]
    Timeouts,
    /// Whatever left an artifact that renders.
    Any,
}

/// What "scored" means in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// A judge has marked it.
    Judge,
    /// No judge has run at all: it has a valid canonical rendering.
    Rendering,
}

/// How the rules are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rules {
    /// Outages of the provider.
    pub provider_errors: ProviderErrors,
    /// Recovery.
    pub recover: Recover,
    /// Scores.
    pub basis: Basis,
}

/// The canonical rendering, as far as accounts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Picture {
    /// There is one.
    Rendered,
    /// There can be none: no artifact, or one that does not render.
    Impossible,
    /// That is not known yet.
    Unknown,
}

impl From<&RenderState> for Picture {
    fn from(state: &RenderState) -> Self {
        match state {
            RenderState::Rendered => Self::Rendered,
            RenderState::NoArtifact | RenderState::Failed(_) => Self::Impossible,
            RenderState::NotTried => Self::Unknown,
        }
    }
}

/// What a trial counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Its set.
    pub class: Class,
    /// Its place in the coverage.
    pub coverage: Coverage,
    /// Why it is in U, if it is: for one that completed or timed out this is more than its coverage says.
    pub open: Option<Open>,
    /// It crashed or left its bounds, and left an artifact that renders all the same.
    pub salvageable: bool,
}

impl Rules {
    /// The verdict on a row.
    pub fn of(&self, row: &Row) -> Verdict {
        match &row.state {
            RowState::Pending { .. } => unresolved(Open::Pending),
            RowState::Unreadable => unresolved(Open::Unreadable),
            RowState::Ended(it) => self.classify(&it.ending, (&it.render).into(), it.judged),
        }
    }

    /// The verdict on a trial that ended so, with such a picture, and such marks. This is the whole of the accounting: the
    /// tables in `docs/accounting.md` are printed from it.
    pub fn classify(&self, ending: &Ending, picture: Picture, judged: Judged) -> Verdict {
        // Not ours to blame on a method.
        match ending {
            Ending::Cancelled => return unresolved(Open::Cancelled),
            Ending::InfraError { .. } => return unresolved(Open::Infra),
            Ending::ModelError { cause: ModelCause::Provider, .. }
                if self.provider_errors == ProviderErrors::Unresolved =>
            {
                return unresolved(Open::Provider);
            }
            _ => {}
        }
        let coverage = match (ending, picture) {
            (Ending::TimedOut, _) => Coverage::TimedOut,
            // Whether a trial completed is decided after rendering, and does not depend on the judge.
            (Ending::Completed, Picture::Rendered) => Coverage::Completed,
            (Ending::Completed, Picture::Unknown) => return unresolved(Open::Unrendered),
            (Ending::Completed, Picture::Impossible) => Coverage::Failed(Cause::Render),
            (Ending::ModelError { .. }, _) => Coverage::Failed(Cause::Model),
            (Ending::LimitExceeded { .. } | Ending::OutOfMemory, _) => Coverage::Failed(Cause::Limit),
            (
                Ending::AgentError { .. }
                | Ending::NoArtifact
                | Ending::Cancelled
                | Ending::InfraError { .. },
                _,
            ) => Coverage::Failed(Cause::Code),
        };
        let salvageable = matches!(coverage, Coverage::Failed(_)) && picture == Picture::Rendered;
        let counts = match coverage {
            Coverage::Completed => Some(Class::J),
            Coverage::TimedOut => Some(Class::R),
            _ => (self.recover == Recover::Any).then_some(Class::R),
        };
        let scored = self.basis == Basis::Rendering || judged == Judged::Yes;
        let (class, open) = match (counts, picture) {
            (Some(class), Picture::Rendered) if scored => (class, None),
            (Some(_), Picture::Rendered) => (Class::U, Some(Open::Unjudged)),
            (Some(_), Picture::Unknown) => (Class::U, Some(Open::Unrendered)),
            (_, Picture::Impossible) | (None, _) => (Class::F, None),
        };
        Verdict { class, coverage, open, salvageable }
    }
}

const fn unresolved(why: Open) -> Verdict {
    Verdict { class: Class::U, coverage: Coverage::Unresolved(why), open: Some(why), salvageable: false }
}

/// The accounts do not add up: a defect of ours, never of the data. No table may be printed.
#[derive(Debug, thiserror::Error)]
pub enum AccountingError {
    /// A planned trial is in no set.
    #[error("{missing} planned trials are in none of J, R, F, U")]
    Missing {
        /// How many.
        missing: usize,
    },
    /// A trial is in more than one set, or not planned.
    #[error("{trial} is counted twice, or is not in the plan")]
    Surplus {
        /// The trial.
        trial: String,
    },
    /// A set has a trial that it must not have.
    #[error("{trial} is in {class:?} but counted as {coverage:?}")]
    Contradiction {
        /// The trial.
        trial: String,
        /// Its set.
        class: Class,
        /// Its coverage.
        coverage: Coverage,
    },
}

/// Checks what must hold of any accounts: each planned trial is counted once; J is a part of the completed; R one of the
/// timeouts, or, where anything may be recovered, of timeouts and failures; F shares nothing with the completed.
pub fn check(rows: &Rows, verdicts: &[Verdict], rules: &Rules) -> Result<(), AccountingError> {
    let record = &rows.record;
    let mut planned: BTreeSet<(&str, &str, usize, u32)> = BTreeSet::new();
    for task in &record.tasks {
        for method in 0..record.methods.len() {
            let attempts = 1..=record.attempts;
            planned.extend(attempts.map(|attempt| (task.suite.as_str(), task.id.as_str(), method, attempt)));
        }
    }
    for (row, verdict) in rows.rows.iter().zip(verdicts) {
        let trial = row.trial.to_string();
        let slot = (row.trial.suite(), row.trial.task(), row.method, row.trial.attempt().number());
        if !planned.remove(&slot) {
            return Err(AccountingError::Surplus { trial });
        }
        let Verdict { class, coverage, open, .. } = *verdict;
        let fits = match (class, coverage) {
            (Class::J, Coverage::Completed) | (Class::R | Class::F, Coverage::TimedOut) => true,
            (Class::F, Coverage::Failed(_)) => true,
            (Class::R, Coverage::Failed(_)) => rules.recover == Recover::Any,
            (Class::U, _) => open.is_some(),
            _ => false,
        };
        if !fits {
            return Err(AccountingError::Contradiction { trial, class, coverage });
        }
    }
    if !planned.is_empty() || rows.rows.len() != verdicts.len() {
        return Err(AccountingError::Missing { missing: planned.len() });
    }
    Ok(())
}
