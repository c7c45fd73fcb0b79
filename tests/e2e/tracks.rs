//! Models without an agent: what they answer becomes an artifact, and all that follows is as with an agent. The model is
//! scripted; socket, exchanges, deadline, evidence and rendering are real.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use proctor_store::RunDir;
use proctor_traces::{ArtifactState, Ending, EventKind, ExchangeEnd, ModelCause};
use tempfile::TempDir;

use crate::support::{Package, Run, Trial, proctor, sample};

const TASK: &str = "flow-approval";

/// A program that draws, and is no answer to the task.
const GRAPH: &str = "digraph { a -> b }\n";

fn fenced(program: &str) -> String {
    format!("Here it is:\n\n```dot\n{program}```\n")
}

/// A `script.toml` with one answer for all questions.
fn saying(text: &str, more: &str) -> String {
    format!("[[answer]]\n{more}\ntext = '''\n{text}'''\n")
}

/// The sample task with this script.
fn package(script: &str) -> Package {
    Package::of(TASK).with("script.toml", script)
}

fn native(package: &Package) -> Run {
    Run::over(&[package.path()]).args(["--track", "native", "--model", "script"])
}

/// A run whose only trial's ending this is, with nothing rendered.
fn ending_of(script: &str) -> Trial {
    let package = package(script);
    let run = native(&package).args(["--no-render"]);
    run.go().with_code(0).trial()
}

fn hidden(name: &str) -> String {
    fs::read_to_string(sample(TASK).join("hidden").join(name)).unwrap()
}

#[test]
fn a_reply_becomes_the_artifact_and_is_rendered_judged_and_reported() {
    let package = package(&saying(&fenced(&hidden("target.dot")), "usage = { input = 1200, output = 90 }"));
    let run = native(&package);
    let ended = run.go().with_code(0);
    let trial = ended.trial();
    assert_eq!(trial.ending(), "completed");
    assert_eq!(String::from_utf8(trial.artifact()).unwrap(), hidden("target.dot"));
    assert_eq!(trial.history().len(), 1);
    let outcome = &trial.outcome;
    assert_eq!(outcome.trial.method().as_str(), "native-script");
    assert_eq!((outcome.exchanges, outcome.tokens.input_tokens, outcome.tokens.output_tokens), (1, 1200, 90));
    assert!(outcome.overrun_ms.is_some_and(|ms| ms < 0) && outcome.freeze.is_none());
    let [exchange] = trial.exchanges().try_into().unwrap();
    assert_eq!((exchange.end, exchange.status), (ExchangeEnd::Complete, Some(200)));
    let request = String::from_utf8(trial.bytes(&format!("model/blobs/{}", exchange.request.hex()))).unwrap();
    assert!(request.contains("data:image/png;base64,") && !request.contains("max_output_tokens"));
    assert!(!request.contains(TASK), "the name of the task is nobody's affair");
    let kinds: Vec<String> = trial
        .trace()
        .into_iter()
        .map(|event| serde_json::to_value(&event.kind).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "turn_started",
        "prompt",
        "model_request",
        "model_response",
        "agent_text",
        "notice",
        "artifact_changed",
        "turn_finished",
    ];
    assert_eq!(kinds, expected);
    let prompt = String::from_utf8(trial.bytes("prompt/prompt.txt")).unwrap();
    assert!(prompt.contains("marked `dot`") && prompt.contains("Graphviz"), "{prompt}");

    // It is drawn as the reference is, and judged as any other.
    let picture = trial.bytes("render/output.png");
    assert!(picture == fs::read(sample(TASK).join("hidden/target.png")).unwrap());
    let (out, packages) = (run.out(), package.path().to_string_lossy().into_owned());
    let out = out.to_string_lossy();
    let said = prints(&["judge", &out, "--tasks", &packages]);
    assert!(said.contains("1 judged"), "{said}");
    let score = RunDir::open(&run.out()).unwrap().trial(&outcome.trial).score().unwrap().unwrap();
    assert!(score.points.iter().all(|point| point.satisfied != Some(false)));
    let said = prints(&["report", &out]);
    assert!(said.contains("native-script"), "{said}");
    let said = prints(&["trace", "show", &trial.folder.path().to_string_lossy()]);
    assert!(said.contains("Here it is"), "{said}");
}

