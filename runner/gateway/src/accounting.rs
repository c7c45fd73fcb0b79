//! What a recorded response says about itself: tokens, the model that answered, the server's fingerprint.

use proctor_traces::{Usage, WireFormat};
use serde_json::Value;

use crate::sse::SseFramer;

/// What was found; a server that says nothing leaves everything empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) usage: Option<Usage>,
    pub(crate) served_model: Option<String>,
    pub(crate) fingerprint: Option<String>,
}

/// Longest model name or fingerprint kept: both come from outside and go into every row.
const NAME_CAP: usize = 256;

impl Account {
    /// Reads a response body, an event stream or one JSON object; the rest of a broken one is simply not there.
    pub(crate) fn of_response(wire: WireFormat, body: &[u8]) -> Self {
        let mut account = Self::default();
        match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => {
                if let Ok(value) = serde_json::from_slice(body) {
                    account.take(wire, &value);
                }
                return account;
            }
            // Gemini's stream, where events were not asked for.
            Some(b'[') => {
                let pieces: Vec<Value> = serde_json::from_slice(body).unwrap_or_default();
                for piece in &pieces {
                    account.take(wire, piece);
                }
                return account;
            }
            _ => {}
        }
        let mut events = Vec::new();
        SseFramer::default().push(body, &mut events);
        for event in events {
            // Deltas are nearly all of a stream, and say nothing here.
            let telling: [&[u8]; 4] = [b"\"usage\"", b"\"model\"", b"\"usageMetadata\"", b"\"modelVersion\""];
            if !telling.iter().any(|word| mentions(&event.data, word)) {
                continue;
            }
            if let Ok(value) = serde_json::from_slice(&event.data) {
                account.take(wire, &value);
            }
        }
        account
    }

    /// Takes what one object tells: a whole response, or an event that wraps one.
    fn take(&mut self, wire: WireFormat, value: &Value) {
        if wire == WireFormat::GeminiGenerate {
            return self.take_gemini(value);
        }
        let inner = match wire {
            WireFormat::OpenaiResponses => value.get("response").unwrap_or(value),
            WireFormat::AnthropicMessages => value.get("message").unwrap_or(value),
            WireFormat::OpenaiChat | WireFormat::GeminiGenerate | WireFormat::OpenaiImages => value,
        };
        if let Some(model) = short(&inner["model"]) {
            self.served_model = Some(model);
        }
        if let Some(fingerprint) = short(&inner["system_fingerprint"]) {
            self.fingerprint = Some(fingerprint);
        }
        let usage = &inner["usage"];
        if !usage.is_object() {
            return;
        }
        self.usage = Some(match wire {
            WireFormat::OpenaiResponses | WireFormat::OpenaiImages => Usage {
                input_tokens: count(&usage["input_tokens"]),
                cached_input_tokens: count(&usage["input_tokens_details"]["cached_tokens"]),
                output_tokens: count(&usage["output_tokens"]),
                reasoning_tokens: count(&usage["output_tokens_details"]["reasoning_tokens"]),
            },
            WireFormat::OpenaiChat | WireFormat::GeminiGenerate => Usage {
                input_tokens: count(&usage["prompt_tokens"]),
                // DeepSeek counts its cache hits in a field of its own.
                cached_input_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"])
                    .max(count(&usage["prompt_cache_hit_tokens"])),
                output_tokens: count(&usage["completion_tokens"]),
                reasoning_tokens: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
            },
            WireFormat::AnthropicMessages => anthropic(self.usage.unwrap_or_default(), usage),
        });
    }

    /// Gemini counts thoughts beside the answer, and tells running totals in every piece of a stream.
    fn take_gemini(&mut self, value: &Value) {
        if let Some(model) = short(&value["modelVersion"]) {
            self.served_model = Some(model);
        }
        let usage = &value["usageMetadata"];
        if !usage.is_object() {
            return;
        }
        let reasoning_tokens = count(&usage["thoughtsTokenCount"]);
        self.usage = Some(Usage {
            input_tokens: count(&usage["promptTokenCount"])
                .saturating_add(count(&usage["toolUsePromptTokenCount"])),
            cached_input_tokens: count(&usage["cachedContentTokenCount"]),
            output_tokens: count(&usage["candidatesTokenCount"]).saturating_add(reasoning_tokens),
            reasoning_tokens,
        });
    }
}

