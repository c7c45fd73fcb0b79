//! A run whose trials are done by array tasks, some of which die.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_store::{RunDir, TryRecord};
use serde_json::Value;

use crate::cluster::{Cluster, Said};
use crate::support::{Run, proctor, sample};

/// How long anything here is waited for before the test fails. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(300);

/// An agent that works until it is told to stop.
const WAITING: &str =
    "echo 'digraph { a }' > artifact.dot; touch ready; while [ ! -e stop ]; do sleep 0.05; done";

/// Two tasks, two attempts each, begun on this machine by a runner that was killed at once.
fn begun_and_killed() -> Run {
    let run = Run::over(&[&sample("flow-approval"), &sample("arch-replicas")]).shell(WAITING).args([
        "--budget",
        "600s",
        "--attempts",
        "2",
    ]);
    let mut live = run.start();
    live.workspace_with("ready");
    live.signal(Signal::SIGKILL);
    assert_eq!(live.end().code, None, "killed by a signal");
    run
}

/// What `slurm status --json` says.
fn status(cluster: &Cluster, run: &Run) -> Value {
    let said = cluster.slurm("status", run, &["--json"]).with_code(0);
    serde_json::from_str(&said.stdout).expect("JSON")
}

/// Asks again and again until it is so.
fn until(cluster: &Cluster, run: &Run, what: &str, mut reached: impl FnMut(&Value) -> bool) -> Value {
    let start = Instant::now();
    loop {
        let now = status(cluster, run);
        if reached(&now) {
            return now;
        }
        assert!(start.elapsed() < PATIENCE, "no {what}: {now}\n{}", cluster.logs(&run.out()));
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Lets every agent that is there end.
fn open_the_gates(run: &Run) {
    for work in run.workspaces() {
        // One that has just been cleared away needs no telling.
        let _ = fs::write(work.join("stop"), "");
    }
}

/// The array tasks that have or had a trial in this state, each with its number of such trials.
fn by_task(status: &Value, state: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for task in status["tasks"].as_array().unwrap() {
        let count = task["trials"].as_array().unwrap().iter().filter(|it| it["state"] == state).count();
        if count > 0 {
            found.insert(task["task"].as_str().unwrap().to_owned(), count);
        }
    }
    found
}

/// Slurm's word for an array task.
fn state_of<'a>(status: &'a Value, task: &str) -> &'a str {
    let tasks = status["tasks"].as_array().unwrap();
    let line = tasks.iter().find(|it| it["task"] == task);
    line.and_then(|it| it["state"].as_str()).unwrap_or("gone")
}

/// How often tries of a trial have ended so.
fn tries_that_ended(trial: &Path, ending: &str) -> usize {
    let tries = fs::read_dir(trial.join("tries")).unwrap().flatten();
    let records = tries.filter_map(|it| fs::read(it.path().join("try.json")).ok());
    records
        .filter(|bytes| {
            let record: TryRecord = serde_json::from_slice(bytes).unwrap();
            record.ending.name() == ending
        })
        .count()
}

#[test]
fn a_killed_array_task_is_replaced_and_every_trial_ends_once() {
    let cluster = Cluster::start();
    let run = begun_and_killed();
    let before = cluster.slurm("status", &run, &[]).with_code(0).stdout;
    assert!(
        before.contains("nothing has been submitted yet (4 trials: 0 done, 0 running, 4 missing)"),
        "{before}"
    );

    let first = cluster.slurm("submit", &run, &["--tasks", "2"]).with_code(0).stdout;
    assert!(first.contains("job 1: 2 array tasks submitted"), "{first}");
    let script = fs::read_to_string(run.out().join("slurm/1.sbatch")).unwrap();
    assert!(script.contains("#SBATCH --array=0-1\n"), "{script}");
    let both = until(&cluster, &run, "two tasks at work", |it| {
        by_task(it, "running").values().sum::<usize>() == 2 && by_task(it, "running").len() == 2
    });
    assert_eq!(by_task(&both, "running"), BTreeMap::from([("1_0".into(), 1), ("1_1".into(), 1)]));
    let again = cluster.slurm("submit", &run, &["--tasks", "2"]).with_code(0).stdout;
    assert!(again.contains("2 array tasks at work already"), "nobody is missing: {again}");

    // The process that status names for the first array task.
    let pid = both.pointer("/tasks/0/trials/0/pid").and_then(Value::as_i64).unwrap();
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).unwrap();
    let after = until(&cluster, &run, "end of the killed task", |it| state_of(it, "1_0") == "FAILED");
    assert_eq!(state_of(&after, "1_1"), "RUNNING", "the other goes on");
    assert_eq!(after["trials"]["done"], 0, "{after}");

    let second = cluster.slurm("submit", &run, &["--tasks", "2"]).with_code(0).stdout;
    assert!(second.contains("job ") && second.contains(": 1 array task submitted"), "{second}");
    let done = until(&cluster, &run, "end of all trials", |it| {
        open_the_gates(&run);
        it["trials"]["done"] == 4
    });
    let finished = by_task(&done, "done");
    assert_eq!(finished.values().sum::<usize>(), 4, "each is named once: {done}");
    assert!(!finished.contains_key("1_0"), "the killed task has finished none: {done}");
    assert!(finished.contains_key("1_1"), "{done}");
    assert_eq!(done["elsewhere"].as_array().unwrap().len(), 0);
    until(&cluster, &run, "end of the tasks", |it| {
        it["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|task| task["state"] == "COMPLETED" || task["task"] == "1_0")
    });

    for trial in RunDir::open(&run.out()).unwrap().trials_on_disk().unwrap() {
        let outcome = trial.outcome().unwrap().expect("it is done");
        assert_eq!(outcome.ending.name(), "completed", "{}", trial.id());
        assert_eq!(tries_that_ended(trial.path(), "completed"), 1, "{} ended once", trial.id());
    }
    let nothing = cluster.slurm("submit", &run, &[]).with_code(0).stdout;
    assert!(nothing.contains("nothing is missing") && nothing.contains("4 done"), "{nothing}");
    let shown = cluster.slurm("status", &run, &[]).with_code(0).stdout;
    assert!(shown.contains("4 trials: 4 done, 0 running, 0 missing"), "{shown}");
    run.left_nothing();
}

