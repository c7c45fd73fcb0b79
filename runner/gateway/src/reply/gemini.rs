//! Gemini's generateContent: one candidate, whose parts are told apart by their fields.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Reply, pieces};

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

fn said(text: &str) -> Value {
    json!({ "text": text })
}

fn calls(reply: &Reply) -> impl Iterator<Item = Value> + '_ {
    reply.calls.iter().map(|(id, call)| {
        json!({"functionCall": {"id": format!("fc_{id}"), "name": call.name, "args": call.input.object()}})
    })
}

fn response(reply: &Reply, parts: &[Value], is_last: bool) -> Value {
    let usage = reply.usage;
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if is_last {
        // Calls have no reason of their own.
        candidate["finishReason"] = json!("STOP");
    }
    let mut value = json!({
        "candidates": [candidate], "modelVersion": reply.model, "responseId": format!("resp_{}", reply.id),
    });
    if is_last {
        value["usageMetadata"] = json!({
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cached_input_tokens,
            "candidatesTokenCount": usage.output_tokens.saturating_sub(usage.reasoning_tokens),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": usage.input_tokens.saturating_add(usage.output_tokens),
        });
    }
    value
}

pub(super) fn whole(reply: &Reply) -> Value {
    let words =
        reply.reasoning.iter().map(|text| thought(text)).chain(reply.text.iter().map(|text| said(text)));
    let parts: Vec<Value> = words.chain(calls(reply)).collect();
    response(reply, &parts, true)
}

/// Thoughts and calls come whole, as they do from Google; the last piece ends the answer.
pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let reasoning = reply.reasoning.iter().map(|text| thought(text));
    let text = pieces(reply.text.as_deref().unwrap_or_default()).map(said);
    let mut parts: Vec<Vec<Value>> = reasoning.chain(text).map(|part| vec![part]).collect();
    parts.push(calls(reply).collect());
    let last = parts.len() - 1;
    let events = parts.iter().enumerate().map(|(at, parts)| {
        let data = response(reply, parts, at == last);
        Bytes::from(format!("data: {data}\r\n\r\n"))
    });
    events.collect()
}
