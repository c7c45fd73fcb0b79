//! Only what is not the agent's is tried again, and every try keeps its evidence (DESIGN §3.7).

use proctor_store::TryRecord;
use proctor_traces::{Digest, Ending, ModelCause};

use crate::live::Provider;
use crate::support::{Package, Run, Trial, names_in, record_of, sample, world};

const TRIAL: &str = "vao/flow-approval/command/1";
const WRITE: &str = "echo 'digraph { a }' > artifact.dot";

/// A container that has the name which a try of a trial will want, removed when dropped.
struct Squatter(String);

impl Squatter {
    fn on(run: &Run, number: u32) -> Self {
        Self::at(run, TRIAL, number)
    }

    fn at(run: &Run, trial: &str, number: u32) -> Self {
        let digest = Digest::of(format!("{}\0{trial}", run.out().display()).as_bytes()).hex();
        let name = format!("proctor-{}.{number}-{}", trial.replace('/', "_"), &digest[..8]);
        world::docker(&["create", "--name", &name, "--network", "none", &world::image(), "/bin/true"]);
        Self(name)
    }
}

impl Drop for Squatter {
    fn drop(&mut self) {
        world::docker(&["rm", "--force", &self.0]);
    }
}

fn try_record(trial: &Trial, number: u32) -> TryRecord {
    serde_json::from_slice(&trial.bytes(&format!("tries/{number}/try.json"))).unwrap()
}

#[test]
fn a_failure_of_ours_is_tried_again() {
    let run = Run::over_one().shell(WRITE).args(["--retries", "1", "--backoff", "200ms"]);
    let _occupied = Squatter::on(&run, 1);
    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("completed", 2), "{}", run.stderr());
    let timing = trial.outcome.timing;
    assert_eq!(timing.backoff_ms.0, 200);
    assert!(timing.backoff_ms <= timing.queue_ms, "{timing:?}");
    let first = try_record(&trial, 1);
    let Ending::InfraError { stage, message } = &first.ending else { panic!("{first:?}") };
    assert_eq!(stage, "opening the room");
    assert!(message.contains("already in use"), "{message}");
    assert!(trial.path("tries/1/prompt/TASK.md").exists(), "it keeps its evidence");
    assert_eq!(try_record(&trial, 2).ending, Ending::Completed);
}

#[test]
fn a_failure_of_ours_that_stays_is_final_and_unresolved() {
    let run = Run::over_one().shell(WRITE).args(["--retries", "1", "--backoff", "50ms"]);
    let _occupied = [Squatter::on(&run, 1), Squatter::on(&run, 2)];
    let trial = run.go().with_code(4).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("infra_error", 2));
    assert_eq!([1, 2].map(|number| try_record(&trial, number).ending.name()), ["infra_error"; 2]);
    assert!(trial.outcome.started_at.is_none() && trial.outcome.frozen_at.is_none());
}

#[test]
fn a_failure_of_the_agents_is_not_tried_again() {
    let trial = Run::over_one().shell("exit 7").args(["--retries", "3"]).go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try), ("agent_error", 1));
}

