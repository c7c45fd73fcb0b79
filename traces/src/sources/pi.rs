//! pi: what `--mode json` prints, and its session files. The messages in both are the same and hold times; the events
//! around them hold none.

use super::content::Content;
use super::json::Object;
use super::records::{Builder, Finish};
use super::{Grammar, SaidKind, SourceClock, Unknown, epoch_ms};
use crate::{Moment, ToolStatus, Usage, Witness};

#[derive(Default)]
pub(crate) struct PiStream {
    responses: u64,
}

impl Grammar for PiStream {
    const WITNESS: Witness = Witness::StreamRecord;

    fn record(
        &mut self,
        record: &Object<'_>,
        arrival: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = record.text_or_empty("type");
        match &*kind {
            "session" => session(record, out),
            // A message is whole at its end; its tool calls are told again when they begin.
            "message_end" => {
                let Some(message) = record.object("message") else { return Err(Unknown(kind.into_owned())) };
                let at = moment(&message, arrival, out);
                self.responses += 1;
                match &*message.text_or_empty("role") {
                    "user" => out.next_turn(),
                    // Without arrivals, the only record of its end that holds a time.
                    "toolResult" => {
                        if let Some(call) = out.call(&message.text_or_empty("toolCallId")) {
                            call.end = call.end.or(at);
                        }
                    }
                    _ => {}
                }
                said(&message, &format!("{}", self.responses), at, out);
                calls(&message, at, out);
            }
            "tool_execution_start" => {
                let key = record.text_or_empty("toolCallId");
                let at = arrival;
                if !out.has(&key) {
                    out.start(&key, &record.text_or_empty("toolName"), record.value("args"), at);
                } else if let Some(call) = out.call(&key).filter(|_| at.is_some()) {
                    call.issued = call.issued.or(call.start);
                    call.start = at;
                }
            }
            "tool_execution_end" => {
                let result = record.object("result");
                let content = Content::read(result.as_ref().and_then(|it| it.get("content")));
                finish(&record.text_or_empty("toolCallId"), content, record.is_true("isError"), arrival, out);
            }
            "auto_retry_start" | "auto_retry_end" => {
                let message = record.text("errorMessage").or_else(|| record.text("finalError"));
                let text = format!("{kind}: {}", message.unwrap_or_default());
                out.say(SaidKind::Notice, &text, arrival, None);
            }
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "agent_end"
            | "message_start"
            | "message_update"
            | "tool_execution_update"
            | "compaction_start"
            | "compaction_end"
            | "queue_update" => {}
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }
}

pub(crate) struct PiSession;

impl Grammar for PiSession {
    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        out.records.clock = SourceClock::Epoch;
        let at = out.moment(record.text("timestamp").and_then(|it| epoch_ms(&it)));
        out.touch(at);
        let kind = record.text_or_empty("type");
        match &*kind {
            "session" => session(record, out),
            "model_change" => out.records.meta.model = record.text("modelId").map(Into::into),
            "thinking_level_change" | "label" | "session_info" | "custom" | "custom_message" => {}
            "compaction" | "branch_summary" => {
                out.say(SaidKind::Notice, "the conversation was compacted", at, None);
            }
            "message" => {
                let Some(message) = record.object("message") else { return Err(Unknown(kind.into_owned())) };
                if message.text_or_empty("role") == "user" {
                    out.next_turn();
                }
                said(&message, &record.text_or_empty("id"), at, out);
                calls(&message, at, out);
                if message.text_or_empty("role") == "toolResult" {
                    let content = Content::read(message.get("content"));
                    let ended = out.moment(message.int("timestamp")).or(at);
                    finish(
                        &message.text_or_empty("toolCallId"),
                        content,
                        message.is_true("isError"),
                        ended,
                        out,
                    );
                }
            }
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }
}

fn session(record: &Object<'_>, out: &mut Builder) {
    out.records.meta.session = record.text("id").map(Into::into);
    out.records.meta.cwd = record.text("cwd").map(Into::into);
    out.records.meta.version = record.text("version").map(Into::into);
}

/// When a message was, on whichever clock the source has.
fn moment(message: &Object<'_>, arrival: Option<Moment>, out: &mut Builder) -> Option<Moment> {
    if arrival.is_some() {
        return arrival;
    }
    if out.records.clock == SourceClock::None {
        out.records.clock = SourceClock::Epoch;
    }
    let at = out.moment(message.int("timestamp")).filter(|_| out.records.clock == SourceClock::Epoch);
    out.touch(at);
    at
}

fn said(message: &Object<'_>, id: &str, at: Option<Moment>, out: &mut Builder) {
    let role = message.text_or_empty("role");
    if role == "user" {
        out.say(SaidKind::Prompt, &Content::read(message.get("content")).text, at, None);
    }
    if role != "assistant" {
        return;
    }
    if let Some(model) = message.text("model") {
        out.records.meta.model.get_or_insert_with(|| model.into_owned());
    }
    for part in message.objects("content") {
        match &*part.text_or_empty("type") {
            "text" => out.say(SaidKind::Text, &part.text_or_empty("text"), at, None),
            "thinking" => out.say(SaidKind::Reasoning, &part.text_or_empty("thinking"), at, None),
            _ => {}
        }
    }
    if let Some(error) = message.text("errorMessage") {
        out.say(SaidKind::Notice, &error, at, None);
    }
    if let Some(usage) = message.object("usage") {
        let cached = usage.count("cacheRead");
        let response = message.text("responseId").map_or_else(|| id.to_owned(), Into::into);
        out.count_tokens(
            &response,
            Usage {
                input_tokens: usage
                    .count("input")
                    .saturating_add(cached)
                    .saturating_add(usage.count("cacheWrite")),
                cached_input_tokens: cached,
                output_tokens: usage.count("output"),
                reasoning_tokens: 0,
            },
        );
    }
}

fn calls(message: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
    for part in message.objects("content") {
        if part.text_or_empty("type") == "toolCall" {
            out.start(&part.text_or_empty("id"), &part.text_or_empty("name"), part.value("arguments"), at);
        }
    }
}

fn finish(key: &str, content: Content, is_error: bool, at: Option<Moment>, out: &mut Builder) {
    let exit_code =
        content.text.rsplit_once("Command exited with code ").and_then(|(_, code)| code.trim().parse().ok());
    let is_shell = out.call(key).is_some_and(|call| call.name == "bash");
    let status = if is_error { ToolStatus::Failed } else { ToolStatus::Ok };
    let exit_code = match (is_shell, is_error) {
        (true, true) => exit_code,
        (true, false) => Some(0),
        (false, _) => None,
    };
    let bytes = Some(content.bytes);
    out.finish(key, Finish { status, exit_code, output: content.text, bytes, images: content.images, at });
}
