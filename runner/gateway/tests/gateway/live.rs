//! The way to a real model server.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::StreamExt;
use proctor_gateway::NetSettings;
use proctor_traces::{ExchangeEnd, WireFormat};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::support::{KEY, Room, live, soon};

/// A model server that answers everything with `answer`; returns its base URL.
pub(crate) async fn server<F, R>(answer: impl Fn(Request) -> F + Clone + Send + Sync + 'static) -> String
where
    F: Future<Output = R> + Send,
    R: IntoResponse,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/base/v1", listener.local_addr().unwrap());
    let app = Router::new().fallback(any(answer));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

async fn room_at(url: &str, more: &str) -> Room {
    let wire = "[\"openai_responses\", \"openai_chat\", \"anthropic_messages\", \"gemini_generate\"]";
    live(&format!("base_url = \"{url}\"\nwire = {wire}\n{more}"), NetSettings::default()).await
}

/// A response whose body is what comes through a channel.
fn channel_body() -> (mpsc::Sender<Result<&'static str, std::io::Error>>, Body) {
    let (sender, receiver) = mpsc::channel(1);
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|item| (item, receiver))
    });
    (sender, Body::from_stream(stream))
}

/// A server that answers once with `body`.
async fn once(body: Body) -> String {
    let body = Arc::new(Mutex::new(Some(body)));
    server(move |request: Request| {
        let body = body.clone();
        async move {
            let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
            Response::new(body.lock().await.take().unwrap())
        }
    })
    .await
}

#[tokio::test]
async fn requests_pass_untouched_but_for_the_key() {
    let (sender, mut seen) = mpsc::channel(1);
    let url = server(move |request: Request| {
        let sender = sender.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            sender.send((head, body)).await.unwrap();
            let answer = r#"{"model":"served","system_fingerprint":"fp","usage":{"prompt_tokens":3,"completion_tokens":2}}"#;
            ([("x-request-id", "r1"), ("set-cookie", "a=b")], answer)
        }
    })
    .await;
    let room = room_at(&url, "headers = { x-title = \"t\" }").await;
    let odd = "{ \"model\" : \"vendor/model:free\",\n \"temperature\": 1.0, \"temperature\": 1e0 }";
    let response = room
        .client
        .post("http://gateway/chat/completions?a=b%20c")
        .header("authorization", "Bearer of-the-agent")
        .header("x-api-key", "of-the-agent")
        .header("accept-encoding", "zstd, gzip")
        .header("openai-beta", "x")
        .body(odd)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["x-request-id"], "r1");
    assert!(!response.headers().contains_key("set-cookie"));
    let answer = response.text().await.unwrap();

    let (head, body) = seen.recv().await.unwrap();
    assert_eq!(head.uri, "/base/v1/chat/completions?a=b%20c");
    assert_eq!(body, odd);
    assert_eq!(head.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(head.headers["accept-encoding"], "identity");
    assert_eq!(
        (&head.headers["openai-beta"], &head.headers["x-title"]),
        (&"x".parse().unwrap(), &"t".parse().unwrap())
    );
    assert!(!head.headers.values().any(|value| value.to_str().unwrap().contains("of-the-agent")));

    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status, record.step), (ExchangeEnd::Complete, Some(200), None));
    assert_eq!(record.model.as_deref(), Some("vendor/model:free"));
    assert_eq!(record.served_model.as_deref(), Some("served"));
    assert_eq!(record.fingerprint.as_deref(), Some("fp"));
    assert_eq!(record.usage.unwrap().input_tokens, 3);
    assert_eq!((record.request, record.response), (Bytes::from(odd), Bytes::from(answer)));
}