/// What a command prints that ends well.
fn prints(arguments: &[&str]) -> String {
    let output = proctor().args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn what_is_no_program_is_no_artifact() {
    let trial = ending_of(&saying("I would move the box to the left.", ""));
    assert_eq!((trial.ending(), trial.state()), ("no_artifact", &ArtifactState::Missing));
    assert!(trial.notices().contains(&"there is no code block in the reply".to_owned()));
    assert_eq!(trial.bytes("raw/reply.txt"), b"I would move the box to the left.");

    // Of several blocks the marked one is taken, and the trace says that there was a choice.
    let several = format!("```json\n{{\"a\": \"a longer one than the graph\"}}\n```\n{}", fenced(GRAPH));
    let trial = ending_of(&saying(&several, ""));
    assert_eq!((trial.ending(), trial.artifact()), ("completed", GRAPH.as_bytes().to_vec()));
    assert!(trial.notices().iter().any(|it| it.contains("one of 2 code blocks")), "{:?}", trial.notices());
}

#[test]
fn an_answer_that_takes_more_than_it_may_is_over_the_limit() {
    let package = package(&saying(&fenced(GRAPH), "usage = { input = 90, output = 20 }"));
    for (most, ending) in [("110", "completed"), ("100", "limit_exceeded")] {
        let run = native(&package).args(["--no-render", "--max-trial-tokens", most]);
        assert_eq!(run.go().with_code(0).trial().ending(), ending, "{most}");
    }
}

#[test]
fn the_samples_play_both_tracks_offline() {
    for (track, artifact) in [("native", "artifact.html"), ("direct", "artifact.png")] {
        let run = Run::over(&[&sample("webpage-cta")]).args(["--track", track, "--model", "script"]);
        let trial = run.go().with_code(0).trial();
        assert_eq!((trial.ending(), trial.outcome.artifacts[0].name.as_str()), ("completed", artifact));
        assert!(trial.path("render/output.png").is_file());
    }
}

#[test]
fn an_answer_that_is_late_is_none() {
    let package = package(&saying(&fenced(GRAPH), "delay = \"60s\""));
    let trial = native(&package).args(["--budget", "700ms"]).go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.state()), ("timed_out", &ArtifactState::Missing));
    assert!(trial.outcome.overrun_ms.is_some_and(|ms| ms >= 0) && trial.outcome.timing.agent_ms.0 >= 700);
    let [exchange] = trial.exchanges().try_into().unwrap();
    assert_eq!((exchange.end, exchange.status), (ExchangeEnd::Deadline, None));
}

#[test]
fn trials_without_a_room_run_side_by_side_though_there_is_one_room() {
    let package = package(&saying(&fenced(GRAPH), "delay = \"4s\""));
    let trials = native(&package).args(["--no-render", "--attempts", "3"]).go().with_code(0).trials();
    let began = trials.iter().filter_map(|it| it.outcome.started_at).max();
    let ended = trials.iter().filter_map(|it| it.outcome.frozen_at).min();
    assert!(trials.len() == 3 && began.unwrap() < ended.unwrap());
}

#[test]
fn a_question_that_is_under_way_is_cancelled_with_the_run_and_asked_anew() {
    let slow = package(&saying(&fenced(GRAPH), "delay = \"60s\""));
    let run = native(&slow).args(["--no-render"]);
    let mut live = run.start();
    let trial = run.out().join(format!("trials/vao/{TASK}/native-script/1"));
    let asked = |_: &Run| {
        let trace = fs::read_to_string(trial.join("tries/1/trace.jsonl"));
        trace.is_ok_and(|text| text.contains("model_request"))
    };
    assert!(live.wait_for(asked).is_none(), "{}", live.stderr());
    live.signal(Signal::SIGINT);
    live.wait_for(|run| run.stderr().contains("no new trials"));
    live.signal(Signal::SIGINT);
    assert!(live.end().with_code(130).trials().is_empty(), "a cancelled trial has no outcome");
    let record = fs::read_to_string(trial.join("tries/1/try.json")).unwrap();
    assert!(record.contains("\"cancelled\""), "{record}");
}

