//! The readers, and what must hold whatever they are given.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use proctor_gateway::Script;
use proctor_harnesses::{HarnessId, HarnessName};
use proctor_traces::actions::Session;
use proctor_traces::{Call, EventKind, Format, Nesting, ToolCallId, ToolStatus, Trace, sources};
use serde_json::{Value, json};
use walkdir::WalkDir;

use crate::driver::{Input, Seed};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files below these folders whose names end so.
fn files(folders: &[&str], ending: &str) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for folder in folders {
        let walk = WalkDir::new(root().join(folder)).sort_by_file_name();
        for entry in walk.into_iter().map(Result::unwrap).filter(|it| it.file_type().is_file()) {
            let name = entry.path().strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            if name.ends_with(ending) {
                seeds.push(Seed { name, bytes: fs::read(entry.path()).unwrap() });
            }
        }
    }
    seeds
}

pub(crate) fn sessions() -> Vec<Seed> {
    files(&["traces/tests/fixtures", "harnesses/tests/fixtures"], ".jsonl")
}

/// Read as what it is, or as any format: the counts add up, and nothing that is made of it fails.
pub(crate) fn read_session(input: &mut Input<'_>) {
    let format = Format::ALL.get(input.dice.below(Format::ALL.len() * 2)).copied();
    let Ok(records) = sources::read(input.bytes, format, None) else { return };
    let counts = &records.counts;
    assert_eq!(counts.read, counts.recognised + counts.unknown_total() + counts.malformed);
    let calls = records.calls.len();
    let trace = Trace::of_records("x", records);
    assert!(trace.calls.len() >= calls, "joining alone loses no call");
    trace.findings();
    trace.to_atif("x");
    trace.to_otlp("x");
    trace.to_perfetto("x");
    assert!(trace.to_events().len() >= trace.calls.len());
    let session = Session::of_trace(&trace, None);
    assert_eq!(session.classify().len(), trace.outer_calls().count(), "every outer call is classified");
}

/// Names of the calls as their lines have them: without the turn, and the number of the list, that we count.
fn names(bytes: &[u8], format: Format) -> Option<BTreeSet<String>> {
    let records = sources::read(bytes, Some(format), None).ok()?;
    let name = |call: &Call| {
        let name = call.id.0.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default().to_owned()
    };
    Some(records.calls.iter().map(name).collect())
}

/// A line that became unreadable takes with it no call but those that it names.
pub(crate) fn lose_a_line(input: &mut Input<'_>) {
    let Ok(whole) = sources::read(&input.seed.bytes, None, None) else { return };
    let before = names(&input.seed.bytes, whole.format).unwrap();
    let mut lines: Vec<&[u8]> = input.seed.bytes.split_inclusive(|it| *it == b'\n').collect();
    let at = input.dice.below(lines.len());
    let lost = String::from_utf8_lossy(lines[at]).into_owned();
    lines[at] = b"{\"type\":\"resp\n";
    let Some(after) = names(&lines.concat(), whole.format) else {
        assert!(whole.counts.recognised <= 1, "{}: without line {at} nothing is read", input.seed.name);
        return;
    };
    let gone = before.difference(&after).find(|name| !lost.contains(name.as_str()));
    assert_eq!(gone, None, "{}: line {at} took it along", input.seed.name);
}

/// Marks, line ends, blank lines, NULs, records of no kind and a torn end change no call.
pub(crate) fn add_noise(input: &mut Input<'_>) {
    let Ok(whole) = sources::read(&input.seed.bytes, None, None) else { return };
    let show = |calls: &[Call]| calls.iter().map(|it| (it.id.0.clone(), it.status)).collect::<Vec<_>>();
    let mut noisy = if input.dice.below(2) == 0 { Vec::new() } else { b"\xef\xbb\xbf".to_vec() };
    let end: &[u8] = if input.dice.below(2) == 0 { b"\n" } else { b"\r\n" };
    let mut strangers = 0;
    for line in input.seed.bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
        match input.dice.below(8) {
            0 => noisy.extend_from_slice(b"\0\0\n"),
            1 => noisy.extend_from_slice(b" \r\n\n"),
            2 => {
                noisy.extend_from_slice(b"{\"type\":\"never-heard-of\",\"n\":1}\n");
                strangers += 1;
            }
            _ => {}
        }
        noisy.extend_from_slice(line);
        noisy.extend_from_slice(end);
    }
    if input.dice.below(2) == 0 {
        noisy.extend_from_slice(b"{\"type\":\"item.comp");
        strangers += 1;
    }
    let read = sources::read(&noisy, Some(whole.format), None).unwrap();
    assert_eq!(show(&read.calls), show(&whole.calls), "{}", input.seed.name);
    let odd = |counts: &sources::Counts| counts.unknown_total() + counts.malformed;
    assert_eq!(odd(&read.counts), odd(&whole.counts) + strangers, "{}", input.seed.name);
}

