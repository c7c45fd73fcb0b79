//! Runs that are continued: nothing finished is done again, nothing is lost, nothing is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::sys::signal::Signal;

use crate::support::{Run, world};

const SLOW: &str = "echo 'digraph { a }' > artifact.dot; touch ready; sleep 300";

#[test]
fn the_same_command_again_changes_nothing() {
    let run = Run::over_one().shell("echo 'digraph { a }' > artifact.dot").args(["--attempts", "2"]);
    assert_eq!(run.go().with_code(0).trials().len(), 2);
    let before = files(&run.out());
    let again = run.go().with_code(0);
    assert_eq!(files(&run.out()), before);
    assert_eq!(again.trials().len(), 2);
}

#[test]
fn a_killed_run_leaves_nothing_running_and_is_finished_by_the_next() {
    let run = Run::over_one().shell(SLOW).args(["--budget", "5s"]);
    let mut live = run.start();
    live.workspace_with("ready");
    live.signal(Signal::SIGKILL);
    assert_eq!(live.end().code, None);

    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("timed_out", 2));
    // What the killed one had recorded is still there.
    assert!(trial.path("tries/1/trace.jsonl").is_file());
    assert!(trial.path("tries/1/prompt/TASK.md").is_file());
    assert_eq!(world::containers_of(&run.out()), Vec::<String>::new());
}

#[test]
fn interrupted_twice_it_keeps_what_there_is_and_can_be_continued() {
    let run = Run::over_one().shell(SLOW).args(["--budget", "5s"]);
    let mut live = run.start();
    live.workspace_with("ready");
    live.signal(Signal::SIGINT);
    live.wait_for(|run| run.stderr().contains("no new trials"));
    assert!(live.is_running(), "the first lets running trials finish");
    live.signal(Signal::SIGINT);
    let ended = live.end().with_code(130);
    assert!(ended.trials().is_empty(), "a cancelled trial has no outcome");
    let tried = one_file(&run.out(), "tries/1/try.json");
    let record: serde_json::Value = serde_json::from_slice(&fs::read(&tried).unwrap()).unwrap();
    assert_eq!(record["ending"], "cancelled");
    let artifact = tried.with_file_name("artifacts").join("artifact.dot");
    assert_eq!(fs::read(artifact).unwrap(), b"digraph { a }\n");

    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("timed_out", 2));
}

#[test]
fn interrupted_once_it_lets_the_running_trial_finish_and_starts_no_other() {
    let run = Run::over_one().shell(SLOW).args(["--budget", "4s", "--attempts", "3"]);
    let mut live = run.start();
    live.workspace_with("ready");
    live.signal(Signal::SIGTERM);
    let ended = live.end().with_code(130);
    assert_eq!(ended.trials().iter().map(|it| it.ending()).collect::<Vec<_>>(), ["timed_out"]);
}

/// Every file with its size and time of change.
fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files
        .map(|entry| {
            let it = entry.metadata().unwrap();
            (entry.into_path(), (it.len(), it.modified().unwrap()))
        })
        .collect()
}

fn one_file(folder: &Path, ending: &str) -> PathBuf {
    let mut found = files(folder).into_keys().filter(|path| path.ends_with(ending));
    let first = found.next().unwrap_or_else(|| panic!("no {ending} below {}", folder.display()));
    assert_eq!(found.next(), None);
    first
}
