//! What became of an agent's time. Each moment has one owner: the calls at work, else the model, else nobody.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actions::{CallActions, Phase};
use crate::{Call, Nesting, ToolCallId, ToolStatus, Trace};

/// Milliseconds by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTimes {
    /// Task understanding.
    pub understanding: u64,
    /// Visual reverse engineering.
    pub reverse_engineering: u64,
    /// Reconstruction and tuning.
    pub reconstruction: u64,
    /// Rendering and comparison.
    pub comparison: u64,
    /// Answer review and editing.
    pub editing: u64,
    /// Calls without an action.
    pub other: u64,
}

impl PhaseTimes {
    /// That of a phase; of calls without an action for none.
    pub fn of(&self, phase: Option<Phase>) -> u64 {
        match phase {
            Some(Phase::Understanding) => self.understanding,
            Some(Phase::ReverseEngineering) => self.reverse_engineering,
            Some(Phase::Reconstruction) => self.reconstruction,
            Some(Phase::Comparison) => self.comparison,
            Some(Phase::Editing) => self.editing,
            None => self.other,
        }
    }

    /// All of it.
    pub fn sum(&self) -> u64 {
        Phase::ALL.iter().map(|it| self.of(Some(*it))).fold(self.other, u64::saturating_add)
    }

    fn from_slots(
        [understanding, reverse_engineering, reconstruction, comparison, editing, other]: [u64; SLOTS],
    ) -> Self {
        Self { understanding, reverse_engineering, reconstruction, comparison, editing, other }
    }
}

/// What became of the time of an agent: `at_work`, `model` and `idle` add up to it, and so do `leading` and `closing` to
/// the two last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimeUse {
    /// At least one call was at work; where several were, they share alike, and so do the phases of one call.
    pub at_work: PhaseTimes,
    /// None was, and a model request was under way.
    pub model: u64,
    /// Neither.
    pub idle: u64,
    /// Whether model requests are known at all. If not, `idle` is all the time between calls.
    pub model_seen: bool,
    /// `model` and `idle` by the call that came next.
    pub leading: PhaseTimes,
    /// `model` and `idle` after the last call.
    pub closing: u64,
}

const SLOTS: usize = 6;

/// Divides into one, two, three, four or five phases without remainder.
const WHOLE: u64 = 60;

/// How a call's time is divided among phases.
type Weights = [u64; SLOTS];

fn weights(labelled: &CallActions) -> Weights {
    let mut weights = [0; SLOTS];
    for action in &labelled.actions {
        weights[action.phase() as usize] = 1;
    }
    let phases: u64 = weights.iter().sum();
    match WHOLE.checked_div(phases) {
        Some(share) => weights.map(|it| it * share),
        None => [0, 0, 0, 0, 0, WHOLE],
    }
}

/// What happens at a moment.
#[derive(Clone, Copy)]
enum Edge {
    Begins(Weights),
    Ends(Weights),
    Asks,
    Answered,
}

/// Time in units of [`Sweep`], before it is rounded.
#[derive(Default)]
struct Sweep {
    now: u64,
    at_work: Weights,
    asking: u64,
    worked: [f64; SLOTS],
    led: [f64; SLOTS],
    model: u64,
    idle: u64,
    /// Time without a call since the last one.
    pending: u64,
}

/// None if nothing of what was done has a time.
pub(super) fn time_use(trace: &Trace, labelled: &[CallActions], agent_ms: u64) -> Option<TimeUse> {
    let all = trace.calls.iter().any(Call::is_outer);
    let timed = trace.outer_calls().any(|it| it.start.is_some());
    if all && !timed {
        return None;
    }
    let mut edges = call_edges(trace, labelled, agent_ms);
    for span in &trace.exchanges {
        let from = inside(span.start_ms, agent_ms);
        let until = span.end_ms.map_or(agent_ms, |ms| inside(ms, agent_ms)).max(from);
        edges.extend([(from, Edge::Asks), (until, Edge::Answered)]);
    }
    edges.sort_by_key(|it| it.0);
    let mut sweep = Sweep::default();
    for together in edges.chunk_by(|a, b| a.0 == b.0) {
        sweep.take(together);
    }
    sweep.pass_until(agent_ms);
    Some(sweep.finish(!trace.exchanges.is_empty()))
}

fn inside(ms: i64, agent_ms: u64) -> u64 {
    u64::try_from(ms).unwrap_or(0).min(agent_ms)
}

