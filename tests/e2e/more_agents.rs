//! `OpenCode`, Gemini CLI, Qwen Code and pi: really installed, in real rooms, played by the scripted model.

use std::collections::BTreeSet;
use std::fs;

use proctor_render::{RenderRecord, RenderStatus};
use proctor_store::Testimony;
use proctor_traces::{Digest, Ending, ExchangeEnd, ModelCause, ToolStatus, Usage, WireFormat};

use crate::support::{Package, Run, Trial, proctor, sample};

const CLIS: [&str; 8] =
    ["--harness", "opencode", "--harness", "gemini", "--harness", "qwen", "--harness", "pi"];
const SCRIPTED: [&str; 4] = ["--model", "script", "-j", "2"];

/// All four, over one package.
fn all_four(run: Run) -> Run {
    run.args(CLIS).args(SCRIPTED)
}

fn wire_of(trial: &Trial) -> WireFormat {
    if trial.outcome.trial.to_string().contains("gemini") {
        WireFormat::GeminiGenerate
    } else {
        WireFormat::OpenaiChat
    }
}

#[test]
fn each_does_a_task_by_tool_calls_whose_times_are_known() {
    let run = all_four(Run::over_one());
    let ended = run.go().with_code(0);
    let trials = ended.trials();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let name = trial.outcome.trial.to_string();
        assert_eq!(trial.ending(), "completed", "{name}: {:?}", trial.outcome.ending);
        calls_have_times(trial);
        exchanges_are_kept(trial);
        all_it_printed_is_understood(trial);
        let record: RenderRecord = serde_json::from_slice(&trial.bytes("render/render.json")).unwrap();
        assert_eq!(record.status, RenderStatus::Rendered, "{name}: {:?}", record.message);
        let target = fs::read(sample("flow-approval").join("hidden/target.png")).unwrap();
        assert!(trial.bytes("render/output.png") == target, "{name}: the target, byte for byte");
    }
}

fn calls_have_times(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let trace = Testimony::of(trial.folder.path()).unwrap().trace().unwrap();
    assert_eq!(trace.calls.len(), 10, "{name}");
    for call in &trace.calls {
        let (start, end) = (call.start.unwrap(), call.end.unwrap());
        assert!(0 <= start.ms && start.ms <= end.ms, "{name}: {call:?}");
        assert_eq!(call.status, ToolStatus::Ok, "{name}: {call:?}");
    }
    // Python starts, reads a picture and looks at each of its pixels: no agent's clock misses that.
    let took: i64 = trace.calls.iter().map(|call| call.end.unwrap().ms - call.start.unwrap().ms).sum();
    assert!(took > 50, "{name}: ten calls in {took} ms");
    let pictures: usize = trace.calls.iter().map(|call| call.images.len()).sum();
    assert!(pictures >= 3, "{name}: {pictures} pictures were seen");
}

fn exchanges_are_kept(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let exchanges = trial.exchanges();
    assert!(exchanges.len() >= 11, "{name}");
    let mut sum = Usage::default();
    for exchange in &exchanges {
        assert_eq!(
            (exchange.wire, exchange.status),
            (Some(wire_of(trial)), Some(200)),
            "{name}: {exchange:?}"
        );
        assert_eq!(exchange.end, ExchangeEnd::Complete, "{name}: {exchange:?}");
        assert!(exchange.model.is_some(), "{name}: {exchange:?}");
        sum += exchange.usage.unwrap_or_default();
    }
    assert_eq!(trial.outcome.tokens, sum, "{name}");
    // Each place of the script was reached, and none by a wrong turn.
    let steps: BTreeSet<_> = exchanges.iter().filter_map(|it| it.step).collect();
    assert_eq!(steps, (0..=10).map(|results| (1, results)).collect(), "{name}");
}

fn all_it_printed_is_understood(trial: &Trial) {
    let name = trial.outcome.trial.to_string();
    let counts = trial.outcome.stream;
    assert_eq!((counts.unknown, counts.malformed), (0, 0), "{name}");
    assert!(counts.recognised > 0, "{name}");
    let session = walkdir::WalkDir::new(trial.path("raw/session")).into_iter().flatten();
    let bytes: u64 =
        session.filter_map(|it| it.metadata().ok()).filter(fs::Metadata::is_file).map(|it| it.len()).sum();
    assert!(bytes > 1000, "{name}: {bytes} bytes of session files");
}

#[test]
fn the_deadline_ends_each_in_the_middle_of_a_call() {
    let package = Package::of("flow-approval").with(
        "script.toml",
        r#"
        [[step]]
        text = "A draft first."
        calls = [{ write = "artifact.dot", content = "digraph { draft }" }]
        [[step]]
        text = "Now a long look."
        calls = [{ shell = "touch at-work; python3 -c 'import time; time.sleep(300)'", timeout = "400s" }]
        "#,
    );
    // Some of them take ten seconds and more to start when there is much else to do.
    let run = all_four(Run::over(&[package.path()])).args(["--budget", "60s", "--no-render"]);
    for trial in run.go().with_code(0).trials() {
        let name = trial.outcome.trial.to_string();
        assert_eq!(trial.ending(), "timed_out", "{name}: {:?}", trial.outcome.ending);
        assert!(trial.outcome.exit.is_none(), "{name}");
        assert!(trial.artifact().starts_with(b"digraph { draft }"), "{name}");
        assert!(trial.path("artifacts/workspace/at-work").exists(), "{name}: the second call was at work");
        let trace = Testimony::of(trial.folder.path()).unwrap().trace().unwrap();
        let last = trace.calls.last().unwrap();
        assert!(last.input.to_string().contains("time.sleep(300)"), "{name}: {last:?}");
        assert_eq!(last.status, ToolStatus::Unfinished, "{name}");
    }
}

#[test]
fn a_provider_that_refuses_is_a_model_error_of_each() {
    let fault = "[[step]]\ntext = \"never\"\nfault = { kind = \"status\", status = 401 }";
    let package = Package::of("flow-approval").with("script.toml", fault);
    let run = all_four(Run::over(&[package.path()])).args(["--budget", "120s", "--no-render"]);
    for trial in run.go().with_code(0).trials() {
        let name = trial.outcome.trial.to_string();
        let Ending::ModelError { cause, message } = &trial.outcome.ending else {
            panic!("{name}: {:?}", trial.outcome.ending)
        };
        assert_eq!((*cause, trial.outcome.r#try), (ModelCause::Request, 1), "{name}: {message}");
        assert!(message.contains("A scripted fault"), "{name}: {message}");
    }
}

#[test]
fn a_provider_that_speaks_another_format_is_refused_before_anything_is_begun() {
    for (harness, model, both, mend) in [
        ("gemini", "openai/gpt-5.5", "harness `gemini` speaks gemini_generate", "`gemini`"),
        ("qwen", "anthropic/claude-opus-5-5", "provider `anthropic` only anthropic_messages", "`openrouter`"),
    ] {
        let out = tempfile::tempdir().unwrap();
        let output = proctor()
            .args(["run", "--tasks", &sample("flow-approval").to_string_lossy(), "--harness", harness])
            .args(["--model", model, "--out", &out.path().join("run").to_string_lossy()])
            .env("OPENAI_API_KEY", Digest::of(b"no key").hex())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(both) && said.contains(mend) && said.contains("LiteLLM"), "{said}");
        assert!(!out.path().join("run").exists(), "nothing half-made");
    }
}
