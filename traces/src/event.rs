//! The events of a trace: who saw what, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, ExchangeEnd, Nesting, OffsetMs, Timestamp, ViewedImage, WireFormat};

/// One line of `trace.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEvent {
    /// Position in the file, from 0, without gaps.
    pub seq: u64,
    /// Wall time at which the source saw it.
    pub at: Timestamp,
    /// Monotonic milliseconds since the agent was exec'd; negative before that.
    pub offset_ms: OffsetMs,
    /// The turn it belongs to, from 1.
    pub turn: u32,
    /// Who saw it.
    pub source: Source,
    /// Whether `at` and `offset_ms` mean nothing: it comes from a file without times.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untimed: bool,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Who saw an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A line that the agent printed, at its arrival.
    AgentStream,
    /// A record of the agent's own session file, with the time written there.
    SessionFile,
    /// The model gateway.
    Gateway,
    /// The watcher of the artifact, outside the container.
    Watcher,
    /// PID 1 of the container.
    Guest,
    /// The runner itself.
    Runner,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    /// What a foreign session said of itself; the first line of a trace that was imported, and of no other.
    Imported {
        /// Name of the agent that wrote it.
        agent: Option<String>,
        /// Version of the agent's CLI.
        version: Option<String>,
        /// The model.
        model: Option<String>,
        /// Id of the session.
        session: Option<String>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// The agent had been exec'd for this turn.
    TurnStarted,
    /// A message to the agent, as its session file has it.
    Prompt {
        /// The message.
        text: String,
    },
    /// The agent said something.
    AgentText {
        /// What it said.
        text: String,
    },
    /// The agent showed some of its reasoning.
    Reasoning {
        /// The shown summary.
        text: String,
    },
    /// A tool call was issued.
    ToolStarted(ToolCall),
    /// A tool call returned, or was still in flight when the trial ended.
    ToolFinished(ToolResult),
    /// What a session file tells of a call beyond what a stream does; follows the call's other events.
    ToolDetail(ToolDetail),
    /// The model server was asked.
    ModelRequest {
        /// Number of the exchange in `model/exchanges.jsonl`.
        exchange: u64,
        /// Wire format of the route.
        wire: WireFormat,
        /// The model the agent asked for.
        model: Option<String>,
        /// Size of the request body in bytes.
        bytes: u64,
    },
    /// The exchange ended, well or not.
    ModelResponse {
        /// Number of the exchange.
        exchange: u64,
        /// HTTP status, if one was sent.
        status: Option<u16>,
        /// How the exchange ended.
        end: ExchangeEnd,
        /// Tokens as the server counted them.
        usage: Option<Usage>,
    },
    /// A new version of the artifact was seen from outside.
    ArtifactChanged {
        /// Digest of this version; its bytes are in `history/`.
        digest: Digest,
        /// Size in bytes.
        bytes: u64,
    },
    /// Something worth telling: a warning of the agent, a retry, a freeze.
    Notice {
        /// For readers.
        text: String,
    },
    /// The agent process of this turn is gone, or was frozen.
    TurnFinished {
        /// Tokens of the turn as the agent counted them.
        usage: Option<Usage>,
    },
    /// A record that no rule knows, kept as it came (DESIGN §3.11).
    Raw {
        /// The line, cut at 64 KiB; `raw/` has all of it.
        text: String,
    },
}

/// Name of a tool call, unique within its trial and source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolCallId(pub String);

/// A tool call as the agent issued it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Its name, by which the result refers to it.
    pub id: ToolCallId,
    /// Name of the tool as the harness calls it (`exec_command`, `Bash`, …).
    pub name: String,
    /// The arguments as given.
    pub input: serde_json::Value,
    /// The call inside which this one was made (a sub-agent's, a program's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call.
    pub id: ToolCallId,
    /// How it went.
    pub status: ToolStatus,
    /// Exit status, for tools that run a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it gave back as text, cut at 64 KiB.
    pub output: String,
    /// Size of all it gave back, in bytes.
    pub output_bytes: u64,
    /// Whether `output` was cut.
    pub truncated: bool,
}

