//! `--where`: an expression over what is known of a trial.

use std::collections::BTreeSet;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use proctor_traces::{Ending, Limit, Millis, ModelCause, Timestamp};
use serde::Serialize;

use crate::accounting::{Coverage, Verdict};
use crate::row::{Row, RowState, Rows, float};

/// A trial in flat fields: what an expression may name, and a line of `trials.csv`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Fields<'a> {
    /// The trial that stands for the planned one.
    pub trial: String,
    /// Suite.
    pub suite: &'a str,
    /// Task.
    pub task: &'a str,
    /// Method.
    pub method: &'a str,
    /// Attempt, from 1.
    pub attempt: u32,
    /// Which rerun of it; 0 if it is as first made.
    pub rerun: u32,
    /// Harness with its version.
    pub harness: &'a str,
    /// `PROVIDER/NAME`.
    pub model: &'a str,
    /// Who answers: `agent`, `native`, `direct`.
    pub track: &'a str,
    /// Artifact category.
    pub category: &'a str,
    /// Rendering mode.
    pub mode: &'a str,
    /// Difficulty.
    pub difficulty: &'a str,
    /// Operation.
    pub operation: &'a str,
    /// Source artifact.
    pub source: &'a str,
    /// Batch of the source.
    pub batch: &'a str,
    /// How it ended, or `pending`, or `unreadable`.
    pub ending: &'static str,
    /// More about that: whose failure a model error was, which limit, at which stage we failed.
    pub cause: &'a str,
    /// What was said about it.
    pub message: &'a str,
    /// What stood at the artifact's path.
    pub artifact: &'static str,
    /// State of its rendering: `rendered`, `not_tried`, `no_artifact`, or what went wrong.
    pub render: &'a str,
    /// State of its marks: `yes`, `partly`, `no`.
    pub judged: &'static str,
    /// J, R, F or U.
    pub class: String,
    /// Whether it completed within its budget.
    pub completed: bool,
    /// Whether it failed and left an artifact that renders all the same.
    pub salvageable: bool,
    /// Seconds of the agent.
    pub agent_s: Option<f64>,
    /// Seconds with a model request under way.
    pub model_s: Option<f64>,
    /// Seconds of rendering.
    pub render_s: Option<f64>,
    /// Seconds lost to failures of the provider.
    pub provider_wait_s: Option<f64>,
    /// Milliseconds from the deadline to the freeze.
    pub overrun_ms: Option<i64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
    /// Model requests.
    pub exchanges: Option<u64>,
    /// Prompt tokens.
    pub input_tokens: Option<u64>,
    /// Prompt tokens from a cache.
    pub cached_input_tokens: Option<u64>,
    /// Generated tokens.
    pub output_tokens: Option<u64>,
    /// USD.
    pub cost: Option<f64>,
    /// Tries.
    pub tries: u32,
    /// Machine that ran it.
    pub host: &'a str,
    /// Batch job that ran it.
    pub job: &'a str,
    /// When the agent was started.
    pub started_at: Option<Timestamp>,
}

/// An expression that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// It is no expression.
    #[error("`{expression}` is no expression: {message}")]
    Syntax {
        /// The expression.
        expression: String,
        /// Why not.
        message: String,
    },
    /// It names what no trial has.
    #[error("a trial has no `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It cannot be worked out for a trial.
    #[error("`{expression}` cannot be worked out for {trial}: {message}")]
    Evaluation {
        /// The expression.
        expression: String,
        /// The trial.
        trial: String,
        /// Why not.
        message: String,
    },
}

impl Fields<'_> {
    /// The names of all fields.
    pub fn names() -> BTreeSet<String> {
        match serde_json::to_value(Fields::default()) {
            Ok(serde_json::Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
            _ => BTreeSet::new(),
        }
    }
}

