//! A runner that dies between any two steps of a trial leaves a legal state, which the next one makes whole.

use std::fs;

use proctor_engine::Step;
use proctor_store::RunDir;

use crate::support::{Run, SIGNS, is_legal, is_whole, names_in, proctor, read_trace, unique, world};

const TRIAL: &str = "trials/vao/flow-approval/command/1";

/// Kills the runner at `step`, and looks at what that leaves; then makes the run again.
fn killed_at(step: Step) {
    let marker = unique("crash-");
    let run = Run::over_one().shell(&format!(": {marker}; {SIGNS}"));
    let ended = run.start_as("killed", &[("PROCTOR_TEST_CRASH_AT", step.name())]).end();
    assert_eq!(ended.code, None, "killed at {step:?}: {}", ended.stderr());
    world::no_process_with(&marker);

    let done = matches!(step, Step::OutcomeWritten | Step::Settled);
    let trial = run.out().join(TRIAL);
    assert_eq!(trial.join("outcome.json").exists(), done, "{step:?}");
    assert!(shown(&run).contains("command"), "{step:?}: {}", shown(&run));
    let folder = RunDir::open(&run.out()).unwrap().trials_on_disk().unwrap().remove(0);
    assert_eq!(folder.outcome().unwrap().is_some(), done, "{step:?}");
    let (holder, _) = folder.holder().expect("the lease names who had it");
    assert!(!holder.owner().is_alive());
    for number in names_in(&trial.join("tries")) {
        is_legal(&trial.join("tries").join(number));
    }
    if done {
        read_trace(&folder.evidence("trace.jsonl"));
        for file in ["artifacts/artifact.dot", "raw/stdout.jsonl", "prompt/TASK.md"] {
            assert!(folder.evidence(file).is_file(), "{step:?}: {file}");
        }
    }
    let before = fs::read(trial.join("outcome.json")).ok();

    let again = run.start_as("again", &[]).end().with_code(0);
    let trial = again.trial();
    is_whole(&trial);
    let tries = match step {
        Step::Leased | Step::OutcomeWritten | Step::Settled => 1,
        _ => 2,
    };
    assert_eq!((trial.outcome.r#try, trial.folder.tries()), (tries, tries), "{step:?}");
    assert!(
        before.is_none_or(|before| before == trial.bytes("outcome.json")),
        "{step:?}: once written, it stays"
    );
}

/// What `proctor show` says of the run.
fn shown(run: &Run) -> String {
    let output = proctor().arg("show").arg(run.out()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn killed_before_its_agent_works() {
    Step::ALL[..4].iter().copied().for_each(killed_at);
}

#[test]
fn killed_while_its_agent_works_or_is_collected() {
    Step::ALL[4..7].iter().copied().for_each(killed_at);
}

#[test]
fn killed_while_its_outcome_is_kept() {
    Step::ALL[7..].iter().copied().for_each(killed_at);
}

#[test]
fn killed_before_its_picture_is_made() {
    let run = Run::over_one().args(["--harness", "oracle"]);
    let ended = run.start_as("killed", &[("PROCTOR_TEST_CRASH_AT", Step::OutcomeWritten.name())]).end();
    assert_eq!(ended.code, None);
    let picture = run.out().join("trials/vao/flow-approval/oracle/1/render/output.png");
    assert!(!picture.exists());
    run.start_as("again", &[]).end().with_code(0);
    assert!(picture.exists());
}
