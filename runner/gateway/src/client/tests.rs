use std::sync::{Arc, Mutex};

use proctor_traces::ExchangeEnd;
use serde_json::json;

use super::*;
use crate::{Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayConfig, Script};

const WIRES: [WireFormat; 4] = [
    WireFormat::OpenaiResponses,
    WireFormat::OpenaiChat,
    WireFormat::AnthropicMessages,
    WireFormat::GeminiGenerate,
];

#[derive(Default)]
struct Kept(Mutex<Vec<ExchangeRecord>>);

impl ExchangeSink for Kept {
    fn started(&self, _: &ExchangeStarted) {}
    fn finished(&self, exchange: ExchangeRecord) {
        self.0.lock().unwrap().push(exchange);
    }
}

fn question() -> Question {
    Question {
        model: "m".into(),
        system: Some("You judge.".into()),
        parts: vec![
            Part::Text("flow-approval: what is it?".into()),
            Part::Picture { media_type: "image/png", bytes: Bytes::from_static(b"picture") },
        ],
        max_output_tokens: Some(64_000),
        reasoning: Some("xhigh".into()),
        form: Some(Form { name: "verdict".into(), schema: json!({"type": "object"}) }),
        limit_field: LimitField::MaxTokens,
        extra: Map::new(),
    }
}

async fn ask(script: &str, wire: WireFormat) -> (Result<Reply, AskError>, Vec<ExchangeRecord>) {
    let dir = tempfile::tempdir().unwrap();
    let script = Script::parse(script, dir.path()).unwrap();
    let kept = Arc::new(Kept::default());
    let config = GatewayConfig::new(dir.path().join("s"), Backend::Script(Arc::new(script)));
    let gateway = Gateway::open(config, kept.clone()).await.unwrap();
    let patience =
        Patience { timeout: Duration::from_secs(2), retries: 3, backoff: Duration::from_millis(1) };
    let client = ModelClient::new(gateway.socket(), wire, patience).unwrap();
    let reply = client.ask(&question()).await;
    gateway.close().await;
    let records = std::mem::take(&mut *kept.0.lock().unwrap());
    (reply, records)
}

#[tokio::test]
async fn a_question_is_answered_in_every_wire_format() {
    let script = r#"
        [[answer]]
        contains = ["another task"]
        text = "no"
        [[answer]]
        contains = ["You judge.", "flow-approval"]
        text = "{\"verdict\": 1} — ü"
        usage = { input = 7, cached = 2, output = 3 }
    "#;
    for wire in WIRES {
        let (reply, records) = ask(script, wire).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "{\"verdict\": 1} — ü", "{wire:?}");
        assert_eq!(reply.stop, Stop::Complete);
        let usage = reply.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (7, 2, 3));
        assert_eq!(records.len(), 1);
        let sent: Value = serde_json::from_slice(&records[0].request).unwrap();
        assert!(sent.to_string().contains("cGljdHVyZQ=="), "the picture went along");
        assert!(sent.get("temperature").is_none() && sent.get("top_p").is_none());
    }
}

#[tokio::test]
async fn what_fails_for_the_moment_is_asked_again() {
    let script = r#"
        [[answer]]
        times = 1
        text = "x"
        fault = { kind = "status", status = 529 }
        [[answer]]
        times = 1
        text = "this one is cut short"
        fault = { kind = "truncate", after_bytes = 40 }
        [[answer]]
        times = 1
        text = "x"
        fault = { kind = "drop" }
        [[answer]]
        text = "at last"
    "#;
    for wire in WIRES {
        let (reply, records) = ask(script, wire).await;
        let reply = reply.unwrap();
        assert_eq!(reply.text, "at last");
        assert_eq!(reply.failures.len(), 3, "{:?}", reply.failures);
        assert!(reply.failures[0].contains("529"), "{:?}", reply.failures);
        let ends: Vec<_> = records.iter().map(|it| it.end).collect();
        assert_eq!(ends.iter().filter(|it| **it == ExchangeEnd::Complete).count(), 2, "{ends:?}");
    }
}

#[tokio::test]
async fn what_is_refused_is_not_asked_again_and_what_never_works_ends() {
    let refused =
        "[[answer]]\ntext = \"x\"\nfault = { kind = \"status\", status = 400, body = \"no such model\" }";
    let (reply, records) = ask(refused, WireFormat::OpenaiChat).await;
    let error = reply.unwrap_err();
    assert!(
        matches!(&error, AskError::Refused { status: 400, message } if message == "no such model"),
        "{error}"
    );
    assert_eq!(records.len(), 1);
    let busy = "[[answer]]\ntext = \"x\"\nfault = { kind = \"status\", status = 503 }";
    let (reply, records) = ask(busy, WireFormat::OpenaiResponses).await;
    assert!(matches!(reply.unwrap_err(), AskError::Exhausted { attempts: 4, .. }));
    assert_eq!(records.len(), 4);
}

#[test]
fn ends_are_told_apart() {
    let read = |wire, text: &str| reply::read(wire, text.as_bytes()).map(|it| (it.text, it.stop));
    let (chat, messages, responses) =
        (WireFormat::OpenaiChat, WireFormat::AnthropicMessages, WireFormat::OpenaiResponses);
    let ok = |text: &str, stop| Ok((text.to_owned(), stop));
    assert_eq!(
        read(chat, r#"{"choices":[{"message":{"content":"a"},"finish_reason":"length"}]}"#),
        ok("a", Stop::Length)
    );
    assert_eq!(
        read(chat, r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#),
        ok("no", Stop::Refusal)
    );
    assert_eq!(
        read(
            messages,
            r#"{"content":[{"type":"thinking","thinking":"…"},{"type":"text","text":"b"}],"stop_reason":"refusal"}"#
        ),
        ok("b", Stop::Refusal)
    );
    assert_eq!(
        read(
            responses,
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"c"}]}],"error":null}"#
        ),
        ok("c", Stop::Length)
    );
    let gemini = WireFormat::GeminiGenerate;
    assert_eq!(
        read(
            gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"…","thought":true},{"text":"d"}]},"finishReason":"MAX_TOKENS"}]}"#
        ),
        ok("d", Stop::Length)
    );
    assert_eq!(read(gemini, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#), ok("", Stop::Refusal));
    for (wire, text) in [
        (gemini, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"half\"}]}}]}\r\n\r\n"),
        (
            gemini,
            "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n",
        ),
        (messages, "event: error\ndata: {\"type\":\"error\",\"error\":{\"message\":\"overloaded\"}}\n\n"),
        (responses, "data: {\"type\":\"response.created\"}\n\n"),
        (chat, "{\"choices\": [{\"mess"),
        (chat, "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n"),
    ] {
        assert!(matches!(read(wire, text), Err(reply::Fault::Broken(_))), "{text}");
    }
    for text in ["<html>", "", "{}", "[1]"] {
        assert!(matches!(read(chat, text), Err(reply::Fault::Foreign(_))), "{text}");
    }
}
