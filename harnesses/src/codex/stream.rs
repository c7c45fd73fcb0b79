//! The lines of `codex exec --json`. They hold no times at all, restart their item ids with every process, and do not
//! tell of every tool: a viewed picture is only in the session file.

use proctor_traces::{EventKind, ToolCall, ToolCallId, ToolResult, ToolStatus, Usage};
use serde_json::{Value, json};

use crate::launch::SessionId;
use crate::records::{Calls, Line, Record, Tally, count, object, parse, text};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::{AgentVerdict, failure};

/// Reads all turns of one trial.
#[derive(Debug, Default)]
pub(crate) struct CodexStream {
    /// Turns ended so far.
    ended_turns: u32,
    tally: Tally,
    calls: Calls,
    session: Option<SessionId>,
    /// What the last terminal record of this turn said.
    said: Option<AgentVerdict>,
    /// The last error record, which is the failure if nothing else follows.
    last_error: Option<String>,
    usage: Option<Usage>,
    /// The session of the turn before and its tokens up to then: after a resume Codex goes on counting.
    before: Option<(SessionId, Usage)>,
    /// Changes of the plan seen in this turn.
    plans: u32,
}

impl StreamReader for CodexStream {
    fn line(&mut self, line: &[u8]) -> Vec<EventKind> {
        let record = match parse(line) {
            Line::Blank => return Vec::new(),
            Line::Malformed => return self.tally.malformed(line),
            Line::Record(record) => record,
        };
        match self.record(&record) {
            Some(events) => {
                self.tally.recognised += 1;
                events
            }
            None => self.tally.unknown(line),
        }
    }

    fn end(&mut self) -> StreamEnd {
        let tally = std::mem::take(&mut self.tally);
        let said = match (self.said.take(), self.last_error.take()) {
            (Some(said), _) => said,
            (None, Some(message)) => failure(&message),
            (None, None) => AgentVerdict::Silent,
        };
        self.ended_turns += 1;
        self.plans = 0;
        StreamEnd {
            events: self.calls.end(),
            verdict: tally.verdict(said),
            recognised: tally.recognised,
            unknown: tally.unknown,
            malformed: tally.malformed,
            session_id: self.session.clone(),
            usage: self.usage.take(),
        }
    }
}

impl CodexStream {
    /// The events of a record; none if no rule knows it.
    fn record(&mut self, record: &Record) -> Option<Vec<EventKind>> {
        let nothing = Some(Vec::new());
        match text(record, "type") {
            "thread.started" => {
                self.session = SessionId::new(text(record, "thread_id"));
                nothing
            }
            "turn.started" => {
                (self.said, self.last_error) = (None, None);
                nothing
            }
            "turn.completed" => {
                self.said = Some(AgentVerdict::Finished);
                if let Some(usage) = object(record, "usage") {
                    self.count_tokens(usage);
                }
                nothing
            }
            "turn.failed" => {
                let message = object(record, "error").map_or("", |error| text(error, "message"));
                self.said = Some(failure(message));
                Some(vec![EventKind::Notice { text: format!("turn failed: {message}") }])
            }
            "error" => {
                let message = text(record, "message");
                let is_retry = message.starts_with("Reconnecting...");
                self.last_error = (!is_retry).then(|| message.to_owned());
                Some(vec![EventKind::Notice { text: message.to_owned() }])
            }
            // Parts of a plan while it is being written; the whole comes as an item.
            "item.plan.delta" => nothing,
            "item.started" => self.item(Phase::Started, object(record, "item")?),
            "item.updated" => self.item(Phase::Updated, object(record, "item")?),
            "item.completed" => self.item(Phase::Completed, object(record, "item")?),
            _ => None,
        }
    }

    /// What an item tells of, by its type.
    fn item(&mut self, phase: Phase, item: &Record) -> Option<Vec<EventKind>> {
        let said = |event: fn(String) -> EventKind, key: &str| match phase {
            Phase::Completed => Some(vec![event(text(item, key).to_owned())]),
            Phase::Started | Phase::Updated => Some(Vec::new()),
        };
        match text(item, "type") {
            "agent_message" | "plan" => said(|text| EventKind::AgentText { text }, "text"),
            "reasoning" => said(|text| EventKind::Reasoning { text }, "text"),
            // Warnings, such as a model that Codex has no metadata for. The run goes on.
            "error" => said(|text| EventKind::Notice { text }, "message"),
            "todo_list" => Some(self.plan(phase, item)),
            "command_execution" => {
                let input = json!({ "command": item.get("command") });
                Some(self.call(phase, item, "exec_command", input))
            }
            "file_change" => {
                let input = json!({ "changes": item.get("changes") });
                Some(self.call(phase, item, "apply_patch", input))
            }
            "web_search" => {
                let input = json!({ "query": item.get("query") });
                Some(self.call(phase, item, "web_search", input))
            }
            "mcp_tool_call" => {
                let input = json!({ "server": item.get("server"), "arguments": item.get("arguments") });
                let name = tool_name(item);
                Some(self.call(phase, item, name, input))
            }
            "collab_tool_call" => {
                let input = json!({ "prompt": item.get("prompt") });
                let name = tool_name(item);
                Some(self.call(phase, item, name, input))
            }
            _ => None,
        }
    }

