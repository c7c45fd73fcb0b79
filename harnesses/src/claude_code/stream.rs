//! The lines of `claude -p --output-format stream-json`, and of Qwen Code, which prints the same with a few differences.
//!
//! One API message comes as several lines, one content block each; results come in the order of completion; a command
//! that outlasts its limit goes to the background, and then a second `result` follows the first.

use std::collections::HashMap;

use proctor_traces::{EventKind, ModelCause, ToolCall, ToolCallId, Usage};
use serde_json::Value;

use super::results::{exit_code, output, status};
use crate::launch::SessionId;
use crate::records::{Calls, Line, Record, Tally, count, object, parse, text};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::{AgentVerdict, cause_of_message, cause_of_status};

/// Whose lines they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Claude Code's.
    #[default]
    Claude,
    /// Qwen Code's: it counts tokens as `OpenAI` does, and tells of an error in an object of its own.
    Qwen,
}

/// Reads all turns of one trial.
#[derive(Debug, Default)]
pub(crate) struct ClaudeStream {
    dialect: Dialect,
    tally: Tally,
    calls: Calls,
    session: Option<SessionId>,
    /// What the last `result` of this turn said.
    said: Option<AgentVerdict>,
    /// Tokens by the `result`s of this turn, which count only what was asked since the one before.
    counted: Option<Usage>,
    /// Tokens of the messages since the last `result`, by message id: each line of a message repeats them.
    uncounted: HashMap<String, Usage>,
}

impl ClaudeStream {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }
}

impl StreamReader for ClaudeStream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let record = match parse(line) {
            Line::Blank => return Vec::new(),
            Line::Malformed => return self.tally.malformed(line),
            Line::Record(record) => record,
        };
        let mut events = Vec::new();
        if self.record(&record, &mut events).is_some() {
            self.tally.recognised += 1;
        } else {
            // A message may hold blocks that are known beside one that is not: the known ones stay.
            events.extend(self.tally.unknown(line));
        }
        events
    }

    fn end(&mut self) -> StreamEnd {
        let tally = std::mem::take(&mut self.tally);
        let mut usage = self.counted.take();
        for (_, message) in self.uncounted.drain() {
            *usage.get_or_insert_default() += message;
        }
        StreamEnd {
            events: self.calls.end(),
            verdict: tally.verdict(self.said.take().unwrap_or(AgentVerdict::Silent)),
            recognised: tally.recognised,
            unknown: tally.unknown,
            malformed: tally.malformed,
            session_id: self.session.clone(),
            usage,
        }
    }
}

impl ClaudeStream {
    /// Adds the events of a record; none if there is something in it that no rule knows.
    fn record(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        match text(record, "type") {
            "system" => self.system(record, events),
            "assistant" => self.assistant(record, events),
            "user" => self.user(record, events),
            "result" => {
                self.result(record, events);
                Some(())
            }
            // Parts of messages that come whole as well, and signs of life.
            "stream_event" | "tool_progress" | "tool_use_summary" | "keep_alive" | "prompt_suggestion" => {
                Some(())
            }
            "rate_limit_event" | "auth_status" => {
                events.push(EventKind::Notice { text: Value::Object(record.clone()).to_string() });
                Some(())
            }
            _ => None,
        }
    }

    fn system(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        let mut notice = |text: String| events.push(EventKind::Notice { text });
        match text(record, "subtype") {
            "init" => {
                self.session = SessionId::new(text(record, "session_id")).or(self.session.take());
                // It goes on after a result when a background task has ended: another result is to come.
                self.said = None;
            }
            "api_retry" => {
                let status = record.get("error_status").and_then(Value::as_u64);
                notice(format!(
                    "asking the model again ({} of {}): {}{}",
                    count(record, "attempt"),
                    count(record, "max_retries"),
                    text(record, "error"),
                    status.map(|status| format!(", status {status}")).unwrap_or_default(),
                ));
            }
            "task_notification" => {
                notice(format!("task {}: {}", text(record, "status"), text(record, "summary")));
            }
            "task_started" if record.get("is_backgrounded") == Some(&Value::Bool(true)) => {
                notice(format!("in the background: {}", text(record, "description")));
            }
            "compact_boundary" => notice("the conversation was compacted".to_owned()),
            "thinking_tokens"
            | "status"
            | "task_started"
            | "task_updated"
            | "task_progress"
            | "background_tasks_changed"
            | "hook_started"
            | "hook_progress"
            | "hook_response"
            | "local_command_output"
            | "files_persisted" => {}
            _ => return None,
        }
        Some(())
    }

