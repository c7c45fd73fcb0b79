//! One tool call as everybody downstream sees it, whoever told of it: the unit that is counted, drawn and labelled.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Digest, ToolCallId, ToolResult, ToolStatus, event::cut};

/// When something happened, and who says so.
///
/// In a [`crate::Trace`], `ms` counts from the start of the agent. In the [`crate::Records`] of a single source it counts
/// from wherever the clock of that source does ([`crate::SourceClock`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// Milliseconds.
    pub ms: i64,
    /// Who says so.
    pub by: Witness,
}

/// Who saw something, or says when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Witness {
    /// A line of the agent's output, by the time of its arrival on the host.
    Stream,
    /// A line of the agent's output, by the time that the agent wrote into it.
    StreamRecord,
    /// A record of the agent's session file, by the time written there.
    SessionFile,
    /// The model gateway.
    Gateway,
    /// The watcher of the artifact, outside the container.
    Watcher,
    /// PID 1 of the container, or the runner.
    Guest,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Its name, unique in the trace.
    pub id: ToolCallId,
    /// Its place in the causal order that calls and [`crate::Said`] share; times may go backwards, this does not.
    pub seq: u32,
    /// The turn it belongs to, from 1.
    pub turn: u32,
    /// Name of the tool as the harness calls it (`exec_command`, `Bash`, …).
    pub name: String,
    /// The arguments as given; what could not be read as JSON is here as text.
    pub input: Value,
    /// The call inside which this one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
    /// What lies between it and its parent.
    #[serde(default, skip_serializing_if = "Nesting::is_top")]
    pub nesting: Nesting,
    /// The sub-agent that made it; none for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The earlier call that this one only waits for, feeds or stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<ToolCallId>,
    /// When the model's wish was recorded, if that is not the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<Moment>,
    /// When it began.
    pub start: Option<Moment>,
    /// When the work ended; none if nobody saw an end.
    pub end: Option<Moment>,
    /// When the model got an answer, if the work went on after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Moment>,
    /// How it went.
    pub status: ToolStatus,
    /// Exit status, for tools that run a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it gave back as text, cut at 64 KiB.
    pub output: String,
    /// Size of all it gave back in bytes, pictures included.
    pub output_bytes: u64,
    /// Whether `output` was cut, by us or by the agent.
    pub truncated: bool,
    /// Pictures that it put before the model, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ViewedImage>,
    /// Who saw it.
    pub seen_by: Vec<Witness>,
}

/// What lies between a call and its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nesting {
    /// Nothing: the agent itself made it.
    #[default]
    Top,
    /// A program that the agent wrote for the parent call (Codex's code mode).
    Program,
    /// A sub-agent that the parent call started.
    SubAgent,
}

impl Nesting {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
    fn is_top(&self) -> bool {
        *self == Self::Top
    }
}

/// A picture that was put before the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViewedImage {
    /// Where it came from, as the call named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `image/png`, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// Digest of its bytes, where the record holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
}

/// What a tool is for, whatever the harness calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Runs a shell command.
    Shell,
    /// Reads a file; a picture may be what is read.
    Read,
    /// Shows a picture.
    ViewImage,
    /// Writes a whole file.
    Write,
    /// Changes files.
    Edit,
    /// Notes a plan or a list of things to do.
    Plan,
    /// Waits for, feeds or stops an earlier call.
    Poll,
    /// Runs a program that calls tools.
    Program,
    /// Starts a sub-agent, or speaks to one.
    Delegate,
    /// Looks for files, text, tools, or in the web.
    Search,
    /// Anything else.
    Other,
}

impl ToolKind {
    /// The kind of a tool, by the names that the known harnesses use.
    pub fn of(name: &str) -> Self {
        match name {
            "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec" | "Bash"
            | "bash" | "run_shell_command" => Self::Shell,
            "Read" | "read" | "read_file" | "NotebookRead" | "read_many_files" => Self::Read,
            "view_image" => Self::ViewImage,
            "Write" | "write" | "write_file" => Self::Write,
            "Edit" | "MultiEdit" | "NotebookEdit" | "edit" | "multiedit" | "patch" | "replace"
            | "apply_patch" => Self::Edit,
            "update_plan" | "TodoWrite" | "todowrite" | "todo_write" | "write_todos" | "TaskCreate"
            | "TaskUpdate" | "TaskList" | "TaskGet" | "create_goal" | "update_goal" => Self::Plan,
            "write_stdin" | "wait" | "BashOutput" | "TaskOutput" | "AgentOutput" | "KillShell"
            | "KillBash" | "TaskStop" | "wait_agent" | "clock.sleep" => Self::Poll,
            "exec" => Self::Program,
            "Task" | "Agent" | "task" | "agent" | "spawn_agent" | "send_input" | "send_message"
            | "followup_task" => Self::Delegate,
            "Grep"
            | "Glob"
            | "LS"
            | "grep"
            | "glob"
            | "list"
            | "ls"
            | "find"
            | "list_directory"
            | "search_file_content"
            | "grep_search"
            | "ToolSearch"
            | "tool_search"
            | "WebSearch"
            | "WebFetch"
            | "web_search"
            | "webfetch"
            | "google_web_search"
            | "web_fetch" => Self::Search,
            _ => Self::Other,
        }
    }
}

impl Call {
    /// What its tool is for.
    pub fn kind(&self) -> ToolKind {
        ToolKind::of(&self.name)
    }

    /// Whether the agent or a sub-agent made it, and not a program inside another call.
    pub fn is_outer(&self) -> bool {
        self.nesting != Nesting::Program
    }

    /// How long it took in milliseconds, where both ends are known; never negative.
    pub fn duration_ms(&self) -> Option<u64> {
        let (start, end) = (self.start?, self.end?);
        Some(u64::try_from(end.ms.saturating_sub(start.ms)).unwrap_or(0))
    }

    /// The script that a shell tool was given, without the shell around it; none for other tools.
    pub fn command(&self) -> Option<String> {
        if self.kind() != ToolKind::Shell {
            return None;
        }
        let given = ["cmd", "command"].iter().find_map(|key| self.input.get(*key))?;
        match given {
            // Codex prints the words of its own shell around the script; what a model writes stays as it is.
            Value::String(line) if self.name == "exec_command" && self.input.get("cmd").is_none() => {
                Some(crate::words::script_of_line(line))
            }
            Value::String(script) => Some(script.clone()),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                Some(crate::words::script_of_words(&words))
            }
            _ => None,
        }
    }

    /// The one file that the call names in its arguments, for tools that read, show, write or edit one.
    pub fn path(&self) -> Option<&str> {
        let keys = ["file_path", "filePath", "path", "absolute_path", "notebook_path"];
        keys.iter().find_map(|key| self.input.get(*key)).and_then(Value::as_str)
    }

    /// Sets what the call gave back, cut to what is kept.
    pub(crate) fn set_output(&mut self, mut text: String, bytes: u64) {
        let kept = cut(&text, ToolResult::OUTPUT_CAP).len();
        self.truncated = kept < text.len();
        text.truncate(kept);
        self.output = text;
        self.output_bytes = bytes;
    }
}