#[tokio::test]
async fn the_anthropic_way_to_show_a_key_and_extra_fields() {
    let (sender, mut seen) = mpsc::channel(1);
    let url = server(move |request: Request| {
        let sender = sender.clone();
        async move {
            let (head, body) = request.into_parts();
            sender.send((head, axum::body::to_bytes(body, usize::MAX).await.unwrap())).await.unwrap();
            "{}"
        }
    })
    .await;
    let room = room_at(&url, "auth = \"x-api-key\"\nextra_body = { provider = { only = [\"x\"] } }").await;
    room.post("/v1/messages", &json!({"model": "m"})).send().await.unwrap();
    let (head, body) = seen.recv().await.unwrap();
    assert_eq!(head.headers["x-api-key"], KEY);
    assert!(!head.headers.contains_key("authorization"));
    let sent: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(sent, json!({"model": "m", "provider": {"only": ["x"]}}));
    assert_eq!(
        room.memory.record(0).await.request,
        r#"{"model":"m"}"#,
        "the record holds what the agent sent"
    );

    room.post("/v1/messages/count_tokens", &json!({"model": "m"})).send().await.unwrap();
    let (head, body) = seen.recv().await.unwrap();
    assert_eq!(
        (head.uri.path(), body.as_ref()),
        ("/base/v1/messages/count_tokens", br#"{"model":"m"}"#.as_slice())
    );
}

#[tokio::test]
async fn geminis_way_to_name_a_model_and_to_show_a_key() {
    let (sender, mut seen) = mpsc::channel(1);
    let url = server(move |request: Request| {
        let sender = sender.clone();
        async move {
            sender.send(request.into_parts().0).await.unwrap();
            "data: {\"modelVersion\":\"g-1\",\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3}}\r\n\r\n"
        }
    })
    .await;
    let room = room_at(&url, "auths = { gemini_generate = \"x-goog-api-key\" }").await;
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?key=agent&alt=sse";
    let request = room.post(path, &json!({"contents": []})).header("x-goog-api-key", "agent");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let head = seen.recv().await.unwrap();
    assert_eq!(head.uri, "/base/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse");
    assert_eq!(head.headers["x-goog-api-key"], KEY);
    assert!(!head.headers.contains_key("authorization"), "on this format the key is shown in one way only");
    let record = room.memory.record(0).await;
    assert_eq!(
        (record.wire, record.model.as_deref()),
        (Some(WireFormat::GeminiGenerate), Some("gemini-2.5-pro"))
    );
    assert_eq!(record.served_model.as_deref(), Some("g-1"));
    let usage = record.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), (5, 5, 3));

    room.post("/v1beta/models/gemini-2.5-pro:countTokens?key=agent", &json!({})).send().await.unwrap();
    assert_eq!(seen.recv().await.unwrap().uri, "/base/v1/models/gemini-2.5-pro:countTokens");
    room.post("/v1/chat/completions", &json!({})).send().await.unwrap();
    assert_eq!(seen.recv().await.unwrap().headers["authorization"], format!("Bearer {KEY}"));
}

#[tokio::test]
async fn a_stream_is_passed_on_chunk_by_chunk() {
    let (sender, body) = channel_body();
    let room = room_at(&once(body).await, "").await;
    let mut response = room.post("/v1/responses", &json!({"model": "m"})).send().await.unwrap();
    let mut all = String::new();
    // Each chunk is sent only after the one before it has arrived: a buffer anywhere on the way would never fill.
    for chunk in ["event: a\n", "data: {\"x\":", "1}\n\n", "data: é"] {
        sender.send(Ok(chunk)).await.unwrap();
        assert_eq!(soon(response.chunk()).await.unwrap().unwrap(), chunk);
        all.push_str(chunk);
    }
    drop(sender);
    assert_eq!(soon(response.chunk()).await.unwrap(), None);
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.response), (ExchangeEnd::Complete, Bytes::from(all)));
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_server_too() {
    let (sender, body) = channel_body();
    let room = room_at(&once(body).await, "").await;
    let mut response = room.post("/v1/messages", &json!({})).send().await.unwrap();
    sender.send(Ok("data: 1\n\n")).await.unwrap();
    soon(response.chunk()).await.unwrap();
    drop(response);
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.response), (ExchangeEnd::ClientGone, Bytes::from("data: 1\n\n")));
    soon(sender.closed()).await;
}

#[tokio::test]
async fn a_server_that_breaks_off_breaks_the_connection() {
    let (sender, body) = channel_body();
    let room = room_at(&once(body).await, "").await;
    let mut response = room.post("/v1/messages", &json!({})).send().await.unwrap();
    sender.send(Ok("data: 1\n\n")).await.unwrap();
    soon(response.chunk()).await.unwrap();
    sender.send(Err(std::io::ErrorKind::BrokenPipe.into())).await.unwrap();
    assert!(soon(response.chunk()).await.is_err());
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status), (ExchangeEnd::UpstreamBroke, Some(200)));
    assert_eq!(record.response, "data: 1\n\n");
    assert!(record.error.is_some());
}

#[tokio::test]
async fn closing_ends_a_live_stream_and_its_server() {
    let (sender, body) = channel_body();
    let room = room_at(&once(body).await, "").await;
    let mut response = room.post("/v1/messages", &json!({})).send().await.unwrap();
    sender.send(Ok("data: 1\n\n")).await.unwrap();
    soon(response.chunk()).await.unwrap();
    let (closed, memory, _dir) = room.close().await;
    assert_eq!(closed.exchanges_cut, 1);
    let record = memory.record(0).await;
    assert_eq!((record.end, record.response), (ExchangeEnd::Deadline, Bytes::from("data: 1\n\n")));
    assert!(soon(response.chunk()).await.is_err());
    soon(sender.closed()).await;
}

