//! `OpenAI` Responses: a list of items, each announced, filled and closed.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Reply, event, pieces};
use crate::tools::Input;

fn items(reply: &Reply) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(reasoning) = &reply.reasoning {
        items.push(json!({
            "type": "reasoning", "id": format!("rs_{}", reply.id),
            "summary": [{"type": "summary_text", "text": reasoning}],
            "content": null, "encrypted_content": "scripted",
        }));
    }
    if let Some(text) = &reply.text {
        items.push(json!({
            "type": "message", "id": format!("msg_{}", reply.id), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }));
    }
    for (id, call) in &reply.calls {
        let call_id = format!("call_{id}");
        items.push(match &call.input {
            Input::Object(_) => json!({
                "type": "function_call", "id": format!("fc_{id}"), "status": "completed",
                "call_id": call_id, "name": call.name, "arguments": call.input.json_text(),
            }),
            Input::Text(text) => json!({
                "type": "custom_tool_call", "id": format!("ctc_{id}"), "status": "completed",
                "call_id": call_id, "name": call.name, "input": text,
            }),
        });
    }
    items
}

fn response(reply: &Reply, status: &str, output: &[Value]) -> Value {
    let usage = reply.usage;
    let usage = (status == "completed").then(|| {
        json!({
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_input_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        })
    });
    json!({
        "id": format!("resp_{}", reply.id), "object": "response", "created_at": 0, "status": status,
        "model": reply.model, "output": output, "usage": usage, "error": null,
    })
}

pub(super) fn whole(reply: &Reply) -> Value {
    response(reply, "completed", &items(reply))
}

pub(super) fn stream(reply: &Reply) -> Vec<Bytes> {
    let mut sender = Sender { sequence: 0, events: Vec::new() };
    let created = response(reply, "in_progress", &[]);
    sender.send("response.created", json!({ "response": created }));
    sender.send("response.in_progress", json!({ "response": created }));
    let items = items(reply);
    for (index, item) in items.iter().enumerate() {
        sender.item(index, item);
    }
    sender.send("response.completed", json!({ "response": response(reply, "completed", &items) }));
    sender.events
}

struct Sender {
    sequence: u64,
    events: Vec<Bytes>,
}

impl Sender {
    fn send(&mut self, kind: &str, mut data: Value) {
        data["type"] = json!(kind);
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.events.push(event(kind, &data));
    }

    fn item(&mut self, index: usize, item: &Value) {
        let id = &item["id"];
        let mut empty = item.clone();
        let (part, field) = match item["type"].as_str() {
            Some("message") => ("content", "content"),
            Some("reasoning") => ("summary", "summary"),
            Some("function_call") => ("", "arguments"),
            _ => ("", "input"),
        };
        empty[field] = if part.is_empty() { json!("") } else { json!([]) };
        if empty.get("status").is_some() {
            empty["status"] = json!("in_progress");
        }
        self.send("response.output_item.added", json!({"output_index": index, "item": empty}));
        match part {
            "content" => {
                let place = json!({"item_id": id, "output_index": index, "content_index": 0});
                let text = item["content"][0]["text"].as_str().unwrap_or_default();
                let names = ("response.content_part", "response.output_text");
                self.part(&place, names, &item["content"][0], text);
            }
            "summary" => {
                let place = json!({"item_id": id, "output_index": index, "summary_index": 0});
                let text = item["summary"][0]["text"].as_str().unwrap_or_default();
                let names = ("response.reasoning_summary_part", "response.reasoning_summary_text");
                self.part(&place, names, &item["summary"][0], text);
            }
            _ => {
                let place = json!({"item_id": id, "output_index": index});
                let name = match field {
                    "arguments" => "response.function_call_arguments",
                    _ => "response.custom_tool_call_input",
                };
                let text = item[field].as_str().unwrap_or_default();
                self.deltas(&place, name, text);
                self.send(&format!("{name}.done"), merged(&place, &json!({ field: text })));
            }
        }
        self.send("response.output_item.done", json!({"output_index": index, "item": item}));
    }

    fn part(&mut self, place: &Value, (part_name, text_name): (&str, &str), part: &Value, text: &str) {
        let mut empty = part.clone();
        empty["text"] = json!("");
        self.send(&format!("{part_name}.added"), merged(place, &json!({ "part": empty })));
        self.deltas(place, text_name, text);
        self.send(&format!("{text_name}.done"), merged(place, &json!({ "text": text })));
        self.send(&format!("{part_name}.done"), merged(place, &json!({ "part": part })));
    }

    fn deltas(&mut self, place: &Value, name: &str, text: &str) {
        for piece in pieces(text) {
            self.send(&format!("{name}.delta"), merged(place, &json!({ "delta": piece })));
        }
    }
}

fn merged(one: &Value, other: &Value) -> Value {
    let mut map = one.as_object().cloned().unwrap_or_default();
    map.extend(other.as_object().cloned().unwrap_or_default());
    Value::Object(map)
}
