//! The real agent CLIs, played by the scripted model.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proctor_render::{RenderRecord, RenderStatus};
use proctor_traces::{ArtifactState, Digest, EventKind, ExchangeEnd, Source, ToolStatus, Usage, WireFormat};

use crate::support::{Package, Run, Trial, sample, samples};

const CLIS: [&str; 4] = ["--harness", "codex", "--harness", "claude-code"];
const SCRIPTED: [&str; 2] = ["--model", "script"];

/// The task whose script stops half-way, and the one whose script edits wrongly.
const HALF_WAY: &str = "chem-ester";
const WRONG: &str = "chart-visitors";

#[test]
fn both_do_all_sample_tasks_and_everything_is_recorded() {
    let run = Run::over(&[&samples()]).args(CLIS).args(SCRIPTED).args(["-j", "2"]);
    let ended = run.go().with_code(0);
    let trials = ended.trials();
    let tasks: BTreeSet<&str> = trials.iter().map(|trial| trial.outcome.trial.task()).collect();
    let packages = fs::read_dir(samples().join("vao")).unwrap().count();
    assert_eq!((tasks.len(), trials.len()), (packages, 2 * packages));
    for task in &tasks {
        // The same script is the same calls, whatever a CLI prints of them.
        let counts: BTreeSet<u64> = trials
            .iter()
            .filter(|it| it.outcome.trial.task() == *task)
            .map(|it| it.outcome.tool_calls)
            .collect();
        assert_eq!(counts.len(), 1, "{task}: {counts:?}");
    }
    for trial in &trials {
        let name = trial.outcome.trial.to_string();
        assert_eq!(trial.ending(), "completed", "{name}");
        assert_eq!(trial.outcome.overrun_ms.map(i64::signum), Some(-1), "{name}");
        tool_calls_are_pairs_with_times(trial);
        exchanges_are_kept(trial);
        versions_are_kept(trial);
        output_is_kept(trial);
        rendered_as_the_script_intends(trial);
    }
}

fn tool_calls_are_pairs_with_times(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let calls = trial.tool_calls();
    assert!(calls.len() >= 4, "{name}: {} tool calls", calls.len());
    // Codex prints nothing of the pictures that it looks at; its session file does.
    assert!(calls.len() as u64 <= trial.outcome.tool_calls, "{name}");
    for (started, call, finished) in &calls {
        let (ended, result) = finished.as_ref().unwrap_or_else(|| panic!("{name}: {call:?} has no result"));
        assert!(0 <= *started && started <= ended, "{name}: {call:?}");
        assert_eq!(result.status, ToolStatus::Ok, "{name}: {call:?}");
    }
    let ids: BTreeSet<_> = calls.iter().map(|(_, call, _)| &call.id).collect();
    assert_eq!(ids.len(), calls.len(), "{name}: ids are unique");

    let trace = trial.trace();
    assert_eq!(trace[0].kind, EventKind::TurnStarted, "{name}");
    assert_eq!((trace[0].offset_ms.0, trace[0].source), (0, Source::Guest), "{name}");
    // Two readings of the wall clock, each cut to a millisecond.
    let started_at = trial.outcome.started_at.unwrap();
    assert!(trace[0].at.as_millis().abs_diff(started_at.as_millis()) <= 1, "{name}: {started_at}");
    let last = trace.last().unwrap();
    assert!(matches!(last.kind, EventKind::TurnFinished { .. }), "{name}: {last:?}");
    assert!(
        trace
            .iter()
            .any(|event| matches!(&event.kind, EventKind::AgentText { text } if text.contains("task")))
    );
}