/// The scripts in the calls of the labelled sessions.
pub(crate) fn scripts() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for file in files(&["traces/corpus"], ".jsonl") {
        for line in file.bytes.split(|it| *it == b'\n') {
            let Ok(call) = serde_json::from_slice::<Value>(line) else { continue };
            let texts = call["input"].as_object().into_iter().flat_map(|it| it.values());
            seeds.extend(texts.filter_map(Value::as_str).filter(|it| it.len() > 8).map(|text| Seed {
                name: format!("{} {}", file.name, call["id"]),
                bytes: text.as_bytes().to_vec(),
            }));
        }
    }
    seeds
}

/// The same text in every place where a text is taken apart: read twice in the same way.
pub(crate) fn classify_script(input: &mut Input<'_>) {
    let text = String::from_utf8_lossy(input.bytes).into_owned();
    let here = format!("python3 - <<'PY'\n{text}\nPY\n");
    let inputs = [
        ("Bash", json!({ "command": text })),
        ("Bash", json!({ "command": here })),
        ("exec", json!({ "input": text })),
        ("apply_patch", json!(text)),
        ("Write", json!({ "file_path": "draw.py", "content": text })),
        ("Bash", json!({ "command": "python3 draw.py" })),
    ];
    let calls: Vec<Call> =
        inputs.into_iter().enumerate().map(|(at, (name, it))| call(at, name, it)).collect();
    let session = Session { calls: calls.into(), ..Session::default() };
    let once = session.classify();
    assert_eq!(once.len(), 6);
    assert_eq!(once, session.classify());
}

fn call(at: usize, name: &str, input: Value) -> Call {
    Call {
        id: ToolCallId(format!("c{at}")),
        seq: 0,
        turn: 1,
        name: name.to_owned(),
        input,
        parent: None,
        nesting: Nesting::Top,
        agent: None,
        polls: None,
        issued: None,
        start: None,
        end: None,
        returned: None,
        status: ToolStatus::Ok,
        exit_code: None,
        output: String::new(),
        output_bytes: 0,
        truncated: false,
        images: Vec::new(),
        seen_by: Vec::new(),
    }
}

pub(crate) fn streams() -> Vec<Seed> {
    files(&["harnesses/tests/fixtures", "traces/tests/fixtures"], ".jsonl")
}

/// Every line is counted once, and every call ends once.
pub(crate) fn follow_stream(input: &mut Input<'_>) {
    let name = input.dice.pick(&HarnessName::ALL).as_str();
    let mut reader = name.parse::<HarnessId>().unwrap().harness().stream();
    let mut open: HashMap<ToolCallId, bool> = HashMap::new();
    let mut take = |events: Vec<EventKind>| {
        for event in events {
            match event {
                EventKind::ToolStarted(call) => {
                    let before = open.insert(call.id.clone(), true);
                    assert_eq!(before, None, "{name}: {:?} began twice", call.id);
                }
                EventKind::ToolFinished(result) => {
                    let before = open.insert(result.id.clone(), false);
                    assert_eq!(before, Some(true), "{name}: {:?} ended twice, or never began", result.id);
                }
                _ => {}
            }
        }
    };
    for line in input.bytes.split_inclusive(|it| *it == b'\n') {
        take(reader.line(line));
    }
    let end = reader.end();
    take(end.events);
    assert!(open.values().all(|is_open| !is_open), "{name}: a call was left open");
}

/// `script.toml` of the sample tasks.
pub(crate) fn model_scripts() -> Vec<Seed> {
    files(&["tasks/samples"], "script.toml")
}

/// A script, or an error that says where.
pub(crate) fn parse_script(input: &mut Input<'_>) {
    let dir = root().join(&input.seed.name);
    match Script::parse(&String::from_utf8_lossy(input.bytes), dir.parent().unwrap()) {
        Ok(script) => assert!(script.steps().len() + script.answers().len() <= input.bytes.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
