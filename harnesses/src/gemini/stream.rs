//! The lines of `gemini -o stream-json`. The agent's words come in pieces; every turn ends with a `result`.

use proctor_traces::{EventKind, ToolCall, ToolResult, ToolStatus, Usage};

use crate::launch::SessionId;
use crate::records::{Calls, Line, Record, Tally, count, object, parse, text};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::{AgentVerdict, failure};

/// Reads all turns of one trial.
#[derive(Debug, Default)]
pub(crate) struct GeminiStream {
    tally: Tally,
    calls: Calls,
    session: Option<SessionId>,
    /// What the agent said since its last whole message.
    piece: String,
    said: Option<AgentVerdict>,
    usage: Option<Usage>,
}

impl StreamReader for GeminiStream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let record = match parse(line) {
            Line::Blank => return Vec::new(),
            Line::Malformed => return self.tally.malformed(line),
            Line::Record(record) => record,
        };
        let is_piece = text(&record, "type") == "message"
            && text(&record, "role") == "assistant"
            && record.get("delta").and_then(serde_json::Value::as_bool) == Some(true);
        let mut events = Vec::new();
        if !is_piece {
            events.extend(self.flush());
        }
        if self.record(&record, is_piece, &mut events).is_some() {
            self.tally.recognised += 1;
        } else {
            events.extend(self.tally.unknown(line));
        }
        events
    }

    fn end(&mut self) -> StreamEnd {
        let tally = std::mem::take(&mut self.tally);
        let mut events: Vec<EventKind> = self.flush().into_iter().collect();
        events.extend(self.calls.end());
        StreamEnd {
            events,
            verdict: tally.verdict(self.said.take().unwrap_or(AgentVerdict::Silent)),
            recognised: tally.recognised,
            unknown: tally.unknown,
            malformed: tally.malformed,
            session_id: self.session.clone(),
            usage: self.usage.take(),
        }
    }
}

impl GeminiStream {
    /// Adds the events of a record; none if no rule knows it.
    fn record(&mut self, record: &Record, is_piece: bool, events: &mut Vec<EventKind>) -> Option<()> {
        match text(record, "type") {
            "init" => self.session = SessionId::new(text(record, "session_id")).or(self.session.take()),
            "message" if is_piece => self.piece.push_str(text(record, "content")),
            "message" => match text(record, "role") {
                "assistant" => events.push(EventKind::AgentText { text: text(record, "content").to_owned() }),
                // The prompt, and what a command gave back for it: recorded before the start.
                "user" => {}
                _ => return None,
            },
            "tool_use" => events.extend(self.start(record)),
            "tool_result" => events.push(self.finish(record)?),
            "error" => events.push(EventKind::Notice { text: text(record, "message").to_owned() }),
            "result" => self.result(record, events),
            _ => return None,
        }
        Some(())
    }

    fn start(&mut self, record: &Record) -> Option<EventKind> {
        let key = text(record, "tool_id");
        if self.calls.get(key).is_some() {
            return None;
        }
        let call = ToolCall {
            id: self.calls.id(key),
            name: text(record, "tool_name").to_owned(),
            input: record.get("parameters").cloned().unwrap_or_default(),
            parent: None,
        };
        Some(self.calls.start(key, call))
    }

    /// The end of a call; none if no such call is in flight. No exit status of a command is ever told.
    fn finish(&mut self, record: &Record) -> Option<EventKind> {
        let open = self.calls.finish(text(record, "tool_id"))?;
        let status = match text(record, "status") {
            "success" => ToolStatus::Ok,
            "cancelled" => ToolStatus::Declined,
            _ => ToolStatus::Failed,
        };
        let output = match text(record, "output") {
            "" => object(record, "error").map(|error| text(error, "message")).unwrap_or_default(),
            output => output,
        };
        Some(EventKind::ToolFinished(ToolResult::new(open.id, status, None, output)))
    }

    fn result(&mut self, record: &Record, events: &mut Vec<EventKind>) {
        let said = match text(record, "status") {
            "success" => AgentVerdict::Finished,
            status => match object(record, "error").map(|error| text(error, "message")) {
                Some(message) if !message.is_empty() => failure(message),
                _ => failure(status),
            },
        };
        if let AgentVerdict::Failed { message } | AgentVerdict::ModelFailed { message, .. } = &said {
            events.push(EventKind::Notice { text: message.clone() });
        }
        self.said = Some(said);
        let Some(stats) = object(record, "stats") else { return };
        // Output is counted without thoughts; the total holds them.
        let (input, output) = (count(stats, "input_tokens"), count(stats, "output_tokens"));
        let reasoning_tokens = count(stats, "total_tokens").saturating_sub(input.saturating_add(output));
        *self.usage.get_or_insert_default() += Usage {
            input_tokens: input,
            cached_input_tokens: count(stats, "cached"),
            output_tokens: output.saturating_add(reasoning_tokens),
            reasoning_tokens,
        };
    }

    fn flush(&mut self) -> Option<EventKind> {
        let text = std::mem::take(&mut self.piece);
        (!text.is_empty()).then_some(EventKind::AgentText { text })
    }
}
