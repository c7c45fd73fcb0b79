//! `OpenAI` Chat Completions: one message, its pieces numbered.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Reply, pieces};

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": format!("call_{id}"), "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if let Some(reasoning) = &reply.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().map(|(id, it)| call(id, &it.name, &it.input.json_text()));
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": format!("chatcmpl-{}", reply.id), "object": "chat.completion", "created": 0, "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply),
    })
}

pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let chunk = |choices: Value, usage: Value| {
        let data = json!({
            "id": format!("chatcmpl-{}", reply.id), "object": "chat.completion.chunk", "created": 0,
            "model": reply.model, "choices": choices, "usage": usage,
        });
        Bytes::from(format!("data: {data}\n\n"))
    };
    let delta = |delta: Value, finish: Option<&str>| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
    };
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}), None)];
    for piece in pieces(reply.reasoning.as_deref().unwrap_or_default()) {
        events.push(delta(json!({"reasoning_content": piece}), None));
    }
    for piece in pieces(reply.text.as_deref().unwrap_or_default()) {
        events.push(delta(json!({"content": piece}), None));
    }
    for (index, (id, it)) in reply.calls.iter().enumerate() {
        let mut head = call(id, &it.name, "");
        head["index"] = json!(index);
        events.push(delta(json!({"tool_calls": [head]}), None));
        for piece in pieces(&it.input.json_text()) {
            events.push(delta(
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}),
                None,
            ));
        }
    }
    events.push(delta(json!({}), Some(finish_reason(reply))));
    // Sent whether asked for or not: clients that did not ask pass it over.
    events.push(chunk(json!([]), usage(reply)));
    events.push(Bytes::from_static(b"data: [DONE]\n\n"));
    events
}
