//! Runs that are stopped, killed, and continued by the same command: nothing finished is done again, nothing is lost,
//! nothing is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use proctor_store::TryRecord;
use proctor_traces::Digest;

use crate::support::{Run, Trial, is_legal, read_trace, sample, unique, world};

/// Works until it is told to stop, or until its budget ends.
const WAITING: &str =
    "echo 'digraph { a }' > artifact.dot; touch ready; while [ ! -e stop ]; do sleep 0.05; done";

#[test]
fn the_same_command_again_changes_nothing() {
    let run = Run::over(&[&sample("flow-approval"), &sample("arch-replicas")]).args(["--harness", "oracle"]);
    run.go().with_code(0);
    let before = snapshot(&run.out());
    assert!(before.keys().any(|path| path.ends_with("render/output.png")));
    let again = run.go().with_code(0);
    assert_eq!(again.trials().len(), 2);
    assert_eq!(snapshot(&run.out()), before);
}

/// Every file with the time of its last change and its content.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Digest)> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let changed = entry.metadata().unwrap().modified().unwrap();
            (entry.path().to_owned(), (changed, Digest::of(&fs::read(entry.path()).unwrap())))
        })
        .collect()
}

#[test]
fn a_killed_run_leaves_evidence_and_is_finished_by_the_next() {
    let marker = unique("killed-");
    let run = Run::over_one().shell(&format!(": {marker}; {WAITING}")).args(["--budget", "4s"]);
    let mut live = run.start();
    let old = live.workspace_with("ready");
    let tried = run.out().join("trials/vao/flow-approval/command/1/tries/1");
    live.wait_for(|_| tried.join("raw/stdout.jsonl").exists());
    live.signal(Signal::SIGKILL);
    assert_eq!(live.end().code, None, "killed by a signal");
    // Nobody tells the room to end: it notices.
    world::no_process_with(&marker);
    for evidence in ["trace.jsonl", "raw/stdout.jsonl", "prompt/TASK.md"] {
        assert!(tried.join(evidence).exists(), "{evidence}");
    }

    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("timed_out", 2));
    assert!(!old.exists(), "the room of the killed run is cleared");
    assert!(trial.path("tries/1/prompt/TASK.md").exists(), "the first try keeps its evidence");
    read_trace(&trial.path("tries/1/trace.jsonl"));
    assert!(
        trial.trace().iter().any(|event| event.offset_ms.0 == 0),
        "the second try's evidence is the trial's"
    );
}

#[test]
fn interrupted_once_a_run_finishes_what_it_has_begun() {
    let tasks = [sample("flow-approval"), sample("arch-replicas")];
    let run = Run::over(&[&tasks[0], &tasks[1]]).shell(WAITING).args(["--budget", "60s"]);
    let mut live = run.start();
    let work = live.workspace_with("ready");
    live.signal(Signal::SIGTERM);
    live.wait_for(|run| run.stderr().contains("no new trials"));
    assert!(live.is_running(), "the trial goes on");
    fs::write(work.join("stop"), "").unwrap();
    let ended = live.end().with_code(130);
    assert_eq!(ended.trial().ending(), "completed");

    let mut live = run.start();
    let work = live.workspace_with("ready");
    fs::write(work.join("stop"), "").unwrap();
    let trials = live.end().with_code(0).trials();
    assert_eq!(trials.iter().map(Trial::ending).collect::<Vec<_>>(), ["completed"; 2]);
    assert_eq!(trials.iter().map(|trial| trial.outcome.r#try).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn interrupted_twice_a_run_cancels_and_can_be_continued() {
    let run = Run::over_one().shell(WAITING).args(["--budget", "60s"]);
    let mut live = run.start();
    live.workspace_with("ready");
    live.signal(Signal::SIGINT);
    live.wait_for(|run| run.stderr().contains("no new trials"));
    live.signal(Signal::SIGINT);
    let ended = live.end().with_code(130);
    assert!(ended.trials().is_empty(), "a cancelled trial has no outcome");
    let tried = run.out().join("trials/vao/flow-approval/command/1/tries/1");
    let record: TryRecord = serde_json::from_slice(&fs::read(tried.join("try.json")).unwrap()).unwrap();
    assert_eq!((record.r#try, record.ending.name()), (1, "cancelled"));
    let artifact = fs::read(tried.join("artifacts/artifact.dot")).unwrap();
    assert_eq!(artifact, b"digraph { a }\n", "evidence is kept");

    let mut live = run.start();
    let work = live.workspace_with("ready");
    fs::write(work.join("stop"), "").unwrap();
    let trial = live.end().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("completed", 2));
}

#[test]
fn interrupted_thrice_a_run_ends_at_once_and_the_next_clears_up() {
    let marker = unique("thrice-");
    // So many files that cancelling takes its time, which the third interrupt does not wait for.
    let litter = "mkdir many; (cd many; for i in $(seq 20000); do : > $i; done)";
    let run = Run::over_one().shell(&format!(
        ": {marker}; [ -e TASK.md ] && echo 'digraph {{ a }}' > artifact.dot; {litter}; touch ready; \
         while [ ! -e stop ]; do sleep 0.05; done"
    ));
    let mut live = run.start_as("impatient", &[]);
    let old = live.workspace_with("ready");
    while live.is_running() {
        live.signal(Signal::SIGINT);
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = live.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr());
    assert!(ended.stderr().contains("no new trials"), "{}", ended.stderr());
    assert!(!ended.stderr().contains("command/1: cancelled"), "it did not wait: {}", ended.stderr());
    assert!(old.exists(), "its room is left to the next start");
    let tried = run.out().join("trials/vao/flow-approval/command/1/tries/1");
    assert!(!tried.join("try.json").exists());
    is_legal(&tried);
    world::no_process_with(&marker);

    let mut live = run.start_as("again", &[]);
    let work = live.workspace_beside(std::slice::from_ref(&old), "ready");
    fs::write(work.join("stop"), "").unwrap();
    let trial = live.end().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("completed", 2));
    assert!(!old.exists());
}