#[test]
fn an_outage_of_the_provider_is_tried_again_and_stays_unresolved() {
    let trial = codex_refused_with(429, 4);
    let Ending::ModelError { cause, .. } = &trial.outcome.ending else {
        panic!("{:?}", trial.outcome.ending)
    };
    assert_eq!((*cause, trial.outcome.r#try), (ModelCause::Provider, 2));
    assert_eq!([1, 2].map(|number| try_record(&trial, number).ending.name()), ["model_error"; 2]);
    assert!(trial.path("tries/1/model/exchanges.jsonl").exists(), "the first try's exchanges are kept");
}

#[test]
fn a_request_that_the_provider_refuses_is_a_result() {
    let trial = codex_refused_with(401, 0);
    let Ending::ModelError { cause, .. } = &trial.outcome.ending else {
        panic!("{:?}", trial.outcome.ending)
    };
    assert_eq!((*cause, trial.outcome.r#try), (ModelCause::Request, 1));
}

/// Codex with a provider that answers nothing but `status`.
fn codex_refused_with(status: u16, code: i32) -> Trial {
    let script = format!(
        "[[step]]\ntext = \"never said\"\nfault = {{ kind = \"status\", status = {status}, retry_after = \"0s\" }}\n"
    );
    let package = Package::of("flow-approval").with("script.toml", &script);
    let run = Run::over(&[package.path()])
        .args(["--harness", "codex", "--model", "script", "--no-render", "--budget", "120s"])
        .args(["--retries", "1", "--backoff", "100ms"]);
    let trial = run.go().with_code(code).trial();
    assert!(!trial.exchanges().is_empty());
    assert!(trial.exchanges().iter().all(|it| it.status == Some(status)), "{:?}", trial.exchanges());
    trial
}

#[test]
fn when_one_trial_after_the_other_fails_on_our_side_the_run_stops() {
    let run = Run::over_one().shell(WRITE).args(["--attempts", "8", "--retries", "0"]);
    // The first one does not count: it did not fail.
    let occupied: Vec<Squatter> = (2..=8)
        .map(|attempt| Squatter::at(&run, &format!("vao/flow-approval/command/{attempt}"), 1))
        .collect();
    let ended = run.start_as("failing", &[]).end();
    let said = ended.stderr();
    assert!(ended.code.is_some_and(|code| code != 0), "{:?}: {said}", ended.code);
    assert!(said.contains("no more trials are started: 5 in a row failed on our side"), "{said}");
    assert!(said.contains("is already"), "it says with what: {said}");
    ended.leaves_nothing();
    let endings = |trials: &[Trial]| trials.iter().map(Trial::ending).collect::<Vec<_>>();
    assert_eq!(endings(&ended.trials()), [&["completed"][..], &["infra_error"; 5]].concat());
    let begun = names_in(&run.out().join("trials/vao/flow-approval/command"));
    assert_eq!(begun.len(), 6, "the others are not begun: {begun:?}");

    drop(occupied);
    // What has failed has failed, until `proctor rerun`; the rest is not lost.
    let ended = run.start_as("mended", &[]).end().with_code(4);
    assert_eq!(
        endings(&ended.trials()),
        [&["completed"][..], &["infra_error"; 5], &["completed"; 2]].concat()
    );
}

/// Refuses in a way that the client gives up for, then in one that it waits out.
const OUTAGE: &str = r#"
[[step]]
calls = [{ write = "artifact.dot", content = "graph { a -- b }" }]
fault = { kind = "status", status = 429, times = 2 }

[[step]]
text = "Done."
fault = { kind = "status", status = 503, times = 3 }
"#;

#[test]
fn an_outage_is_waited_out_within_a_try_and_between_tries() {
    let provider = Provider::playing(OUTAGE);
    let file = provider.file("bearer");
    let run = Run::over(&[&sample("arch-replicas")])
        .args(["--harness", "codex", "--model", "mylab/gpt-5.5", "--no-render", "--budget", "120s"])
        .args(["--providers", &file.path().to_string_lossy(), "--retries", "3", "--backoff", "300ms"])
        .env("TEST_KEY", "any")
        .env("NO_PROXY", "127.0.0.1");
    let trial = run.go().with_code(0).trial();
    let outcome = &trial.outcome;
    assert_eq!(trial.ending(), "completed", "{}", run.stderr());
    assert!(outcome.r#try > 1, "the client gives up after fewer: {}", run.stderr());

    let mut refused = 0;
    for number in 1..outcome.r#try {
        let one = trial.path(&format!("tries/{number}"));
        let record = record_of(&one).unwrap();
        let Ending::ModelError { cause, .. } = record.ending else { panic!("{:?}", record.ending) };
        assert_eq!(cause, ModelCause::Provider);
        // A try that is given up knows what it has lost as well.
        let of_try = record.outcome.expect("what it would have been");
        let spans = spans(&std::fs::read_to_string(one.join("model/exchanges.jsonl")).unwrap());
        assert!(spans.iter().all(Span::is_refused));
        is_about(of_try.provider_wait_ms.0, lost(&spans));
        refused += spans.len();
    }
    let spans = spans(&String::from_utf8(trial.bytes("model/exchanges.jsonl")).unwrap());
    refused += spans.iter().filter(|span| span.is_refused()).count();
    assert_eq!(refused, 2 + 3);
    assert!(outcome.provider_wait_ms.0 > 0, "the last try was refused too");
    is_about(outcome.provider_wait_ms.0, lost(&spans));
    assert!(outcome.provider_wait_ms < outcome.timing.agent_ms);
    assert_eq!(outcome.timing.backoff_ms.0, 300 * u64::from(outcome.r#try - 1));
    assert!(outcome.timing.backoff_ms <= outcome.timing.queue_ms);
}

/// One exchange with the model, as its line says.
struct Span {
    start: i64,
    end: i64,
    status: Option<u16>,
}

impl Span {
    fn is_refused(&self) -> bool {
        matches!(self.status, Some(429 | 503))
    }
}

fn spans(lines: &str) -> Vec<Span> {
    let exchanges = lines.lines().map(|line| serde_json::from_str::<proctor_traces::Exchange>(line).unwrap());
    let asked = exchanges.filter(|it| it.wire.is_some());
    asked.map(|it| Span { start: it.start_ms.0, end: it.end_ms.0, status: it.status }).collect()
}

/// Milliseconds from each refusal's request to the next request, by another way than the runner's: these come one after
/// the other.
fn lost(spans: &[Span]) -> i64 {
    let next = |at: usize| spans.get(at + 1).map_or(spans[at].end, |next| next.start);
    (0..spans.len()).filter(|at| spans[*at].is_refused()).map(|at| next(at) - spans[at].start).sum()
}

/// Each moment is cut to a whole millisecond.
fn is_about(found: u64, expected: i64) {
    assert!(i64::try_from(found).unwrap().abs_diff(expected) <= 10, "{found} and {expected}");
}
