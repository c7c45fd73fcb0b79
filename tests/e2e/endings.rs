//! How agents end, and what they leave where the artifact should be.

use proctor_traces::{ArtifactState, Ending, FreezeKind, Limit};

use crate::support::{Run, unique, world};

const WRITE: &str = "echo 'digraph { a }' > artifact.dot";

#[test]
fn a_child_left_in_the_background_does_not_lengthen_the_agents_time() {
    let marker = unique("background-");
    let script = format!("{WRITE}; (exec -a {marker} sleep 300) & disown; echo done; exit 0");
    let run = Run::over_one().shell(&script).args(["--budget", "60s"]);
    let trial = run.go().with_code(0).trial();
    // The child holds both streams: waiting for their end would have become a timeout.
    assert_eq!(trial.ending(), "completed");
    assert_eq!(trial.bytes("raw/stdout.jsonl"), b"done\n");
    assert_eq!(trial.outcome.freeze, Some(FreezeKind::Paused), "the child had to be stopped");
    assert!(trial.outcome.timing.agent_ms < trial.outcome.budget_ms);
    assert_eq!(world::processes_with(&marker), Vec::<u32>::new());
}

#[test]
fn an_agent_that_fails_is_an_agent_error_with_its_artifact_kept() {
    let run = Run::over_one().shell(&format!("{WRITE}; echo oh no >&2; exit 3"));
    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.exit), ("agent_error", Some(proctor_store::Exit::Code(3))));
    assert_eq!(trial.artifact(), b"digraph { a }\n");
    assert_eq!(trial.bytes("raw/stderr.log"), b"oh no\n");
}

#[test]
fn an_agent_killed_for_memory_is_out_of_memory() {
    let program = "open('artifact.dot', 'w').write('digraph { a }')\nhoard = []\nwhile True: hoard.append(bytearray(b'x' * (1 << 20)))";
    let run = Run::over_one().python(program).args(["--memory", "96m", "--budget", "60s"]);
    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.exit), ("out_of_memory", Some(proctor_store::Exit::Signal(9))));
    assert_eq!(trial.artifact(), b"digraph { a }", "evidence is kept");
    assert!(
        trial.outcome.resources.oom_kills.is_some_and(|kills| kills > 0),
        "{:?}",
        trial.outcome.resources
    );
}

#[test]
fn a_killed_child_alone_is_not_the_agents_end() {
    let eater = "hoard = []\nwhile True: hoard.append(bytearray(b'x' * (1 << 20)))";
    let script = format!("python3 -c \"{eater}\"; echo $?; {WRITE}");
    let run = Run::over_one().shell(&script).args(["--memory", "96m", "--budget", "60s"]);
    let trial = run.go().with_code(0).trial();
    assert_eq!(trial.bytes("raw/stdout.jsonl"), b"137\n", "the child was killed");
    assert_eq!(trial.ending(), "completed");
    assert!(
        trial.outcome.resources.oom_kills.is_some_and(|kills| kills > 0),
        "{:?}",
        trial.outcome.resources
    );
}

#[test]
fn a_kill_that_is_not_for_memory_is_an_agent_error() {
    let trial = Run::over_one().shell(&format!("{WRITE}; kill -9 $$")).go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.exit), ("agent_error", Some(proctor_store::Exit::Signal(9))));
}

#[test]
fn limits_on_disk_end_the_trial() {
    let bytes = format!("{WRITE}; head -c 90M /dev/zero > $HOME/big; sleep 300");
    let inodes = format!("{WRITE}; mkdir many; for i in $(seq 400); do : > many/$i; done; sleep 300");
    for (script, option, limit) in
        [(&bytes, ["--disk", "64m"], Limit::DiskBytes), (&inodes, ["--inodes", "300"], Limit::DiskInodes)]
    {
        let run = Run::over_one().shell(script).args(option).args(["--budget", "60s"]);
        let trial = run.go().with_code(0).trial();
        assert_eq!(trial.outcome.ending, Ending::LimitExceeded { limit });
        assert_eq!(trial.artifact(), b"digraph { a }\n", "evidence is kept");
    }
}

#[test]
fn each_way_of_not_leaving_an_artifact_has_its_name() {
    for (script, state) in [
        ("true", ArtifactState::Missing),
        (": > artifact.dot", ArtifactState::Empty),
        ("ln -s /etc/passwd artifact.dot", ArtifactState::Link),
        ("ln -s TASK.md artifact.dot", ArtifactState::Link),
        ("mkfifo artifact.dot", ArtifactState::NotAFile),
        ("mkdir artifact.dot; echo x > artifact.dot/artifact.dot", ArtifactState::NotAFile),
        (
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('artifact.dot')\"",
            ArtifactState::NotAFile,
        ),
        ("truncate -s 9M artifact.dot", ArtifactState::TooLarge { bytes: 9 << 20 }),
    ] {
        let trial = Run::over_one().shell(script).go().with_code(0).trial();
        assert_eq!((trial.ending(), trial.state()), ("no_artifact", &state), "{script}");
        let kept = std::fs::symlink_metadata(trial.path("artifacts/artifact.dot"));
        assert!(kept.is_err() || script.starts_with("mkdir"), "{script}: nothing is taken for it");
    }
}

#[test]
fn a_program_that_does_not_exist_is_told() {
    let run = Run::over_one().args(["--harness", "command", "--command", "/no/such/agent", "--no-render"]);
    let trial = run.go().with_code(0).trial();
    let Ending::AgentError { message } = &trial.outcome.ending else { panic!("{:?}", trial.outcome.ending) };
    assert!(message.contains("/no/such/agent"), "{message}");
    assert_eq!(trial.outcome.timing.agent_ms.0, 0);
}
