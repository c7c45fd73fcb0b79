use std::collections::BTreeMap;

use proctor_traces::{OffsetMs, Source, Timestamp, ToolCall, ToolResult, WireFormat};
use serde_json::json;

use super::*;

fn said(text: &str) -> EventKind {
    EventKind::AgentText { text: text.to_owned() }
}

fn ran(output: &str, status: ToolStatus) -> [EventKind; 2] {
    let id = ToolCallId("1".into());
    let call = ToolCall { id: id.clone(), name: "Bash".into(), input: Value::Null, parent: None };
    [EventKind::ToolStarted(call), EventKind::ToolFinished(ToolResult::new(id, status, Some(0), output))]
}

fn list(last: u32) -> String {
    let lines: Vec<String> = (1..=last).map(|n| format!("{n}. number {n}\n")).collect();
    lines.concat()
}

fn exchange(id: u64, [start, first, end]: [i64; 3], how: ExchangeEnd) -> Exchange {
    Exchange {
        id,
        wire: Some(WireFormat::OpenaiResponses),
        method: "POST".into(),
        path: "/v1/responses".into(),
        started_at: Timestamp::from_millis(0),
        start_ms: OffsetMs(start),
        first_byte_ms: Some(OffsetMs(first)),
        end_ms: OffsetMs(end),
        status: Some(200),
        end: how,
        error: None,
        model: Some("m".into()),
        served_model: Some("m-2026".into()),
        fingerprint: None,
        usage: Some(Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() }),
        step: None,
        divergence: None,
        headers: BTreeMap::new(),
        truncated: false,
        request: Digest::of(b""),
        request_bytes: 0,
        response: Digest::of(b""),
        response_bytes: 0,
    }
}

fn evidence(kinds: impl IntoIterator<Item = EventKind>) -> Evidence {
    let event = |(seq, kind)| TraceEvent {
        seq,
        at: Timestamp::from_millis(0),
        offset_ms: OffsetMs(0),
        turn: 1,
        source: Source::AgentStream,
        untimed: false,
        kind,
    };
    Evidence {
        events: (0..).zip(kinds).map(event).collect(),
        exchanges: vec![exchange(0, [0, 8, 9], ExchangeEnd::Complete)],
        pictures: vec![SentPicture { exchange: 2, media_type: "image/png".into(), bytes: 15_640 }],
    }
}

fn goods(evidence: &Evidence) -> [bool; 4] {
    evidence.proofs().map(|proof| proof.good)
}

#[test]
fn all_four_are_seen() {
    let [started, finished] = ran("preflight ok\n", ToolStatus::Ok);
    let end = format!("{}\n**{LAST_LINE}.**\n", list(120));
    let whole = evidence([said("Hello."), started, finished, said("It shows 4817."), said(&end)]);
    assert_eq!(goods(&whole), [true; 4], "{:?}", whole.proofs());
    assert_eq!(
        whole.proofs()[2].seen,
        "image/png of 15640 bytes went to the model in request 2, and it read 4817"
    );
}

#[test]
fn nothing_is_good_of_an_agent_that_never_answered() {
    let silent = Evidence::default();
    assert_eq!(goods(&silent), [false; 4]);
    assert_eq!(silent.service().first_byte_ms_median, None);
}

#[test]
fn a_command_that_is_only_quoted_or_refused_has_not_run() {
    for (output, status) in [
        ("printf 'preflight %s\\n' ok", ToolStatus::Ok),
        ("preflight ok", ToolStatus::Declined),
        ("preflight ok", ToolStatus::Unfinished),
    ] {
        let [started, finished] = ran(output, status);
        let seen = evidence([started, finished]).proofs()[1].clone();
        assert!(!seen.good && seen.seen.contains("1 tool calls returned"), "{seen:?}");
    }
}

#[test]
fn a_picture_that_the_model_did_not_see_is_bad() {
    assert!(!goods(&evidence([said("I cannot see pictures.")]))[2]);
    let unsent = Evidence { pictures: Vec::new(), ..evidence([said("4817, I read it with a program.")]) };
    assert!(!goods(&unsent)[2]);
}

#[test]
fn a_long_answer_counts_only_when_it_is_whole() {
    let end = format!("{LAST_LINE}.");
    for (text, says) in [
        (list(120), "without the last line"),
        (format!("{}{end}", list(60)), "lines 1 to 60 of 120, then"),
        (format!("{}{end}", list(120).replace("\n7. ", "\n")), "lines 1 to 6 of 120"),
        (format!("{}{end}\n…and more", list(120)), "without the last line"),
    ] {
        let seen = evidence([said(&text)]).proofs()[3].clone();
        assert!(!seen.good && seen.seen.contains(says), "{seen:?}");
    }
    let mut cut = evidence([said(&format!("{}{end}", list(120)))]);
    cut.exchanges[0].end = ExchangeEnd::UpstreamBroke;
    assert!(!goods(&cut)[3]);
}

#[test]
fn pictures_are_found_in_all_wire_formats() {
    let body = json!([
        {"type": "function_call_output", "output": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAAAA=="}}]},
        {"type": "tool_result", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "AAAAAAA="}}]},
        {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAAAAAA"}}]},
        {"type": "input_image", "image_url": "https://example.org/x.png"},
        {"type": "text", "text": "data:image/png;base64,AAAA"},
    ]);
    let mut seen = Vec::new();
    find_pictures(&body, &mut |media_type, bytes| seen.push((media_type.to_owned(), bytes)));
    let expected = [("image/png", 3), ("image/jpeg", 4), ("image/webp", 5), ("image/png", 6)];
    assert_eq!(seen, expected.map(|(media_type, bytes)| (media_type.to_owned(), bytes)));
}

#[test]
fn waiting_is_told_as_median_and_maximum() {
    let mut evidence = evidence([]);
    evidence.exchanges = [[0, 8, 9], [10, 30, 31], [40, 45, 46]]
        .into_iter()
        .zip(0..)
        .map(|(times, id)| exchange(id, times, ExchangeEnd::Complete))
        .collect();
    let service = evidence.service();
    assert_eq!((service.first_byte_ms_median, service.first_byte_ms_max), (Some(8), Some(20)));
    assert_eq!(service.served_models, ["m-2026"]);
    assert_eq!((service.tokens.input_tokens, service.tokens.output_tokens), (30, 6));
}
