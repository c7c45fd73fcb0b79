//! Tool calls in a model's answer: what an agent was asked to do, whether or not it lived to tell of it.
//!
//! Needed for agents that tell of a call when it is over (`OpenCode`). Their call in flight at the end stands nowhere but
//! in the last answer that the gateway handed over.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Call, Moment, Nesting, ToolCallId, ToolStatus, Trace, Witness};

/// A call that a model asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedCall {
    /// Its name, as the model's server gave it.
    pub id: ToolCallId,
    /// Name of the tool.
    pub name: String,
    /// The arguments; what could not be read as JSON is here as text.
    pub input: Value,
}

/// Calls of one answer that are taken.
const CAP: usize = 1_000;

/// The calls in the body of a Chat Completions response, an event stream or one object. What is torn or strange is
/// passed over.
pub fn asked_in_chat(body: &[u8]) -> Vec<AskedCall> {
    let mut drafts: BTreeMap<u64, (String, String, String)> = BTreeMap::new();
    let mut take = |calls: &Value| {
        for (at, call) in calls.as_array().into_iter().flatten().enumerate() {
            let index = call["index"].as_u64().unwrap_or(at as u64);
            if drafts.len() >= CAP && !drafts.contains_key(&index) {
                continue;
            }
            let (id, name, arguments) = drafts.entry(index).or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            if id.is_empty() {
                *id = text(&call["id"]);
            }
            name.push_str(&text(&call["function"]["name"]));
            arguments.push_str(&text(&call["function"]["arguments"]));
        }
    };
    let text = String::from_utf8_lossy(body);
    if let Ok(whole) = serde_json::from_str::<Value>(&text) {
        take(&whole["choices"][0]["message"]["tool_calls"]);
    } else {
        for line in text.lines() {
            let Some(data) = line.strip_prefix("data:") else { continue };
            if let Ok(piece) = serde_json::from_str::<Value>(data.trim_start()) {
                take(&piece["choices"][0]["delta"]["tool_calls"]);
            }
        }
    }
    let whole = drafts.into_values().filter(|(id, name, _)| !id.is_empty() && !name.is_empty());
    whole
        .map(|(id, name, arguments)| AskedCall {
            id: ToolCallId(id),
            name,
            input: serde_json::from_str(&arguments).unwrap_or(Value::String(arguments)),
        })
        .collect()
}

impl Trace {
    /// Adds those of `calls` that nobody has told of, as unfinished. They were asked for at `ms`, by the gateway's record.
    pub fn add_asked(&mut self, ms: i64, calls: Vec<AskedCall>) {
        for asked in calls {
            if self.call(&asked.id).is_some() {
                continue;
            }
            let places = self.calls.iter().map(|it| it.seq).chain(self.said.iter().map(|it| it.seq));
            self.calls.push(Call {
                id: asked.id,
                seq: places.max().map_or(0, |last| last.saturating_add(1)),
                turn: self.turns.max(1),
                name: asked.name,
                input: asked.input,
                parent: None,
                nesting: Nesting::Top,
                agent: None,
                polls: None,
                issued: None,
                start: Some(Moment { ms, by: Witness::Gateway }),
                end: None,
                returned: None,
                status: ToolStatus::Unfinished,
                exit_code: None,
                output: String::new(),
                output_bytes: 0,
                truncated: false,
                images: Vec::new(),
                seen_by: vec![Witness::Gateway],
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_put_together_from_their_pieces() {
        let piece = |calls: Value| {
            format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}))
        };
        let stream = [
            piece(json!([{"index": 0, "id": "call_a", "function": {"name": "bash", "arguments": ""}}])),
            piece(json!([{"index": 0, "function": {"arguments": "{\"command\":"}}])),
            piece(
                json!([{"index": 1, "id": "call_b", "function": {"name": "read", "arguments": "{\"torn"}}]),
            ),
            piece(json!([{"index": 0, "function": {"arguments": "\"make\"}"}}])),
            piece(json!([{"index": 7, "function": {"arguments": "nameless"}}])),
            "data: [DONE]\n\n".to_owned(),
        ];
        let asked = |id: &str, name: &str, input: Value| AskedCall {
            id: ToolCallId(id.to_owned()),
            name: name.to_owned(),
            input,
        };
        assert_eq!(
            asked_in_chat(stream.concat().as_bytes()),
            [asked("call_a", "bash", json!({"command": "make"})), asked("call_b", "read", json!("{\"torn"))]
        );
        let whole = json!({"choices": [{"message": {"tool_calls": [
            {"id": "call_c", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
        ]}}]});
        assert_eq!(asked_in_chat(whole.to_string().as_bytes()), [asked("call_c", "bash", json!({}))]);
        for strange in ["", "[1]", "data: 7\n", "{\"choices\":{}}", "\u{0}", "data: {\"choices\":[]}"] {
            assert_eq!(asked_in_chat(strange.as_bytes()), [], "{strange}");
        }
    }
}
