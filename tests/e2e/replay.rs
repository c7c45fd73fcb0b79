//! Recorded trials, played to the same real agent CLIs again: without a provider, a script, or a key.

use std::fs;
use std::path::Path;

use proctor_traces::{Digest, Ending, Exchange, ExchangeEnd, ModelCause};

use crate::support::{Package, Run, Trial, proctor, sample};

const TASK: &str = "flow-approval";
const CLIS: [(&str, &str); 2] = [("codex", "gpt-5.5"), ("claude-code", "claude-opus-5-5")];

/// A script with calls side by side, a failure of the server that the CLI gets over, and an artifact that nobody could
/// guess. What the tools print differs from run to run.
const SCRIPT: &str = r#"
[[step]]
reasoning = "I look around first."
calls = [{ shell = "date; ls -la --full-time; python3 -c 'import time; print(object(), time.time())'" }, { shell = "sleep 0.3; mktemp" }, { view_image = "source.png" }]

[[step]]
text = "The server is not well."
calls = [{ write = "artifact.dot", content = "digraph { a -> b [label=\"7f3e\"] }" }]
fault = { kind = "status", status = 500, times = 1 }

[[step]]
calls = [{ shell = "cat artifact.dot; date +%s" }]

[[step]]
text = "Done."
"#;

fn package() -> Package {
    Package::of(TASK).with("script.toml", SCRIPT)
}

/// One trial of `harness` on `package` with `model`.
fn run(package: &Path, harness: &str, model: &str) -> Run {
    Run::over(&[package]).args(["--harness", harness, "--model", model, "--no-render"])
}

fn recorded(package: &Package, harness: &str) -> Trial {
    let trial = run(package.path(), harness, "script").go().with_code(0).trial();
    assert_eq!(trial.ending(), "completed");
    trial
}

fn replay_of(trial: &Trial) -> String {
    format!("replay:{}", trial.folder.path().display())
}

/// The calls as all witnesses have them: id, name and input of each, in order, and what came of it but for its output.
fn calls(trial: &Trial) -> Vec<String> {
    let trace = trial.folder.testimony().unwrap().trace().unwrap();
    let calls = trace.calls.iter();
    calls
        .map(|call| {
            format!("{} {} {} {:?} {:?}", call.id.0, call.name, call.input, call.status, call.exit_code)
        })
        .collect()
}

/// What was handed over by the gateway, in order of arrival.
fn responses(trial: &Trial) -> Vec<(Option<u16>, Digest, ExchangeEnd)> {
    let mut exchanges = trial.exchanges();
    exchanges.sort_by_key(|exchange| exchange.id);
    exchanges.iter().map(|it| (it.status, it.response, it.end)).collect()
}

fn diverged(trial: &Trial) -> Vec<Exchange> {
    trial.exchanges().into_iter().filter(|it| it.divergence.is_some()).collect()
}

