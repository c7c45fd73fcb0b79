//! The dispatcher with agents that only pretend, on real results directories.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

mod bench;

use std::fs;
use std::time::Duration;

use proctor_engine::{Ceiling, EngineEvent, Input, Need, OnMissing, RunEnd};
use proctor_store::{Price, TryRecord};
use proctor_traces::{ArtifactState, Ending, Limit, Usage};

use crate::bench::{Bench, method, tokens};

fn need(of: &str, on_missing: OnMissing) -> Need {
    Need {
        method: of.to_owned().try_into().unwrap(),
        artifact: None,
        name: Some("source.dot".into()),
        on_missing,
    }
}

#[tokio::test]
async fn a_trial_is_given_what_another_left_and_only_when_that_is_there() {
    let mut bench = Bench::new(3);
    bench.jobs = 8;
    // The one that needs is first in the plan.
    bench.add(method("edit", |it| it.needs = Some(need("draw", OnMissing::Fail))));
    bench.add(method("draw", |_| {}));
    let ran = bench.run(|_, _| Ending::Completed).await;
    assert_eq!(ran.end, RunEnd::Finished);
    for task in 0..3 {
        let outcome = bench.outcome(&format!("vao/t{task}/edit/1")).unwrap();
        let consumed = outcome.consumed.unwrap();
        assert_eq!(consumed.trial.to_string(), format!("vao/t{task}/draw/1"));
        assert_eq!((consumed.artifact.as_str(), consumed.name.as_str()), ("artifact.dot", "source.dot"));
        let source = bench.outcome(&consumed.trial.to_string()).unwrap();
        let ArtifactState::Present { digest, .. } = source.artifacts[0].state else {
            panic!("it is present")
        };
        assert_eq!(consumed.digest, Some(digest));
        let given = ran.inputs.iter().find(|(id, _)| *id == outcome.trial).unwrap();
        let Some(Input::Given(given)) = &given.1 else { panic!("{:?}", given.1) };
        assert_eq!(given.bytes, fs::read(bench.dir.trial(&source.trial).artifact("artifact.dot")).unwrap());
    }
}

#[tokio::test]
async fn where_the_other_left_nothing_the_plan_says_what_happens() {
    let mut bench = Bench::new(1);
    bench.add(method("draw", |_| {}));
    for (name, on_missing) in [("e", OnMissing::Empty), ("s", OnMissing::Skip), ("f", OnMissing::Fail)] {
        bench.add(method(name, |it| it.needs = Some(need("draw", on_missing))));
    }
    let nothing_drawn =
        |trial: &str, _: u32| if trial.contains("/draw/") { Ending::NoArtifact } else { Ending::Completed };
    let ran = bench.run(nothing_drawn).await;
    assert_eq!(ran.end, RunEnd::Finished);
    let input = |name: &str| &ran.inputs.iter().find(|(id, _)| id.method().as_str() == name).unwrap().1;
    assert!(
        matches!(input("e"), Some(Input::Given(given)) if given.bytes.is_empty() && given.consumed.digest.is_none())
    );
    assert!(matches!(input("f"), Some(Input::Missing(trial)) if trial.method().as_str() == "draw"));
    assert!(bench.outcome("vao/t0/s/1").is_none(), "left out, it stays unresolved");
    assert!(
        ran.events
            .iter()
            .any(|it| matches!(it, EngineEvent::Missing { trial, .. } if trial.method().as_str() == "s"))
    );
    // A rerun of the source is what counts from then on.
    bench.dir.rerun(&"vao/t0/draw/1".parse().unwrap(), "it was empty").unwrap();
    let ran = bench.run(|_, _| Ending::Completed).await;
    assert_eq!(ran.finished(), ["vao/t0/draw/1.1", "vao/t0/s/1"]);
    assert_eq!(bench.outcome("vao/t0/s/1").unwrap().consumed.unwrap().trial.to_string(), "vao/t0/draw/1.1");
}

