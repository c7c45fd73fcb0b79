//! The two controls: one that knows the answer, one that does nothing.

use std::fs;

use proctor_traces::{ArtifactState, Digest, FreezeKind};

use crate::support::{Run, sample, samples};

#[test]
fn the_oracle_s_picture_is_the_target_byte_for_byte_on_every_task() {
    let run = Run::over(&[&samples()]).args(["--harness", "oracle", "-j", "2"]);
    let trials = run.go().with_code(0).trials();
    assert_eq!(trials.len(), fs::read_dir(samples().join("vao")).unwrap().count());
    for trial in trials {
        let task = trial.outcome.trial.task();
        assert_eq!(trial.ending(), "completed", "{task}");
        let picture = Digest::of(&trial.bytes("render/output.png"));
        let target = fs::read(sample(task).join("hidden/target.png")).unwrap();
        assert_eq!(picture, Digest::of(&target), "{task}");
    }
}

#[test]
fn doing_nothing_ends_without_an_artifact_on_every_task() {
    let run = Run::over(&[&samples()]).args(["--harness", "nop", "-j", "2"]);
    let trials = run.go().with_code(0).trials();
    assert_eq!(trials.len(), fs::read_dir(samples().join("vao")).unwrap().count());
    for trial in trials {
        let task = trial.outcome.trial.task();
        assert_eq!((trial.ending(), trial.state()), ("no_artifact", &ArtifactState::Missing), "{task}");
        assert!(!trial.path("render").exists(), "{task}: nothing to render");
        assert_eq!(trial.outcome.freeze, Some(FreezeKind::Empty), "{task}: nothing was left to stop");
    }
}
