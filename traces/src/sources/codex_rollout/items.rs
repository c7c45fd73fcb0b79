//! What Codex itself tells of its work: items with the times of their beginning and end, and the events of older versions
//! that did the same.

use serde_json::{Value, json};

use super::Rollout;
use crate::sources::json::Object;
use crate::sources::records::Builder;
use crate::sources::{SaidKind, Unknown};
use crate::{Call, Moment, Nesting, ToolCallId, ToolStatus, ViewedImage};

/// What an item tells of a call.
struct Told {
    name: String,
    input: Value,
    is_over: bool,
    start: Option<Moment>,
    end: Option<Moment>,
    /// None where it does not say.
    status: Option<ToolStatus>,
    exit_code: Option<i32>,
    output: Option<String>,
    image: Option<ViewedImage>,
}

impl Rollout {
    pub(super) fn item(
        &mut self,
        event: &str,
        payload: &Object<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let item = payload.object("item").ok_or_else(|| Unknown(format!("event_msg/{event}")))?;
        let kind = item.text_or_empty("type");
        let is_over = event == "item_completed";
        let (name, input) = match &*kind {
            "UserMessage" => {
                let words: String =
                    item.objects("content").map(|it| it.text_or_empty("text").into_owned()).collect();
                self.prompt_event(&words, at, out);
                return Ok(());
            }
            "AgentMessage" if is_over => {
                for part in item.objects("content") {
                    self.echoes.event(SaidKind::Text, &part.text_or_empty("text"), at, out);
                }
                return Ok(());
            }
            "Plan" if is_over => {
                self.echoes.event(SaidKind::Text, &item.text_or_empty("text"), at, out);
                return Ok(());
            }
            "Reasoning" if is_over => {
                for part in item.array("summary_text") {
                    self.echoes.event(SaidKind::Reasoning, &part.text().unwrap_or_default(), at, out);
                }
                return Ok(());
            }
            "CommandExecution" => (
                "exec_command".to_owned(),
                json!({"command": item.value("command"), "workdir": item.value("cwd")}),
            ),
            "ImageView" => {
                let path = local_path(&item.text_or_empty("path"));
                ("view_image".to_owned(), json!({"path": path}))
            }
            "FileChange" => ("apply_patch".to_owned(), json!({"changes": item.value("changes")})),
            "McpToolCall" => {
                let name = item.text("tool").map_or_else(|| "unnamed".to_owned(), Into::into);
                (name, json!({"server": item.value("server"), "arguments": item.value("arguments")}))
            }
            "WebSearch" => ("web_search".to_owned(), json!({"query": item.value("query")})),
            "DynamicToolCall" | "CollabToolCall" | "CollabAgentToolCall" => {
                let name = item.text("tool").map_or_else(|| "unnamed".to_owned(), Into::into);
                (name, json!({"prompt": item.value("prompt"), "arguments": item.value("arguments")}))
            }
            "AgentMessage" | "Plan" | "Reasoning" | "ContextCompaction" | "HookPrompt"
            | "EnteredReviewMode" | "ExitedReviewMode" | "TodoList" | "ImageGeneration"
            | "SubAgentActivity" | "Sleep" => return Ok(()),
            _ => return Err(Unknown(format!("{event}/{kind}"))),
        };
        let moment = |key: &str| out.moment(payload.int(key)).or(at);
        let image = (&*kind == "ImageView").then(|| ViewedImage {
            path: Some(local_path(&item.text_or_empty("path"))),
            media_type: None,
            bytes: 0,
            digest: None,
        });
        let told = Told {
            name,
            input,
            is_over,
            start: moment("started_at_ms"),
            end: moment("completed_at_ms"),
            status: status(&item),
            exit_code: item.exit_code("exit_code"),
            output: output(&item),
            image,
        };
        self.tell(&item.text_or_empty("id"), told, out);
        Ok(())
    }

    /// The events of versions before there were items.
    pub(super) fn begin_or_end(
        &mut self,
        event: &str,
        payload: &Object<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) {
        let invocation = payload.object("invocation");
        let of_tool = |key: &str| invocation.as_ref().map_or(Value::Null, |it| it.value(key));
        let (name, input) = match event {
            "exec_command_begin" | "exec_command_end" => (
                "exec_command".to_owned(),
                json!({"command": payload.value("command"), "workdir": payload.value("cwd")}),
            ),
            "patch_apply_begin" | "patch_apply_end" => {
                ("apply_patch".to_owned(), json!({"changes": payload.value("changes")}))
            }
            "mcp_tool_call_begin" | "mcp_tool_call_end" => {
                let name = of_tool("tool").as_str().unwrap_or("unnamed").to_owned();
                (name, json!({"server": of_tool("server"), "arguments": of_tool("arguments")}))
            }
            "web_search_begin" | "web_search_end" => {
                ("web_search".to_owned(), json!({"query": payload.value("query")}))
            }
            _ => ("view_image".to_owned(), json!({"path": payload.value("path")})),
        };
        let is_over = !event.ends_with("_begin");
        let image = (event == "view_image_tool_call").then(|| ViewedImage {
            path: payload.text("path").map(|path| local_path(&path)),
            media_type: None,
            bytes: 0,
            digest: None,
        });
        let lasted = payload.object("duration").map(|it| {
            it.int("secs")
                .unwrap_or(0)
                .saturating_mul(1000)
                .saturating_add(it.int("nanos").unwrap_or(0) / 1_000_000)
        });
        let start = match (at, lasted) {
            (Some(at), Some(lasted)) if is_over => Some(Moment { ms: at.ms.saturating_sub(lasted), ..at }),
            (at, _) => at.filter(|_| !is_over),
        };
        let of_success = payload.get("success").map(|it| match it.as_written() {
            "true" => ToolStatus::Ok,
            _ => ToolStatus::Failed,
        });
        let told = Told {
            name,
            input,
            is_over,
            start,
            end: at,
            status: status(payload).or(of_success),
            exit_code: payload.exit_code("exit_code"),
            output: output(payload),
            image,
        };
        self.tell(&payload.text_or_empty("call_id"), told, out);
    }