#[test]
fn only_what_is_not_the_models_is_tried_again() {
    for (fault, tries, code, ending) in [
        ("kind = \"status\", status = 429, times = 1", 1, 4, "model_error"),
        ("kind = \"truncate\", after_bytes = 40", 3, 4, "model_error"),
        ("kind = \"status\", status = 503", 3, 4, "model_error"),
        ("kind = \"status\", status = 400", 1, 0, "model_error"),
    ] {
        let package = package(&saying(&fenced(GRAPH), &format!("fault = {{ {fault} }}")));
        // A try has a gateway of its own, and so the script begins anew: what fails once fails in each.
        let retries = if tries == 1 { "0" } else { "2" };
        let run = native(&package).args(["--no-render", "--retries", retries, "--backoff", "1ms"]);
        let trial = run.go().with_code(code).trial();
        assert_eq!(
            (trial.ending(), trial.outcome.r#try),
            (ending, tries),
            "{fault}: {:?}",
            trial.outcome.ending
        );
        let cause = match trial.outcome.ending {
            Ending::ModelError { cause, .. } => cause,
            ref other => panic!("{other:?}"),
        };
        assert_eq!(cause == ModelCause::Request, fault.contains("400"), "{fault}");
    }
}

/// A folder with an experiment over a package.
struct Plan {
    folder: TempDir,
    package: Package,
}

impl Plan {
    fn new(script: &str, methods: &str) -> Self {
        let plan = Self { folder: tempfile::tempdir().unwrap(), package: package(script) };
        let paths = plan.package.path().display();
        fs::write(plan.file(), format!("tasks.paths = [\"{paths}\"]\n{methods}")).unwrap();
        plan
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("e.toml")
    }
}

const STAGES: &str = r#"
[[methods]]
id = "a1"
track = "native"
model = "script"
ablation = "a1"
[[methods]]
id = "a2"
track = "native"
model = "script"
ablation = "a2"
needs = { method = "a1", on_missing = "empty" }
"#;

fn stage(contains: &str, text: &str) -> String {
    saying(text, &format!("contains = [\"{contains}\"]\ndelay = \"300ms\""))
}

fn prompt_of(trial: &Trial) -> String {
    String::from_utf8(trial.bytes("prompt/prompt.txt")).unwrap()
}

fn of_method(trials: &[Trial], method: &str) -> usize {
    trials.iter().position(|it| it.outcome.trial.method().as_str() == method).unwrap()
}

#[test]
fn a_second_stage_edits_what_the_first_made_and_an_empty_program_if_that_is_all() {
    let broken = "digraph { a -> \n";
    for (first, shown) in [
        (fenced(broken), format!("broken:\n\n```dot\n{broken}```\n")),
        ("I cannot see it.".to_owned(), "all that there is of it:\n\n```dot\n```\n".to_owned()),
    ] {
        let script = stage("exactly as it is", &first) + &stage("with the following edit", &fenced(GRAPH));
        let plan = Plan::new(&script, STAGES);
        let run = Run::of_experiment(&plan.file()).args(["--no-render"]);
        let trials = run.go().with_code(0).trials();
        let (a1, a2) = (&trials[of_method(&trials, "a1")], &trials[of_method(&trials, "a2")]);
        assert_eq!((a2.ending(), a2.artifact()), ("completed", GRAPH.as_bytes().to_vec()));
        assert!(prompt_of(a2).contains(&shown), "{}", prompt_of(a2));
        assert!(!prompt_of(a1).contains("edit"), "{}", prompt_of(a1));
        let given = a2.outcome.consumed.as_ref().unwrap();
        assert_eq!(given.trial, a1.outcome.trial);
        assert_eq!(given.digest.is_some(), a1.ending() == "completed");
        let both = a1.outcome.timing.agent_ms.0 + a2.outcome.timing.agent_ms.0;
        assert!(both >= 600 && a2.outcome.time_of_all_stages().0 == both, "{both}");
    }
}

#[test]
fn ablations_give_away_what_they_are_to_and_nothing_else() {
    let package = package(&saying(&fenced(GRAPH), ""));
    for (ablation, there) in [("b", "The source program"), ("c", "Linked updates:")] {
        let run = native(&package).args(["--no-render", "--ablation", ablation]);
        let trial = run.go().with_code(0).trial();
        assert_eq!(trial.outcome.trial.method().as_str(), format!("native-script-{ablation}"));
        let prompt = prompt_of(&trial);
        let source = hidden("source.dot");
        assert_eq!(prompt.contains(source.trim_end()), ablation == "b", "{there}: {prompt}");
        assert_eq!(prompt.contains("Linked updates:"), ablation == "c", "{prompt}");
        assert!(!prompt.contains(hidden("target.dot").trim_end()));
        let record = RunDir::open(&run.out()).unwrap().record().unwrap();
        assert_eq!(record.methods[0].settings["ablation"], ablation);
        assert_eq!(record.methods[0].track, "native");
    }
    let trace =
        |trial: &Trial| trial.trace().iter().any(|it| matches!(it.kind, EventKind::TurnFinished { .. }));
    assert!(trace(&ending_of(&saying("x", ""))));
}

#[test]
fn what_does_not_go_together_is_said_before_anything_runs() {
    for (methods, says) in [
        (
            "[[methods]]\ntrack = \"native\"\nmodel = \"script\"\nablation = \"a2\"",
            "`a2` edits what a method",
        ),
        ("[[methods]]\ntrack = \"direct\"\nmodel = \"script\"\nablation = \"b\"", "there is no program"),
        ("[[methods]]\nharness = \"nop\"\nablation = \"c\"", "nothing on the track `agent`"),
        ("[[methods]]\ntrack = \"native\"\nmodel = \"script\"\nrequest = { messages = [] }", "is said by us"),
        (&STAGES.replace("\"empty\"", "\"skip\""), "or from an empty one"),
    ] {
        let plan = Plan::new("", methods);
        let run = Run::of_experiment(&plan.file());
        let ended = run.go();
        // Long lines are broken.
        let said = ended.stderr().replace("│ ", "").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ended.code == Some(2) && said.contains(says), "{:?}: {said}", ended.code);
    }
}