fn exchanges_are_kept(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let wire =
        if name.contains("codex") { WireFormat::OpenaiResponses } else { WireFormat::AnthropicMessages };
    let exchanges: Vec<_> = trial.exchanges().into_iter().filter(|it| it.wire.is_some()).collect();
    assert_eq!(exchanges.len() as u64, trial.outcome.exchanges, "{name}");
    assert!(exchanges.len() >= 5, "{name}");
    let mut sum = Usage::default();
    for exchange in &exchanges {
        assert_eq!((exchange.wire, exchange.status), (Some(wire), Some(200)), "{name}: {exchange:?}");
        assert_eq!(exchange.end, ExchangeEnd::Complete, "{name}: {exchange:?}");
        let first = exchange.first_byte_ms.unwrap();
        assert!(exchange.start_ms <= first && first <= exchange.end_ms, "{name}: {exchange:?}");
        for (digest, bytes) in
            [(exchange.request, exchange.request_bytes), (exchange.response, exchange.response_bytes)]
        {
            let blob = trial.bytes(&format!("model/blobs/{}", digest.hex()));
            assert_eq!((Digest::of(&blob), blob.len() as u64), (digest, bytes), "{name}");
        }
        sum += exchange.usage.unwrap_or_default();
    }
    assert_eq!(trial.outcome.tokens, sum, "{name}");
    assert!(sum.input_tokens > 0 && sum.output_tokens > 0, "{name}");

    let trace = trial.trace();
    let asked: BTreeMap<u64, i64> = trace
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ModelRequest { exchange, .. } => Some((exchange, event.offset_ms.0)),
            _ => None,
        })
        .collect();
    let answered: BTreeMap<u64, i64> = trace
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ModelResponse { exchange, .. } => Some((exchange, event.offset_ms.0)),
            _ => None,
        })
        .collect();
    let expected =
        |of: fn(&proctor_traces::Exchange) -> i64| exchanges.iter().map(|it| (it.id, of(it))).collect();
    assert_eq!(asked, expected(|it| it.start_ms.0), "{name}");
    assert_eq!(answered, expected(|it| it.end_ms.0), "{name}");
}

fn versions_are_kept(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let seen: Vec<(Source, Digest)> = trial
        .trace()
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ArtifactChanged { digest, .. } => Some((event.source, digest)),
            _ => None,
        })
        .collect();
    assert!(seen.iter().all(|(source, _)| *source == Source::Watcher), "{name}");
    assert_eq!(seen.len() as u64, trial.outcome.artifacts[0].versions, "{name}");
    let mut distinct: Vec<Digest> = seen.iter().map(|(_, digest)| *digest).collect();
    assert_eq!(
        distinct.last(),
        Some(&Digest::of(&trial.artifact())),
        "{name}: the last is what was collected"
    );
    distinct.sort_by_key(Digest::hex);
    distinct.dedup();
    assert_eq!(trial.history(), distinct, "{name}");
}

fn output_is_kept(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let (stdout, stderr) = (trial.bytes("raw/stdout.jsonl"), trial.bytes("raw/stderr.log"));
    assert_eq!(trial.outcome.stream.bytes, (stdout.len() + stderr.len()) as u64, "{name}");
    let lines: Vec<&str> = std::str::from_utf8(&stdout).unwrap().lines().collect();
    for line in &lines {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["type"].is_string(), "{name}: {line}");
    }
    let counts = trial.outcome.stream;
    assert_eq!((counts.recognised, counts.unknown, counts.malformed), (lines.len() as u64, 0, 0), "{name}");
    let times = String::from_utf8(trial.bytes("raw/stdout.times")).unwrap();
    assert_eq!(times.lines().count(), lines.len(), "{name}");

    let session = walkdir::WalkDir::new(trial.path("raw/session")).into_iter().flatten();
    let records = session.filter(|entry| entry.path().extension().is_some_and(|it| it == "jsonl"));
    let bytes: u64 = records.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(bytes > 1000, "{name}: {bytes} bytes of session files");

    let told = String::from_utf8(trial.bytes("prompt/prompt.txt")).unwrap();
    assert!(told.contains("TASK.md"), "{name}: {told}");
    let source = fs::read(sample(trial.outcome.trial.task()).join("source.png")).unwrap();
    let inputs: BTreeMap<String, Digest> =
        serde_json::from_slice(&trial.bytes("prompt/inputs.json")).unwrap();
    assert_eq!(inputs.get("source.png"), Some(&Digest::of(&source)), "{name}");
}

