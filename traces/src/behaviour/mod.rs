//! What a trial comes to as behaviour: the statistics of the paper's Table 4 for one trace, by pure counting.
//! `docs/behaviour.md` defines each figure.

mod spent;

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actions::{Action, CallActions, stated};
use crate::{Call, Format, Moment, Nesting, SourceReport, ToolStatus, Trace};

pub use spent::{PhaseTimes, TimeUse};

/// The behaviour of an agent in one trial. Counts are of outer calls, unless they say otherwise; times are milliseconds since
/// the agent was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Behaviour {
    /// Calls of the agent and its sub-agents.
    pub calls: u64,
    /// Operations of the programs inside them.
    pub inner_calls: u64,
    /// Those of `calls` that sub-agents made.
    pub sub_agent_calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that were still at work when they were cut off.
    pub unfinished: u64,
    /// Calls without a known beginning: no time is theirs.
    pub untimed: u64,
    /// Calls that carry no action.
    pub other: u64,
    /// Calls by action; one with several is in each.
    pub actions: BTreeMap<Action, u64>,
    /// Messages and recorded reasoning that carry actions; they are in no other count.
    pub stated: u64,
    /// Calls that changed the designated artifact.
    pub writes: u64,
    /// Calls that started a renderer on it.
    pub renders: u64,
    /// Calls that put a render of it before the model.
    pub previews: u64,
    /// Calls that rendered a calibration file or a modified copy; they are in none of the three above for that.
    pub calibrations: u64,
    /// Versions of the artifact that were seen from outside; none where nobody looked, or what was seen is lost.
    pub versions: Option<u64>,
    /// Times that the answer was rendered, compared, and then edited.
    pub cycles: u64,
    /// Whether the answer was rendered and compared after its last edit.
    pub compared_at_end: bool,
    /// When the artifact was first there.
    pub first_write_ms: Option<u64>,
    /// When it had first been rendered.
    pub first_render_ms: Option<u64>,
    /// Time of the agent; none where it is not known, or cannot be true.
    pub agent_ms: Option<u64>,
    /// What became of that time; none where nothing that the agent did has a time.
    pub time: Option<TimeUse>,
}

/// A clock that says more than this is out of order: some 35 years.
const LONGEST_MS: u64 = 1 << 40;

impl Behaviour {
    /// The behaviour that a trace shows. `labelled` are the actions of its outer calls in their order, as
    /// [`crate::actions::classify`] gives them; `agent_ms` is the time of the agent as the runner took it, else it ends with
    /// the last moment that is known.
    pub fn of(trace: &Trace, labelled: &[CallActions], agent_ms: Option<u64>) -> Self {
        let told = || trace.end_ms.map(|ms| u64::try_from(ms).unwrap_or(0));
        let agent_ms = agent_ms.or_else(told).filter(|ms| *ms <= LONGEST_MS);
        let mut it = Self { agent_ms, versions: watched(trace), ..Self::default() };
        it.inner_calls = trace.calls.iter().filter(|call| !call.is_outer()).count() as u64;
        let (mut first_write, mut first_render) = (None, None);
        for (call, actions) in trace.outer_calls().zip(labelled) {
            it.count(call, actions);
            if actions.designated.write && first_write.is_none() {
                first_write = done(call);
            }
            if actions.designated.render && first_render.is_none() {
                first_render = done(call);
            }
        }
        // From outside it is seen to be there, whoever wrote it.
        let seen = trace.versions.iter().find(|it| it.bytes > 0).map(|it| it.ms);
        let inside = |ms: i64| u64::try_from(ms).unwrap_or(0).min(agent_ms.unwrap_or(u64::MAX));
        it.first_write_ms = seen.or(first_write).map(inside);
        it.first_render_ms = first_render.map(inside);
        (it.cycles, it.compared_at_end) = cycles(labelled);
        it.stated = stated(trace, labelled).len() as u64;
        it.time = agent_ms.and_then(|ms| spent::time_use(trace, labelled, ms));
        it
    }

    fn count(&mut self, call: &Call, labelled: &CallActions) {
        self.calls += 1;
        self.sub_agent_calls += u64::from(call.nesting == Nesting::SubAgent);
        self.failed += u64::from(call.status == ToolStatus::Failed);
        self.unfinished += u64::from(call.status == ToolStatus::Unfinished);
        self.untimed += u64::from(call.start.is_none());
        self.other += u64::from(labelled.actions.is_empty());
        for action in labelled.actions.iter().collect::<HashSet<_>>() {
            *self.actions.entry(*action).or_default() += 1;
        }
        self.writes += u64::from(labelled.designated.write);
        self.renders += u64::from(labelled.designated.render);
        self.previews += u64::from(labelled.designated.preview);
        self.calibrations += u64::from(labelled.trial_render);
    }
}

/// Versions of the artifact, if there is a whole journal: only that tells of them.
fn watched(trace: &Trace) -> Option<u64> {
    let is_journal = |it: &&SourceReport| it.format == Some(Format::Proctor) && it.error.is_none();
    let journal = trace.sources.iter().find(is_journal)?;
    (!journal.counts.torn).then_some(trace.versions.len() as u64)
}

/// When what a call did was done: its end where that is known, else its beginning.
fn done(call: &Call) -> Option<i64> {
    let moment: Option<Moment> = call.end.filter(|_| call.status != ToolStatus::Unfinished).or(call.start);
    moment.map(|it| it.ms)
}

/// Render, compare, edit, in this order and whatever lies between; and whether the last render was compared without an edit
/// after it. A call that carries several of the three does them in the order edit, render, compare, as programs do.
fn cycles(labelled: &[CallActions]) -> (u64, bool) {
    #[derive(PartialEq)]
    enum Answer {
        Edited,
        Rendered,
        Compared,
    }
    let mut count = 0;
    let mut answer = Answer::Edited;
    for it in labelled {
        let has = |action| it.actions.contains(&action);
        if has(Action::EditAnswer) {
            count += u64::from(answer == Answer::Compared);
            answer = Answer::Edited;
        }
        if has(Action::RenderPreview) && answer == Answer::Edited {
            answer = Answer::Rendered;
        }
        if (has(Action::VisualComparison) || has(Action::PixelComparison)) && answer == Answer::Rendered {
            answer = Answer::Compared;
        }
    }
    (count, answer == Answer::Compared)
}

#[cfg(test)]
mod tests;
