//! The scripted model, and the faults it can play.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use futures_util::StreamExt;
use proctor_gateway::{Backend, Gateway, GatewayConfig, GatewayError, Script};
use proctor_traces::{ExchangeEnd, Usage, WireFormat};
use serde_json::{Value, json};

use crate::support::{Memory, messages, room, scripted, soon};

const STEPS: &str = r#"
    [defaults]
    usage = { input = 12, cached = 9, output = 8, reasoning = 1 }
    [[step]]
    reasoning = "Plan."
    text = "I look."
    calls = [{ shell = "ls" }, { shell = "pwd" }]
    [[step]]
    text = "Done."
"#;

#[tokio::test]
async fn the_same_script_is_played_in_every_format() {
    let room = scripted(STEPS).await;
    let chat_tools = json!([{"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}]);
    let requests = [
        (
            "/v1/responses",
            WireFormat::OpenaiResponses,
            json!({"model": "a/b", "input": "go", "tools": [{"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}}]}),
        ),
        (
            "/chat/completions",
            WireFormat::OpenaiChat,
            json!({"model": "a/b", "messages": [{"role": "user", "content": "go"}], "tools": chat_tools}),
        ),
        ("/v1/messages?beta=true", WireFormat::AnthropicMessages, {
            let mut body = messages(0);
            body["model"] = json!("a/b");
            body
        }),
    ];
    let mut id = 0;
    for (path, wire, mut body) in requests {
        for stream in [true, false] {
            body["stream"] = json!(stream);
            let response = room.post(path, &body).send().await.unwrap();
            assert_eq!(response.status(), 200);
            let media_type = if stream { "text/event-stream" } else { "application/json" };
            assert_eq!(response.headers()["content-type"], media_type);
            let text = response.text().await.unwrap();
            for said in ["Plan.", "I look.", "ls", "pwd", "1_0", "1_1"] {
                assert!(text.contains(said), "{said} in {text}");
            }
            let record = room.memory.record(id).await;
            assert_eq!((record.end, record.status), (ExchangeEnd::Complete, Some(200)));
            assert_eq!((record.wire, record.path.as_str()), (Some(wire), path));
            assert_eq!(record.step, Some((1, 0)));
            assert_eq!((record.model.as_deref(), record.served_model.as_deref()), (Some("a/b"), Some("a/b")));
            let usage =
                Usage { input_tokens: 12, cached_input_tokens: 9, output_tokens: 8, reasoning_tokens: 1 };
            assert_eq!(record.usage, Some(usage));
            assert_eq!(record.request, body.to_string());
            assert_eq!(record.response, text);
            assert!(record.started <= record.first_byte.unwrap());
            assert!(record.first_byte.unwrap() <= record.ended);
            id += 1;
        }
    }
}

#[tokio::test]
async fn gemini_says_in_its_path_what_others_say_in_the_body() {
    let room = scripted(STEPS).await;
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "tools": [{"functionDeclarations": [{"name": "run_shell_command", "parameters": {"properties": {"command": {}}}}]}],
    });
    for (id, (verb, media_type)) in
        [("streamGenerateContent?alt=sse", "text/event-stream"), ("generateContent", "application/json")]
            .into_iter()
            .enumerate()
    {
        let response = room.post(&format!("/v1beta/models/m-1:{verb}"), &body).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], media_type);
        let text = response.text().await.unwrap();
        for said in ["Plan.", "I look.", "ls", "pwd", "fc_1_0", "fc_1_1"] {
            assert!(text.contains(said), "{said} in {text}");
        }
        let record = room.memory.record(id as u64).await;
        assert_eq!((record.wire, record.step), (Some(WireFormat::GeminiGenerate), Some((1, 0))));
        assert_eq!((record.model.as_deref(), record.served_model.as_deref()), (Some("m-1"), Some("m-1")));
        let usage = Usage { input_tokens: 12, cached_input_tokens: 9, output_tokens: 8, reasoning_tokens: 1 };
        assert_eq!(record.usage, Some(usage));
    }
    let fault = scripted(&with_fault("kind = \"status\", status = 429")).await;
    let path = "/v1beta/models/m-1:generateContent";
    let refused = fault.post(path, &body).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["status"], "RESOURCE_EXHAUSTED");
}

#[tokio::test]
async fn requests_find_their_own_place_and_may_be_repeated() {
    let room = scripted(STEPS).await;
    let ask = async |results| {
        room.post("/v1/messages", &messages(results)).send().await.unwrap().text().await.unwrap()
    };
    let (end, first, again) = (ask(2).await, ask(0).await, ask(0).await);
    assert!(end.contains("Done.") && end.contains("end_turn"));
    assert_eq!(first, again);
    assert!(!ask(1).await.contains("\"ls\\\""), "the rest of a step, when its first result is there");
    let record = room.memory.record(0).await;
    assert_eq!(record.step, Some((1, 2)));
}

#[tokio::test]
async fn without_tools_it_is_a_side_request_and_beyond_the_end_there_is_an_end() {
    let room = scripted("").await;
    let body = json!({"messages": [{"role": "user", "content": "a title, please"}], "stream": false});
    let side = room.post("/v1/messages", &body).send().await.unwrap().text().await.unwrap();
    assert!(side.contains("A scripted answer"));
    assert_eq!(room.memory.record(0).await.step, None);
    let end = room.post("/v1/messages", &messages(0)).send().await.unwrap().text().await.unwrap();
    assert!(end.contains("The script") && end.contains("end_turn"));
    let count = room.post("/v1/messages/count_tokens", &body).send().await.unwrap();
    assert_eq!(count.json::<Value>().await.unwrap(), json!({"input_tokens": 1000}));
    let path = "/v1beta/models/gemini-2.5-pro:countTokens";
    let count = room.post(path, &json!({"contents": []})).send().await.unwrap();
    assert_eq!(count.json::<Value>().await.unwrap(), json!({"totalTokens": 1000}));
}

#[tokio::test]
async fn other_routes_are_refused_and_recorded() {
    let room = scripted(STEPS).await;
    let refused = room.post("/v1/files", &json!({"x": 1})).send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status, record.wire), (ExchangeEnd::Refused, Some(403), None));
    assert_eq!(record.request, "{\"x\":1}");
    assert!(record.error.unwrap().contains("allow-list"));
    assert_eq!(room.client.get("http://gateway/").send().await.unwrap().status(), 200);
    assert_eq!(room.client.head("http://gateway/api/hello").send().await.unwrap().status(), 200);
    assert_eq!(room.client.head("http://gateway/else").send().await.unwrap().status(), 403);
    for (id, end) in [(1, ExchangeEnd::Complete), (2, ExchangeEnd::Complete), (3, ExchangeEnd::Refused)] {
        assert_eq!(room.memory.record(id).await.end, end);
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_are_refused() {
    let script = Arc::new(Script::parse(STEPS, std::path::Path::new("")).unwrap());
    let room = room(Backend::Script(script), 1000).await;
    let large = room.post("/v1/messages", &json!({"x": "y".repeat(1000)})).send().await.unwrap();
    assert_eq!(large.status(), 413);
    let request = room.client.post("http://gateway/v1/messages").body("not json");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["type"], "invalid_request_error");
    let mut no_tool = messages(0);
    no_tool["tools"][0]["name"] = json!("search");
    let response = room.post("/v1/messages", &no_tool).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("`shell`"));
    for id in 0..3 {
        assert_eq!(room.memory.record(id).await.end, ExchangeEnd::Refused);
    }
}

