//! The lines of `pi -p --mode json`. It exits with 0 whatever happened: the last message of the model says how it went.

use proctor_traces::{EventKind, ModelCause, ToolCall, ToolResult, ToolStatus, Usage};
use serde_json::Value;

use crate::launch::SessionId;
use crate::records::{Calls, Line, Record, Tally, count, object, parse, text};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::{AgentVerdict, cause_of_message};

/// Reads all turns of one trial.
#[derive(Debug, Default)]
pub(crate) struct PiStream {
    tally: Tally,
    calls: Calls,
    session: Option<SessionId>,
    said: Option<AgentVerdict>,
    usage: Option<Usage>,
}

impl StreamReader for PiStream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let record = match parse(line) {
            Line::Blank => return Vec::new(),
            Line::Malformed => return self.tally.malformed(line),
            Line::Record(record) => record,
        };
        let mut events = Vec::new();
        if self.record(&record, &mut events).is_some() {
            self.tally.recognised += 1;
            events
        } else {
            self.tally.unknown(line)
        }
    }

    fn end(&mut self) -> StreamEnd {
        let tally = std::mem::take(&mut self.tally);
        StreamEnd {
            events: self.calls.end(),
            verdict: tally.verdict(self.said.take().unwrap_or(AgentVerdict::Silent)),
            recognised: tally.recognised,
            unknown: tally.unknown,
            malformed: tally.malformed,
            session_id: self.session.clone(),
            usage: self.usage.take(),
        }
    }
}

impl PiStream {
    /// Adds the events of a record; none if no rule knows it.
    fn record(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        match text(record, "type") {
            "session" => self.session = SessionId::new(text(record, "id")).or(self.session.take()),
            // A message is whole at its end.
            "message_end" => {
                let message = object(record, "message")?;
                match text(message, "role") {
                    "assistant" => self.assistant(message, events),
                    // The prompt; and results, which their calls have told already.
                    "user" | "toolResult" => {}
                    _ => return None,
                }
            }
            "tool_execution_start" => {
                let key = text(record, "toolCallId");
                if self.calls.get(key).is_none() {
                    let call = ToolCall {
                        id: self.calls.id(key),
                        name: text(record, "toolName").to_owned(),
                        input: record.get("args").cloned().unwrap_or_default(),
                        parent: None,
                    };
                    events.push(self.calls.start(key, call));
                }
            }
            "tool_execution_end" => events.push(self.finish(record)?),
            "auto_retry_start" => events.push(EventKind::Notice {
                text: format!(
                    "asking the model again ({} of {}): {}",
                    count(record, "attempt"),
                    count(record, "maxAttempts"),
                    text(record, "errorMessage")
                ),
            }),
            "compaction_start" => {
                events.push(EventKind::Notice { text: "the conversation was compacted".to_owned() });
            }
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "agent_end"
            | "message_start"
            | "message_update"
            | "tool_execution_update"
            | "auto_retry_end"
            | "compaction_end"
            | "queue_update" => {}
            _ => return None,
        }
        Some(())
    }

    fn assistant(&mut self, message: &Record, events: &mut Vec<EventKind>) {
        let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
        for part in parts.filter_map(Value::as_object) {
            match text(part, "type") {
                "text" => events.push(EventKind::AgentText { text: text(part, "text").to_owned() }),
                "thinking" if !text(part, "thinking").is_empty() => {
                    events.push(EventKind::Reasoning { text: text(part, "thinking").to_owned() });
                }
                _ => {}
            }
        }
        let message_of_error = text(message, "errorMessage");
        if !message_of_error.is_empty() {
            events.push(EventKind::Notice { text: message_of_error.to_owned() });
        }
        self.said = last_words(message);
        if let Some(usage) = object(message, "usage") {
            let cached = count(usage, "cacheRead");
            *self.usage.get_or_insert_default() += Usage {
                input_tokens: count(usage, "input")
                    .saturating_add(cached)
                    .saturating_add(count(usage, "cacheWrite")),
                cached_input_tokens: cached,
                output_tokens: count(usage, "output"),
                reasoning_tokens: 0,
            };
        }
    }

    /// The end of a call; none if no such call is in flight.
    fn finish(&mut self, record: &Record) -> Option<EventKind> {
        let open = self.calls.finish(text(record, "toolCallId"))?;
        let (output, bytes) = output(object(record, "result"));
        let is_error = record.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let exit_code = match (open.name.as_str(), is_error) {
            ("bash", false) => Some(0),
            ("bash", true) => output
                .rsplit_once("Command exited with code ")
                .and_then(|(_, code)| code.trim().parse::<i32>().ok()),
            _ => None,
        };
        let status = if is_error { ToolStatus::Failed } else { ToolStatus::Ok };
        let mut result = ToolResult::new(open.id, status, exit_code, &output);
        result.output_bytes = bytes;
        Some(EventKind::ToolFinished(result))
    }
}

/// What a message of the model says about the end; none if it makes calls and goes on.
fn last_words(message: &Record) -> Option<AgentVerdict> {
    let said = text(message, "errorMessage").chars().take(2_000).collect::<String>();
    match text(message, "stopReason") {
        "toolUse" => None,
        // Nothing but a request to the model ends like this. Without a status there was no answer, or half of one.
        "error" => {
            let cause = cause_of_message(&said).unwrap_or(ModelCause::Provider);
            Some(AgentVerdict::ModelFailed { cause, message: said })
        }
        "aborted" => Some(AgentVerdict::Failed { message: format!("aborted {said}").trim_end().to_owned() }),
        _ => Some(AgentVerdict::Finished),
    }
}

/// What a call gave back as text, and the size of all of it in bytes, pictures included.
fn output(result: Option<&Record>) -> (String, u64) {
    let parts = result.and_then(|it| it.get("content")).and_then(Value::as_array).into_iter().flatten();
    let mut all = String::new();
    let mut bytes = 0_u64;
    for part in parts.filter_map(Value::as_object) {
        let (said, size) = if text(part, "type") == "image" {
            let size = text(part, "data").trim_end_matches('=').len() as u64 * 3 / 4;
            (format!("[image {}, {size} bytes]", text(part, "mimeType")), size)
        } else {
            let said = text(part, "text").to_owned();
            let size = said.len() as u64;
            (said, size)
        };
        bytes = bytes.saturating_add(size);
        if !all.is_empty() {
            all.push('\n');
        }
        all.push_str(&said);
    }
    (all, bytes)
}
