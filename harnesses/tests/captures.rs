//! Every capture of a real run that lies beside the repository is read without a malformed line. The captures are not
//! part of the repository: where there are none this says so, and the true test is `streams`.

use std::path::PathBuf;

use proctor_harnesses::{AgentVerdict, HarnessId};

fn captures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/agent-sessions")
}

#[test]
fn every_capture_is_understood() {
    let root = captures();
    if !root.is_dir() {
        println!("NOT RUN: there are no captures beside this repository");
        return;
    }
    for (name, least) in
        [("codex", 9), ("claude-code", 9), ("opencode", 2), ("gemini", 2), ("qwen", 1), ("pi", 2)]
    {
        let mut runs = 0;
        for run in std::fs::read_dir(root.join(name)).unwrap() {
            let run = run.unwrap().path();
            let mut reader = name.parse::<HarnessId>().unwrap().harness().stream();
            let bytes = std::fs::read(run.join("stdout.jsonl")).unwrap();
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                reader.line(line);
            }
            let end = reader.end();
            assert!(end.recognised > 0, "{}", run.display());
            assert_eq!((end.unknown, end.malformed), (0, 0), "{}", run.display());
            assert!(end.session_id.is_some(), "{}", run.display());
            let case = run.file_name().unwrap().to_str().unwrap();
            check_verdict(name, case, &end.verdict);
            runs += 1;
        }
        assert!(runs >= least, "only {runs} captures of {name}");
    }
}

/// How each captured run went, by what is known of how it was made.
fn check_verdict(harness: &str, case: &str, verdict: &AgentVerdict) {
    let fits = match (harness, case) {
        (_, "docker-kill" | "docker-kill-TERM-init" | "sigkill-during-tool")
        | ("codex", "sigint-during-tool") => {
            matches!(verdict, AgentVerdict::Silent)
        }
        ("claude-code", "sigint-during-tool") => matches!(verdict, AgentVerdict::Failed { .. }),
        (_, "401" | "401-max-retries-1" | "500-forever") | ("codex", "429-once") => {
            matches!(verdict, AgentVerdict::ModelFailed { .. })
        }
        _ => *verdict == AgentVerdict::Finished,
    };
    assert!(fits, "{harness}/{case}: {verdict:?}");
}
