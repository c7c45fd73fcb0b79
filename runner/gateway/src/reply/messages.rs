//! Anthropic Messages: one message of numbered blocks.

use bytes::Bytes;
use proctor_traces::Usage;
use serde_json::{Value, json};

use super::{Reply, event, pieces};

const SIGNATURE: &str = "c2NyaXB0ZWQ=";

fn blocks(reply: &Reply) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        blocks.push(json!({"type": "thinking", "thinking": reasoning, "signature": SIGNATURE}));
    }
    if let Some(text) = &reply.text {
        blocks.push(json!({"type": "text", "text": text}));
    }
    for (id, call) in &reply.calls {
        blocks.push(
            json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": call.name, "input": call.input.object()}),
        );
    }
    blocks
}

/// The prompt's tokens in disjoint parts.
fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens.saturating_sub(usage.cached_input_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_input_tokens.min(usage.input_tokens),
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    })
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "end_turn" } else { "tool_use" }
}

pub(super) fn whole(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": blocks(reply), "stop_reason": stop_reason(reply), "stop_sequence": null,
        "usage": usage(reply.usage),
    })
}

pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let mut message = whole(reply);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    // Nothing is generated yet; real servers claim one token at this point.
    message["usage"] = usage(Usage { output_tokens: 1, reasoning_tokens: 0, ..reply.usage });
    let mut events = Vec::new();
    let mut send = |mut data: Value, kind: &str| {
        data["type"] = json!(kind);
        events.push(event(kind, &data));
    };
    send(json!({ "message": message }), "message_start");
    for (index, block) in blocks(reply).into_iter().enumerate() {
        let (field, delta_field, text) = match block["type"].as_str() {
            Some("thinking") => {
                ("thinking", "thinking", block["thinking"].as_str().unwrap_or_default().to_owned())
            }
            Some("text") => ("text", "text", block["text"].as_str().unwrap_or_default().to_owned()),
            _ => ("input_json", "partial_json", block["input"].to_string()),
        };
        let mut empty = block.clone();
        match field {
            "thinking" => {
                empty["thinking"] = json!("");
                empty["signature"] = json!("");
            }
            "text" => empty["text"] = json!(""),
            _ => empty["input"] = json!({}),
        }
        send(json!({"index": index, "content_block": empty}), "content_block_start");
        for piece in pieces(&text) {
            let delta = json!({"type": format!("{field}_delta"), delta_field: piece});
            send(json!({"index": index, "delta": delta}), "content_block_delta");
        }
        if field == "thinking" {
            let delta = json!({"type": "signature_delta", "signature": SIGNATURE});
            send(json!({"index": index, "delta": delta}), "content_block_delta");
        }
        send(json!({ "index": index }), "content_block_stop");
    }
    let delta = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    send(json!({"delta": delta, "usage": usage(reply.usage)}), "message_delta");
    send(json!({}), "message_stop");
    events
}
