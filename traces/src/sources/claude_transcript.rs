//! Claude Code's session files, 1.0 to 2.1, and those of its sub-agents.
//!
//! Records hang together by `uuid` and `parentUuid`; their times may go backwards. What a sub-agent does is told in one of
//! three ways: by records of the same file with `isSidechain` (to 2.0), nested in `progress` records (2.1), or in a file
//! of its own with `agentId` (since 2.0.4x; both of the latter may exist at once).

use std::collections::{HashMap, HashSet};

use super::claude::{
    Speaker, assistant, background_end, interrupted, is_interruption, refused, tokens, user,
};
use super::json::Object;
use super::records::Builder;
use super::{Grammar, SaidKind, SourceClock, Unknown, epoch_ms};
use crate::{Moment, Nesting, ToolCallId, ToolKind};

#[derive(Default)]
pub(crate) struct Transcript {
    seen: HashSet<String>,
    /// For each record of a side chain, the call that the chain belongs to.
    chains: HashMap<String, Option<ToolCallId>>,
    claimed: HashSet<ToolCallId>,
    refused: Vec<ToolCallId>,
    /// Whether the first message was a sub-agent's: then all of the file is.
    is_agents_own: Option<bool>,
}

impl Grammar for Transcript {
    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        out.records.clock = SourceClock::Epoch;
        let at = out.moment(record.text("timestamp").and_then(|it| epoch_ms(&it)));
        out.touch(at);
        meta(record, out);
        let kind = record.text_or_empty("type");
        match &*kind {
            "user" | "assistant" => {
                // A resumed session begins with a copy of the records before it.
                let uuid = record.text_or_empty("uuid");
                if !uuid.is_empty() && !self.seen.insert(uuid.into_owned()) {
                    return Ok(());
                }
                let speaker = self.speaker(record, out);
                self.message(&kind, record, &speaker, at, out)
            }
            "progress" => self.progress(record, at, out),
            "system" => system(record, at, out),
            "queue-operation" => {
                notification(&record.text_or_empty("content"), at, out);
                Ok(())
            }
            "summary" => {
                out.say(SaidKind::Notice, &record.text_or_empty("summary"), at, None);
                Ok(())
            }
            "attachment"
            | "api-request"
            | "api-request-shape"
            | "api-request-blob"
            | "tools-used"
            | "last-prompt"
            | "atis-latch"
            | "cost-state"
            | "file-history-snapshot"
            | "ai-title"
            | "custom-title"
            | "agent-name"
            | "agent-setting"
            | "agent-color"
            | "mode"
            | "permission-mode"
            | "pr-link"
            | "worktree-state"
            | "content-replacement"
            | "saved_hook_context"
            | "speculation-accept"
            | "tag" => Ok(()),
            _ => Err(Unknown(kind.into_owned())),
        }
    }

    fn end(self, out: &mut Builder) {
        let agents = std::mem::take(&mut out.records.agents);
        for call in &mut out.records.calls {
            if call.parent.is_none() && call.nesting == Nesting::SubAgent {
                call.parent = call.agent.as_ref().and_then(|agent| agents.get(agent).cloned());
            }
        }
        out.records.agents = agents;
    }
}

impl Transcript {
    fn message(
        &mut self,
        kind: &str,
        record: &Object<'_>,
        speaker: &Speaker,
        at: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let message = record.object("message").ok_or_else(|| Unknown(kind.to_owned()))?;
        if kind == "assistant" {
            let model = message.text_or_empty("model");
            if model != "<synthetic>" {
                if let Some(usage) = message.object("usage") {
                    out.count_tokens(&message.text_or_empty("id"), tokens(&usage));
                }
                if out.records.meta.model.is_none() && !model.is_empty() {
                    out.records.meta.model = Some(model.into_owned());
                }
            }
            self.refused.clear();
            return assistant(&message, speaker, at, out);
        }
        let words = user(&message, record, at, out)?;
        let refused_now = refused(&message, out);
        if words.is_empty() {
            self.refused.extend(refused_now);
            return Ok(());
        }
        let words = words.join("\n");
        if is_interruption(&words) {
            interrupted(out, &std::mem::take(&mut self.refused));
            out.say(SaidKind::Notice, &words, at, speaker.agent.clone());
        } else if notification(&words, at, out) || record.is_true("isMeta") {
            // Words of the CLI itself.
        } else if record.is_true("isCompactSummary") {
            out.say(SaidKind::Notice, "the conversation was compacted", at, speaker.agent.clone());
        } else {
            if speaker.agent.is_none() && speaker.parent.is_none() {
                out.next_turn();
            }
            out.say(SaidKind::Prompt, &words, at, speaker.agent.clone());
        }
        Ok(())
    }