    /// A tool call. Codex prints some only when they are over: then both events come at once.
    fn call(&mut self, phase: Phase, item: &Record, name: &str, input: Value) -> Vec<EventKind> {
        let key = text(item, "id");
        let mut events = Vec::new();
        if self.calls.get(key).is_none() {
            let call = ToolCall { id: self.call_id(key), name: name.to_owned(), input, parent: None };
            events.push(self.calls.start(key, call));
        }
        if phase == Phase::Completed {
            if let Some(open) = self.calls.finish(key) {
                events.push(EventKind::ToolFinished(result(open.id, item)));
            }
        }
        events
    }

    /// The plan is one item all through a turn, but each change of it is one call of the tool. Its completion comes
    /// with the end of the turn and changes nothing.
    fn plan(&mut self, phase: Phase, item: &Record) -> Vec<EventKind> {
        if phase == Phase::Completed && self.plans > 0 {
            return Vec::new();
        }
        self.plans += 1;
        let id = self.call_id(&format!("{}.{}", text(item, "id"), self.plans));
        let call = ToolCall {
            id: id.clone(),
            name: "update_plan".to_owned(),
            input: json!({ "plan": item.get("items") }),
            parent: None,
        };
        let result = ToolResult::new(id, ToolStatus::Ok, None, "");
        vec![EventKind::ToolStarted(call), EventKind::ToolFinished(result)]
    }

    /// Item ids restart with each turn's process, so the turn is part of the name.
    fn call_id(&mut self, item_id: &str) -> ToolCallId {
        self.calls.id(&format!("turn-{}/{item_id}", self.ended_turns + 1))
    }

    fn count_tokens(&mut self, printed: &Record) {
        let total = Usage {
            input_tokens: count(printed, "input_tokens"),
            cached_input_tokens: count(printed, "cached_input_tokens"),
            output_tokens: count(printed, "output_tokens"),
            reasoning_tokens: count(printed, "reasoning_output_tokens"),
        };
        let Some(session) = self.session.clone() else {
            self.usage = Some(total);
            return;
        };
        let earlier = match &self.before {
            // A smaller total is a fresh count: some versions may not go on counting.
            Some((same, earlier)) if *same == session && earlier.input_tokens <= total.input_tokens => {
                *earlier
            }
            _ => Usage::default(),
        };
        let mut turn = self.usage.unwrap_or_default();
        turn += Usage {
            input_tokens: total.input_tokens.saturating_sub(earlier.input_tokens),
            cached_input_tokens: total.cached_input_tokens.saturating_sub(earlier.cached_input_tokens),
            output_tokens: total.output_tokens.saturating_sub(earlier.output_tokens),
            reasoning_tokens: total.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
        };
        self.usage = Some(turn);
        self.before = Some((session, total));
    }
}

/// Where an item stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Updated,
    Completed,
}

/// The name of a tool that is not Codex's own.
fn tool_name(item: &Record) -> &str {
    match text(item, "tool") {
        "" => "unnamed",
        name => name,
    }
}

/// What came of a call that is over.
fn result(id: ToolCallId, item: &Record) -> ToolResult {
    let exit_code = item.get("exit_code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let error = object(item, "error").map(|error| text(error, "message"));
    let status = match text(item, "status") {
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Declined,
        _ if error.is_some() => ToolStatus::Failed,
        _ => ToolStatus::Ok,
    };
    let output = match (item.get("aggregated_output"), item.get("result"), error) {
        (Some(Value::String(output)), _, _) => output.clone(),
        (_, Some(result), _) if !result.is_null() => result.to_string(),
        (_, _, Some(error)) => error.to_owned(),
        _ => String::new(),
    };
    ToolResult::new(id, status, exit_code, &output)
}
