//! A model that labels calls instead of the rules, measured like them. The model is scripted; the way to it is the real one.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::proctor;

const CORPUS: &str = r#"{"session":"s","root":"/work","artifact":"artifact.dot"}
{"id":"c1","name":"Read","input":{"file_path":"/work/TASK.md"},"output":"t","status":"ok","label":{"actions":["read_task"]}}
{"id":"c2","name":"Bash","input":{"command":"ls"},"output":"","status":"ok","label":{"actions":[]}}
"#;

fn measured(script: &str) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let labeller = format!("script:{}", file("script.toml", script).display());
    let corpus = file("corpus.jsonl", CORPUS);
    proctor()
        .args(["trace", "measure", "--json", "--labeller", &labeller])
        .arg(Path::new(&corpus))
        .output()
        .unwrap()
}

#[test]
fn a_model_labels_and_an_answer_that_cannot_be_read_is_asked_for_again() {
    let output = measured(
        r#"
        [[answer]]
        times = 1
        text = "It read the task."
        [[answer]]
        contains = ["artifact.dot", "fifteen", "TASK.md"]
        text = '''{"labels": [{"call": 1, "actions": ["read_task", "crop_regions"]}, {"call": 2, "actions": []}]}'''
        "#,
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["measured"]["calls"], 2);
    assert_eq!(figures["measured"]["same_set"], 1);
    assert_eq!(figures["actions"]["read_task"]["measured"]["f1"], 1.0);
    assert_eq!(figures["actions"]["crop_regions"]["measured"]["precision"], 0.0);
}

#[test]
fn labels_that_are_made_up_are_an_error_and_count_nowhere() {
    let output = measured(
        r#"
        [[answer]]
        text = '''{"labels": [{"call": 1, "actions": ["think_hard"]}, {"call": 2, "actions": []}]}'''
        "#,
    );
    assert!(!output.status.success() && output.stdout.is_empty());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("`think_hard`, which is no strategy action"), "{message}");
    // Which calls it was about, and what it said.
    assert!(
        message.contains("about calls 1 to 2 of 2") && message.contains(r#"ends with: {"labels": [{"#),
        "{message}"
    );
    assert_eq!(output.status.code(), Some(4));
}