#[tokio::test]
async fn what_a_method_may_use_ends_its_trials_and_nobody_elses() {
    let mut bench = Bench::new(10);
    let price = Price { input: 1_000_000.0, cached_input: None, output: 0.0 };
    bench.add(method("frugal", |it| it.ceiling_total = Ceiling { tokens: Some(250), cost: None }));
    bench.add(method("rich", |_| {}));
    bench.add(method("paid", |it| {
        (it.price, it.ceiling_total) = (Some(price), Ceiling { tokens: None, cost: Some(300.0) });
    }));
    bench.usage = tokens(100, 0);
    let ran = bench.run(|_, _| Ending::Completed).await;
    assert_eq!((bench.done("frugal"), bench.done("rich"), bench.done("paid")), (3, 10, 3));
    let told: Vec<_> = ran
        .events
        .iter()
        .filter_map(|it| match it {
            EngineEvent::CeilingReached { method, limit, left } => {
                Some((method.clone()?.to_string(), *limit, *left))
            }
            _ => None,
        })
        .collect();
    assert_eq!(told, [("frugal".into(), Limit::Tokens, 7), ("paid".into(), Limit::Cost, 7)]);
    // What was used before counts.
    let ran = bench.run(|_, _| Ending::Completed).await;
    assert_eq!(ran.finished(), Vec::<String>::new());
    bench.ceiling = Ceiling { tokens: Some(1), cost: None };
    bench.usage = Usage::default();
    bench.add(method("more", |_| {}));
    assert_eq!(bench.run(|_, _| Ending::Completed).await.finished(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_asked_for_while_the_run_goes_on_is_made_by_the_same_process() {
    let mut bench = Bench::new(1);
    bench.add(method("draw", |_| {}));
    bench.add(method("other", |_| {}));
    bench.add(method("edit", |it| it.needs = Some(need("draw", OnMissing::Fail))));
    let dir = bench.dir.clone();
    let script = move |trial: &str, _: u32| {
        let asked = match trial {
            // Before another needs it, and when all else is done.
            "vao/t0/other/1" => Some("vao/t0/draw/1"),
            "vao/t0/edit/1" => Some("vao/t0/other/1"),
            _ => None,
        };
        if let Some(asked) = asked {
            dir.rerun(&asked.parse().unwrap(), "somebody looked").unwrap();
        }
        Ending::Completed
    };
    // Whoever waited for what nobody runs would wait for ever.
    let ran = tokio::time::timeout(Duration::from_secs(60), bench.run(script)).await.unwrap();
    assert_eq!(ran.end, RunEnd::Finished);
    let all = ["draw/1", "draw/1.1", "edit/1", "other/1", "other/1.1"].map(|it| format!("vao/t0/{it}"));
    assert_eq!(ran.finished(), all);
    let asked = ran.events.iter().filter(|it| matches!(it, EngineEvent::Requested { .. })).count();
    assert_eq!(asked, 2);
    assert_eq!(
        bench.outcome("vao/t0/edit/1").unwrap().consumed.unwrap().trial.to_string(),
        "vao/t0/draw/1.1"
    );
}

#[tokio::test]
async fn nobody_waits_for_what_will_not_come() {
    let mut bench = Bench::new(3);
    bench.usage = tokens(100, 0);
    bench.add(method("draw", |it| it.ceiling_total = Ceiling { tokens: Some(150), cost: None }));
    bench.add(method("edit", |it| it.needs = Some(need("draw", OnMissing::Empty))));
    bench.add(method("polish", |it| it.needs = Some(need("edit", OnMissing::Fail))));
    let run = bench.run(|_, _| Ending::Completed);
    let ran = tokio::time::timeout(Duration::from_secs(60), run).await.unwrap();
    assert_eq!((bench.done("draw"), bench.done("edit"), bench.done("polish")), (2, 2, 2));
    let missing = ran.events.iter().filter_map(|it| match it {
        EngineEvent::Missing { trial, .. } => Some(trial.to_string()),
        _ => None,
    });
    assert_eq!(missing.collect::<Vec<_>>(), ["vao/t2/edit/1", "vao/t2/polish/1"]);
}

fn ours(message: &str) -> Ending {
    Ending::InfraError { stage: "pretending".into(), message: message.into() }
}

#[tokio::test]
async fn a_full_disk_ends_no_trial_and_the_run_goes_on_when_there_is_room() {
    let mut bench = Bench::new(6);
    bench.retries = 3;
    bench.add(method("m", |_| {}));
    let full = |trial: &str, _: u32| match trial {
        "vao/t0/m/1" => Ending::Completed,
        _ => ours("writing trace.jsonl: No space left on device (os error 28)"),
    };
    let ran = bench.run(full).await;
    assert!(matches!(ran.end, RunEnd::DiskFull { .. }), "{:?}", ran.end);
    assert_eq!((bench.done("m"), ran.inputs.len()), (1, 2), "one was tried once, and no other");
    let tried = bench.dir.trial(&"vao/t1/m/1".parse().unwrap()).path().join("tries/1/try.json");
    let tried: TryRecord = serde_json::from_slice(&fs::read(tried).unwrap()).unwrap();
    assert_eq!(tried.ending.name(), "infra_error");
    let ran = bench.run(|_, _| Ending::Completed).await;
    assert_eq!((ran.end.clone(), ran.finished().len(), bench.done("m")), (RunEnd::Finished, 5, 6));
    assert_eq!(bench.outcome("vao/t1/m/1").unwrap().r#try, 2);
}

#[tokio::test]
async fn a_run_in_which_everything_fails_on_our_side_is_stopped() {
    let mut bench = Bench::new(20);
    bench.add(method("m", |_| {}));
    let ran = bench.run(|_, _| ours("the engine does not answer")).await;
    assert_eq!(ran.end, RunEnd::Failing { trials: 5, message: "the engine does not answer".into() });
    assert_eq!(bench.done("m"), 5, "what was tried in vain is on record");
    // From the eleventh on each fails: t1, t10, t11, …
    let mut bench = Bench::new(20);
    bench.add(method("m", |_| {}));
    let now_and_then =
        |trial: &str, _: u32| if trial.contains("t1") { ours("now and then") } else { Ending::Completed };
    assert_eq!(
        bench.run(now_and_then).await.end,
        RunEnd::Failing { trials: 5, message: "now and then".into() }
    );
    let mut bench = Bench::new(9);
    bench.add(method("m", |_| {}));
    assert_eq!(bench.run(now_and_then).await.end, RunEnd::Finished);
}

#[tokio::test]
async fn only_failures_of_ours_are_tried_again_and_so_often() {
    let mut bench = Bench::new(3);
    bench.retries = 3;
    bench.add(method("m", |_| {}));
    let ran = bench
        .run(|trial, number| match trial {
            "vao/t0/m/1" if number < 4 => ours("again"),
            "vao/t1/m/1" => ours("always"),
            "vao/t2/m/1" => Ending::TimedOut,
            _ => Ending::Completed,
        })
        .await;
    assert_eq!(ran.end, RunEnd::Finished);
    let told = |trial| bench.outcome(trial).map(|it| (it.ending.name(), it.r#try));
    assert_eq!(told("vao/t0/m/1"), Some(("completed", 4)));
    assert_eq!(told("vao/t1/m/1"), Some(("infra_error", 4)));
    assert_eq!(told("vao/t2/m/1"), Some(("timed_out", 1)));
    assert!(bench.outcome("vao/t0/m/1").unwrap().timing.backoff_ms.0 >= 3, "three pauses");
}

#[tokio::test]
async fn a_part_of_ours_that_breaks_off_costs_one_trial_and_no_slot() {
    let mut bench = Bench::new(4);
    bench.add(method("m", |_| {}));
    let ran = bench
        .run(|trial, _| if trial == "vao/t1/m/1" { panic!("as a test") } else { Ending::Completed })
        .await;
    assert_eq!((ran.end, bench.done("m")), (RunEnd::Finished, 3));
    assert!(
        ran.events.iter().any(|it| matches!(it, EngineEvent::Failed { trial, .. } if trial.task() == "t1"))
    );
}
