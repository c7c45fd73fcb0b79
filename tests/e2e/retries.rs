//! Only what is not the agent's is tried again, and every try keeps its evidence (DESIGN §3.7).

use proctor_store::TryRecord;
use proctor_traces::{Digest, Ending, ModelCause};

use crate::support::{Package, Run, Trial, world};

const TRIAL: &str = "vao/flow-approval/command/1";
const WRITE: &str = "echo 'digraph { a }' > artifact.dot";

/// A container that has the name which try `number` of the run's trial will want, removed when dropped.
struct Squatter(String);

impl Squatter {
    fn on(run: &Run, number: u32) -> Self {
        let digest = Digest::of(format!("{}\0{TRIAL}", run.out().display()).as_bytes()).hex();
        let name = format!("proctor-{}.{number}-{}", TRIAL.replace('/', "_"), &digest[..8]);
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
