//! What the open trials of a plan will cost, told from a run of the same methods.

use std::collections::BTreeMap;

use proctor_experiment::{Estimate, MethodEstimate, Pilot, PilotFigures};
use proctor_report::counted;
use proctor_store::{MethodId, Outcome, RunDir};
use proctor_traces::Millis;

use crate::failure::Failure;

/// Means of a run's executed trials: those in which an agent worked, however they ended.
pub(super) fn read_pilot(run: &RunDir) -> Result<Pilot, Failure> {
    let mut sums: BTreeMap<MethodId, PilotFigures> = BTreeMap::new();
    for trial in run.trials_on_disk()? {
        let Some(outcome) = trial.outcome()? else { continue };
        if outcome.started_at.is_some() {
            add(sums.entry(outcome.trial.method().clone()).or_default(), &outcome);
        }
    }
    for figures in sums.values_mut() {
        let trials = as_number(figures.trials);
        figures.seconds /= trials;
        figures.input_tokens /= trials;
        figures.cached_input_tokens /= trials;
        figures.output_tokens /= trials;
    }
    Ok(Pilot { methods: sums })
}

fn add(sum: &mut PilotFigures, outcome: &Outcome) {
    let timing = outcome.timing;
    let parts = [timing.prepare_ms, timing.agent_ms, timing.collect_ms, timing.teardown_ms];
    sum.trials += 1;
    sum.seconds += parts.into_iter().map(Millis::as_secs_f64).sum::<f64>();
    sum.input_tokens += as_number(outcome.tokens.input_tokens);
    sum.cached_input_tokens += as_number(outcome.tokens.cached_input_tokens);
    sum.output_tokens += as_number(outcome.tokens.output_tokens);
}

#[expect(clippy::cast_precision_loss, reason = "an estimate needs no 16 digits")]
fn as_number(count: u64) -> f64 {
    count as f64
}

/// The estimate in a sentence or some.
pub(super) fn describe(estimate: Option<&Estimate>, asked: bool) -> String {
    let Some(estimate) = estimate else {
        return if asked {
            "No estimate: no trial of that run has been executed.".to_owned()
        } else {
            "No estimate: --pilot RUN makes one of the figures of a small run of the same methods.".to_owned()
        };
    };
    if estimate.methods.iter().all(|method| method.trials == 0) {
        return "Every trial has its outcome: nothing is left to run.".to_owned();
    }
    let mut parts = vec![format!("{} tokens", large(estimate.tokens))];
    parts.extend(estimate.cost.map(|cost| format!("{cost:.2} USD")));
    parts.extend(estimate.hours.map(|hours| format!("at least {} at this pace", time(hours))));
    let trials: u64 = estimate.methods.iter().map(|method| method.pilot_trials).sum();
    let mut text = format!("Estimate from {}: {}.", counted(trials, "executed trial"), parts.join(", "));
    for (methods, what) in [
        (&estimate.without_figures, "Not in it, because none of their trials was executed there"),
        (&estimate.without_price, "Not in its costs, because their models have no price"),
    ] {
        if !methods.is_empty() {
            let names: Vec<&str> = methods.iter().map(MethodId::as_str).collect();
            text = format!("{text}\n{what}: {}.", names.join(", "));
        }
    }
    text
}

/// Tokens, costs and hours of a method.
pub(super) fn cells(method: Option<&MethodEstimate>) -> [String; 3] {
    let dash = || "–".to_owned();
    [
        method.and_then(|it| it.tokens).map_or_else(dash, large),
        method.and_then(|it| it.cost).map_or_else(dash, |cost| format!("{cost:.2}")),
        method.and_then(|it| it.room_hours).map_or_else(dash, |hours| format!("{hours:.1}")),
    ]
}

/// A number with three or four digits and the word for the rest.
fn large(number: f64) -> String {
    match number {
        n if n >= 1e9 => format!("{:.2} G", n / 1e9),
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e4 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

fn time(hours: f64) -> String {
    match hours {
        h if h >= 48.0 => format!("{:.1} days", h / 24.0),
        h if h >= 1.0 => format!("{h:.1} h"),
        h => format!("{:.0} min", (h * 60.0).max(1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [0.0, 9_999.0, 33_100.0, 2.5e6, 3.04e9].map(large),
            ["0", "9999", "33.1 k", "2.50 M", "3.04 G"]
        );
        assert_eq!([0.0, 0.5, 5.0, 72.0].map(time), ["1 min", "30 min", "5.0 h", "3.0 days"]);
    }

    #[test]
    fn what_is_not_in_an_estimate_is_said() {
        let id = |text: &str| MethodId::try_from(text.to_owned()).unwrap();
        let estimate = Estimate {
            methods: vec![MethodEstimate {
                method: id("c"),
                trials: 5,
                pilot_trials: 3,
                tokens: Some(2e6),
                cost: None,
                room_hours: Some(2.0),
            }],
            tokens: 2e6,
            cost: None,
            hours: Some(2.0),
            without_figures: vec![id("a"), id("b")],
            without_price: vec![id("c")],
        };
        assert_eq!(
            describe(Some(&estimate), true),
            "Estimate from 3 executed trials: 2.00 M tokens, at least 2.0 h at this pace.\n\
             Not in it, because none of their trials was executed there: a, b.\n\
             Not in its costs, because their models have no price: c."
        );
    }
}