    /// Adds what an item tells to its call, or makes it the operation of a program.
    fn tell(&mut self, key: &str, told: Told, out: &mut Builder) {
        if !out.has(key) {
            let parent = self.program_of(&told, out);
            let call = out.start(key, &told.name, told.input, told.start);
            call.nesting = if parent.is_some() { Nesting::Program } else { Nesting::Top };
            call.parent = parent;
        } else if told.name == "apply_patch" {
            out.records.patched.push(ToolCallId(key.to_owned()));
        }
        let Some(call) = out.call(key) else { return };
        // A patch inside a shell command is told under the id of the command, of which it is not the whole.
        let is_part = told.name == "apply_patch" && call.name != "apply_patch";
        if is_part {
            return;
        }
        // `started_at_ms` is when Codex took a running process into its books: up to 0.2 s after its start (`sleep 2` lasts
        // 1.85 s by it, and files change before it). A call that was issued started then.
        call.start = call.start.or(told.start);
        if !told.is_over {
            return;
        }
        self.told_by_item.insert(key.to_owned());
        finish(call, told.status, told.exit_code, told.end);
        if let Some(output) = told.output {
            let bytes = output.len() as u64;
            call.set_output(output, bytes);
        }
        if let Some(image) = told.image {
            match call.images.first_mut() {
                Some(known) => known.path = known.path.take().or(image.path),
                None => call.images.push(image),
            }
        }
    }

    /// The program that an operation belongs to: the one at work in which it stands, or else the last.
    fn program_of(&self, told: &Told, out: &mut Builder) -> Option<ToolCallId> {
        let words = match &told.input {
            Value::Object(input) => {
                let command = input.get("command").and_then(Value::as_array).and_then(|words| words.last());
                command.or_else(|| input.get("path")).and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        };
        let mut found = None;
        for key in self.programs.iter().rev() {
            let Some(call) = out.call(key) else { continue };
            let program = call.input.get("input").and_then(Value::as_str).unwrap_or_default();
            if !words.is_empty() && program.contains(&words) {
                return Some(call.id.clone());
            }
            found = found.or_else(|| Some(call.id.clone()));
        }
        found
    }
}

fn finish(call: &mut Call, status: Option<ToolStatus>, exit_code: Option<i32>, end: Option<Moment>) {
    call.end = end;
    call.exit_code = exit_code;
    call.status = status.unwrap_or(ToolStatus::Ok);
    // Codex says -1 of a process that did not come to its end: it was refused, or stopped.
    if exit_code == Some(-1) {
        call.exit_code = None;
        if call.status == ToolStatus::Failed {
            call.status = ToolStatus::Unfinished;
        }
    }
}

fn status(item: &Object<'_>) -> Option<ToolStatus> {
    let failed = item.get("error").is_some();
    match &*item.text_or_empty("status") {
        "completed" | "success" => Some(if failed { ToolStatus::Failed } else { ToolStatus::Ok }),
        "failed" => Some(ToolStatus::Failed),
        "declined" | "rejected" => Some(ToolStatus::Declined),
        "in_progress" => Some(ToolStatus::Unfinished),
        _ if failed => Some(ToolStatus::Failed),
        _ => item
            .exit_code("exit_code")
            .map(|code| if code == 0 { ToolStatus::Ok } else { ToolStatus::Failed }),
    }
}

fn output(item: &Object<'_>) -> Option<String> {
    if let Some(text) = item.text("aggregated_output").or_else(|| item.text("formatted_output")) {
        return Some(text.into_owned());
    }
    let (stdout, stderr) = (item.text("stdout"), item.text("stderr"));
    if stdout.is_some() || stderr.is_some() {
        return Some(format!("{}{}", stdout.unwrap_or_default(), stderr.unwrap_or_default()));
    }
    item.get("result").map(|result| crate::sources::content::Content::read(Some(result)).text)
}

fn local_path(path: &str) -> String {
    path.strip_prefix("file://").unwrap_or(path).to_owned()
}