/// Anthropic splits the prompt into three disjoint counts, tells them at the start, and repeats (some servers: tells
/// only) the final ones at the end; output counts are cumulative. So the larger of both is the true one.
fn anthropic(before: Usage, usage: &Value) -> Usage {
    let cached = count(&usage["cache_read_input_tokens"]);
    let input = count(&usage["input_tokens"])
        .saturating_add(count(&usage["cache_creation_input_tokens"]))
        .saturating_add(cached);
    Usage {
        input_tokens: before.input_tokens.max(input),
        cached_input_tokens: before.cached_input_tokens.max(cached),
        output_tokens: before.output_tokens.max(count(&usage["output_tokens"])),
        reasoning_tokens: before
            .reasoning_tokens
            .max(count(&usage["output_tokens_details"]["thinking_tokens"])),
    }
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

pub(crate) fn short(value: &Value) -> Option<String> {
    value.as_str().map(|text| text.chars().take(NAME_CAP).collect())
}

fn mentions(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Usage {
        Usage {
            input_tokens: input,
            cached_input_tokens: cached,
            output_tokens: output,
            reasoning_tokens: reasoning,
        }
    }

    #[test]
    fn responses_stream_and_object() {
        let completed = r#"{"type":"response.completed","response":{"model":"m-2","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3}}}}"#;
        let stream = format!(
            "event: response.created\ndata: {{\"type\":\"response.created\",\"response\":{{\"model\":\"m\",\"usage\":null}}}}\n\ndata: not json \"usage\"\n\nevent: response.completed\ndata: {completed}\n\n"
        );
        let account = Account::of_response(WireFormat::OpenaiResponses, stream.as_bytes());
        assert_eq!(account.usage, Some(usage(10, 4, 5, 3)));
        assert_eq!(account.served_model.as_deref(), Some("m-2"));
        let whole = Account::of_response(
            WireFormat::OpenaiResponses,
            br#" {"model":"m","usage":{"input_tokens":1,"output_tokens":2}}"#,
        );
        assert_eq!(whole.usage, Some(usage(1, 0, 2, 0)));
    }

    #[test]
    fn chat_usage_comes_last_and_the_fingerprint_anywhere() {
        let stream = "data: {\"model\":\"served\",\"system_fingerprint\":\"fp_1\",\"choices\":[]}\n\ndata: {\"choices\":[],\"model\":\"served\",\"usage\":{\"prompt_tokens\":9,\"prompt_cache_hit_tokens\":8,\"completion_tokens\":7,\"completion_tokens_details\":{\"reasoning_tokens\":6}}}\n\ndata: [DONE]\n\n";
        assert_eq!(
            Account::of_response(WireFormat::OpenaiChat, stream.as_bytes()),
            Account {
                usage: Some(usage(9, 8, 7, 6)),
                served_model: Some("served".into()),
                fingerprint: Some("fp_1".into())
            }
        );
    }

    #[test]
    fn anthropic_counts_are_joined() {
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude\",\"usage\":{\"input_tokens\":3,\"cache_creation_input_tokens\":20,\"cache_read_input_tokens\":100,\"output_tokens\":1}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":50}}\n\n";
        let account = Account::of_response(WireFormat::AnthropicMessages, stream.as_bytes());
        assert_eq!(account.usage, Some(usage(123, 100, 50, 0)));
        assert_eq!(account.served_model.as_deref(), Some("claude"));
    }

    #[test]
    fn gemini_tells_running_totals() {
        let pieces = r#"{"candidates":[],"modelVersion":"gemini-2.5-pro","usageMetadata":{"promptTokenCount":10}}|{"modelVersion":"gemini-2.5-pro","usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":2,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":3}}"#;
        let stream = format!("data: {}\r\n\r\n", pieces.replace('|', "\r\n\r\ndata: "));
        let array = format!("[{}]", pieces.replace('|', ",\n"));
        for body in [stream, array] {
            let account = Account::of_response(WireFormat::GeminiGenerate, body.as_bytes());
            assert_eq!(account.usage, Some(usage(12, 4, 8, 3)), "{body}");
            assert_eq!(account.served_model.as_deref(), Some("gemini-2.5-pro"));
        }
    }

    #[test]
    fn rubbish_says_nothing() {
        for body in ["", "{", "[", "[7]", "data: {\"usage\":7}\n\n", "{\"usage\":[1]}", "\u{0}\u{0}"] {
            for wire in [
                WireFormat::OpenaiChat,
                WireFormat::OpenaiResponses,
                WireFormat::AnthropicMessages,
                WireFormat::GeminiGenerate,
            ] {
                assert_eq!(Account::of_response(wire, body.as_bytes()), Account::default(), "{body}");
            }
        }
    }
}
