//! What each reader makes of streams of every kind: written by hand after real ones, with the events that a careful
//! reading finds beside them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use pretty_assertions::assert_eq;
use proctor_harnesses::{AgentVerdict, HarnessId, StreamEnd, StreamReader};
use proctor_traces::{EventKind, ModelCause, Usage};

/// One line for an event, short enough to compare by eye.
fn show(event: &EventKind) -> String {
    match event {
        EventKind::AgentText { text } => format!("text {text}"),
        EventKind::Reasoning { text } => format!("reasoning {text}"),
        EventKind::ToolStarted(call) => {
            let parent = call.parent.as_ref().map(|parent| format!(" in {}", parent.0)).unwrap_or_default();
            format!("start {} {} {}{parent}", call.id.0, call.name, call.input)
        }
        EventKind::ToolFinished(result) => {
            let exit = result.exit_code.map(|code| format!(" exit {code}")).unwrap_or_default();
            format!(
                "end {} {:?}{exit} {:?} {}B",
                result.id.0, result.status, result.output, result.output_bytes
            )
        }
        EventKind::Notice { text } => format!("notice {text}"),
        EventKind::Raw { text } => format!("raw {text}"),
        other => format!("{other:?}"),
    }
}

/// Feeds one fixture to `reader` as one turn.
fn play(reader: &mut dyn StreamReader, fixture: &str) -> (Vec<String>, StreamEnd) {
    let path = format!("{}/tests/fixtures/{fixture}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut events = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        events.extend(reader.line(line).iter().map(show));
    }
    let end = reader.end();
    events.extend(end.events.iter().map(show));
    (events, end)
}

fn reader(harness: &str) -> Box<dyn StreamReader> {
    harness.parse::<HarnessId>().unwrap().harness().stream()
}

/// A fixture on its own, as the first turn of a trial.
fn read(fixture: &str) -> (Vec<String>, StreamEnd) {
    let (harness, _) = fixture.split_once('/').unwrap();
    play(&mut *reader(harness), fixture)
}

fn tokens(input: u64, cached: u64, output: u64, reasoning: u64) -> Usage {
    Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        output_tokens: output,
        reasoning_tokens: reasoning,
    }
}

fn model_failed(cause: ModelCause, message: &str) -> AgentVerdict {
    AgentVerdict::ModelFailed { cause, message: message.to_owned() }
}

