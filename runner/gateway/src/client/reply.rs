//! What a model said, out of the response of each wire format: an event stream, or one object from servers that do not
//! stream.

use proctor_traces::WireFormat;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::accounting::Account;
use crate::sse::SseFramer;

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said all.
    Complete,
    /// The answer was cut at its limit of tokens.
    Length,
    /// It, or a filter before it, would not answer.
    Refusal,
    /// Another reason, in the server's word.
    Other(String),
}

/// An answer.
pub(super) struct Said {
    pub(super) text: String,
    pub(super) stop: Stop,
    pub(super) account: Account,
}

/// Why a response is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It broke off, or says itself that it failed: it may go better next time.
    Broken(String),
    /// It is something else.
    Foreign(String),
}

/// What is put together from events.
#[derive(Default)]
struct Draft {
    text: String,
    refusal: String,
    stop: Option<Stop>,
    met: bool,
}

pub(super) fn read(wire: WireFormat, bytes: &[u8]) -> Result<Said, Fault> {
    let mut draft = Draft::default();
    let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if is_object {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| Fault::Broken(format!("the response is no whole JSON: {error}")))?;
        draft.whole(wire, &value)?;
    } else {
        let mut events = Vec::new();
        let mut framer = SseFramer::default();
        framer.push(bytes, &mut events);
        // A server that forgets the last empty line has said what it had to say.
        framer.push(b"\n\n", &mut events);
        for event in events {
            if let Ok(value) = serde_json::from_slice::<Value>(&event.data) {
                draft.event(wire, &value)?;
            }
        }
    }
    if !draft.met {
        return Err(Fault::Foreign("nothing in it is of this wire format".to_owned()));
    }
    let stop = draft.stop.ok_or_else(|| Fault::Broken("the response broke off".to_owned()))?;
    let refused = draft.text.is_empty() && !draft.refusal.is_empty();
    Ok(Said {
        text: if refused { draft.refusal } else { draft.text },
        stop: if refused { Stop::Refusal } else { stop },
        account: Account::of_response(wire, bytes),
    })
}

impl Draft {
    /// A response that is one object.
    fn whole(&mut self, wire: WireFormat, value: &Value) -> Result<(), Fault> {
        match wire {
            WireFormat::OpenaiResponses => self.response(value),
            WireFormat::OpenaiChat => {
                failed(value)?;
                self.met = value["choices"].is_array();
                let choice = &value["choices"][0];
                self.chat(choice, &choice["message"]);
                Ok(())
            }
            WireFormat::AnthropicMessages => {
                failed(value)?;
                self.met = value["content"].is_array();
                for block in value["content"].as_array().into_iter().flatten() {
                    self.text.push_str(block["text"].as_str().unwrap_or_default());
                }
                self.stop = value["stop_reason"].as_str().map(anthropic_stop);
                Ok(())
            }
            WireFormat::GeminiGenerate => self.gemini(value),
            WireFormat::OpenaiImages => Ok(()),
        }
    }

    fn event(&mut self, wire: WireFormat, value: &Value) -> Result<(), Fault> {
        match wire {
            WireFormat::OpenaiResponses => match value["type"].as_str().unwrap_or_default() {
                "response.completed" | "response.incomplete" | "response.failed" => {
                    self.response(&value["response"])
                }
                "error" => failed(value),
                kind => {
                    self.met |= kind.starts_with("response.");
                    Ok(())
                }
            },
            WireFormat::OpenaiChat => {
                failed(value)?;
                self.met |= value["choices"].is_array();
                let choice = &value["choices"][0];
                self.chat(choice, &choice["delta"]);
                Ok(())
            }
            WireFormat::AnthropicMessages => {
                let kind = value["type"].as_str().unwrap_or_default();
                self.met |= kind == "message_start";
                match kind {
                    "content_block_start" => {
                        self.text.push_str(value["content_block"]["text"].as_str().unwrap_or_default());
                    }
                    "content_block_delta" => {
                        self.text.push_str(value["delta"]["text"].as_str().unwrap_or_default());
                    }
                    "message_delta" => {
                        let stop = value["delta"]["stop_reason"].as_str().map(anthropic_stop);
                        self.stop = stop.or(self.stop.take());
                    }
                    "error" => return failed(value),
                    _ => {}
                }
                Ok(())
            }
            WireFormat::GeminiGenerate => self.gemini(value),
            WireFormat::OpenaiImages => Ok(()),
        }
    }

