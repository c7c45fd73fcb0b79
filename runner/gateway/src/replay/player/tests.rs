use proctor_traces::ExchangeEnd;

use super::super::cassette::tests::Tape;
use super::*;

const ROUTE: &str = "POST /responses";

fn asks(text: &str) -> Value {
    json!({"model": "m", "input": [{"type": "message", "content": text}]})
}

fn three() -> Tape {
    Tape::new().with(&asks("a"), "first a", |_| {}).with(&asks("a"), "second a", |_| {}).with(
        &asks("b"),
        "b",
        |_| {},
    )
}

fn playing(tape: &Tape, mode: ReplayMode) -> Replayer {
    Replayer::new(Replay { cassette: Arc::new(tape.load().unwrap()), mode })
}

/// What it gives: the body, `~` before it if the request differed, or the message.
fn given(replayer: &Replayer, route: &str, asked: &Value) -> String {
    let body = |recorded: &Recorded| match &recorded.reply {
        Recording::Response { body, .. } => String::from_utf8(body.to_vec()).unwrap(),
        other => format!("{other:?}"),
    };
    match replayer.find(route, asked.to_string().as_bytes()) {
        Found::Same(recorded) => body(recorded),
        Found::Next(recorded, _) => format!("~{}", body(recorded)),
        Found::Nothing(message) => message,
    }
}

#[test]
fn equal_requests_are_answered_in_order_and_others_whenever_they_come() {
    // A request that was repeated after an error gets the error first, as it did.
    let replayer = playing(&three(), ReplayMode::Strict);
    assert_eq!(given(&replayer, ROUTE, &asks("b")), "b");
    assert_eq!(given(&replayer, ROUTE, &asks("a")), "first a");
    assert_eq!(replayer.tally().left, 1);
    assert_eq!(given(&replayer, ROUTE, &asks("a")), "second a");
    assert_eq!(
        given(&replayer, ROUTE, &asks("a")),
        "the replay has run out: all 3 recorded responses to POST /responses were given"
    );
    assert_eq!(replayer.tally(), ReplayTally { answered: 3, ..ReplayTally::default() });
}

#[test]
fn strictly_another_request_is_told_from_the_one_that_it_is_most_like() {
    let tape = three().with(&json!({"model": "m", "input": [], "n": [1, 2]}), "n", |_| {});
    let replayer = playing(&tape, ReplayMode::Strict);
    let asked = json!({"model": "m", "input": [], "n": [1, 3]});
    assert_eq!(
        given(&replayer, ROUTE, &asked),
        "the replay diverged from exchange 3 (POST /responses): $.n[1]: recorded 2, sent 3"
    );
    // It has taken nothing away.
    assert_eq!(replayer.tally(), ReplayTally { left: 4, ..ReplayTally::default() });
    assert_eq!(given(&replayer, ROUTE, &asks("a")), "first a");
}

#[test]
fn leniently_it_is_given_the_next_one_and_counted() {
    let replayer = playing(&three(), ReplayMode::Lenient);
    assert_eq!(given(&replayer, ROUTE, &asks("c")), "~first a");
    assert_eq!(given(&replayer, ROUTE, &asks("b")), "b");
    assert_eq!(given(&replayer, ROUTE, &asks("d")), "~second a");
    assert!(given(&replayer, ROUTE, &asks("b")).contains("has run out"));
    let tally = replayer.tally();
    assert_eq!((tally.answered, tally.different, tally.left), (3, 2, 0));
    let first = tally.first_difference.unwrap();
    assert!(first.ends_with("$.input[0].content: recorded \"a\", sent \"c\""), "{first}");
}

#[test]
fn routes_are_apart() {
    let tape =
        three().with(&asks("a"), "counted", |it| it.path = "/v1/messages/count_tokens?beta=true".into());
    let replayer = playing(&tape, ReplayMode::Lenient);
    let counting = route("POST", "/v1/messages/count_tokens");
    assert_eq!(given(&replayer, &counting, &asks("x")), "~counted");
    assert!(given(&replayer, &counting, &asks("x")).contains("all 1 recorded responses"));
    assert_eq!(given(&replayer, "GET /models", &Value::Null), "the replay has no recorded GET /models");
}

#[test]
fn where_the_recorded_trial_ended_the_recording_does_too() {
    for mode in [ReplayMode::Strict, ReplayMode::Lenient] {
        let tape = three().with(&asks("z"), "half", |it| it.end = ExchangeEnd::Deadline);
        let replayer = playing(&tape, mode);
        assert_eq!(
            given(&replayer, ROUTE, &asks("z")),
            "the replay has run out: the recorded trial ended before exchange 3 was answered"
        );
    }
}

#[test]
fn names_that_the_harness_made_up_are_followed() {
    let after = |number: u32, then: &[Value]| {
        let output = json!({"type": "function_call_output", "call_id": "1", "output": format!("Process running with session ID {number}\n")});
        let input = [&[output][..], then].concat();
        json!({"model": "m", "input": input})
    };
    let poll =
        |number: u32| json!({"type": "function_call", "arguments": format!("{{\"session_id\":{number}}}")});
    let tape = Tape::new().with(&after(11111, &[]), &poll(11111).to_string(), |_| {}).with(
        &after(11111, &[poll(11111)]),
        "done",
        |_| {},
    );
    let replayer = playing(&tape, ReplayMode::Strict);
    let Found::Same(recorded) = replayer.find(ROUTE, after(22222, &[]).to_string().as_bytes()) else {
        panic!("it is the same")
    };
    let Recording::Response { body, .. } = &recorded.reply else { panic!("it was answered") };
    assert_eq!(replayer.lock().names.as_now(body), poll(22222).to_string().as_bytes());
    assert_eq!(given(&replayer, ROUTE, &after(22222, &[poll(22222)])), "done");
}
