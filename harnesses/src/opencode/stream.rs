//! The lines of `opencode run --format json`. A call is told of when it is over, and nothing at all tells that the run
//! is: the reason with which the last step finished has to.

use proctor_traces::{EventKind, ModelCause, ToolCall, ToolResult, ToolStatus, Usage};
use serde_json::Value;

use crate::launch::SessionId;
use crate::records::{Calls, Line, Record, Tally, count, object, parse, text};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::{AgentVerdict, cause_of_status, failure};

/// Reads all turns of one trial.
#[derive(Debug, Default)]
pub(crate) struct OpenCodeStream {
    tally: Tally,
    calls: Calls,
    session: Option<SessionId>,
    said: Option<AgentVerdict>,
    usage: Option<Usage>,
}

impl StreamReader for OpenCodeStream {
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

impl OpenCodeStream {
    /// Adds the events of a record; none if no rule knows it.
    fn record(&mut self, record: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        // Sub-agents have sessions of their own; the first is the one to go on with.
        self.session = self.session.take().or_else(|| SessionId::new(text(record, "sessionID")));
        let part = object(record, "part");
        match (text(record, "type"), part) {
            ("text", Some(part)) => events.push(EventKind::AgentText { text: text(part, "text").to_owned() }),
            ("reasoning", Some(part)) => {
                events.push(EventKind::Reasoning { text: text(part, "text").to_owned() });
            }
            ("tool_use", Some(part)) => return self.tool(part, events),
            // It goes on, so that whatever was said before is not the end.
            ("step_start", _) => self.said = None,
            ("step_finish", Some(part)) => self.finished(part),
            ("error", _) => {
                let said = error(object(record, "error"));
                if let AgentVerdict::Failed { message } | AgentVerdict::ModelFailed { message, .. } = &said {
                    events.push(EventKind::Notice { text: message.clone() });
                }
                self.said = Some(said);
            }
            _ => return None,
        }
        Some(())
    }

    fn tool(&mut self, part: &Record, events: &mut Vec<EventKind>) -> Option<()> {
        let state = object(part, "state")?;
        let key = text(part, "callID");
        if self.calls.get(key).is_none() {
            let call = ToolCall {
                id: self.calls.id(key),
                name: text(part, "tool").to_owned(),
                input: state.get("input").cloned().unwrap_or_default(),
                parent: None,
            };
            events.push(self.calls.start(key, call));
        }
        let status = text(state, "status");
        if !matches!(status, "completed" | "error") {
            return Some(());
        }
        let open = self.calls.finish(key)?;
        let exit = object(state, "metadata").and_then(|it| it.get("exit")?.as_i64());
        let exit_code = exit.and_then(|it| i32::try_from(it).ok());
        let said = text(state, "error");
        let status = match status {
            "completed" if exit_code.is_none_or(|code| code == 0) => ToolStatus::Ok,
            _ if said.contains("rejected permission") => ToolStatus::Declined,
            _ => ToolStatus::Failed,
        };
        let output = if text(state, "output").is_empty() { said } else { text(state, "output") };
        let mut result = ToolResult::new(open.id, status, exit_code, output);
        result.output_bytes = result.output_bytes.saturating_add(attached(state));
        events.push(EventKind::ToolFinished(result));
        Some(())
    }

    fn finished(&mut self, part: &Record) {
        self.said = match text(part, "reason") {
            // Calls were made, whose results come next.
            "tool-calls" => None,
            "content-filter" => Some(AgentVerdict::ModelFailed {
                cause: ModelCause::Request,
                message: "the provider's filter ended the answer".to_owned(),
            }),
            "error" | "unknown" | "other" => Some(AgentVerdict::ModelFailed {
                cause: ModelCause::Provider,
                message: "the provider's answer ended without saying why".to_owned(),
            }),
            _ => Some(AgentVerdict::Finished),
        };
        let Some(tokens) = object(part, "tokens") else { return };
        let cache = |key: &str| object(tokens, "cache").map_or(0, |cache| count(cache, key));
        let reasoning_tokens = count(tokens, "reasoning");
        *self.usage.get_or_insert_default() += Usage {
            input_tokens: count(tokens, "input").saturating_add(cache("read")).saturating_add(cache("write")),
            cached_input_tokens: cache("read"),
            output_tokens: count(tokens, "output").saturating_add(reasoning_tokens),
            reasoning_tokens,
        };
    }
}

/// What an `error` tells of. One with a status is an answer of the model server's.
fn error(error: Option<&Record>) -> AgentVerdict {
    let Some(error) = error else { return failure("an error without words") };
    let name = text(error, "name");
    let data = object(error, "data");
    let message = match data.map(|data| text(data, "message")).unwrap_or_default() {
        "" => name.to_owned(),
        message => message.chars().take(2_000).collect(),
    };
    let status = data.and_then(|data| data.get("statusCode")?.as_u64());
    match (status, name) {
        (Some(status), _) => AgentVerdict::ModelFailed { cause: cause_of_status(status), message },
        // No status: the server could not be reached, or broke off.
        (None, "APIError") => AgentVerdict::ModelFailed { cause: ModelCause::Provider, message },
        (None, _) => failure(&message),
    }
}

/// Bytes of the pictures that a result carries.
fn attached(state: &Record) -> u64 {
    let files = state.get("attachments").and_then(Value::as_array).into_iter().flatten();
    let urls = files.filter_map(|file| file.get("url")?.as_str()?.split_once(";base64,"));
    urls.map(|(_, data)| data.trim_end_matches('=').len() as u64 * 3 / 4).sum()
}
