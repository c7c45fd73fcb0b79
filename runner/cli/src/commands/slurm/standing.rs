//! Where the trials of a run stand, and who has run or is running each.

use std::time::{Duration, SystemTime};

use proctor_store::{Holder, RunDir, RunRecord, Runner, Survey, TrialId, current};
use serde::Serialize;

use super::queue::{ArrayTask, Tasks};
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
    /// The array task that has or had it.
    pub(super) fn task(&self) -> Option<ArrayTask> {
        self.runner.as_ref()?.job.as_deref()?.parse().ok()
    }
}

/// How many trials stand where; interrupted ones are missing too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) trials: usize,
    pub(super) done: usize,
    pub(super) running: usize,
    pub(super) missing: usize,
}

impl Counts {
    pub(super) fn of(stands: &[TrialStand]) -> Self {
        let count = |state| stands.iter().filter(|it| it.state == state).count();
        let (done, running) = (count(State::Done), count(State::Running));
        Self { trials: stands.len(), done, running, missing: stands.len() - done - running }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { trials, done, running, missing } = self;
        write!(f, "{trials} trials: {done} done, {running} running, {missing} missing")
    }
}

/// Reads where every trial of the plan stands. `tasks` is what Slurm knows of the array tasks.
pub(super) fn of_run(run: &RunDir, record: &RunRecord, tasks: &Tasks) -> Result<Vec<TrialStand>, Failure> {
    let us =
        Holder::this_process(None).map_err(|error| Failure::internal(format!("reading /proc: {error}")))?;
    let plan = record.trials().map_err(|error| Failure::input(error.to_string()))?;
    let survey: Survey = run.survey()?;
    plan.iter().map(|planned| of_trial(run, current(planned, &survey), &us, tasks)).collect()
}

fn of_trial(run: &RunDir, trial: TrialId, us: &Holder, tasks: &Tasks) -> Result<TrialStand, Failure> {
    let folder = run.trial(&trial);
    if let Some(outcome) = folder.outcome()? {
        let ending = Some(outcome.ending.name());
        return Ok(TrialStand { trial, state: State::Done, ending, runner: outcome.runner });
    }
    let Some((holder, beat)) = folder.holder() else {
        return Ok(TrialStand { trial, state: State::Open, ending: None, runner: None });
    };
    let silent = SystemTime::now().duration_since(beat).unwrap_or_default();
    let state = if lives(&holder, silent, us, tasks) { State::Running } else { State::Interrupted };
    let runner = Some(Runner { host: holder.host, pid: holder.pid, job: holder.job });
    Ok(TrialStand { trial, state, ending: None, runner })
}

/// Whether the holder of a lease still runs: asked for here, by Slurm's word for an array task elsewhere, or else by its
/// last sign of life.
fn lives(holder: &Holder, silent: Duration, us: &Holder, tasks: &Tasks) -> bool {
    if (&holder.boot, &holder.namespace) == (&us.boot, &us.namespace) {
        return holder.owner().is_alive();
    }
    let task = holder.job.as_deref().and_then(|job| job.parse::<ArrayTask>().ok());
    let known = task.and_then(|task| tasks.get(&task));
    known.is_none_or(super::queue::TaskState::has_process) && silent < SILENCE
}

#[cfg(test)]
mod tests {
    use super::super::queue;
    use super::*;

    #[test]
    fn who_lives_is_asked_here_or_told_by_slurm_or_heard() {
        let us = Holder::this_process(None).unwrap();
        let tasks = queue::squeue("7|0|RUNNING|a|None|n\n7|1|FAILED|a|None|n\n", "n");
        let (soon, late) = (Duration::from_secs(1), SILENCE);
        assert!(lives(&us, late, &us, &tasks), "this process lives, however silent");
        let successor = Holder { start: us.start + 1, ..us.clone() };
        assert!(
            !lives(&successor, soon, &us, &tasks),
            "a process that is gone is dead, however lately it beat"
        );
        let elsewhere = |job: &str| Holder {
            boot: "another machine's".into(),
            job: Some(job.to_owned()).filter(|job| !job.is_empty()),
            ..us.clone()
        };
        for (job, silent, expected) in [
            ("7_0", soon, true),
            ("7_0", late, false),
            ("7_1", soon, false),
            ("8_0", soon, true),
            ("", soon, true),
            ("", late, false),
            ("not one of ours", soon, true),
        ] {
            assert_eq!(lives(&elsewhere(job), silent, &us, &tasks), expected, "{job} {silent:?}");
        }
    }
}
