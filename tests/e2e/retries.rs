//! Only what is not the agent's is tried again, and every try keeps its evidence (DESIGN §3.7).

use proctor_traces::{Ending, ModelCause};

use crate::support::{Package, Run, Trial};

#[test]
fn an_engine_that_refuses_is_ours_and_is_tried_again() {
    // No machine has that many processors: the engine refuses to create the room.
    let run = Run::over_one().shell("true").args(["--cpus", "500", "--retries", "1", "--backoff", "100ms"]);
    let trial = run.go().with_code(4).trial();
    assert!(matches!(&trial.outcome.ending, Ending::InfraError { stage, .. } if stage == "opening the room"));
    assert_eq!(trial.outcome.r#try, 2);
    let backoff = trial.outcome.timing.backoff_ms;
    assert_eq!(backoff.0, 100);
    assert!(backoff <= trial.outcome.timing.queue_ms, "{:?}", trial.outcome.timing);
    assert_eq!(ending_of_try(&trial, 1), "infra_error");
}

#[test]
fn an_outage_of_the_provider_is_tried_again_and_stays_unresolved() {
    let script = "[[step]]\ntext = \"never said\"\nfault = { kind = \"status\", status = 429 }\n";
    let trial = codex_on(script, 4);
    let cause = match &trial.outcome.ending {
        Ending::ModelError { cause, .. } => *cause,
        other => panic!("{other:?}"),
    };
    assert_eq!((cause, trial.outcome.r#try), (ModelCause::Provider, 2));
    assert_eq!(ending_of_try(&trial, 1), "model_error");
    assert!(trial.path("tries/1/model/exchanges.jsonl").is_file(), "the first try's exchanges are kept");
    assert!(trial.exchanges().iter().all(|exchange| exchange.status == Some(429)));
}

#[test]
fn a_request_that_is_refused_is_a_result() {
    let script = "[[step]]\ntext = \"never said\"\nfault = { kind = \"status\", status = 401 }\n";
    let trial = codex_on(script, 0);
    assert!(
        matches!(&trial.outcome.ending, Ending::ModelError { cause: ModelCause::Request, .. }),
        "{:?}",
        trial.outcome.ending
    );
    assert_eq!(trial.outcome.r#try, 1);
}

fn codex_on(script: &str, code: i32) -> Trial {
    let package = Package::of("flow-approval").with("script.toml", script);
    let run = Run::over(&[package.path()]).args([
        "--harness",
        "codex",
        "--model",
        "script",
        "--no-render",
        "--budget",
        "60s",
        "--retries",
        "1",
        "--backoff",
        "100ms",
    ]);
    run.go().with_code(code).trial()
}

fn ending_of_try(trial: &Trial, number: u32) -> String {
    let record = trial.bytes(&format!("tries/{number}/try.json"));
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    record["ending"].as_str().unwrap().to_owned()
}