fn rendered_as_the_script_intends(trial: &Trial) {
    let (name, task) = (trial.outcome.trial.to_string(), trial.outcome.trial.task());
    let record: RenderRecord = serde_json::from_slice(&trial.bytes("render/render.json")).unwrap();
    assert_eq!(record.status, RenderStatus::Rendered, "{name}: {:?}", record.message);
    assert_eq!(record.source, Digest::of(&trial.artifact()), "{name}");
    assert_eq!(record.image, trial.outcome.digests.image, "{name}");
    let picture = trial.bytes("render/output.png");
    assert_eq!(record.digest, Some(Digest::of(&picture)), "{name}");
    let package = sample(task);
    let target = fs::read(package.join("hidden/target.png")).unwrap();
    let source = fs::read(package.join("source.png")).unwrap();
    match task {
        HALF_WAY => assert!(picture == source, "{name}: the rebuilt source"),
        WRONG => assert!(picture != source && picture != target, "{name}: neither source nor target"),
        _ => assert!(picture == target, "{name}: the target, byte for byte"),
    }
}

#[test]
fn at_the_deadline_a_call_in_flight_stays_in_the_record() {
    let package = Package::of("flow-approval").with(
        "script.toml",
        r#"
        [[step]]
        text = "A draft first."
        calls = [{ write = "artifact.dot", content = "digraph { draft }" }]
        [[step]]
        text = "Now a long look."
        calls = [{ shell = "python3 -c 'import time; time.sleep(300)'", timeout = "400s" }]
        "#,
    );
    let run = Run::over(&[package.path()]).args(CLIS).args(SCRIPTED).args(["-j", "2", "--budget", "9s"]);
    for trial in run.go().with_code(0).trials() {
        let name = trial.outcome.trial.to_string();
        assert_eq!(trial.ending(), "timed_out", "{name}");
        assert!(trial.outcome.exit.is_none(), "{name}");
        assert!(trial.artifact().starts_with(b"digraph { draft }"), "{name}");
        let calls = trial.tool_calls();
        let (_, call, finished) = calls.last().unwrap();
        assert!(call.input.to_string().contains("time.sleep(300)"), "{name}: {call:?}");
        let (_, result) = finished.as_ref().unwrap_or_else(|| panic!("{name}: {call:?}"));
        assert_eq!(result.status, ToolStatus::Unfinished, "{name}");
        // Nothing that its agent did is later than its last moment, whenever that was read.
        let agent_ms = i64::try_from(trial.outcome.timing.agent_ms.0).unwrap();
        let trace = trial.trace();
        let [.., cut, ended] = trace.as_slice() else { panic!("{name}: {trace:?}") };
        assert_eq!((cut.source, ended.source), (Source::AgentStream, Source::Runner), "{name}");
        assert_eq!(cut.offset_ms, ended.offset_ms, "{name}");
        // Both are cut to milliseconds, each from a zero of its own.
        assert!((ended.offset_ms.0 - agent_ms).abs() <= 1, "{name}: {ended:?}, not {agent_ms}");
        let record: RenderRecord = serde_json::from_slice(&trial.bytes("render/render.json")).unwrap();
        assert_eq!(record.status, RenderStatus::Rendered, "{name}: what was left is rendered all the same");
    }
}

#[test]
fn at_the_deadline_a_model_request_in_flight_stays_in_the_record() {
    let package = Package::of("flow-approval").with(
        "script.toml",
        r#"
        [[step]]
        delay = "300s"
        text = "Too late."
        "#,
    );
    let run = Run::over(&[package.path()]).args(CLIS).args(SCRIPTED).args(["-j", "2", "--budget", "6s"]);
    for trial in run.go().with_code(0).trials() {
        let name = trial.outcome.trial.to_string();
        assert_eq!((trial.ending(), trial.state()), ("timed_out", &ArtifactState::Missing), "{name}");
        let exchanges = trial.exchanges();
        let cut = exchanges.iter().find(|it| it.end == ExchangeEnd::Deadline);
        assert!(cut.is_some_and(|it| it.request_bytes > 0), "{name}: {exchanges:?}");
    }
}
