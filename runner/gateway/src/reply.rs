//! A scripted answer, written in one of the wire formats.

mod chat;
mod gemini;
mod messages;
mod responses;

use bytes::Bytes;
use proctor_traces::{Usage, WireFormat};
use serde_json::Value;

use crate::tools::{Input, WireCall};

/// What the scripted model answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    /// Names this answer; the same for a repeated request.
    pub(crate) id: String,
    /// The model that answers.
    pub(crate) model: String,
    pub(crate) reasoning: Option<String>,
    pub(crate) text: Option<String>,
    /// Calls with their ids, without a format's own prefix.
    pub(crate) calls: Vec<(String, WireCall)>,
    pub(crate) usage: Usage,
}

impl Reply {
    /// The body as a list of pieces that are sent one after the other: server-sent events.
    pub(crate) fn stream(&self, wire: WireFormat) -> Vec<Bytes> {
        match wire {
            WireFormat::OpenaiResponses => responses::stream(self),
            WireFormat::OpenaiChat | WireFormat::OpenaiImages => chat::stream(self),
            WireFormat::AnthropicMessages => messages::stream(self),
            WireFormat::GeminiGenerate => gemini::stream(self),
        }
    }

    /// The body as one object.
    pub(crate) fn whole(&self, wire: WireFormat) -> Value {
        match wire {
            WireFormat::OpenaiResponses => responses::whole(self),
            WireFormat::OpenaiChat | WireFormat::OpenaiImages => chat::whole(self),
            WireFormat::AnthropicMessages => messages::whole(self),
            WireFormat::GeminiGenerate => gemini::whole(self),
        }
    }
}

impl Input {
    /// As an object, the way the other two carry them.
    fn object(&self) -> Value {
        match self {
            Self::Object(map) => Value::Object(map.clone()),
            Self::Text(text) => serde_json::json!({ "input": text }),
        }
    }

    /// As a JSON text, the way `OpenAI`'s formats carry arguments.
    fn json_text(&self) -> String {
        self.object().to_string()
    }
}

