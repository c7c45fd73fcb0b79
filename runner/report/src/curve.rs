//! How completions add up over time (figure 7 of the paper): normal completions, over all of E, against the agent's time.

use serde::Serialize;

use crate::accounting::Coverage;
use crate::figures::{Accounts, Rate};
use crate::row::float;

/// The curve of one method.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// The method.
    pub method: String,
    /// It is a control, not a contestant.
    pub control: bool,
    /// Where it ends: the budget, in seconds.
    pub budget_s: f64,
    /// How high it ends: the completion rate.
    pub completed: Rate,
    /// Where it steps up: seconds of the agent, and how many had completed by then. It begins at (0, 0).
    pub steps: Vec<(f64, u64)>,
}

impl Accounts<'_> {
    /// The curve of a method over the rows at `places`.
    pub(crate) fn curve(&self, method: usize, control: bool, places: &[usize]) -> Curve {
        let record = &self.rows.record.methods[method];
        let budget = record.budget_ms.0;
        let completed = places.iter().filter(|at| self.verdicts[**at].coverage == Coverage::Completed);
        // The freeze takes some milliseconds, in which the last of them may pass the budget.
        let mut times: Vec<u64> = completed
            .filter_map(|at| self.rows.rows[*at].ended())
            .map(|it| it.agent_ms.0.min(budget))
            .collect();
        times.sort_unstable();
        let mut steps: Vec<(f64, u64)> = Vec::new();
        for (count, time) in (1..).zip(&times) {
            let time = float(*time) / 1000.0;
            match steps.last_mut() {
                // Those of the same millisecond are one step.
                Some(last) if last.0.total_cmp(&time).is_eq() => last.1 = count,
                _ => steps.push((time, count)),
            }
        }
        Curve {
            method: record.id.to_string(),
            control,
            budget_s: float(budget) / 1000.0,
            completed: Rate::of(times.len() as u64, places.len() as u64, self.rows.record.attempts),
            steps,
        }
    }
}
