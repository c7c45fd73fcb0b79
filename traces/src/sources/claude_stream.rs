//! What `claude -p --output-format stream-json` prints, and Qwen Code after it.
//!
//! Results come in the order of completion. A command that outlasts its limit goes to the background, and then a second
//! `result` follows the first. Records of messages hold a time, others do not; Qwen's hold none.

use std::collections::HashMap;

use super::claude::{
    Speaker, assistant, background_end, interrupted, is_interruption, refused, tokens, user,
};
use super::json::Object;
use super::records::Builder;
use super::{Grammar, SaidKind, SourceClock, Unknown, epoch_ms};
use crate::{Moment, ToolCallId, Usage, Witness};

pub(crate) struct ClaudeStream {
    is_qwen: bool,
    /// A `result` was printed, and nothing has happened since.
    is_answered: bool,
    refused: Vec<ToolCallId>,
    /// Tokens by the `result`s, which count only what was asked since the one before.
    counted: Option<Usage>,
    /// Tokens of all models up to now, by the last `result`: they go on counting after a resume, and hold sub-agents.
    cumulative: Option<Usage>,
    /// Tokens of the messages since the last `result`; each record of a message repeats them.
    uncounted: HashMap<String, Usage>,
}

impl ClaudeStream {
    pub(crate) fn new(is_qwen: bool) -> Self {
        Self {
            is_qwen,
            is_answered: false,
            refused: Vec::new(),
            counted: None,
            cumulative: None,
            uncounted: HashMap::new(),
        }
    }
}

impl Grammar for ClaudeStream {
    const WITNESS: Witness = Witness::StreamRecord;

    fn record(
        &mut self,
        record: &Object<'_>,
        arrival: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = record.text_or_empty("type");
        let at = moment(record, arrival, out);
        match &*kind {
            "system" => return self.system(record, at, out),
            "assistant" => {
                let message = record.object("message").ok_or_else(|| Unknown("assistant".to_owned()))?;
                if out.records.turns == 0 {
                    out.next_turn();
                }
                let is_synthetic = message.text_or_empty("model") == "<synthetic>";
                if let Some(usage) = message.object("usage").filter(|_| !is_synthetic) {
                    self.uncounted.insert(message.text_or_empty("id").into_owned(), self.tokens(&usage));
                }
                self.refused.clear();
                return assistant(&message, &speaker(record, out), at, out);
            }
            "user" => {
                let message = record.object("message").ok_or_else(|| Unknown("user".to_owned()))?;
                let words = user(&message, record, at, out)?;
                if words.iter().any(|it| is_interruption(it)) {
                    interrupted(out, &std::mem::take(&mut self.refused));
                    out.say(SaidKind::Notice, &words.join("\n"), at, None);
                } else {
                    self.refused.extend(refused(&message, out));
                }
            }
            "result" => self.result(record, at, out),
            // Parts of messages that come whole as well, and signs of life.
            "stream_event" | "tool_progress" | "tool_use_summary" | "keep_alive" | "prompt_suggestion" => {}
            "rate_limit_event" | "auth_status" => out.say(SaidKind::Notice, &kind, at, None),
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }

    fn end(self, out: &mut Builder) {
        out.records.usage.is_lower_bound = !self.uncounted.is_empty();
        let mut total = self.counted;
        if let Some(cumulative) = self.cumulative {
            // The sum of what models used holds sub-agents too; never less than what the results say.
            let is_more = total.is_none_or(|it| it.input_tokens <= cumulative.input_tokens);
            total = if is_more { Some(cumulative) } else { total };
        }
        for usage in self.uncounted.into_values() {
            *total.get_or_insert_default() += usage;
        }
        out.records.usage.total = total;
    }
}

impl ClaudeStream {
    fn system(&mut self, record: &Object<'_>, at: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        let subtype = record.text_or_empty("subtype");
        match &*subtype {
            "init" => {
                let meta = &mut out.records.meta;
                let session = record.text("session_id").map(String::from);
                meta.model = record.text("model").map(Into::into).or(meta.model.take());
                meta.cwd = record.text("cwd").map(Into::into).or(meta.cwd.take());
                let version = record.text("claude_code_version").or_else(|| record.text("qwen_code_version"));
                meta.version = version.map(Into::into).or(meta.version.take());
                meta.session = session;
                // One that follows the end of a task in the background begins no turn; that of a resumed session does.
                if out.records.turns == 0 || std::mem::take(&mut self.is_answered) {
                    out.next_turn();
                }
            }
            "api_retry" => {
                let status =
                    record.int("error_status").map(|it| format!(", status {it}")).unwrap_or_default();
                let text = format!(
                    "asking the model again ({} of {}): {}{status}",
                    record.count("attempt"),
                    record.count("max_retries"),
                    record.text_or_empty("error"),
                );
                out.say(SaidKind::Notice, &text, at, None);
            }
            "task_notification" => {
                self.is_answered = false;
                let (status, summary) = (record.text_or_empty("status"), record.text_or_empty("summary"));
                background_end(&record.text_or_empty("tool_use_id"), &status, &summary, at, out);
                out.say(SaidKind::Notice, &format!("task {status}: {summary}"), at, None);
            }
            "compact_boundary" => out.say(SaidKind::Notice, "the conversation was compacted", at, None),
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
            | "files_persisted"
            | "session_state_changed" => {}
            _ => return Err(Unknown(format!("system/{subtype}"))),
        }
        Ok(())
    }

