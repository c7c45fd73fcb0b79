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

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proctor_store::{Attempt, MethodId, MethodRecord, RunRecord, TaskFacts, TaskRecord, TrialId};
    use proctor_traces::{Digest, ImageIdentity, Millis, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::row::Ended;

    const RULES: Rules = Rules {
        provider_errors: ProviderErrors::Unresolved,
        recover: Recover::Timeouts,
        basis: Basis::Judge,
    };

    pub(crate) fn ended(ending: Ending, render: RenderState, judged: Judged) -> Ended {
        Ended {
            ending,
            designated: Some("artifact.html".into()),
            artifact: "present",
            render,
            render_ms: Some(Millis(5)),
            judged,
            score: None,
            started_at: Some(Timestamp::from_millis(0)),
            ended_at: None,
            budget_ms: Millis(1000),
            agent_ms: Millis(900),
            model_ms: Millis(10),
            provider_wait_ms: Millis(90),
            place_ms: Millis(1000),
            asleep_ms: 0,
            overrun_ms: None,
            last_write_ms: None,
            tokens: proctor_traces::Usage::default(),
            exchanges: 0,
            tool_calls: 0,
            versions: 0,
            tries: 1,
            runner: None,
            prompt: Digest::of(b""),
            strange: Vec::new(),
        }
    }

    /// A run of one method with one task per state.
    pub(crate) fn rows(states: Vec<RowState>) -> Rows {
        let digest = Digest::of(b"");
        let method = MethodId::try_from("m".to_owned()).unwrap();
        let facts = TaskFacts { category: "flowchart".into(), ..TaskFacts::default() };
        let task = |at: usize| TaskRecord {
            id: format!("t{at}"),
            suite: "vao".into(),
            digest,
            facts: facts.clone(),
        };
        let record = RunRecord {
            schema: RunRecord::SCHEMA,
            name: "r".into(),
            created_at: Timestamp::from_millis(0),
            version: "1".into(),
            image: ImageIdentity {
                reference: "x".into(),
                id: "sha256:1".into(),
                inputs: digest,
                packages: digest,
            },
            methods: vec![MethodRecord {
                id: method.clone(),
                track: "agent".into(),
                harness: "codex@1".into(),
                model: None,
                budget_ms: Millis(1000),
                settings: BTreeMap::new(),
                harness_digest: digest,
            }],
            tasks: (0..states.len()).map(task).collect(),
            attempts: 1,
            limits: BTreeMap::new(),
            prices: BTreeMap::new(),
            plan: None,
            extended: Vec::new(),
        };
        let row = |(at, state): (usize, RowState)| Row {
            trial: TrialId::new("vao", &format!("t{at}"), method.clone(), Attempt::nth(1)).unwrap(),
            task: Arc::new(record.tasks[at].clone()),
            method: 0,
            superseded: 0,
            state,
        };
        let rows = states.into_iter().enumerate().map(row).collect();
        Rows { rows, record, problems: Vec::new() }
    }

    fn state() -> impl Strategy<Value = RowState> {
        let text = String::new;
        let ending = prop_oneof![
            Just(Ending::Cancelled),
            Just(Ending::InfraError { stage: text(), message: text() }),
            Just(Ending::TimedOut),
            Just(Ending::OutOfMemory),
            Just(Ending::ModelError { cause: ModelCause::Provider, message: text() }),
            Just(Ending::ModelError { cause: ModelCause::Request, message: text() }),
            Just(Ending::AgentError { message: text() }),
            Just(Ending::NoArtifact),
            Just(Ending::Completed),
        ];
        let render = prop_oneof![
            Just(RenderState::NoArtifact),
            Just(RenderState::NotTried),
            Just(RenderState::Rendered),
            Just(RenderState::Failed("blank".into())),
        ];
        let judged = prop_oneof![Just(Judged::No), Just(Judged::Partly), Just(Judged::Yes)];
        prop_oneof![
            1 => (0..3u32).prop_map(|tries| RowState::Pending { tries }),
            1 => Just(RowState::Unreadable),
            8 => (ending, render, judged).prop_map(|(e, r, j)| RowState::Ended(Box::new(ended(e, r, j)))),
        ]
    }

    proptest! {
        #[test]
        fn whatever_comes_the_accounts_add_up(states in prop::collection::vec(state(), 0..30), fail: bool, any: bool, judged: bool) {
            let rows = rows(states);
            let rules = Rules {
                provider_errors: if fail { ProviderErrors::Fail } else { ProviderErrors::Unresolved },
                recover: if any { Recover::Any } else { Recover::Timeouts },
                basis: if judged { Basis::Judge } else { Basis::Rendering },
            };
            let verdicts: Vec<Verdict> = rows.rows.iter().map(|row| rules.of(row)).collect();
            prop_assert!(check(&rows, &verdicts, &rules).is_ok());
            let accounts = crate::figures::Accounts::new(&rows, &verdicts, rules.basis);
            let all: Vec<usize> = (0..rows.rows.len()).collect();
            let it = accounts.figures(&all, false);
            prop_assert_eq!(it.classes.values().sum::<u64>(), it.registered);
            let coverage = [&it.completed, &it.timeouts, &it.failures, &it.unresolved];
            prop_assert_eq!(coverage.iter().map(|rate| rate.numerator).sum::<u64>(), it.registered);
            prop_assert_eq!(it.failures_by_cause.values().sum::<u64>(), it.failures.numerator);
            prop_assert_eq!(it.unresolved_by_reason.values().sum::<u64>(), it.classes[&Class::U]);
            let curve = accounts.curve(0, false, &all);
            prop_assert_eq!(curve.completed.numerator, it.completed.numerator);
            prop_assert_eq!(curve.steps.last().map_or(0, |last| last.1), it.completed.numerator);
        }
    }

    #[test]
    fn accounts_that_do_not_add_up_are_found() {
        let good = || RowState::Ended(Box::new(ended(Ending::Completed, RenderState::Rendered, Judged::Yes)));
        let whole = rows(vec![good(), good()]);
        let verdicts: Vec<Verdict> = whole.rows.iter().map(|row| RULES.of(row)).collect();
        check(&whole, &verdicts, &RULES).unwrap();

        let mut twice = whole.clone();
        twice.rows[1] = twice.rows[0].clone();
        let found = check(&twice, &verdicts, &RULES);
        assert!(matches!(found, Err(AccountingError::Surplus { .. })), "{found:?}");

        let mut missing = whole.clone();
        missing.rows.pop();
        let found = check(&missing, &verdicts[..1], &RULES);
        assert!(matches!(found, Err(AccountingError::Missing { missing: 1 })), "{found:?}");

        for class in [Class::R, Class::F, Class::U] {
            let wrong = [verdicts[0], Verdict { class, ..verdicts[1] }];
            let found = check(&whole, &wrong, &RULES);
            assert!(matches!(found, Err(AccountingError::Contradiction { .. })), "{found:?}");
        }
    }
}
