//! Evidence that can be told from that of any other try, so that a mixture of two shows.

use std::fs;
use std::path::Path;

use super::{Trial, names_in, read_trace};
use proctor_store::TryRecord;

/// A shell agent that signs all that it leaves with an id that it makes up, and takes a moment.
pub(crate) const SIGNS: &str = r#"id=$(cat /proc/sys/kernel/random/uuid); echo "signed $id"; echo "digraph { \"signed $id\" }" > artifact.dot; echo "signed $id" > note.txt; sleep 0.3"#;

/// The signature in this text; none if there is none.
pub(crate) fn signature_in(text: &str) -> Option<String> {
    text.split_once("signed ").and_then(|(_, rest)| rest.get(..36)).map(str::to_owned)
}

/// Fails the test unless the trial has all evidence in its place, all of it from the one try that the outcome names, and
/// nothing lies about. Returns who signed it.
pub(crate) fn is_whole(trial: &Trial) -> String {
    let (outcome, name) = (&trial.outcome, &trial.outcome.trial);
    assert_eq!(trial.ending(), "completed", "{name}");
    assert_eq!(
        names_in(trial.folder.path()),
        ["artifacts", "history", "outcome.json", "prompt", "raw", "trace.jsonl", "tries"],
        "{name}"
    );
    let signature =
        signature_in(&String::from_utf8(trial.artifact()).unwrap()).expect("the artifact is signed");
    for file in ["artifacts/workspace/note.txt", "raw/stdout.jsonl"] {
        assert_eq!(
            String::from_utf8(trial.bytes(file)).unwrap(),
            format!("signed {signature}\n"),
            "{name}: {file}"
        );
    }
    for digest in trial.history() {
        let version = String::from_utf8(trial.bytes(&format!("history/{}", digest.hex()))).unwrap();
        assert_eq!(signature_in(&version).as_ref(), Some(&signature), "{name}: a version of the artifact");
    }
    for file in ["prompt.txt", "TASK.md", "inputs.json"] {
        assert!(!trial.bytes(&format!("prompt/{file}")).is_empty(), "{name}: {file}");
    }
    let last = trial.trace().last().map(|event| event.offset_ms.0).expect("a trace");
    // Both are cut to milliseconds, each from a zero of its own.
    let agent_ms = i64::try_from(outcome.timing.agent_ms.0).unwrap();
    assert!(last + 1 >= agent_ms, "{name}: its trace goes to the end: {last} of {agent_ms}");

    let tries = trial.path("tries");
    for number in 1..=trial.folder.tries() {
        let one = tries.join(number.to_string());
        if number == outcome.r#try {
            assert_eq!(names_in(&one), ["try.json"], "{name}: what try {number} left is the trial's");
            let record = record_of(&one).expect("the final try has its record");
            assert_eq!((record.r#try, &record.ending), (number, &outcome.ending), "{name}");
        } else {
            is_legal(&one);
            let said = fs::read_to_string(one.join("raw/stdout.jsonl")).unwrap_or_default();
            assert_ne!(
                signature_in(&said).as_ref(),
                Some(&signature),
                "{name}: the evidence of two tries is mixed"
            );
        }
    }
    assert_eq!(names_in(&tries).len(), usize::try_from(trial.folder.tries()).unwrap(), "{name}: only tries");
    signature
}

/// Fails the test unless what a try has left, whenever it was killed, can be read.
pub(crate) fn is_legal(one: &Path) {
    let known = ["artifacts", "history", "model", "prompt", "raw", "trace.jsonl", "try.json"];
    for name in names_in(one) {
        assert!(known.contains(&name.as_str()) || name.starts_with(".tmp-"), "{}: {name}", one.display());
    }
    if one.join("trace.jsonl").exists() {
        read_trace(&one.join("trace.jsonl"));
    }
    record_of(one);
}

/// The record of a try; none if it was killed before it had one.
pub(crate) fn record_of(one: &Path) -> Option<TryRecord> {
    let bytes = fs::read(one.join("try.json")).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", one.display())))
}