    fn assistant(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        let message = object(record, "message")?;
        // Messages that the CLI itself makes up, to tell of an error.
        let is_synthetic = text(message, "model") == "<synthetic>";
        if let Some(usage) = object(message, "usage").filter(|_| !is_synthetic) {
            self.uncounted.insert(text(message, "id").to_owned(), self.tokens(usage));
        }
        let parent = self.parent(record);
        let mut known = Some(());
        for block in blocks(message) {
            match text(block, "type") {
                "text" if is_synthetic => {
                    events.push(EventKind::Notice { text: text(block, "text").to_owned() });
                }
                "text" => events.push(EventKind::AgentText { text: text(block, "text").to_owned() }),
                "thinking" => {
                    let shown = text(block, "thinking");
                    if !shown.is_empty() {
                        events.push(EventKind::Reasoning { text: shown.to_owned() });
                    }
                }
                "redacted_thinking" => {}
                "tool_use" | "server_tool_use" => events.extend(self.start(block, parent.clone())),
                // What the provider's own tools give back stands in the answer itself.
                kind if kind.ends_with("_tool_result") => match self.finish(block, record) {
                    Some(event) => events.push(event),
                    None => known = None,
                },
                _ => known = None,
            }
        }
        known
    }

    fn user(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        let message = object(record, "message")?;
        let mut known = Some(());
        for block in blocks(message) {
            match text(block, "type") {
                "tool_result" => match self.finish(block, record) {
                    Some(event) => events.push(event),
                    None => known = None,
                },
                // Prompts of sub-agents, and notes that the CLI puts into the conversation.
                "text" | "image" | "document" => {}
                _ => known = None,
            }
        }
        known
    }

    fn result(&mut self, record: &Record, events: &mut Vec<EventKind>) {
        let said = last_words(record);
        if let AgentVerdict::Failed { message } | AgentVerdict::ModelFailed { message, .. } = &said {
            events.push(EventKind::Notice { text: message.clone() });
        }
        self.said = Some(said);
        if let Some(usage) = object(record, "usage") {
            let usage = self.tokens(usage);
            *self.counted.get_or_insert_default() += usage;
            self.uncounted.clear();
        }
    }

    fn tokens(&self, usage: &Record) -> Usage {
        let counted = tokens(usage);
        match self.dialect {
            Dialect::Claude => counted,
            Dialect::Qwen => Usage { input_tokens: count(usage, "input_tokens"), ..counted },
        }
    }

    fn start(&mut self, block: &Record, parent: Option<ToolCallId>) -> Option<EventKind> {
        let key = text(block, "id");
        if self.calls.get(key).is_some() {
            return None;
        }
        let call = ToolCall {
            id: self.calls.id(key),
            name: text(block, "name").to_owned(),
            input: block.get("input").cloned().unwrap_or_default(),
            parent,
        };
        Some(self.calls.start(key, call))
    }

    /// The end of a call; none if no such call is in flight.
    fn finish(&mut self, block: &Record, record: &Record) -> Option<EventKind> {
        let open = self.calls.finish(text(block, "tool_use_id"))?;
        let exit_code = exit_code(&open.name, block, record);
        let (text, bytes) = output(block);
        let mut result = proctor_traces::ToolResult::new(open.id, status(block, record), exit_code, &text);
        result.output_bytes = bytes;
        Some(EventKind::ToolFinished(result))
    }

    /// The call whose sub-agent speaks.
    fn parent(&self, record: &Record) -> Option<ToolCallId> {
        let key = record.get("parent_tool_use_id")?.as_str()?;
        Some(self.calls.get(key).map_or_else(|| ToolCallId(key.to_owned()), |open| open.id.clone()))
    }
}

/// The content blocks of a message; a message may also be one plain text, which says nothing here.
fn blocks(message: &Record) -> impl Iterator<Item = &Record> {
    message.get("content").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

/// Tokens as Anthropic counts them: there the cached ones are not part of `input_tokens`.
fn tokens(usage: &Record) -> Usage {
    let cached = count(usage, "cache_read_input_tokens");
    let details = object(usage, "output_tokens_details");
    Usage {
        input_tokens: count(usage, "input_tokens")
            .saturating_add(cached)
            .saturating_add(count(usage, "cache_creation_input_tokens")),
        cached_input_tokens: cached,
        output_tokens: count(usage, "output_tokens"),
        reasoning_tokens: details.map_or(0, |details| count(details, "thinking_tokens")),
    }
}

/// What a `result` says. `subtype` alone does not tell: a failed request is a `success` with `is_error`.
fn last_words(record: &Record) -> AgentVerdict {
    let is_error = record.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    let subtype = text(record, "subtype");
    if !is_error && subtype == "success" {
        return AgentVerdict::Finished;
    }
    let told = object(record, "error").map(|error| text(error, "message")).unwrap_or_default();
    let message = match (text(record, "result"), told) {
        ("", "") => format!("{subtype} {}", text(record, "terminal_reason")).trim_end().to_owned(),
        ("", said) | (said, _) => said.chars().take(2_000).collect(),
    };
    let is_model = text(record, "terminal_reason") == "api_error" || message.contains("API Error");
    if !is_model {
        return AgentVerdict::Failed { message };
    }
    let status = record.get("api_error_status").and_then(Value::as_u64);
    // Without a status there was no answer: the server could not be reached.
    let cause =
        status.map(cause_of_status).or_else(|| cause_of_message(&message)).unwrap_or(ModelCause::Provider);
    AgentVerdict::ModelFailed { cause, message }
}