#[test]
fn codex_calls_in_parallel_end_in_any_order() {
    let (events, end) = read("codex/parallel");
    assert_eq!(
        events,
        [
            "notice No metadata for this model.",
            "reasoning Look first.",
            "text Two at once.",
            r#"start turn-1/item_3 exec_command {"command":"/bin/bash -lc 'sleep 1; echo B'"}"#,
            r#"start turn-1/item_4 exec_command {"command":"/bin/bash -lc 'exit 3'"}"#,
            r#"end turn-1/item_4 Failed exit 3 "oops\n" 5B"#,
            r#"end turn-1/item_3 Ok exit 0 "B\n" 2B"#,
            "notice Reconnecting... 1/5 (stream disconnected before completion)",
            "text Done.",
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (13, 0, 0));
    assert_eq!(end.session_id.as_deref(), Some("01a2-first"));
    assert_eq!(end.usage, Some(tokens(2100, 1800, 100, 20)));
}

#[test]
fn a_resumed_codex_restarts_its_ids_and_goes_on_counting_tokens() {
    let mut reader = reader("codex");
    play(&mut *reader, "codex/parallel");
    let (events, end) = play(&mut *reader, "codex/resumed");
    assert_eq!(events[0], r#"start turn-2/item_3 exec_command {"command":"/bin/bash -lc ls"}"#);
    assert_eq!(end.usage, Some(tokens(3100, 2700, 60, 0)));
    assert_eq!(end.recognised, 5);
    // Another session counts from zero.
    let (_, end) = play(&mut *reader, "codex/abandoned");
    assert_eq!(end.usage, Some(tokens(10, 0, 1, 0)));
}

#[test]
fn codex_has_more_tools_than_the_shell() {
    let (events, end) = read("codex/tools");
    assert_eq!(
        events,
        [
            r#"start turn-1/item_0.1 update_plan {"plan":[{"completed":false,"text":"draft"}]}"#,
            r#"end turn-1/item_0.1 Ok "" 0B"#,
            r#"start turn-1/item_1 apply_patch {"changes":[{"kind":"add","path":"/work/artifact.html"}]}"#,
            r#"end turn-1/item_1 Ok "" 0B"#,
            r#"start turn-1/item_0.2 update_plan {"plan":[{"completed":true,"text":"draft"}]}"#,
            r#"end turn-1/item_0.2 Ok "" 0B"#,
            r#"start turn-1/item_2 web_search {"query":"dot rank"}"#,
            r#"end turn-1/item_2 Ok "" 0B"#,
            r#"start turn-1/item_3 read {"arguments":{"path":"a"},"server":"files"}"#,
            r#"end turn-1/item_3 Failed "no such file" 12B"#,
            r#"start turn-1/item_4 exec_command {"command":"rm -rf /"}"#,
            r#"end turn-1/item_4 Declined "" 0B"#,
            r#"raw {"type":"item.completed","item":{"id":"item_5","type":"hologram","depth":3}}"#,
        ]
    );
    assert_eq!((end.recognised, end.unknown, end.malformed), (12, 1, 0));
}

#[test]
fn a_killed_codex_leaves_its_calls_unfinished_and_says_nothing() {
    let (events, end) = read("codex/killed");
    assert_eq!(
        events[2..],
        [
            r#"raw {"type":"item.compl"#,
            r#"end turn-1/item_0 Unfinished "" 0B"#,
            r#"end turn-1/item_1 Unfinished "" 0B"#,
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Silent);
    assert_eq!((end.recognised, end.malformed, end.usage), (4, 1, None));
}

#[test]
fn a_command_that_codex_abandons_is_unfinished_though_the_turn_is_complete() {
    let (events, end) = read("codex/abandoned");
    assert_eq!(events.last().unwrap(), r#"end turn-1/item_0 Unfinished "" 0B"#);
    assert_eq!(end.verdict, AgentVerdict::Finished);
}

#[test]
fn a_turn_that_failed_names_whose_failure_it_was() {
    use ModelCause::{Provider, Request};
    let cases = [
        ("codex/rate-limited", Provider, "exceeded retry limit, last status: 429 Too Many Requests"),
        (
            "codex/refused",
            Request,
            "unexpected status 401 Unauthorized: no, url: http://127.0.0.1:8080/v1/responses",
        ),
        ("claude-code/refused", Request, "Failed to authenticate. API Error: 401 no"),
        ("claude-code/unreachable", Provider, "API Error: Unable to connect"),
    ];
    for (fixture, cause, message) in cases {
        let (events, end) = read(fixture);
        assert_eq!(end.verdict, model_failed(cause, message), "{fixture}");
        assert!(events.iter().all(|event| event.starts_with("notice ")), "{fixture}: {events:?}");
    }
}

#[test]
fn claude_results_come_in_the_order_of_completion() {
    let (events, end) = read("claude-code/parallel");
    assert_eq!(
        events,
        [
            "reasoning Look first.",
            "text Two at once.",
            r#"start toolu_a Bash {"command":"sleep 1; echo A"}"#,
            r#"start toolu_b Bash {"command":"exit 3"}"#,
            r#"end toolu_b Failed exit 3 "Exit code 3\noops" 16B"#,
            r#"end toolu_a Ok exit 0 "A" 1B"#,
            "notice asking the model again (1 of 10): rate_limit, status 429",
            r#"start toolu_c Read {"file_path":"/work/source.png"}"#,
            r#"end toolu_c Ok "[image image/png, 3 bytes]" 3B"#,
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (12, 0, 0));
    assert_eq!(end.session_id.as_deref(), Some("c1a0-de"));
    assert_eq!(end.usage, Some(tokens(2110, 1800, 100, 7)));
}

#[test]
fn claude_may_give_two_results_in_one_turn() {
    let (events, end) = read("claude-code/two-results");
    assert_eq!(
        events,
        [
            r#"start toolu_0 Bash {"command":"sleep 20"}"#,
            "notice in the background: wait",
            r#"end toolu_0 Ok "moved to the background" 23B"#,
            "notice task completed: wait is over",
            "text end",
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!(end.usage, Some(tokens(3200, 0, 150, 0)));
}

#[test]
fn the_calls_of_a_sub_agent_know_their_parent() {
    let (events, _) = read("claude-code/sub-agent");
    assert_eq!(
        events,
        [
            r#"start toolu_t Task {"prompt":"measure"}"#,
            r#"start toolu_s Bash {"command":"ls"} in toolu_t"#,
            r#"end toolu_s Ok exit 0 "a" 1B"#,
            r#"end toolu_t Ok "12\npx" 4B"#,
        ]
    );
}

#[test]
fn an_interrupted_claude_has_failed_though_it_exits_with_0() {
    let (events, end) = read("claude-code/interrupted");
    assert_eq!(events[1], r#"end toolu_0 Declined "The user doesn't want this." 27B"#);
    let message = "error_during_execution aborted_tools".to_owned();
    assert_eq!(end.verdict, AgentVerdict::Failed { message });
}

#[test]
fn a_killed_claude_has_counted_each_message_once() {
    let (events, end) = read("claude-code/killed");
    assert_eq!(events.last().unwrap(), r#"end toolu_0 Unfinished "" 0B"#);
    assert_eq!(end.verdict, AgentVerdict::Silent);
    assert_eq!(end.usage, Some(tokens(100, 0, 1, 0)));
}

#[test]
fn what_no_rule_knows_is_kept_beside_what_is_known() {
    let (events, end) = read("claude-code/unknown");
    assert_eq!(events[0], r#"raw {"type":"system","subtype":"moonphase","phase":3}"#);
    assert_eq!(events[1], "text known");
    assert!(events[2].starts_with("raw "));
    assert!(events[3].contains("toolu_never"));
    assert_eq!(events[4], "raw not json");
    assert_eq!((end.recognised, end.unknown, end.malformed), (2, 3, 1));
    assert_eq!(end.verdict, AgentVerdict::Failed { message: "error_max_turns".to_owned() });
}

#[test]
fn an_id_that_a_model_uses_twice_names_two_calls() {
    let mut reader = reader("claude-code");
    play(&mut *reader, "claude-code/killed");
    let (events, _) = play(&mut *reader, "claude-code/killed");
    assert_eq!(events[1], r#"start toolu_0#2 Bash {"command":"sleep 47"}"#);
    assert_eq!(events[2], r#"end toolu_0#2 Unfinished "" 0B"#);
}

#[test]
fn a_stream_of_another_cli_is_an_error_and_not_an_empty_trace() {
    for (harness, foreign) in [("codex", "claude-code/parallel"), ("claude-code", "codex/parallel")] {
        let (_, end) = play(&mut *reader(harness), foreign);
        let lines = end.unknown;
        assert!(lines > 10);
        let message = format!("0 of {lines} lines on stdout were recognised");
        assert_eq!(end.verdict, AgentVerdict::Failed { message }, "{harness}");
    }
    let nothing = reader("codex").end();
    assert_eq!(nothing.verdict, AgentVerdict::Silent);
}

#[test]
fn a_line_of_three_megabytes_is_one_event() {
    let text = "x".repeat(3 << 20);
    let line = format!(
        r#"{{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":"{text}"}}}}"#
    );
    let events = reader("codex").line(line.as_bytes());
    assert!(matches!(&events[..], [EventKind::AgentText { text: read }] if read.len() == text.len()));
    let garbage = reader("codex").line(text.as_bytes());
    assert!(matches!(&garbage[..], [EventKind::Raw { text: kept }] if kept.len() == 64 << 10));
}

#[test]
fn opencode_tells_of_a_call_when_it_is_over() {
    let (events, end) = read("opencode/parallel");
    assert_eq!(
        events,
        [
            "reasoning Look first.",
            "text Two at once.",
            r#"start call_b bash {"command":"exit 3"}"#,
            r#"end call_b Failed exit 3 "oops" 4B"#,
            r#"start call_a read {"filePath":"/work/ref.png"}"#,
            r#"end call_a Ok "Image read" 13B"#,
            "start call_c edit {}",
            r#"end call_c Declined "The user rejected permission to use this tool" 45B"#,
            "text Done.",
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (10, 0, 0));
    assert_eq!(end.session_id.as_deref(), Some("ses_1"));
    assert_eq!(end.usage, Some(tokens(2100, 900, 65, 5)));
}

#[test]
fn the_end_of_opencode_is_the_reason_of_its_last_step() {
    let (events, end) = read("opencode/refused");
    assert_eq!(events, ["notice no such key"]);
    assert_eq!(end.verdict, model_failed(ModelCause::Request, "no such key"));
    let (_, end) = read("opencode/cut");
    let silence = "the provider's answer ended without saying why";
    assert_eq!(end.verdict, model_failed(ModelCause::Provider, silence));
    let (_, end) = read("opencode/killed");
    assert_eq!(end.verdict, AgentVerdict::Silent, "a step that makes calls is no end");
    assert_eq!((end.recognised, end.unknown, end.malformed), (2, 1, 1));
}

#[test]
fn gemini_says_in_pieces_what_becomes_one_text() {
    let (events, end) = read("gemini/tools");
    assert_eq!(
        events,
        [
            "text I will write the page.",
            r#"start shell__1 run_shell_command {"command":"ls"}"#,
            r#"start read__2 read_file {"file_path":"/work/none.png"}"#,
            r#"end read__2 Failed "File not found." 15B"#,
            r#"end shell__1 Ok "ref.png" 7B"#,
            "text Done.",
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (10, 0, 0));
    assert_eq!(end.session_id.as_deref(), Some("aea8f02a-7bc1"));
    assert_eq!(end.usage, Some(tokens(3000, 700, 160, 10)));

    let (events, end) = read("gemini/refused");
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(matches!(end.verdict, AgentVerdict::ModelFailed { cause: ModelCause::Request, .. }));

    let (events, end) = read("gemini/killed");
    let unfinished = [
        r#"start shell__1 run_shell_command {"command":"make"}"#,
        "text While it ru",
        r#"end shell__1 Unfinished "" 0B"#,
    ];
    assert_eq!(events, unfinished);
    assert_eq!(end.verdict, AgentVerdict::Silent);
}

#[test]
fn qwen_counts_tokens_in_another_way_than_claude() {
    let (events, end) = read("qwen/tools");
    assert_eq!(
        events,
        [
            "text I look.",
            r#"start call_1 run_shell_command {"command":"ls"}"#,
            r#"end call_1 Ok "ref.png" 7B"#,
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (6, 0, 0));
    assert_eq!(end.usage, Some(tokens(2000, 400, 60, 0)), "what was cached is part of the input");
}

#[test]
fn pi_is_judged_by_the_last_message_of_the_model() {
    let (events, end) = read("pi/retried");
    assert_eq!(
        events,
        [
            "notice 500 down",
            "notice asking the model again (1 of 3): 500 down",
            "reasoning Look first.",
            "text Two at once.",
            r#"start call_a bash {"command":"exit 3"}"#,
            r#"start call_b read {"path":"ref.png"}"#,
            r#"end call_b Ok "Read image\n[image image/png, 3 bytes]" 13B"#,
            r#"end call_a Failed exit 3 "oops\n\nCommand exited with code 3" 32B"#,
            "text Done.",
        ]
    );
    assert_eq!(end.verdict, AgentVerdict::Finished);
    assert_eq!((end.recognised, end.unknown, end.malformed), (17, 0, 0));
    assert_eq!(end.usage, Some(tokens(2000, 400, 60, 0)));
    let (_, end) = read("pi/given-up");
    assert_eq!(end.verdict, model_failed(ModelCause::Provider, "429 slow down"));
}