/// What a session file tells of a call beyond what a stream does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDetail {
    /// The call.
    pub id: ToolCallId,
    /// What lies between it and its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nesting: Option<Nesting>,
    /// The sub-agent that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The earlier call that it only waits for, feeds or stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<ToolCallId>,
    /// Offset at which the model's wish was recorded, if that is not the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_ms: Option<OffsetMs>,
    /// Offset at which the model got an answer, if the work went on after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_ms: Option<OffsetMs>,
    /// Offset at which it was cut off, if it is unfinished and that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off_ms: Option<OffsetMs>,
    /// Pictures that it put before the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ViewedImage>,
}

impl ToolResult {
    /// Longest output text kept in the trace, in bytes.
    pub const OUTPUT_CAP: usize = 64 << 10;

    /// A result with `output` cut to [`Self::OUTPUT_CAP`].
    pub fn new(id: ToolCallId, status: ToolStatus, exit_code: Option<i32>, output: &str) -> Self {
        let kept = cut(output, Self::OUTPUT_CAP);
        Self {
            id,
            status,
            exit_code,
            output: kept.to_owned(),
            output_bytes: output.len() as u64,
            truncated: kept.len() < output.len(),
        }
    }
}

/// How a tool call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what was asked.
    Ok,
    /// It reported a failure.
    Failed,
    /// The harness or a policy refused it.
    Declined,
    /// It was still in flight when the trial ended.
    Unfinished,
}

/// Tokens of one response or one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Prompt tokens, the cached ones included.
    pub input_tokens: u64,
    /// Prompt tokens that came from the provider's cache.
    pub cached_input_tokens: u64,
    /// Generated tokens, reasoning included.
    pub output_tokens: u64,
    /// Generated tokens that were reasoning, where the server says so.
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // Counts come from the outside: a lying server may send any number.
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(other.cached_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// What stood at the artifact's path when the room was frozen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ArtifactState {
    /// A regular file within the cap; its bytes are in `artifacts/`.
    Present {
        /// Digest of the bytes.
        digest: Digest,
        /// Size in bytes, at least 1.
        bytes: u64,
    },
    /// Nothing.
    Missing,
    /// A regular file of no bytes.
    Empty,
    /// A symbolic link, wherever it leads: never followed.
    Link,
    /// A directory, fifo, socket or device.
    NotAFile,
    /// A regular file beyond the cap.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A regular file that could not be read.
    Unreadable {
        /// Why.
        message: String,
    },
}

/// `text` cut to at most `cap` bytes, at a character boundary.
pub(crate) fn cut(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut end = cap;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl EventKind {
    /// An unknown record, cut to the length that the trace keeps.
    pub fn raw(text: &str) -> Self {
        Self::Raw { text: cut(text, ToolResult::OUTPUT_CAP).to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let event = TraceEvent {
            seq: 3,
            at: Timestamp::from_millis(0),
            offset_ms: OffsetMs(-5),
            turn: 1,
            source: Source::AgentStream,
            untimed: false,
            kind: EventKind::ToolStarted(ToolCall {
                id: ToolCallId("call_1".into()),
                name: "Bash".into(),
                input: serde_json::json!({"command": "ls"}),
                parent: None,
            }),
        };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            r#"{"seq":3,"at":"1970-01-01T00:00:00.000Z","offset_ms":-5,"turn":1,"source":"agent_stream","kind":"tool_started","id":"call_1","name":"Bash","input":{"command":"ls"}}"#
        );
        assert_eq!(serde_json::from_str::<TraceEvent>(&json).unwrap(), event);
    }

    #[test]
    fn long_output_is_cut_between_characters_and_its_size_kept() {
        let output = "é".repeat(ToolResult::OUTPUT_CAP);
        let result = ToolResult::new(ToolCallId("x".into()), ToolStatus::Ok, Some(0), &output[..]);
        assert_eq!(result.output.len(), ToolResult::OUTPUT_CAP);
        assert_eq!(result.output_bytes, 2 * ToolResult::OUTPUT_CAP as u64);
        assert!(result.truncated);
    }
}
