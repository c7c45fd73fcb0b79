//! What a gateway has recorded, played by another one.

use std::sync::Arc;

use proctor_gateway::{Backend, Cassette, ExchangeRecord, GatewayConfig, Replay, ReplayMode};
use proctor_traces::{Digest, Exchange, ExchangeEnd, OffsetMs, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Room, messages, room, scripted};

/// Three answers of a server: a rate limit, one that breaks off, none at all; then what was asked for.
const TROUBLED: &str = r#"
    [[step]]
    text = "I look."
    calls = [{ shell = "ls" }]
    fault = { kind = "status", status = 429, retry_after = "3s", times = 1 }
    [[step]]
    text = "Half of this is lost."
    fault = { kind = "truncate", after_bytes = 300, times = 1 }
"#;

/// Asks for all of it: status, `retry-after`, and the body as far as it came.
async fn conversation(room: &Room) -> Vec<(u16, Option<String>, Vec<u8>, bool)> {
    let mut answers = Vec::new();
    for results in [0, 0, 1, 1] {
        let mut response = room.post("/v1/messages?beta=true", &messages(results)).send().await.unwrap();
        let retry = response.headers().get("retry-after").map(|it| it.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let mut body = Vec::new();
        let whole = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        answers.push((status, retry, if whole { body } else { Vec::new() }, whole));
    }
    answers
}

/// Puts records where a trial keeps them.
fn kept(records: &[ExchangeRecord]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("blobs")).unwrap();
    let blob = |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        std::fs::write(folder.path().join("blobs").join(digest.hex()), bytes).unwrap();
        digest
    };
    let lines = records.iter().map(|record| {
        let exchange = Exchange {
            id: record.id,
            wire: record.wire,
            method: record.method.clone(),
            path: record.path.clone(),
            started_at: Timestamp::from_millis(0),
            start_ms: OffsetMs(0),
            first_byte_ms: None,
            end_ms: OffsetMs(0),
            status: record.status,
            end: record.end,
            error: record.error.clone(),
            model: record.model.clone(),
            served_model: None,
            fingerprint: None,
            usage: None,
            step: record.step,
            divergence: record.divergence.clone(),
            headers: record.headers.clone(),
            truncated: record.truncated,
            request: blob(&record.request),
            request_bytes: record.request.len() as u64,
            response: blob(&record.response),
            response_bytes: record.response.len() as u64,
        };
        serde_json::to_string(&exchange).unwrap() + "\n"
    });
    std::fs::write(folder.path().join("exchanges.jsonl"), lines.collect::<String>()).unwrap();
    folder
}

async fn records(room: &Room, count: u64) -> Vec<ExchangeRecord> {
    let mut records = Vec::new();
    for id in 0..count {
        records.push(room.memory.record(id).await);
    }
    records
}

async fn playing(records: &[ExchangeRecord], mode: ReplayMode) -> Room {
    let cassette = Arc::new(Cassette::load(kept(records).path()).unwrap());
    room(Backend::Replay(Replay { cassette, mode }), GatewayConfig::BODY_CAP).await
}

#[tokio::test]
async fn a_client_sees_the_same_again_failures_and_all() {
    let first = scripted(TROUBLED).await;
    let seen = conversation(&first).await;
    assert_eq!(
        seen.iter().map(|it| (it.0, it.3)).collect::<Vec<_>>(),
        [(429, true), (200, true), (200, false), (200, true)]
    );
    let recorded = records(&first, 4).await;
    assert_eq!(recorded[0].headers["retry-after"], "3");

    let again = playing(&recorded, ReplayMode::Strict).await;
    assert_eq!(conversation(&again).await, seen);
    for (new, old) in records(&again, 4).await.iter().zip(&recorded) {
        assert_eq!((new.status, new.end, &new.response), (old.status, old.end, &old.response));
        assert_eq!((&new.headers, new.usage), (&old.headers, old.usage));
    }
    let tally = again.close().await.0.replay.unwrap();
    assert_eq!((tally.answered, tally.different, tally.left), (4, 0, 0));
}

#[tokio::test]
async fn another_request_is_an_error_or_counted() {
    let first = scripted(TROUBLED).await;
    conversation(&first).await;
    let recorded = records(&first, 4).await;
    let mut other = messages(0);
    other["messages"][0]["content"] = json!("stop");

    let strict = playing(&recorded, ReplayMode::Strict).await;
    let response = strict.post("/v1/messages", &other).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let body: Value = response.json().await.unwrap();
    let said = body["error"]["message"].as_str().unwrap();
    let difference = "the replay diverged from exchange 0 (POST /messages): $.messages[0].content: recorded \"go\", sent \"stop\"";
    assert_eq!(said, format!("proctor gateway: {difference}"));
    let record = strict.memory.record(0).await;
    assert_eq!((record.end, record.divergence.as_deref()), (ExchangeEnd::Diverged, Some(difference)));

    let lenient = playing(&recorded, ReplayMode::Lenient).await;
    assert_eq!(lenient.post("/v1/messages", &other).send().await.unwrap().status(), 429);
    let record = lenient.memory.record(0).await;
    assert_eq!((record.end, record.divergence.as_deref()), (ExchangeEnd::Complete, Some(difference)));
    let alive = lenient.client.get("http://gateway/api/hello").send().await.unwrap();
    assert_eq!(alive.status(), 200);
    let tally = lenient.close().await.0.replay.unwrap();
    assert_eq!((tally.answered, tally.different, tally.left), (1, 1, 3));
    assert_eq!(tally.first_difference.as_deref(), Some(difference));
}

#[tokio::test]
async fn a_response_that_is_not_kept_whole_is_marked_so() {
    let script = proctor_gateway::Script::parse(TROUBLED, std::path::Path::new("")).unwrap();
    let small = room(Backend::Script(Arc::new(script)), 400).await;
    // The request must fit, the response does not.
    let asked = json!({"model": "m", "messages": [{"role": "user", "content": "go"}], "stream": true});
    let response = small.post("/v1/messages", &asked).send().await.unwrap().bytes().await.unwrap();
    assert!(response.len() > 400);
    let record = small.memory.record(0).await;
    assert!(record.truncated && record.response.len() == 400);
    let error = Cassette::load(kept(&[record]).path()).unwrap_err().to_string();
    assert!(error.contains("of the response of exchange 0 only the first 400 bytes were kept"), "{error}");
}
