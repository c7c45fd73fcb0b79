//! Odd files: read, or refused by name; never fewer calls without a word.

use proptest::prelude::*;

use super::*;
use crate::ToolStatus;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

const FIXTURES: [&str; 21] = [
    "claude-agent-a1b2",
    "claude-stream",
    "claude-transcript-1.0",
    "claude-transcript-2.1",
    "claude-transcript-late",
    "codex-exec-3",
    "codex-exec-5",
    "codex-exec-late",
    "codex-rollout-1",
    "codex-rollout-2",
    "codex-rollout-3",
    "codex-rollout-4",
    "codex-rollout-4-child",
    "codex-rollout-5",
    "gemini-session",
    "gemini-stream",
    "opencode",
    "pi-session",
    "pi-stream",
    "qwen-session",
    "qwen-stream",
];

fn calls(bytes: &[u8]) -> Vec<(String, ToolStatus)> {
    read(bytes, None, None).unwrap().calls.into_iter().map(|call| (call.id.0, call.status)).collect()
}

#[test]
fn line_ends_marks_nuls_and_blank_lines_change_nothing() {
    for name in FIXTURES {
        let plain = fixture(name);
        let text = String::from_utf8(plain.clone()).unwrap();
        let odd = format!("\u{feff}{}\0\0\0\r\n", text.replace('\n', "\r\n\r\n"));
        assert_eq!(calls(odd.as_bytes()), calls(&plain), "{name}");
    }
}

