//! `proctor slurm status`: which array task has run, and is running, which trials.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use proctor_report::headed_table;
use proctor_store::RunDir;
use serde::Serialize;

use super::queue::{ArrayTask, TaskState, Tasks};
use super::script::job_name;
use super::standing::{Counts, State, TrialStand, of_run};
use super::submission::{Jobs, folder};
use super::{StatusArgs, programs};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::laboratory::absolute;

/// Trials of one array task that a terminal shows by name.
const NAMES_SHOWN: usize = 4;

/// What is printed.
#[derive(Debug, Serialize)]
struct Status {
    trials: Counts,
    tasks: Vec<TaskLine>,
    /// Trials that other processes have run or are running.
    elsewhere: Vec<TrialStand>,
}

/// One array task.
#[derive(Debug, Serialize)]
struct TaskLine {
    task: ArrayTask,
    /// None if Slurm does not know it any more: it has ended.
    #[serde(flatten)]
    slurm: Option<TaskState>,
    /// What it has run, is running, or was running when it ended.
    trials: Vec<TrialStand>,
}

pub(super) async fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&absolute(&args.run)?)?;
    let record = run.record()?;
    let jobs = Jobs::read(&folder(&run))?;
    let states = programs::states(&jobs, &job_name(&record.name)).await?;
    let stands = of_run(&run, &record, &states)?;
    let status = Status::of(&jobs, states, stands);
    if args.json {
        print_json(&status)?;
    } else {
        status.print();
    }
    Ok(ExitCode::SUCCESS)
}

impl Status {
    fn of(jobs: &Jobs, mut states: Tasks, stands: Vec<TrialStand>) -> Self {
        let trials = Counts::of(&stands);
        let mut by_task: BTreeMap<ArrayTask, Vec<TrialStand>> = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for stand in stands {
            match stand.task() {
                Some(task) => by_task.entry(task).or_default().push(stand),
                None if stand.runner.is_some() => elsewhere.push(stand),
                None => {}
            }
        }
        // Those that were submitted, those that Slurm knows, and those that have left their name in a trial.
        let all: BTreeSet<ArrayTask> =
            jobs.tasks().chain(states.keys().copied()).chain(by_task.keys().copied()).collect();
        let tasks = all.into_iter().map(|task| TaskLine {
            task,
            slurm: states.remove(&task),
            trials: by_task.remove(&task).unwrap_or_default(),
        });
        Self { trials, tasks: tasks.collect(), elsewhere }
    }

    fn print(&self) {
        if self.tasks.is_empty() {
            println!("nothing has been submitted yet ({})", self.trials);
            return;
        }
        let mut lines =
            headed_table(&["array task", "state", "node", "done", "running", "interrupted", "trials"]);
        for it in &self.tasks {
            lines.add_row(it.row());
        }
        println!("{lines}\n{}", self.trials);
        if !self.elsewhere.is_empty() {
            println!("{} of them by processes that no array task started", self.elsewhere.len());
        }
    }
}

impl TaskLine {
    fn row(&self) -> Vec<String> {
        let slurm = self.slurm.as_ref();
        let state = slurm.map_or_else(
            || "ended".to_owned(),
            |it| match &it.reason {
                Some(reason) if it.is_at_work() && !it.has_process() => format!("{} ({reason})", it.state),
                _ => it.state.clone(),
            },
        );
        let host = || self.trials.iter().find_map(|it| it.runner.as_ref()).map(|it| it.host.clone());
        let node = slurm.and_then(|it| it.node.clone()).or_else(host).unwrap_or_default();
        let count = |state| self.trials.iter().filter(|it| it.state == state).count().to_string();
        // What runs is the most interesting.
        let mut shown: Vec<&TrialStand> = self.trials.iter().collect();
        shown.sort_by_key(|it| it.state == State::Done);
        let mut names: Vec<String> = shown.iter().take(NAMES_SHOWN).map(|it| it.trial.to_string()).collect();
        if shown.len() > NAMES_SHOWN {
            names.push(format!("and {} more", shown.len() - NAMES_SHOWN));
        }
        vec![
            self.task.to_string(),
            state,
            node,
            count(State::Done),
            count(State::Running),
            count(State::Interrupted),
            names.join("\n"),
        ]
    }
}