/// An event with a name.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// `text` in at most 64 pieces of at least 24 bytes, as a model's tokens would come.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let size = (text.len() / 64).max(24);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::accounting::Account;
    use crate::sse::SseFramer;

    fn reply() -> Reply {
        let call = |name: &str, input| (format!("1_{name}"), WireCall { name: name.into(), input });
        Reply {
            id: "1_0".into(),
            model: "m".into(),
            reasoning: Some("Plan: look at it first, then write it down. ".repeat(3)),
            text: Some("Ich schaue zuerst – überall, äußerst gründlich.".repeat(4)),
            calls: vec![
                call("a", Input::Object(json!({"cmd": "ls"}).as_object().unwrap().clone())),
                call("b", Input::Text("*** Begin Patch".into())),
            ],
            usage: Usage {
                input_tokens: 1200,
                cached_input_tokens: 900,
                output_tokens: 80,
                reasoning_tokens: 11,
            },
        }
    }

    fn events(wire: WireFormat) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        SseFramer::default().push(&reply().stream(wire).concat(), &mut events);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        events
            .iter()
            .filter(|event| event.data != b"[DONE]")
            .map(|event| (text(&event.name), serde_json::from_slice(&event.data).unwrap()))
            .collect()
    }

    #[test]
    fn every_format_accounts_for_itself() {
        for wire in [
            WireFormat::OpenaiChat,
            WireFormat::OpenaiResponses,
            WireFormat::AnthropicMessages,
            WireFormat::GeminiGenerate,
        ] {
            for body in [reply().stream(wire).concat(), reply().whole(wire).to_string().into_bytes()] {
                let account = Account::of_response(wire, &body);
                assert_eq!(account.usage, Some(reply().usage), "{wire:?}");
                assert_eq!(account.served_model.as_deref(), Some("m"));
            }
        }
    }

    #[test]
    fn responses_deltas_add_up_to_the_items() {
        let events = events(WireFormat::OpenaiResponses);
        for (number, (name, data)) in events.iter().enumerate() {
            assert_eq!(name, data["type"].as_str().unwrap());
            assert_eq!(data["sequence_number"], number, "{name}");
        }
        let joined = |kind: &str| -> String {
            let of_kind = events.iter().filter(|(name, _)| name == kind);
            of_kind.map(|(_, data)| data["delta"].as_str().unwrap()).collect()
        };
        assert_eq!(Some(joined("response.output_text.delta")), reply().text);
        assert_eq!(Some(joined("response.reasoning_summary_text.delta")), reply().reasoning);
        assert_eq!(joined("response.function_call_arguments.delta"), r#"{"cmd":"ls"}"#);
        let done: Vec<_> = events
            .iter()
            .filter(|(name, _)| name == "response.output_item.done")
            .map(|(_, d)| &d["item"])
            .collect();
        let (last, completed) = events.last().unwrap();
        assert_eq!(last, "response.completed");
        assert_eq!(json!(done), completed["response"]["output"]);
        assert_eq!(done[3]["input"], "*** Begin Patch");
        assert_eq!(completed["response"], responses::whole(&reply()));
    }

    #[test]
    fn messages_deltas_add_up_to_the_blocks() {
        let whole = messages::whole(&reply());
        let mut blocks: Vec<Value> = Vec::new();
        let mut json_text = String::new();
        for (name, data) in events(WireFormat::AnthropicMessages) {
            assert_eq!(name, data["type"].as_str().unwrap());
            match name.as_str() {
                "content_block_start" => blocks.push(data["content_block"].clone()),
                "content_block_delta" => {
                    let block = blocks.last_mut().unwrap();
                    let delta = &data["delta"];
                    if delta["type"] == "input_json_delta" {
                        json_text.push_str(delta["partial_json"].as_str().unwrap());
                    }
                    for field in ["text", "thinking", "signature"] {
                        if let Some(more) = delta[field].as_str() {
                            block[field] = json!(block[field].as_str().unwrap().to_owned() + more);
                        }
                    }
                }
                "content_block_stop" if !json_text.is_empty() => {
                    let input = serde_json::from_str(&std::mem::take(&mut json_text)).unwrap();
                    blocks.last_mut().unwrap()["input"] = input;
                }
                "message_delta" => assert_eq!(data["delta"]["stop_reason"], "tool_use"),
                _ => {}
            }
        }
        assert_eq!(json!(blocks), whole["content"]);
    }

    #[test]
    fn chat_deltas_add_up_to_the_message() {
        let whole = chat::whole(&reply());
        let (mut text, mut arguments) = (String::new(), vec![String::new(); 2]);
        for (_, data) in events(WireFormat::OpenaiChat) {
            let delta = &data["choices"][0]["delta"];
            text.push_str(delta["content"].as_str().unwrap_or_default());
            for call in delta["tool_calls"].as_array().into_iter().flatten() {
                let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
                arguments[index].push_str(call["function"]["arguments"].as_str().unwrap());
            }
        }
        let message = &whole["choices"][0]["message"];
        assert_eq!(message["content"], text);
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], arguments[0]);
        assert_eq!(message["tool_calls"][1]["function"]["arguments"], arguments[1]);
        assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    }

    #[test]
    fn gemini_pieces_add_up_to_the_whole() {
        let whole = gemini::whole(&reply());
        let (mut text, mut thought, mut calls) = (String::new(), String::new(), Vec::new());
        let pieces = events(WireFormat::GeminiGenerate);
        for (at, (_, data)) in pieces.iter().enumerate() {
            let candidate = &data["candidates"][0];
            assert_eq!(candidate["finishReason"].is_string(), at + 1 == pieces.len());
            for part in candidate["content"]["parts"].as_array().unwrap() {
                match (part["text"].as_str(), part["thought"].as_bool()) {
                    (Some(piece), Some(true)) => thought.push_str(piece),
                    (Some(piece), _) => text.push_str(piece),
                    (None, _) => calls.push(part["functionCall"].clone()),
                }
            }
        }
        let parts = &whole["candidates"][0]["content"]["parts"];
        assert_eq!((Some(thought), Some(text)), (reply().reasoning, reply().text));
        assert_eq!(json!(calls), json!([parts[2]["functionCall"], parts[3]["functionCall"]]));
        assert_eq!(calls[0]["args"], json!({"cmd": "ls"}));
    }
}