fn with_fault(fault: &str) -> String {
    format!("[[step]]\ntext = \"A text of some length\"\nfault = {{ {fault} }}")
}

#[tokio::test]
async fn a_status_is_played_as_often_as_it_says() {
    let room =
        scripted(&with_fault("kind = \"status\", status = 429, retry_after = \"1500ms\", times = 1")).await;
    let first = room.post("/v1/messages", &messages(0)).send().await.unwrap();
    assert_eq!(first.status(), 429);
    assert_eq!(first.headers()["retry-after"], "2");
    assert_eq!(first.json::<Value>().await.unwrap()["error"]["type"], "rate_limit_error");
    let second = room.post("/v1/messages", &messages(0)).send().await.unwrap();
    assert_eq!(second.status(), 200);
    assert_eq!(room.memory.record(0).await.end, ExchangeEnd::Complete);
}

#[tokio::test]
async fn a_drop_gives_no_answer_at_all() {
    let room = scripted(&with_fault("kind = \"drop\"")).await;
    let error = room.post("/v1/messages", &messages(0)).send().await.unwrap_err();
    assert!(error.is_request(), "{error:?}");
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status), (ExchangeEnd::UpstreamBroke, None));
    assert!(record.response.is_empty() && record.first_byte.is_none());
}

#[tokio::test]
async fn a_truncated_response_is_cut_where_it_says() {
    let room = scripted(&with_fault("kind = \"truncate\", after_bytes = 333")).await;
    let response = room.post("/v1/messages", &messages(0)).send().await.unwrap();
    let mut chunks = response.bytes_stream();
    let mut received = Vec::new();
    let error = loop {
        match chunks.next().await.expect("a cut, not an end") {
            Ok(chunk) => received.extend_from_slice(&chunk),
            Err(error) => break error,
        }
    };
    assert!(error.is_body() || error.is_decode(), "{error:?}");
    let record = room.memory.record(0).await;
    assert_eq!(record.end, ExchangeEnd::UpstreamBroke);
    assert_eq!(record.response.len(), 333);
    assert!(record.response.starts_with(&received));
}

