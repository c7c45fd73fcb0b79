//! What `codex exec --json` prints. It holds no times at all, restarts its item ids with every process, and does not
//! tell of every tool: a viewed picture, polling and the programs of code mode are only in the session file.

use serde_json::{Value, json};

use super::json::Object;
use super::records::{Builder, Finish};
use super::{Grammar, SaidKind, Unknown};
use crate::{Moment, ToolStatus, Usage, Witness};

#[derive(Default)]
pub(crate) struct CodexExec {
    /// Plans of this turn.
    plans: u32,
    /// Thread, and its tokens at the end of the last turn: after a resume Codex goes on counting.
    thread: String,
    before: Option<Usage>,
    saw_end: bool,
}

impl Grammar for CodexExec {
    const WITNESS: Witness = Witness::Stream;

    fn record(
        &mut self,
        record: &Object<'_>,
        arrival: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = record.text_or_empty("type");
        match &*kind {
            "thread.started" => {
                let thread = record.text_or_empty("thread_id").into_owned();
                if thread != self.thread {
                    self.before = None;
                }
                out.records.meta.session = Some(thread.clone());
                self.thread = thread;
            }
            "turn.started" => {
                out.next_turn();
                self.plans = 0;
                self.saw_end = false;
            }
            "turn.completed" => {
                self.saw_end = true;
                if let Some(usage) = record.object("usage") {
                    self.count_tokens(&usage, out);
                }
            }
            "turn.failed" => {
                self.saw_end = true;
                let error = record.object("error");
                let message = error.as_ref().map(|it| it.text_or_empty("message")).unwrap_or_default();
                out.say(SaidKind::Notice, &format!("turn failed: {message}"), arrival, None);
            }
            "error" => out.say(SaidKind::Notice, &record.text_or_empty("message"), arrival, None),
            // Parts of a plan while it is being written; the whole comes as an item.
            "item.plan.delta" => {}
            "item.started" | "item.updated" | "item.completed" => {
                let item = record.object("item").ok_or_else(|| Unknown(kind.to_string()))?;
                let phase = match &*kind {
                    "item.started" => Phase::Started,
                    "item.updated" => Phase::Updated,
                    _ => Phase::Completed,
                };
                return self.item(phase, &item, arrival, out);
            }
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }

    fn end(self, out: &mut Builder) {
        out.records.usage.is_lower_bound = !self.saw_end;
    }
}

impl CodexExec {
    fn item(
        &mut self,
        phase: Phase,
        item: &Object<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = item.text_or_empty("type");
        let said = |out: &mut Builder, kind: SaidKind, key: &str| {
            if phase == Phase::Completed {
                out.say(kind, &item.text_or_empty(key), at, None);
            }
        };
        match &*kind {
            "agent_message" | "plan" => said(out, SaidKind::Text, "text"),
            "reasoning" => said(out, SaidKind::Reasoning, "text"),
            // Warnings, such as a model that Codex has no metadata for. The run goes on.
            "error" => said(out, SaidKind::Notice, "message"),
            "todo_list" => self.plan(phase, item, at, out),
            "command_execution" => {
                call(phase, item, "exec_command", json!({"command": item.value("command")}), at, out);
            }
            "file_change" => {
                call(phase, item, "apply_patch", json!({"changes": item.value("changes")}), at, out);
            }
            "web_search" => call(phase, item, "web_search", json!({"query": item.value("query")}), at, out),
            "mcp_tool_call" => {
                let input = json!({"server": item.value("server"), "arguments": item.value("arguments")});
                call(phase, item, &tool(item), input, at, out);
            }
            "collab_tool_call" => {
                call(phase, item, &tool(item), json!({"prompt": item.value("prompt")}), at, out);
            }
            _ => return Err(Unknown(format!("item/{kind}"))),
        }
        Ok(())
    }

    /// The plan is one item all through a turn, but each change of it is one call of the tool. Its completion comes with
    /// the end of the turn and changes nothing.
    fn plan(&mut self, phase: Phase, item: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        if phase == Phase::Completed && self.plans > 0 {
            return;
        }
        self.plans += 1;
        let key = format!("{}.{}", key(item, out), self.plans);
        out.start(&key, "update_plan", json!({"plan": item.value("items")}), at);
        let finish = Finish {
            status: ToolStatus::Ok,
            exit_code: None,
            output: String::new(),
            bytes: None,
            images: Vec::new(),
            at,
        };
        out.finish(&key, finish);
    }

    fn count_tokens(&mut self, usage: &Object<'_>, out: &mut Builder) {
        let total = Usage {
            input_tokens: usage.count("input_tokens"),
            cached_input_tokens: usage.count("cached_input_tokens"),
            output_tokens: usage.count("output_tokens"),
            reasoning_tokens: usage.count("reasoning_output_tokens"),
        };
        // A smaller total is a fresh count: some versions may not go on counting.
        let earlier = self.before.filter(|it| it.input_tokens <= total.input_tokens).unwrap_or_default();
        *out.records.usage.total.get_or_insert_default() += Usage {
            input_tokens: total.input_tokens - earlier.input_tokens,
            cached_input_tokens: total.cached_input_tokens.saturating_sub(earlier.cached_input_tokens),
            output_tokens: total.output_tokens.saturating_sub(earlier.output_tokens),
            reasoning_tokens: total.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
        };
        self.before = Some(total);
    }
}

/// Where an item stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Started,
    Updated,
    Completed,
}

/// Item ids restart with each turn's process, so the turn is part of the name.
fn key(item: &Object<'_>, out: &Builder) -> String {
    format!("turn-{}/{}", out.turn, item.text_or_empty("id"))
}

/// The name of a tool that is not Codex's own.
fn tool(item: &Object<'_>) -> String {
    item.text("tool").filter(|it| !it.is_empty()).map_or_else(|| "unnamed".to_owned(), Into::into)
}

/// A tool call. Codex prints some only when they are over.
fn call(phase: Phase, item: &Object<'_>, name: &str, input: Value, at: Option<Moment>, out: &mut Builder) {
    let key = key(item, out);
    let is_open =
        out.call(&key).is_some_and(|call| call.end.is_none() && call.status == ToolStatus::Unfinished);
    if !is_open {
        out.start(&key, name, input, at);
    }
    if phase == Phase::Completed {
        out.finish(&key, finish(item, at));
    }
}

/// What came of a call that is over.
fn finish(item: &Object<'_>, at: Option<Moment>) -> Finish {
    let error = item.object("error").map(|it| it.text_or_empty("message").into_owned());
    let status = match &*item.text_or_empty("status") {
        "failed" => ToolStatus::Failed,
        "declined" => ToolStatus::Declined,
        _ if error.is_some() => ToolStatus::Failed,
        _ => ToolStatus::Ok,
    };
    let output = match (item.text("aggregated_output"), item.get("result"), error) {
        (Some(output), _, _) => output.into_owned(),
        (None, Some(result), _) => super::content::Content::read(Some(result)).text,
        (None, None, error) => error.unwrap_or_default(),
    };
    Finish { status, exit_code: item.exit_code("exit_code"), output, bytes: None, images: Vec::new(), at }
}