#[test]
fn a_torn_last_line_costs_itself_and_is_told() {
    let mut bytes = fixture("codex-rollout-4-child");
    let whole = calls(&bytes);
    bytes.extend_from_slice(br#"{"timestamp":"2026-05-04T10:00:09.000Z","type":"response_i"#);
    let records = read(&bytes, None, None).unwrap();
    assert_eq!(records.calls.len(), whole.len());
    assert_eq!((records.counts.malformed, records.counts.torn), (1, true));
}

#[test]
fn bytes_that_are_no_text_cost_no_call() {
    let line = b"{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"command_execution\",\"command\":\"ls\",\"aggregated_output\":\"a\xff\0b\",\"exit_code\":0,\"status\":\"completed\"}}\n";
    let records = read(line, None, None).unwrap();
    assert_eq!(records.calls[0].output, "a\u{fffd}\u{fffd}b");
    assert_eq!((records.counts.mended, records.counts.malformed), (1, 0));
}

#[test]
fn a_line_of_megabytes_is_a_line() {
    let output = "é\\n".repeat(1 << 20);
    let line = format!(
        "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"command_execution\",\"command\":\"ls\",\"aggregated_output\":\"{output}\",\"exit_code\":0,\"status\":\"completed\"}}}}\n"
    );
    let records = read(line.as_bytes(), None, None).unwrap();
    assert_eq!((records.calls[0].output_bytes, records.calls[0].truncated), (3 << 20, true));
}

#[test]
fn a_pretty_printed_document_is_read_as_its_records() {
    for name in FIXTURES {
        let plain = fixture(name);
        let values: Vec<serde_json::Value> =
            lines::lines(&plain).map(|line| serde_json::from_slice(line.bytes).unwrap()).collect();
        let array = serde_json::to_vec_pretty(&values).unwrap();
        assert_eq!(calls(&array), calls(&plain), "{name}");
        let pretty: Vec<String> = values.iter().map(|it| serde_json::to_string_pretty(it).unwrap()).collect();
        assert_eq!(calls(pretty.join("\n").as_bytes()), calls(&plain), "{name}");
    }
}

#[test]
fn a_packed_rollout_is_unpacked() {
    let plain = fixture("codex-rollout-4");
    let mut packed = Vec::new();
    for half in [&plain[..500], &plain[500..]] {
        packed.extend(ruzstd::encoding::compress_to_vec(half, ruzstd::encoding::CompressionLevel::Fastest));
    }
    assert_eq!(calls(&packed), calls(&plain));
    let torn = &packed[..packed.len() - 9];
    assert!(matches!(read(torn, None, None), Err(SourceError::Unpacking { .. })));
}

#[test]
fn nothing_recognised_is_an_error_that_names_the_format() {
    let rollout = fixture("codex-rollout-2");
    // One public tool read rollouts by the grammar of stdout, and got 0 records.
    let wrong = read(&rollout, Some(Format::CodexExec), None);
    assert_eq!(wrong.unwrap_err().to_string(), "none of its 32 lines is a record of codex-exec");
    assert!(matches!(read(b"hello\n", None, None), Err(SourceError::UnknownFormat { lines: 1 })));
    assert_eq!(read(b"\n\0\n", None, None), Err(SourceError::Empty));
    assert_eq!(
        read(b"SQLite format 3\0", None, None).unwrap_err().to_string(),
        "it is an SQLite database, not lines of JSON"
    );
}

#[test]
fn times_are_read_alike_on_both_ways() {
    for text in [
        "2026-11-30T11:27:33.255Z",
        "2024-02-29T23:59:59.999Z",
        "1999-12-31T00:00:00.000Z",
        "2026-03-01T00:00:00.000Z",
    ] {
        assert_eq!(epoch_ms(text), Timestamp::parse(text).map(Timestamp::as_millis), "{text}");
    }
    assert_eq!(epoch_ms("2026-13-01T00:00:00.000Z"), None);
    assert_eq!(epoch_ms("2026-11-30T12:27:33+01:00"), epoch_ms("2026-11-30T11:27:33.000Z"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whatever is done to a file, every reader comes to an end without a panic, and what it says adds up.
    #[test]
    fn mutated_records_never_panic(
        name in 0..FIXTURES.len(),
        format in 0..=Format::ALL.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..40), 0..12),
    ) {
        let mut bytes = fixture(FIXTURES[name]);
        for (at, byte, cut) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, [byte, b'"', byte]);
        }
        let format = Format::ALL.get(format).copied();
        if let Ok(records) = read(&bytes, format, None) {
            let counts = &records.counts;
            prop_assert_eq!(counts.read, counts.recognised + counts.unknown_total() + counts.malformed);
            let trace = crate::Trace::of_records("x", records);
            trace.findings();
            trace.to_atif("x");
            trace.to_otlp("x");
            trace.to_perfetto("x");
            prop_assert!(trace.to_events().len() >= trace.calls.len());
        }
    }

    /// Values of any type in any place.
    #[test]
    fn fields_of_unexpected_types_never_panic(name in 0..FIXTURES.len(), line in any::<prop::sample::Index>(), field in any::<prop::sample::Index>(), kind in 0..7) {
        let plain = fixture(FIXTURES[name]);
        let mut values: Vec<serde_json::Value> =
            lines::lines(&plain).map(|line| serde_json::from_slice(line.bytes).unwrap()).collect();
        let odd = match kind {
            0 => serde_json::Value::Null,
            1 => serde_json::json!(-9_223_372_036_854_775_808_i64),
            2 => serde_json::json!("\u{0}\\ud800"),
            3 => serde_json::json!([[], {}, "x"]),
            4 => serde_json::json!({"type": {"type": []}}),
            5 => serde_json::json!(1e308),
            _ => serde_json::json!(true),
        };
        let value = line.get(&values).clone();
        let mut paths = Vec::new();
        collect(&value, String::new(), &mut paths);
        let index = line.index(values.len());
        let path = field.get(&paths);
        if let Some(place) = values[index].pointer_mut(path) {
            *place = odd;
        }
        let text: String = values.iter().map(|it| it.to_string() + "\n").collect();
        if let Ok(records) = read(text.as_bytes(), None, None) {
            crate::Trace::of_records("x", records).to_events();
        }
    }
}

fn collect(value: &serde_json::Value, path: String, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(key, value)| collect(value, format!("{path}/{key}"), paths));
        }
        serde_json::Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| collect(value, format!("{path}/{index}"), paths));
        }
        _ => {}
    }
    paths.push(path);
}
