//! Where the trials of a run stand, and who has run or is running each.

use std::time::Duration;

use proctor_report::{Depth, Rows, counted, left_out};
use proctor_store::{PresenceState, RunDir, RunRecord, Runner, Survey, TrialId, current};
use serde::Serialize;

use super::queue::{ArrayTask, TaskState, Tasks};
use crate::failure::Failure;

/// A process elsewhere that has been silent for so long is not counted as running. It decides nothing but a count: whoever
/// joins judges leases by its own clock, and this looks at the clocks of two machines.
const SILENCE: Duration = Duration::from_secs(180);

/// Where a trial stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// It has its outcome.
    Done,
    /// A living process has it.
    Running,
    /// A process that is gone had it.
    Interrupted,
    /// Nobody has it, and it has no outcome.
    Open,
    /// It has no outcome, and nobody would start it: `proctor status` says why.
    LeftOut,
}

/// A trial, and whose it is or was last.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TrialStand {
    pub(super) trial: TrialId,
    pub(super) state: State,
    /// How it ended, if it did.
    pub(super) ending: Option<&'static str>,
    #[serde(flatten)]
    pub(super) runner: Option<Runner>,
}

impl TrialStand {
    fn may_be_left_out(&self) -> bool {
        matches!(self.state, State::Open | State::Interrupted)
    }

    /// The array task that has or had it.
    pub(super) fn task(&self) -> Option<ArrayTask> {
        self.runner.as_ref()?.job.as_deref()?.parse().ok()
    }
}

/// How many trials stand where; interrupted ones are missing too, and those left out are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) trials: usize,
    pub(super) done: usize,
    pub(super) running: usize,
    pub(super) missing: usize,
    pub(super) left_out: usize,
}

impl Counts {
    pub(super) fn of(stands: &[TrialStand]) -> Self {
        let count = |state| stands.iter().filter(|it| it.state == state).count();
        let (done, running) = (count(State::Done), count(State::Running));
        let left_out = count(State::LeftOut);
        Self {
            trials: stands.len(),
            done,
            running,
            missing: stands.len() - done - running - left_out,
            left_out,
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trials, done, running, missing, left_out } = self;
        let trials = counted(*trials, "trial");
        write!(f, "{trials}: {done} done, {running} running, {missing} missing")?;
        if *left_out > 0 { write!(f, ", {left_out} left out") } else { Ok(()) }
    }
}

/// Reads where every trial of the plan stands. `tasks` is what Slurm knows of the array tasks.
pub(super) fn of_run(run: &RunDir, record: &RunRecord, tasks: &Tasks) -> Result<Vec<TrialStand>, Failure> {
    let plan = record.trials().map_err(|error| Failure::input(error.to_string()))?;
    let survey: Survey = run.survey()?;
    let stands = plan.iter().map(|planned| of_trial(run, current(planned, &survey), tasks));
    let mut stands = stands.collect::<Result<Vec<_>, Failure>>()?;
    if stands.iter().any(TrialStand::may_be_left_out) {
        // The same trials in the same order: those of the plan.
        let rows = Rows::read(run, Depth::Outcomes)?;
        for (stand, out) in stands.iter_mut().zip(left_out(run, &rows)) {
            if out.is_some() && stand.may_be_left_out() {
                stand.state = State::LeftOut;
            }
        }
    }
    Ok(stands)
}

fn of_trial(run: &RunDir, trial: TrialId, tasks: &Tasks) -> Result<TrialStand, Failure> {
    let folder = run.trial(&trial);
    if let Some(outcome) = folder.outcome()? {
        let ending = Some(outcome.ending.name());
        return Ok(TrialStand { trial, state: State::Done, ending, runner: outcome.runner });
    }
    let Some(presence) = folder.presence(SILENCE) else {
        return Ok(TrialStand { trial, state: State::Open, ending: None, runner: None });
    };
    let holder = presence.holder;
    let state = state(presence.state, holder.job.as_deref(), tasks);
    let runner = Some(Runner { host: holder.host, pid: holder.pid, job: holder.job });
    Ok(TrialStand { trial, state, ending: None, runner })
}

/// Where a trial stands that somebody holds. Slurm knows sooner than its heart is missed that an array task elsewhere has
/// ended.
fn state(presence: PresenceState, job: Option<&str>, tasks: &Tasks) -> State {
    let task = job.and_then(|job| job.parse::<ArrayTask>().ok());
    let may_run = task.and_then(|task| tasks.get(&task)).is_none_or(TaskState::has_process);
    if presence == PresenceState::Alive && may_run { State::Running } else { State::Interrupted }
}

#[cfg(test)]
mod tests {
    use super::super::queue;
    use super::*;

    #[test]
    fn a_holder_runs_unless_it_is_gone_or_slurm_says_that_it_has_ended() {
        let tasks = queue::squeue("7|0|RUNNING|a|None|n\n7|1|FAILED|a|None|n\n", "n");
        for (presence, job, expected) in [
            (PresenceState::Alive, None, State::Running),
            (PresenceState::Alive, Some("7_0"), State::Running),
            (PresenceState::Alive, Some("7_1"), State::Interrupted),
            (PresenceState::Alive, Some("8_0"), State::Running),
            (PresenceState::Alive, Some("another system's"), State::Running),
            (PresenceState::Silent, Some("7_0"), State::Interrupted),
            (PresenceState::Gone, Some("7_0"), State::Interrupted),
            (PresenceState::Gone, None, State::Interrupted),
        ] {
            assert_eq!(state(presence, job, &tasks), expected, "{presence:?} {job:?}");
        }
    }
}