    /// A response of Gemini's, or a piece of one: both have the same shape.
    fn gemini(&mut self, value: &Value) -> Result<(), Fault> {
        failed(value)?;
        self.met |= value["candidates"].is_array() || value["promptFeedback"].is_object();
        if value["promptFeedback"]["blockReason"].is_string() {
            self.stop = Some(Stop::Refusal);
        }
        let candidate = &value["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            if part["thought"] != true {
                self.text.push_str(part["text"].as_str().unwrap_or_default());
            }
        }
        if let Some(reason) = candidate["finishReason"].as_str() {
            self.stop = Some(match reason {
                "STOP" => Stop::Complete,
                "MAX_TOKENS" => Stop::Length,
                "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY" => {
                    Stop::Refusal
                }
                other => Stop::Other(short(other)),
            });
        }
        Ok(())
    }

    /// A whole object of the Responses API.
    fn response(&mut self, value: &Value) -> Result<(), Fault> {
        failed(value)?;
        self.met |= value["output"].is_array();
        let items = value["output"].as_array().into_iter().flatten();
        for part in items.filter_map(|item| item["content"].as_array()).flatten() {
            match part["type"].as_str() {
                Some("output_text") => self.text.push_str(part["text"].as_str().unwrap_or_default()),
                Some("refusal") => self.refusal.push_str(part["refusal"].as_str().unwrap_or_default()),
                _ => {}
            }
        }
        self.stop = Some(match (value["status"].as_str(), value["incomplete_details"]["reason"].as_str()) {
            (Some("completed"), _) => Stop::Complete,
            (Some("incomplete"), Some("max_output_tokens")) => Stop::Length,
            (Some("incomplete"), Some("content_filter")) => Stop::Refusal,
            (status, reason) => Stop::Other(short(reason.or(status).unwrap_or("no status"))),
        });
        Ok(())
    }

    fn chat(&mut self, choice: &Value, message: &Value) {
        self.text.push_str(message["content"].as_str().unwrap_or_default());
        self.refusal.push_str(message["refusal"].as_str().unwrap_or_default());
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop = Some(match reason {
                "stop" => Stop::Complete,
                "length" => Stop::Length,
                "content_filter" => Stop::Refusal,
                other => Stop::Other(short(other)),
            });
        }
    }
}

fn anthropic_stop(reason: &str) -> Stop {
    match reason {
        "end_turn" | "stop_sequence" => Stop::Complete,
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Refusal,
        other => Stop::Other(short(other)),
    }
}

/// An error inside a response that began well.
fn failed(value: &Value) -> Result<(), Fault> {
    let has_error = value.get("error").is_some_and(|it| !it.is_null()) || value["type"] == "error";
    if has_error {
        let text = value.to_string();
        let said = error_message(text.as_bytes());
        return Err(Fault::Broken(format!("the server failed on the way: {}", short(&said))));
    }
    Ok(())
}

/// Whether an error body says that the request, or the answer to it, was not let through for what it says.
pub(super) fn is_moderation(bytes: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let code = value["error"]["code"].as_str().or(value["error"]["type"].as_str()).unwrap_or_default();
    ["moderation_blocked", "content_policy_violation", "content_filter"].contains(&code)
}

/// The message of an error body, or its text.
pub(super) fn error_message(bytes: &[u8]) -> String {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let message = value["error"]["message"].as_str().or(value["message"].as_str());
    let text = message.map_or_else(|| String::from_utf8_lossy(bytes).into_owned(), str::to_owned);
    text.chars().filter(|c| !c.is_control()).collect()
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}