    fn result(&mut self, record: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        self.is_answered = true;
        if let Some(usage) = record.object("usage") {
            let tokens = self.tokens(&usage);
            *self.counted.get_or_insert_default() += tokens;
            self.uncounted.clear();
        }
        if let Some(models) = record.object("modelUsage") {
            let mut all = Usage::default();
            for model in models.fields().filter_map(|(_, raw)| raw.object()) {
                let cached = model.count("cacheReadInputTokens");
                all += Usage {
                    input_tokens: model
                        .count("inputTokens")
                        .saturating_add(cached)
                        .saturating_add(model.count("cacheCreationInputTokens")),
                    cached_input_tokens: cached,
                    output_tokens: model.count("outputTokens"),
                    reasoning_tokens: model.count("thinkingTokens"),
                };
            }
            self.cumulative = Some(all);
        }
        if record.is_true("is_error") || record.text_or_empty("subtype") != "success" {
            let said = record.text("result").filter(|it| !it.is_empty());
            let said = said.unwrap_or_else(|| record.text_or_empty("subtype"));
            out.say(SaidKind::Notice, &said, at, None);
        }
    }

    fn tokens(&self, usage: &Object<'_>) -> Usage {
        let tokens = tokens(usage);
        if !self.is_qwen {
            return tokens;
        }
        // Qwen passes on what an OpenAI server counts, where the cached ones are part of the input.
        Usage { input_tokens: usage.count("input_tokens"), ..tokens }
    }
}

fn speaker(record: &Object<'_>, out: &mut Builder) -> Speaker {
    let Some(key) = record.text("parent_tool_use_id") else { return Speaker::default() };
    let parent = out.call(&key).map_or_else(|| ToolCallId(key.to_string()), |call| call.id.clone());
    Speaker { agent: Some(parent.0.clone()), parent: Some(parent) }
}

/// When a record was: its arrival, or the time written into it where that is all there is.
fn moment(record: &Object<'_>, arrival: Option<Moment>, out: &mut Builder) -> Option<Moment> {
    if arrival.is_some() {
        return arrival;
    }
    let ms = record.text("timestamp").and_then(|it| epoch_ms(&it))?;
    if out.records.clock == SourceClock::None {
        out.records.clock = SourceClock::Epoch;
    }
    let at =
        Some(Moment { ms, by: Witness::StreamRecord }).filter(|_| out.records.clock == SourceClock::Epoch);
    out.touch(at);
    at
}