fn call_edges(trace: &Trace, labelled: &[CallActions], agent_ms: u64) -> Vec<(u64, Edge)> {
    let by_id: HashMap<&ToolCallId, (&Call, Weights)> = trace
        .outer_calls()
        .zip(labelled)
        .map(|(call, labelled)| (&call.id, (call, weights(labelled))))
        .collect();
    // What starts a sub-agent only waits for it: the work is that of the calls inside.
    let frames: HashSet<&ToolCallId> = trace
        .outer_calls()
        .filter(|it| it.nesting == Nesting::SubAgent)
        .filter_map(|it| it.parent.as_ref())
        .collect();
    let mut edges = Vec::new();
    for (call, labelled) in trace.outer_calls().zip(labelled) {
        let Some(start) = call.start.filter(|_| !frames.contains(&call.id)) else { continue };
        // Waiting for an earlier call is that call's work.
        let polled = call.polls.as_ref().and_then(|id| worked_for(&by_id, id));
        let weights = polled.unwrap_or_else(|| weights(labelled));
        let from = inside(start.ms, agent_ms);
        // What goes on behind an answer is no longer what the agent does.
        let end = match (call.returned, call.end) {
            (Some(returned), Some(end)) => Some(returned.ms.min(end.ms)),
            (returned, end) => returned.or(end).map(|it| it.ms),
        };
        let until = match end {
            Some(ms) => inside(ms, agent_ms).max(from),
            None if call.status == ToolStatus::Unfinished => agent_ms,
            None => from,
        };
        edges.extend([(from, Edge::Begins(weights)), (until, Edge::Ends(weights))]);
    }
    edges
}

/// The weights of the call that is waited for in the end.
fn worked_for(by_id: &HashMap<&ToolCallId, (&Call, Weights)>, id: &ToolCallId) -> Option<Weights> {
    /// Longer chains of waiting are made to confuse.
    const LONGEST: usize = 32;
    let mut id = id;
    for _ in 0..LONGEST {
        let (call, weights) = by_id.get(id)?;
        match &call.polls {
            None => return Some(*weights),
            Some(next) => id = next,
        }
    }
    None
}

impl Sweep {
    fn pass_until(&mut self, ms: u64) {
        let length = ms.saturating_sub(self.now);
        self.now = self.now.max(ms);
        let all: u64 = self.at_work.iter().sum();
        if all > 0 {
            divide(&mut self.worked, length, self.at_work);
            return;
        }
        self.pending += length;
        if self.asking > 0 {
            self.model += length;
        } else {
            self.idle += length;
        }
    }

    /// All that happens at one moment.
    fn take(&mut self, together: &[(u64, Edge)]) {
        let Some((ms, _)) = together.first() else { return };
        self.pass_until(*ms);
        let mut begun = [0; SLOTS];
        for (_, edge) in together {
            match edge {
                Edge::Begins(weights) => add(&mut begun, weights),
                Edge::Asks => self.asking += 1,
                Edge::Answered | Edge::Ends(_) => {}
            }
        }
        if begun.iter().any(|it| *it > 0) {
            divide(&mut self.led, std::mem::take(&mut self.pending), begun);
        }
        add(&mut self.at_work, &begun);
        for (_, edge) in together {
            match edge {
                Edge::Ends(weights) => {
                    for (sum, it) in self.at_work.iter_mut().zip(weights) {
                        *sum = sum.saturating_sub(*it);
                    }
                }
                Edge::Answered => self.asking = self.asking.saturating_sub(1),
                Edge::Begins(_) | Edge::Asks => {}
            }
        }
    }

    fn finish(self, model_seen: bool) -> TimeUse {
        TimeUse {
            at_work: PhaseTimes::from_slots(rounded(self.worked)),
            model: self.model,
            idle: self.idle,
            model_seen,
            leading: PhaseTimes::from_slots(rounded(self.led)),
            closing: self.pending,
        }
    }
}

fn add(sum: &mut Weights, weights: &Weights) {
    for (sum, it) in sum.iter_mut().zip(weights) {
        *sum += it;
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a trial and weights are far below 2^53")]
fn divide(sums: &mut [f64; SLOTS], length: u64, weights: Weights) {
    let all = weights.iter().sum::<u64>() as f64;
    for (sum, weight) in sums.iter_mut().zip(weights) {
        *sum += length as f64 * weight as f64 / all;
    }
}

/// To whole milliseconds, so that their sum is the rounded sum.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums of times, never negative")]
fn rounded(sums: [f64; SLOTS]) -> [u64; SLOTS] {
    let (mut exact, mut given) = (0.0, 0);
    sums.map(|it| {
        exact += it;
        let part = (exact.round() as u64).saturating_sub(given);
        given += part;
        part
    })
}