fn message(trial: &Trial) -> String {
    match &trial.outcome.ending {
        Ending::ModelError { cause: ModelCause::Replay, message } => message.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_calls_and_the_same_bytes_again() {
    let package = package();
    for (harness, model) in CLIS {
        let first = recorded(&package, harness);
        // Nothing of the script is left to fall back on.
        let bare = Package::of(TASK);
        fs::remove_file(bare.path().join("script.toml")).unwrap();
        let ended = run(bare.path(), harness, &replay_of(&first));
        let ended = ended.go().with_code(0);
        let again = ended.trial();

        assert_eq!(again.ending(), "completed", "{harness}");
        assert_eq!(calls(&again), calls(&first), "{harness}");
        assert!(calls(&again).len() >= 5, "{harness}");
        assert_eq!(again.artifact(), first.artifact(), "{harness}");
        assert!(String::from_utf8_lossy(&again.artifact()).contains("7f3e"), "{harness}");
        assert_eq!(responses(&again), responses(&first), "{harness}");
        assert!(responses(&again).iter().any(|(status, ..)| *status == Some(500)), "{harness}");
        assert_eq!(again.outcome.tokens, first.outcome.tokens, "{harness}");
        assert!(again.exchanges().iter().all(|it| it.step.is_none()), "{harness}: no script was played");
        assert!(diverged(&again).is_empty(), "{harness}");
        let notices = again.notices();
        let all = responses(&first).len();
        let says = format!(
            "{all} model requests answered from the recording, 0 of them other than recorded; 0 recorded"
        );
        assert!(notices.iter().any(|it| it.starts_with(&says)), "{harness}: {notices:?}");

        // It goes by a name of its own, and the run knows what was played.
        assert_eq!(again.outcome.trial.method().as_str(), format!("{harness}-replay-{TASK}-1"));
        let record = proctor_store::RunDir::open(&ended.run.out()).unwrap().record().unwrap();
        let method = &record.methods[0];
        assert_eq!(method.model, Some(format!("replay/{model}")), "as it was recorded");
        let digest = Digest::of(&first.bytes("model/exchanges.jsonl")).to_string();
        assert_eq!((&method.settings["recording"], method.settings["replay"].as_str()), (&digest, "strict"));
    }
}

#[test]
fn another_prompt_is_an_error_that_shows_the_difference_and_is_not_tried_again() {
    let package = package();
    for (harness, _) in CLIS {
        let first = recorded(&package, harness);
        // Its prompt names another file.
        let run = run(&sample("chart-visitors"), harness, &replay_of(&first));
        let run = run.args(["--retries", "2", "--backoff", "10ms"]);
        let ended = run.go().with_code(0);
        let trial = ended.trial();
        assert_eq!((trial.ending(), trial.outcome.r#try), ("model_error", 1), "{harness}");
        let said = message(&trial);
        assert!(said.starts_with("the replay diverged from exchange 0 (POST /"), "{harness}: {said}");
        assert!(
            said.contains("$.") && said.contains("recorded …") && said.contains("sent …"),
            "{harness}: {said}"
        );

        let exchanges = diverged(&trial);
        assert!(!exchanges.is_empty(), "{harness}");
        for exchange in &exchanges {
            assert_eq!((exchange.status, exchange.end), (Some(400), ExchangeEnd::Diverged), "{harness}");
        }
        assert_eq!(exchanges[0].divergence.as_deref(), Some(said.as_str()), "{harness}");
        let reply = trial.bytes(&format!("model/blobs/{}", exchanges[0].response.hex()));
        assert!(
            String::from_utf8_lossy(&reply).contains("the replay diverged"),
            "{harness}: the CLI was told"
        );
        let trace = fs::read_to_string(trial.path("trace.jsonl")).unwrap();
        assert!(trace.contains("\"notice\",\"text\":\"the replay diverged"), "{harness}");
        assert!(
            ended.stderr().contains("the replay diverged from exchange 0"),
            "{harness}: {}",
            ended.stderr()
        );
    }
}

#[test]
fn what_a_tool_does_otherwise_is_seen_at_the_next_request_or_let_pass_and_counted() {
    let package = package();
    for (harness, _) in CLIS {
        let first = recorded(&package, harness);
        // The picture that the agent looks at is another.
        let other = Package::of(TASK);
        fs::copy(sample("chart-visitors").join("source.png"), other.path().join("source.png")).unwrap();
        let strict = run(other.path(), harness, &replay_of(&first)).go().trial();
        let said = message(&strict);
        assert!(said.starts_with("the replay diverged from exchange 1 ("), "{harness}: {said}");

        let lenient = format!("{}?lenient", replay_of(&first));
        let lenient = run(other.path(), harness, &lenient).go().trial();
        assert_eq!(lenient.ending(), "completed", "{harness}");
        assert_eq!(lenient.artifact(), first.artifact(), "{harness}");
        let (different, all) = (diverged(&lenient).len(), responses(&first).len());
        assert!(
            different > 0 && diverged(&lenient).iter().all(|it| it.end == ExchangeEnd::Complete),
            "{harness}"
        );
        let says = format!(
            "{all} model requests answered from the recording, {different} of them other than recorded"
        );
        let notices = lenient.notices();
        assert!(notices.iter().any(|it| it.starts_with(&says)), "{harness}: {notices:?}");
        assert_eq!(lenient.outcome.trial.method().as_str(), format!("{harness}-replay-{TASK}-1-lenient"));
    }
}

#[test]
fn a_recording_that_ends_early_has_run_out_in_either_mode() {
    let first = recorded(&package(), "codex");
    let log = first.path("model/exchanges.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&log, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    let bare = package();
    for mode in ["", "?lenient"] {
        let trial = run(bare.path(), "codex", &format!("{}{mode}", replay_of(&first))).go().trial();
        let all = lines.len() - 1;
        assert_eq!(
            message(&trial),
            format!("the replay has run out: all {all} recorded responses to POST /responses were given")
        );
        assert_eq!(trial.artifact(), first.artifact(), "what was done until then stays");
    }
}

#[test]
fn a_recording_that_cannot_be_played_is_said_before_anything_begins() {
    let package = package();
    let first = recorded(&package, "codex");
    let refused = |model: &str, harness: &str, says: &str| {
        let run = run(package.path(), harness, model);
        let ended = run.go().with_code(2);
        assert!(ended.stderr().contains(says), "{}", ended.stderr());
        assert!(!run.out().exists(), "nothing half-made");
    };
    let folder = first.folder.path().display();
    refused(
        &format!("replay:{folder}"),
        "claude-code",
        "recorded in openai_responses, and claude-code speaks",
    );
    refused(&format!("replay:{folder}/raw"), "codex", "there is no recording of a model in it");
    refused("replay:", "codex", "replay:TRIAL");

    let log = first.path("model/exchanges.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"request\":", "\"truncated\":true,\"request\":", 1)).unwrap();
    refused(&format!("replay:{folder}"), "codex", "of the response of exchange 0 only the first");
    fs::write(&log, "[[[").unwrap();
    refused(&format!("replay:{folder}"), "codex", "line 1 is not an exchange");
}

#[test]
fn a_plan_shows_what_it_replays_and_a_file_finds_it_from_where_it_lies() {
    let first = recorded(&package(), "codex");
    let folder = first.folder.path();
    let experiment = folder.parent().unwrap().join("again.toml");
    let tasks = sample(TASK);
    let text = format!(
        "[tasks]\npaths = [{tasks:?}]\n[[methods]]\nharness = \"codex\"\nmodel = \"replay:1\"\n[ceilings]\nmax_cost = 1.0\n"
    );
    fs::write(&experiment, text).unwrap();
    let plan = |more: &[&str]| {
        let mut command = proctor();
        let output =
            command.args(["run", experiment.to_str().unwrap(), "--print-plan"]).args(more).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let digest = Digest::of(&first.bytes("model/exchanges.jsonl")).to_string();
    let plain = plan(&[]);
    let line = plain.lines().find(|line| line.contains(" replays ")).unwrap();
    assert!(line.contains("of gpt-5.5, strict") && line.ends_with(&digest), "{line}");
    let json: serde_json::Value = serde_json::from_str(&plan(&["--json"])).unwrap();
    assert_eq!(json["recordings"][0]["digest"], digest);
    assert_eq!(json["plan"]["methods"][0]["model"], format!("replay:{}", folder.display()));
    assert_eq!(json["plan"]["methods"][0]["id"], format!("codex-replay-{TASK}-1"));
}
