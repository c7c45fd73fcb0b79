//! Whatever an agent prints: no reader panics, every line is counted once, and a call ends at most once.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::HashMap;

use proctor_harnesses::{HarnessId, StreamReader, split_command_line};
use proctor_traces::{EventKind, ToolCallId};
use proptest::prelude::*;

const CLIS: [&str; 6] = ["codex", "claude-code", "opencode", "gemini", "qwen", "pi"];

fn readers() -> [Box<dyn StreamReader>; 6] {
    CLIS.map(|name| name.parse::<HarnessId>().unwrap().harness().stream())
}

/// All fixtures as lines: what mutations start from.
fn fixture_lines() -> Vec<Vec<u8>> {
    let root = format!("{}/tests/fixtures", env!("CARGO_MANIFEST_DIR"));
    let mut lines = Vec::new();
    for folder in CLIS {
        for entry in std::fs::read_dir(format!("{root}/{folder}")).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            lines.extend(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    assert!(lines.len() > 50, "the fixtures are missing");
    lines
}

/// Reads `lines` as one turn and checks what must hold of any.
fn check(reader: &mut dyn StreamReader, lines: &[Vec<u8>]) {
    let mut open: HashMap<ToolCallId, u32> = HashMap::new();
    let mut seen = |events: &[EventKind]| {
        for event in events {
            match event {
                EventKind::ToolStarted(call) => {
                    assert_eq!(open.insert(call.id.clone(), 1), None, "{:?} was started twice", call.id);
                }
                EventKind::ToolFinished(result) => {
                    assert_eq!(
                        open.insert(result.id.clone(), 0),
                        Some(1),
                        "{:?} ended twice or never began",
                        result.id
                    );
                }
                _ => {}
            }
        }
        open.values().sum::<u32>()
    };
    for line in lines {
        seen(&reader.line(line));
    }
    let end = reader.end();
    assert_eq!(seen(&end.events), 0, "a call was left open");
    let told = lines.iter().filter(|line| !is_blank(line)).count() as u64;
    assert_eq!(end.recognised + end.unknown + end.malformed, told);
}

fn is_blank(line: &[u8]) -> bool {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii().is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        for mut reader in readers() {
            check(&mut *reader, &lines);
        }
    }

    #[test]
    fn true_lines_shuffled_and_damaged(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<Option<u8>>()), 1..80),
    ) {
        let all = fixture_lines();
        let lines: Vec<Vec<u8>> = picks
            .iter()
            .map(|(which, at, damage)| {
                let mut line = which.get(&all).clone();
                if let (Some(byte), false) = (damage, line.is_empty()) {
                    let at = at.index(line.len());
                    line[at] = *byte;
                }
                line
            })
            .collect();
        for mut reader in readers() {
            check(&mut *reader, &lines);
        }
    }

    #[test]
    fn a_command_line_is_split_or_refused(line in any::<String>()) {
        if let Ok(words) = split_command_line(&line) {
            prop_assert!(!words.is_empty());
        }
    }

    #[test]
    fn quoted_words_come_back_as_they_were(words in prop::collection::vec("[^\0]*", 1..6)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        prop_assert_eq!(split_command_line(&quoted.join(" ")).unwrap(), words);
    }
}