    /// Whose message it is.
    fn speaker(&mut self, record: &Object<'_>, out: &mut Builder) -> Speaker {
        let is_side = record.is_true("isSidechain");
        let agent = record.text("agentId").map(String::from);
        let own = *self.is_agents_own.get_or_insert(is_side && agent.is_some());
        if own {
            if out.records.meta.agent.is_none() {
                out.records.meta.agent.clone_from(&agent);
                out.records.meta.parent_session = record.text("sessionId").map(Into::into);
                out.records.meta.prompt =
                    record.object("message").and_then(|it| Some(it.text("content")?.into_owned()));
            }
            return Speaker { agent, parent: None };
        }
        if !is_side {
            return Speaker::default();
        }
        let uuid = record.text_or_empty("uuid").into_owned();
        let parent_uuid = record.text_or_empty("parentUuid");
        let parent = match self.chains.get(&*parent_uuid) {
            Some(parent) => parent.clone(),
            None => self.claim(record, out),
        };
        self.chains.insert(uuid, parent.clone());
        Speaker { agent: agent.or_else(|| parent.clone().map(|it| it.0)), parent }
    }

    /// The call that a new side chain belongs to: the one with its very prompt, or else the last that is at work.
    fn claim(&mut self, record: &Object<'_>, out: &Builder) -> Option<ToolCallId> {
        let prompt = record.object("message").and_then(|it| Some(it.text("content")?.into_owned()));
        let free = || {
            let calls = out.records.calls.iter().rev();
            calls.filter(|call| call.kind() == ToolKind::Delegate && !self.claimed.contains(&call.id))
        };
        let by_prompt = free().find(|call| {
            prompt.is_some() && call.input.get("prompt").and_then(|it| it.as_str()) == prompt.as_deref()
        });
        let found = by_prompt.or_else(|| free().find(|call| call.end.is_none()))?.id.clone();
        self.claimed.insert(found.clone());
        Some(found)
    }

    /// A sub-agent's message, whole, inside a record of the main session.
    fn progress(
        &mut self,
        record: &Object<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let Some(data) = record.object("data") else { return Err(Unknown("progress".to_owned())) };
        let kind = data.text_or_empty("type");
        match &*kind {
            "agent_progress" => {
                let Some(inner) = data.object("message") else { return Ok(()) };
                let uuid = inner.text_or_empty("uuid");
                if !uuid.is_empty() && !self.seen.insert(uuid.into_owned()) {
                    return Ok(());
                }
                let key = record.text_or_empty("parentToolUseID");
                let parent = out.call(&key).map(|call| call.id.clone());
                let agent = data.text("agentId").map(String::from).or_else(|| Some(key.into_owned()));
                let inner_at = out.moment(inner.text("timestamp").and_then(|it| epoch_ms(&it))).or(at);
                let kind = inner.text_or_empty("type");
                if !matches!(&*kind, "user" | "assistant") {
                    return Err(Unknown(format!("progress/agent_progress/{kind}")));
                }
                self.message(&kind, &inner, &Speaker { agent, parent }, inner_at, out)
            }
            "hook_progress"
            | "mcp_progress"
            | "bash_progress"
            | "powershell_progress"
            | "query_update"
            | "search_results_received"
            | "waiting_for_task"
            | "skill_progress" => Ok(()),
            _ => Err(Unknown(format!("progress/{kind}"))),
        }
    }
}

fn system(record: &Object<'_>, at: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
    let subtype = record.text_or_empty("subtype");
    match &*subtype {
        "api_error" => out.say(SaidKind::Notice, "the model request failed", at, None),
        "compact_boundary" | "microcompact_boundary" => {
            out.say(SaidKind::Notice, "the conversation was compacted", at, None);
        }
        // Without a subtype in the oldest files.
        ""
        | "informational"
        | "stop_hook_summary"
        | "turn_duration"
        | "local_command"
        | "away_summary"
        | "agents_killed"
        | "bridge_status"
        | "memory_saved"
        | "scheduled_task_fire"
        | "api_metrics" => {}
        _ => return Err(Unknown(format!("system/{subtype}"))),
    }
    Ok(())
}

/// Takes in the notice that a task in the background has ended; false if the words are no such notice.
fn notification(words: &str, at: Option<Moment>, out: &mut Builder) -> bool {
    if !words.trim_start().starts_with("<task-notification>") {
        return false;
    }
    let field = |name: &str| {
        let rest = words.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim())
    };
    let summary = field("summary").unwrap_or_default();
    background_end(
        field("tool-use-id").unwrap_or_default(),
        field("status").unwrap_or_default(),
        summary,
        at,
        out,
    );
    true
}

fn meta(record: &Object<'_>, out: &mut Builder) {
    let meta = &mut out.records.meta;
    if meta.session.is_none() {
        meta.session = record.text("sessionId").map(Into::into);
    }
    if meta.cwd.is_none() {
        meta.cwd = record.text("cwd").map(Into::into);
    }
    if meta.version.is_none() {
        meta.version = record.text("version").map(Into::into);
    }
}
