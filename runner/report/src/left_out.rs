//! Trials that no process will start as the plan is: what they need was not left by another, or a ceiling is reached.

use std::collections::HashMap;

use proctor_store::{Outcome, RunDir};
use proctor_traces::ArtifactState;
use serde::Deserialize;

use crate::row::{Row, RowState, Rows, float};

/// Why a trial is left out, however often the run is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Another trial did not leave what it needs, and it is not to be run without.
    Needs,
    /// Its method, or the run, has used all that it may.
    Ceiling,
}

/// The part of a run's plan that counts here. What else is in it is nobody's business here, and may change.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PlanPart {
    methods: Vec<MethodPart>,
    ceilings: Ceiling,
}

#[derive(Deserialize)]
struct MethodPart {
    id: String,
    #[serde(default)]
    needs: Option<NeedsPart>,
    #[serde(flatten)]
    ceiling: Ceiling,
}

#[derive(Clone, Deserialize)]
struct NeedsPart {
    method: String,
    #[serde(default)]
    artifact: Option<String>,
    #[serde(default)]
    on_missing: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Ceiling {
    max_tokens: Option<f64>,
    max_cost: Option<f64>,
}

impl Ceiling {
    fn is_used_up(self, (tokens, cost): (f64, f64)) -> bool {
        self.max_tokens.is_some_and(|most| tokens >= most) || self.max_cost.is_some_and(|most| cost >= most)
    }
}

/// For each row, whether its trial is left out by the plan that the run keeps. A run that keeps none leaves nothing out.
pub fn left_out(run: &RunDir, rows: &Rows) -> Vec<Option<LeftOut>> {
    let mut out = vec![None; rows.rows.len()];
    let plan = rows.record.plan.clone().and_then(|plan| serde_json::from_value(plan).ok());
    let Some(plan) = plan.filter(|_| rows.rows.iter().any(is_pending)) else { return out };
    let plan: PlanPart = plan;
    let used_up = used_up(&plan, rows);
    for (place, row) in rows.rows.iter().enumerate().filter(|(_, row)| is_pending(row)) {
        out[place] = used_up[row.method].then_some(LeftOut::Ceiling);
    }
    // A trial that needs one which is left out is left out for what it needs.
    let needs: Vec<Option<(usize, &NeedsPart)>> =
        rows.record.methods.iter().map(|it| plan.need(it.id.as_str(), rows)).collect();
    let places: HashMap<(&str, &str, u32, usize), usize> =
        rows.rows.iter().enumerate().map(|(place, row)| (key(row, row.method), place)).collect();
    loop {
        let mut more = false;
        for (place, row) in rows.rows.iter().enumerate().filter(|(_, row)| is_pending(row)) {
            let Some((method, need)) = needs[row.method].filter(|_| out[place].is_none()) else { continue };
            let Some(source) = places.get(&key(row, method)) else { continue };
            let lacks = match &rows.rows[*source].state {
                RowState::Pending { .. } => out[*source].is_some(),
                RowState::Unreadable => false,
                RowState::Ended(_) => need.on_missing == "skip" && !has_left(run, &rows.rows[*source], need),
            };
            if lacks {
                (out[place], more) = (Some(LeftOut::Needs), true);
            }
        }
        if !more {
            return out;
        }
    }
}

impl PlanPart {
    /// What a method needs, and the place of the method that it needs it from.
    fn need(&self, method: &str, rows: &Rows) -> Option<(usize, &NeedsPart)> {
        let need = self.methods.iter().find(|it| it.id == method)?.needs.as_ref()?;
        let place = rows.record.methods.iter().position(|it| it.id.as_str() == need.method)?;
        Some((place, need))
    }
}

/// By method, whether it or the run has used all that it may.
fn used_up(plan: &PlanPart, rows: &Rows) -> Vec<bool> {
    let mut used = vec![(0.0, 0.0); rows.record.methods.len()];
    for (row, ended) in rows.rows.iter().filter_map(|row| Some((row, row.ended()?))) {
        let tokens = ended.tokens.input_tokens.saturating_add(ended.tokens.output_tokens);
        let sum = &mut used[row.method];
        sum.0 += float(tokens);
        sum.1 += rows.price(row.method).map_or(0.0, |price| ended.cost(price));
    }
    let all = used.iter().fold((0.0, 0.0), |all, it| (all.0 + it.0, all.1 + it.1));
    let run = plan.ceilings.is_used_up(all);
    let of = |id: &str| plan.methods.iter().find(|it| it.id == id).map(|it| it.ceiling).unwrap_or_default();
    rows.record
        .methods
        .iter()
        .zip(used)
        .map(|(it, used)| run || of(it.id.as_str()).is_used_up(used))
        .collect()
}

fn is_pending(row: &Row) -> bool {
    matches!(row.state, RowState::Pending { .. })
}

/// A planned trial: the task, the attempt, and the place of its method.
fn key(row: &Row, method: usize) -> (&str, &str, u32, usize) {
    (&row.task.suite, &row.task.id, row.trial.attempt().number(), method)
}

/// Whether a trial that has ended left what is needed.
fn has_left(run: &RunDir, row: &Row, need: &NeedsPart) -> bool {
    let is_it = |name: &str| need.artifact.as_deref().is_none_or(|wanted| wanted == name);
    let left = |outcome: Outcome| {
        let artifact = outcome.artifacts.into_iter().find(|it| is_it(&it.name));
        artifact.is_some_and(|it| matches!(it.state, ArtifactState::Present { .. }))
    };
    // What cannot be read is told elsewhere.
    run.trial(&row.trial).outcome().ok().flatten().is_none_or(left)
}