#[tokio::test]
async fn a_client_that_gives_up_on_a_hanging_server_is_seen() {
    let room = scripted(&with_fault("kind = \"hang\"")).await;
    let request = tokio::spawn(room.post("/v1/messages", &messages(0)).send());
    room.memory.has_started(0).await;
    request.abort();
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status), (ExchangeEnd::ClientGone, None));
}

#[tokio::test]
async fn closing_cuts_what_is_open_and_waits_for_nothing() {
    let text = format!(
        "{}\n[[step]]\nprompt = 2\nfault = {{ kind = \"hang\" }}",
        with_fault("kind = \"stall\", after_bytes = 100")
    );
    let room = scripted(&text).await;
    let mut stalled = room.post("/v1/messages", &messages(0)).send().await.unwrap();
    let mut received = Vec::new();
    while received.len() < 100 {
        received.extend_from_slice(&soon(stalled.chunk()).await.unwrap().unwrap());
    }
    let second_prompt = json!({"tools": messages(0)["tools"], "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]});
    let hanging = tokio::spawn(room.post("/v1/messages", &second_prompt).send());
    room.memory.has_started(1).await;
    let socket = room.gateway.socket().to_owned();
    let (client, again) = (room.client.clone(), room.post("/v1/messages", &messages(0)));

    let (closed, memory, _dir) = room.close().await;
    assert_eq!((closed.exchanges_cut, closed.late_bytes), (2, 0));
    let (first, second) = (memory.record(0).await, memory.record(1).await);
    assert_eq!((first.end, first.status), (ExchangeEnd::Deadline, Some(200)));
    assert_eq!(first.response, received);
    assert_eq!((second.end, second.status, second.step), (ExchangeEnd::Deadline, None, Some((2, 0))));
    assert!(!socket.exists());
    assert!(soon(stalled.chunk()).await.is_err(), "the connection is cut");
    assert!(soon(hanging).await.unwrap().is_err());
    assert!(again.send().await.is_err());
    drop(client);
}

#[tokio::test]
async fn dropping_a_gateway_closes_it() {
    let room = scripted(&with_fault("kind = \"hang\"")).await;
    let request = tokio::spawn(room.post("/v1/messages", &messages(0)).send());
    room.memory.has_started(0).await;
    let socket = room.gateway.socket().to_owned();
    drop(room.gateway);
    assert_eq!(room.memory.record(0).await.end, ExchangeEnd::Deadline);
    assert!(!socket.exists());
    assert!(soon(request).await.unwrap().is_err());
}

#[tokio::test]
async fn the_socket_is_open_to_every_user_and_its_path_must_fit() {
    let room = scripted("").await;
    let mode = std::fs::metadata(room.gateway.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let script = Arc::new(Script::parse("", std::path::Path::new("")).unwrap());
    let open = async |path: std::path::PathBuf| {
        let config = GatewayConfig::new(path, Backend::Script(script.clone()));
        Gateway::open(config, Arc::new(Memory::default())).await.err()
    };
    let long = room.dir.path().join("x".repeat(108));
    assert!(matches!(open(long).await, Some(GatewayError::PathTooLong { .. })));
    let taken = room.gateway.socket().to_owned();
    assert!(matches!(open(taken).await, Some(GatewayError::Bind { .. })));
}

#[tokio::test]
async fn an_agent_cannot_ask_for_pictures() {
    let room = scripted("[[answer]]\ntext = \"a picture\"").await;
    for path in ["/v1/images/generations", "/v1/images/edits", "/proctor/picture"] {
        let response = room.post(path, &json!({"model": "m", "prompt": "draw it"})).send().await.unwrap();
        assert_eq!(response.status(), 403, "{path}");
    }
    assert_eq!(room.memory.record(0).await.end, ExchangeEnd::Refused);
}
