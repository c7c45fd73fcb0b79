//! Codex's session files ("rollouts"), of every generation:
//!
//! 1. to September 2025: items without envelope, no times, `record_type: "state"` between them;
//! 2. 0.40 to 0.14x: `{timestamp, type, payload}`, calls as `response_item`, visible turns as `event_msg`;
//! 3. 0.146 on: visible turns as `item_completed`, with `started_at_ms` and `completed_at_ms`;
//! 4. 0.148 on: `ordinal`, `world_state`, `token_usage_record`, no more `user_message`;
//! 5. code mode: one call `exec` holds a program, and what that does is told by items with ids of their own.
//!
//! There is no version to go by, so every rule of every generation holds for every record.

mod calls;
mod items;
mod messages;
mod results;

use std::collections::{HashMap, HashSet};

use self::messages::Echoes;
use super::json::Object;
use super::records::Builder;
use super::{Grammar, SaidKind, SourceClock, Unknown, epoch_ms};
use crate::{Moment, ToolCallId, Usage};

#[derive(Default)]
pub(crate) struct Rollout {
    /// Whether the file's own `session_meta` was read; a second one is that of the session it was forked from.
    has_meta: bool,
    /// Whether turns are told by `task_started`; else each prompt begins one.
    has_turn_marks: bool,
    /// What is told twice, as an item for the model and as an event for people.
    echoes: Echoes,
    /// Keys of calls of which an item told how they went: better than the text that the model got.
    told_by_item: HashSet<String>,
    /// Commands that went on after an answer, by Codex's number for their process.
    processes: HashMap<String, ToolCallId>,
    /// Programs that went on after an answer, by Codex's number for their cell.
    cells: HashMap<String, ToolCallId>,
    /// Keys of programs that are at work.
    programs: Vec<String>,
    /// Total by the last `token_count`; that of a resumed thread goes on counting.
    cumulative: Option<Usage>,
    has_usage_records: bool,
}

impl Grammar for Rollout {
    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        let kind = record.text_or_empty("type");
        let Some(payload) = record.object("payload") else { return self.bare(&kind, record, out) };
        let at = out.moment(record.text("timestamp").and_then(|it| epoch_ms(&it)));
        if at.is_some() {
            out.records.clock = SourceClock::Epoch;
            out.touch(at);
        }
        match &*kind {
            "session_meta" => self.session_meta(&payload, out),
            "turn_context" => {
                out.records.meta.model =
                    payload.text("model").map(Into::into).or(out.records.meta.model.take());
            }
            "response_item" => return self.response_item(&payload, at, out),
            "event_msg" => return self.event(&payload, at, out),
            "token_usage_record" => {
                if let Some(usage) = payload.object("usage") {
                    self.has_usage_records = true;
                    out.count_tokens(&payload.text_or_empty("response_id"), tokens(&usage));
                }
            }
            // It repeats what was said before, in a shorter form.
            "compacted" => out.say(SaidKind::Notice, "the conversation was compacted", at, None),
            "world_state"
            | "inter_agent_communication"
            | "inter_agent_communication_metadata"
            | "security_risk_score"
            | "realtime_item" => {}
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }

    fn end(self, out: &mut Builder) {
        if !self.has_usage_records {
            out.records.usage.total = self.cumulative;
        }
    }
}

impl Rollout {
    /// A record without envelope.
    fn bare(&mut self, kind: &str, record: &Object<'_>, out: &mut Builder) -> Result<(), Unknown> {
        if record.text_or_empty("record_type") == "state" {
            return Ok(());
        }
        if kind.is_empty() && record.has("id") && (record.has("instructions") || record.has("timestamp")) {
            self.session_meta(record, out);
            return Ok(());
        }
        self.response_item(record, None, out)
    }

    fn session_meta(&mut self, payload: &Object<'_>, out: &mut Builder) {
        let meta = &mut out.records.meta;
        let id = payload.text("id").map(String::from);
        if std::mem::replace(&mut self.has_meta, true) {
            meta.parent_session =
                meta.parent_session.take().or(id.filter(|it| meta.session.as_ref() != Some(it)));
            return;
        }
        meta.session = id;
        meta.version = payload.text("cli_version").map(Into::into);
        meta.cwd = payload.text("cwd").map(Into::into);
        let forked_from = payload.text("forked_from_id").map(String::from);
        let spawned_by = payload.object("source").and_then(|it| it.object("subagent")).map(|subagent| {
            let spawn = subagent.object("thread_spawn");
            spawn.and_then(|it| it.text("parent_thread_id").map(String::from))
        });
        meta.parent_session = spawned_by.clone().flatten().or(forked_from);
        let is_agent = spawned_by.is_some() || payload.text_or_empty("thread_source") == "subagent";
        meta.agent = meta.session.clone().filter(|_| is_agent);
    }

    fn event(&mut self, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        let kind = payload.text_or_empty("type");
        let text = |key: &str| payload.text_or_empty(key);
        match &*kind {
            "task_started" | "turn_started" => {
                self.has_turn_marks = true;
                out.next_turn();
            }
            "user_message" => self.prompt_event(&text("message"), at, out),
            "agent_message" => self.echoes.event(SaidKind::Text, &text("message"), at, out),
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                self.echoes.event(SaidKind::Reasoning, &text("text"), at, out);
            }
            "item_started" | "item_completed" => return self.item(&kind, payload, at, out),
            "exec_command_begin"
            | "exec_command_end"
            | "patch_apply_begin"
            | "patch_apply_end"
            | "mcp_tool_call_begin"
            | "mcp_tool_call_end"
            | "web_search_begin"
            | "web_search_end"
            | "view_image_tool_call" => self.begin_or_end(&kind, payload, at, out),
            "token_count" => {
                let total = payload.object("info").and_then(|it| it.object("total_token_usage"));
                self.cumulative = total.map(|it| tokens(&it)).or(self.cumulative);
            }
            "turn_aborted" => {
                out.say(SaidKind::Notice, &format!("turn aborted: {}", text("reason")), at, None);
            }
            // The model forgets them; they were done all the same.
            "thread_rolled_back" => {
                let turns = payload.count("num_turns");
                out.say(SaidKind::Notice, &format!("{turns} turns were rolled back"), at, None);
            }
            "error" | "warning" | "stream_error" => out.say(SaidKind::Notice, &text("message"), at, None),
            "context_compacted"
            | "task_complete"
            | "turn_complete"
            | "thread_settings_applied"
            | "plan_update"
            | "turn_diff"
            | "background_event"
            | "entered_review_mode"
            | "exited_review_mode"
            | "undo_started"
            | "undo_completed"
            | "thread_name_updated"
            | "exec_command_output_delta"
            | "session_configured" => {}
            _ => return Err(Unknown(format!("event_msg/{kind}"))),
        }
        Ok(())
    }
}

fn tokens(usage: &Object<'_>) -> Usage {
    Usage {
        input_tokens: usage.count("input_tokens"),
        cached_input_tokens: usage.count("cached_input_tokens"),
        output_tokens: usage.count("output_tokens"),
        reasoning_tokens: usage.count("reasoning_output_tokens"),
    }
}
