//! `proctor preflight`: good equipment is called good, and what is broken is named.

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

use crate::live::Provider;
use crate::support::proctor;

fn preflight(arguments: &[&str], key: &str) -> (i32, Value, String) {
    let mut command = proctor();
    command.args(["preflight", "--json"]).args(arguments).env("TEST_KEY", key).env("NO_PROXY", "127.0.0.1");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let report = serde_json::from_slice(&stdout).unwrap_or_default();
    (status.code().unwrap(), report, String::from_utf8_lossy(&stderr).into_owned())
}

/// Which of the four proofs are good.
fn proofs(report: &Value) -> Vec<(&str, bool)> {
    let proofs = report["proofs"].as_array().expect("a report");
    proofs.iter().map(|it| (it["name"].as_str().unwrap(), it["good"].as_bool().unwrap())).collect()
}

const ALL_GOOD: [(&str, bool); 4] =
    [("text", true), ("tool call", true), ("picture", true), ("long output", true)];

#[test]
fn both_agents_pass_with_the_scripted_model() {
    for (harness, requests) in [("codex", 4), ("claude-code", 4)] {
        let (code, report, stderr) = preflight(&["--harness", harness, "--model", "script"], "");
        assert_eq!(code, 0, "{stderr}{report}");
        assert_eq!(proofs(&report), ALL_GOOD);
        assert_eq!(report["ending"], "completed");
        assert!(report["service"]["requests"].as_u64().unwrap() >= requests);
        assert!(report["evidence"].is_null(), "what is good leaves nothing");
    }
}

#[test]
fn a_model_that_does_not_see_is_found_out() {
    let blind = r#"
[[step]]
text = "I run it."
calls = [{ shell = "printf 'preflight %s\\n' ok" }]

[[step]]
calls = [{ view_image = "source.png" }]

[[step]]
text = "I see a picture. That is all I have to say."
"#;
    let provider = Provider::playing(blind);
    let file = provider.file("bearer");
    let file = file.path().to_string_lossy();
    let arguments = ["--harness", "codex", "--model", "mylab/gpt-5.5", "--providers", &*file];
    let (code, report, stderr) = preflight(&arguments, "sk-live-preflight");
    assert_eq!(code, 5, "{stderr}{report}");
    assert_eq!(
        proofs(&report),
        [("text", true), ("tool call", true), ("picture", false), ("long output", false)]
    );
    let evidence = PathBuf::from(report["evidence"].as_str().expect("evidence is kept"));
    assert!(evidence.join("run/run.json").is_file());
    std::fs::remove_dir_all(evidence).unwrap();
}

#[test]
fn what_cannot_be_tried_is_said_before_anything_is_begun() {
    let provider = Provider::playing("");
    let file = provider.file("bearer");
    let file = file.path().to_string_lossy();
    let with_key = ["--harness", "codex", "--model", "mylab/gpt-5.5", "--providers", &*file];
    let (code, report, stderr) = preflight(&with_key, "");
    assert_eq!((code, report), (3, Value::Null));
    assert!(stderr.contains("TEST_KEY"), "{stderr}");
    let (code, _, stderr) = preflight(&["--harness", "nop"], "");
    assert_eq!(code, 2);
    assert!(stderr.contains("codex, claude-code, opencode, gemini, qwen or pi"), "{stderr}");
}