#[test]
fn what_is_cancelled_keeps_its_evidence_and_can_be_continued() {
    let cluster = Cluster::start();
    let run = begun_and_killed();
    let before = run.workspaces();
    cluster.slurm("submit", &run, &["--tasks", "1", "--per-task-jobs", "2"]).with_code(0);
    until(&cluster, &run, "two trials at work", |it| {
        let rooms = run.workspaces();
        let ready = rooms.iter().filter(|work| !before.contains(work) && work.join("ready").exists());
        by_task(it, "running") == BTreeMap::from([("1_0".to_owned(), 2)]) && ready.count() == 2
    });
    let cancelled = cluster.slurm("cancel", &run, &[]).with_code(0).stdout;
    assert!(cancelled.contains("job 1 cancelled"), "{cancelled}");
    let ended = until(&cluster, &run, "end of the task", |it| {
        !["RUNNING", "COMPLETING"].contains(&state_of(it, "1_0"))
    });
    assert_eq!((&ended["trials"]["done"], &ended["trials"]["missing"]), (&0.into(), &4.into()), "{ended}");
    let again = cluster.slurm("cancel", &run, &[]).with_code(0).stdout;
    assert!(again.contains("nothing waits or runs"), "{again}");
    let trials = RunDir::open(&run.out()).unwrap().trials_on_disk().unwrap();
    let collected = trials.iter().map(|trial| tries_that_ended(trial.path(), "cancelled")).sum::<usize>();
    assert_eq!(collected, 2, "both were collected, and not just killed\n{}", cluster.logs(&run.out()));
    run.left_nothing();

    cluster.slurm("submit", &run, &["--tasks", "1", "--per-task-jobs", "2"]).with_code(0);
    until(&cluster, &run, "end of all trials", |it| {
        open_the_gates(&run);
        it["trials"]["done"] == 4
    });
}

#[test]
fn what_goes_wrong_is_said_with_a_hint() {
    let cluster = Cluster::start();
    let run = begun_and_killed();
    let refused = cluster.slurm("submit", &run, &["--partition", "nowhere"]).with_code(2);
    assert!(
        refused.stderr.contains("sbatch refused: invalid partition specified: nowhere"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("slurm/1.sbatch"), "{}", refused.stderr);
    let brief = cluster.slurm("submit", &run, &["--time", "1"]).with_code(2);
    assert!(brief.stderr.contains("too short for a trial of 600 s"), "{}", brief.stderr);

    let ours = cluster.slurm("submit", &run, &["--sbatch-arg=--array=0-99"]).with_code(2);
    assert!(ours.stderr.contains("ours to set") && ours.stderr.contains("--tasks"), "{}", ours.stderr);

    let nowhere = tempfile::tempdir().unwrap();
    let without_slurm = |verb: &str, more: &[&str]| {
        Said::by(proctor().args(["slurm", verb]).arg(run.out()).args(more).env("PATH", nowhere.path()))
    };
    let missing = without_slurm("submit", &[]).with_code(3);
    assert!(
        missing.stderr.contains("there is no `sbatch`") && missing.stderr.contains("hint:"),
        "{}",
        missing.stderr
    );
    let script = without_slurm("submit", &["--dry-run", "--sbatch-arg=--mem=8G"]).with_code(0).stdout;
    assert!(script.starts_with("#!/bin/bash\n") && script.contains("#SBATCH --mem=8G\n"), "{script}");

    for verb in ["submit", "status", "cancel"] {
        let no_run = Said::by(proctor().args(["slurm", verb]).arg(nowhere.path())).with_code(2);
        assert!(no_run.stderr.contains("is this the folder of a run?"), "{}", no_run.stderr);
    }
}