impl Rows {
    /// The fields of a row.
    pub fn fields<'a>(&'a self, row: &'a Row, verdict: &Verdict) -> Fields<'a> {
        let (method, facts) = (&self.record.methods[row.method], &row.task.facts);
        let mut fields = Fields {
            trial: row.trial.to_string(),
            suite: &row.task.suite,
            task: &row.task.id,
            method: method.id.as_str(),
            attempt: row.trial.attempt().number(),
            rerun: row.trial.attempt().rerun(),
            harness: &method.harness,
            model: method.model.as_deref().unwrap_or_default(),
            track: &method.track,
            category: &facts.category,
            mode: &facts.mode,
            difficulty: &facts.difficulty,
            operation: &facts.operation,
            source: &facts.source,
            batch: &facts.batch,
            ending: row.ending(),
            class: format!("{:?}", verdict.class),
            completed: verdict.coverage == Coverage::Completed,
            salvageable: verdict.salvageable,
            artifact: "unknown",
            render: "unknown",
            judged: "no",
            ..Fields::default()
        };
        match &row.state {
            RowState::Pending { tries } => fields.tries = *tries,
            RowState::Unreadable => {}
            RowState::Ended(it) => {
                let seconds = |time: Millis| Some(float(time.0) / 1000.0);
                fields.cause = cause(&it.ending);
                fields.message = it.ending.message().unwrap_or_default();
                (fields.artifact, fields.render, fields.judged) =
                    (it.artifact, it.render.name(), it.judged.name());
                (fields.agent_s, fields.model_s) = (seconds(it.agent_ms), seconds(it.model_ms));
                (fields.render_s, fields.provider_wait_s) =
                    (it.render_ms.and_then(seconds), seconds(it.provider_wait_ms));
                fields.overrun_ms = it.overrun_ms;
                (fields.tool_calls, fields.exchanges) = (Some(it.tool_calls), Some(it.exchanges));
                fields.input_tokens = Some(it.tokens.input_tokens);
                fields.cached_input_tokens = Some(it.tokens.cached_input_tokens);
                fields.output_tokens = Some(it.tokens.output_tokens);
                fields.cost = self.price(row.method).map(|price| it.cost(price));
                fields.tries = it.tries;
                fields.host = it.runner.as_ref().map_or("", |it| &it.host);
                fields.job = it.runner.as_ref().and_then(|it| it.job.as_deref()).unwrap_or_default();
                fields.started_at = it.started_at;
            }
        }
        fields
    }

    /// Places of the rows for which `expression` holds.
    pub fn select(&self, verdicts: &[Verdict], expression: &str) -> Result<Vec<usize>, FilterError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let compiled = environment.compile_expression(expression).map_err(|error| FilterError::Syntax {
            expression: expression.to_owned(),
            message: error.to_string(),
        })?;
        // What no trial has would be an error for the first one, but not if there is none, or behind an `or`.
        let known = Fields::names();
        let named = compiled.undeclared_variables(false);
        if let Some(name) = named.into_iter().filter(|name| !known.contains(name)).min() {
            return Err(FilterError::Unknown { name, known: known.into_iter().collect() });
        }
        let mut places = Vec::new();
        for (at, (row, verdict)) in self.rows.iter().zip(verdicts).enumerate() {
            let value = compiled.eval(Serde(self.fields(row, verdict)));
            let holds = value.map_err(|error| FilterError::Evaluation {
                expression: expression.to_owned(),
                trial: row.trial.to_string(),
                message: error.to_string(),
            })?;
            if holds.is_true() {
                places.push(at);
            }
        }
        Ok(places)
    }
}

fn cause(ending: &Ending) -> &str {
    match ending {
        Ending::InfraError { stage, .. } => stage,
        Ending::ModelError { cause: ModelCause::Provider, .. } => "provider",
        Ending::ModelError { cause: ModelCause::Request, .. } => "request",
        Ending::ModelError { cause: ModelCause::Replay, .. } => "replay",
        Ending::LimitExceeded { limit } => match limit {
            Limit::DiskBytes => "disk_bytes",
            Limit::DiskInodes => "disk_inodes",
            Limit::StreamBytes => "stream_bytes",
            Limit::Tokens => "tokens",
            Limit::Cost => "cost",
        },
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::tests::{ended, rows};
    use crate::{Judged, ProviderErrors, Recover, RenderState, judge};

    fn select(expression: &str) -> Result<Vec<usize>, FilterError> {
        let state = |ending| RowState::Ended(Box::new(ended(ending, RenderState::Rendered, Judged::No)));
        let rows =
            rows(vec![state(Ending::Completed), RowState::Pending { tries: 1 }, state(Ending::TimedOut)]);
        let (_, verdicts) = judge(&rows, ProviderErrors::Unresolved, Recover::Timeouts);
        rows.select(&verdicts, expression)
    }

    #[test]
    fn an_expression_chooses_trials() {
        for (expression, expected) in [
            ("ending == 'timed_out'", vec![2]),
            ("ending == \"pending\" and tries > 0", vec![1]),
            ("agent_s > 0.5", vec![0, 2]),
            ("not completed", vec![1, 2]),
            ("class in ['J', 'R'] and category in ['flowchart']", vec![0, 2]),
            ("task == 't2' or (agent_s is none)", vec![1, 2]),
            ("true", vec![0, 1, 2]),
        ] {
            assert_eq!(select(expression).unwrap(), expected, "{expression}");
        }
    }

    #[test]
    fn what_no_trial_has_is_an_error_that_says_what_there_is() {
        let said = |expression| select(expression).unwrap_err().to_string();
        let unknown = said("true or endin == 'x'");
        assert!(unknown.starts_with("a trial has no `endin`; it has agent_s, artifact,"), "{unknown}");
        assert!(said("ending ==").contains("is no expression"));
        assert!(said("category.colour == 1").contains("cannot be worked out for vao/t0/m/1"));
    }
}