#[tokio::test]
async fn errors_and_redirects_are_passed_on() {
    let url = server(|request: Request| async move {
        let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
        (
            StatusCode::TOO_MANY_REQUESTS,
            [("retry-after", "17"), ("location", "http://127.0.0.1:1/")],
            "{\"error\":{\"message\":\"slow\"}}",
        )
    })
    .await;
    let room = room_at(&url, "").await;
    let response = room.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"17".parse().unwrap())
    );
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status), (ExchangeEnd::Complete, Some(429)));
    assert_eq!(record.response, response.bytes().await.unwrap());

    let (sender, mut followed) = oneshot::channel::<()>();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let other = server(move |_: Request| {
        let sender = sender.clone();
        async move {
            sender.lock().await.take();
        }
    })
    .await;
    let url = server(move |_: Request| {
        let other = other.clone();
        async move { (StatusCode::TEMPORARY_REDIRECT, [("location", other)]) }
    })
    .await;
    let room = room_at(&url, "").await;
    let client = reqwest::Client::builder()
        .unix_socket(room.gateway.socket())
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let response = client.post("http://gateway/v1/responses").body("{}").send().await.unwrap();
    assert_eq!(response.status(), 307);
    room.memory.record(0).await;
    assert!(followed.try_recv() == Err(oneshot::error::TryRecvError::Empty), "nobody was asked there");
}

#[tokio::test]
async fn the_key_never_comes_back() {
    let (sender, body) = channel_body();
    let body = Arc::new(Mutex::new(Some(body)));
    let url = server(move |request: Request| {
        let body = body.clone();
        async move {
            let key = request.headers()["authorization"].clone();
            let _ = axum::body::to_bytes(request.into_body(), usize::MAX).await;
            ([("x-echo", key)], body.lock().await.take().unwrap())
        }
    })
    .await;
    let room = room_at(&url, "").await;
    let request =
        room.post(&format!("/v1/messages?k={KEY}"), &json!({"model": KEY, "x": format!("my {KEY}")}));
    let response = request.send().await.unwrap();
    assert!(!response.headers().contains_key("x-echo"));
    let (one, two) = KEY.split_at(7);
    for part in ["wrong key: ", one, two, " and ", KEY, " s"] {
        sender.send(Ok(part)).await.unwrap();
    }
    drop(sender);
    let stars = "*".repeat(KEY.len());
    let expected = format!("wrong key: {stars} and {stars} s");
    assert_eq!(response.text().await.unwrap(), expected);
    let record = room.memory.record(0).await;
    assert_eq!(record.end, ExchangeEnd::Complete);
    assert_eq!(record.response, expected);
    assert_eq!(record.request, format!("{{\"model\":\"{stars}\",\"x\":\"my {stars}\"}}"));
    let told = format!("{record:?}{:?}", room.memory.started.lock().unwrap());
    assert!(!told.contains(KEY), "{told}");
}

#[tokio::test]
async fn formats_are_not_translated() {
    let room =
        live("base_url = \"http://127.0.0.1:1\"\nwire = [\"openai_chat\"]", NetSettings::default()).await;
    let response = room.post("/v1/messages", &json!({})).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let text = response.text().await.unwrap();
    assert!(text.contains("openai_chat") && text.contains("anthropic_messages"), "{text}");
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.wire), (ExchangeEnd::Refused, Some(WireFormat::AnthropicMessages)));
}

#[tokio::test]
async fn a_response_without_a_body_is_complete() {
    let room = room_at(&server(|_: Request| async { StatusCode::NO_CONTENT }).await, "").await;
    assert_eq!(room.post("/v1/messages", &json!({})).send().await.unwrap().status(), 204);
    assert_eq!(room.memory.record(0).await.end, ExchangeEnd::Complete);
}

#[tokio::test]
async fn large_bodies_go_both_ways() {
    let url = server(|request: Request| async move {
        let mut chunks = request.into_body().into_data_stream();
        let mut length = 0;
        while let Some(chunk) = chunks.next().await {
            length += chunk.unwrap().len();
        }
        format!("{length}{}", "z".repeat(3 << 20))
    })
    .await;
    let room = room_at(&url, "").await;
    let body = json!({"model": "m", "picture": "A".repeat(5 << 20)});
    let answer = room.post("/v1/responses", &body).send().await.unwrap().text().await.unwrap();
    assert_eq!(answer, format!("{}{}", body.to_string().len(), "z".repeat(3 << 20)));
    let record = room.memory.record(0).await;
    assert_eq!((record.request, record.response), (Bytes::from(body.to_string()), Bytes::from(answer)));
}
