//! Qwen Code's session files. (What it prints is read as Claude Code's.)

use super::json::Object;
use super::records::{Builder, Finish};
use super::{Grammar, SaidKind, SourceClock, Unknown, content, epoch_ms};
use crate::{Moment, ToolStatus, Usage};

#[derive(Default)]
pub(crate) struct QwenSession {
    responses: u64,
}

impl Grammar for QwenSession {
    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        out.records.clock = SourceClock::Epoch;
        let at = out.moment(record.text("timestamp").and_then(|it| epoch_ms(&it)));
        out.touch(at);
        let meta = &mut out.records.meta;
        if meta.session.is_none() {
            meta.session = record.text("sessionId").map(Into::into);
            meta.cwd = record.text("cwd").map(Into::into);
            meta.version = record.text("version").map(Into::into);
        }
        let kind = record.text_or_empty("type");
        match &*kind {
            "user" => {
                out.next_turn();
                out.say(SaidKind::Prompt, words(record).trim_end(), at, None);
            }
            "assistant" => self.assistant(record, at, out),
            "tool_result" => tool_result(record, at, out),
            "system" => return system(record, out),
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }
}

impl QwenSession {
    fn assistant(&mut self, record: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        if out.records.meta.model.is_none() {
            out.records.meta.model = record.text("model").map(Into::into);
        }
        let Some(message) = record.object("message") else { return };
        for part in message.objects("parts") {
            if let Some(call) = part.object("functionCall") {
                out.start(&call.text_or_empty("id"), &call.text_or_empty("name"), call.value("args"), at);
            } else if let Some(text) = part.text("text") {
                let kind = if part.is_true("thought") { SaidKind::Reasoning } else { SaidKind::Text };
                out.say(kind, &text, at, None);
            }
        }
        if let Some(usage) = record.object("usageMetadata") {
            self.responses += 1;
            // As an OpenAI server counts them: thoughts are part of the output.
            out.count_tokens(
                &self.responses.to_string(),
                Usage {
                    input_tokens: usage.count("promptTokenCount"),
                    cached_input_tokens: usage.count("cachedContentTokenCount"),
                    output_tokens: usage.count("candidatesTokenCount"),
                    reasoning_tokens: usage.count("thoughtsTokenCount"),
                },
            );
        }
    }
}

fn words(record: &Object<'_>) -> String {
    let parts =
        record.object("message").map(|it| it.objects("parts").collect::<Vec<_>>()).unwrap_or_default();
    parts.iter().filter_map(|part| part.text("text")).collect::<Vec<_>>().join("\n")
}

fn tool_result(record: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
    let Some(result) = record.object("toolCallResult") else { return };
    let key = result.text_or_empty("callId");
    let shown = result.object("resultDisplay");
    let exit_code = shown.as_ref().and_then(|it| it.exit_code("exitCode"));
    let status = match &*result.text_or_empty("status") {
        "success" if exit_code.is_some_and(|it| it != 0) => ToolStatus::Failed,
        "success" => ToolStatus::Ok,
        "cancelled" => ToolStatus::Declined,
        _ => ToolStatus::Failed,
    };
    let mut images = Vec::new();
    let mut given = String::new();
    let parts =
        record.object("message").map(|it| it.objects("parts").collect::<Vec<_>>()).unwrap_or_default();
    for part in parts {
        images.extend(content::image(&part));
        if let Some(response) = part.object("functionResponse") {
            let inner = response.objects("parts").filter_map(|it| content::image(&it));
            images.extend(inner);
            let response = response.object("response");
            let text = response.as_ref().and_then(|it| it.text("output").or_else(|| it.text("error")));
            given.push_str(&text.unwrap_or_default());
        }
    }
    let plain = shown.as_ref().and_then(|it| it.text("output")).or_else(|| result.text("resultDisplay"));
    let output = plain.map_or(given, Into::into);
    let bytes = output.len() as u64 + images.iter().map(|it| it.bytes).sum::<u64>();
    let truncated = shown.as_ref().is_some_and(|it| it.is_true("truncated"));
    let call = out.finish(&key, Finish { status, exit_code, output, bytes: Some(bytes), images, at });
    call.truncated |= truncated;
}

fn system(record: &Object<'_>, out: &mut Builder) -> Result<(), Unknown> {
    let subtype = record.text_or_empty("subtype");
    let event = record.object("systemPayload").and_then(|it| it.object("uiEvent"));
    if let Some(event) = event.filter(|it| it.text_or_empty("event.name").ends_with(".tool_call")) {
        tool_telemetry(&event, out);
        return Ok(());
    }
    match &*subtype {
        "ui_telemetry" | "attribution_snapshot" | "chat_compression" | "slash_command" | "at_command" => {
            Ok(())
        }
        _ => Err(Unknown(format!("system/{subtype}"))),
    }
}

/// How long a tool was at work, which the other records do not say.
fn tool_telemetry(event: &Object<'_>, out: &mut Builder) {
    let end = event.text("event.timestamp").and_then(|it| epoch_ms(&it));
    let start = end.and_then(|end| Some(end.saturating_sub(event.int("duration_ms")?)));
    let start = out.moment(start);
    let key = event.text_or_empty("call_id");
    if let (Some(start), Some(call)) = (start, out.call(&key)) {
        call.issued = call.issued.or(call.start);
        call.start = Some(start);
    }
}
