//! Gemini CLI: what `-o stream-json` prints, and its session files, in which a later record of a message replaces the
//! earlier ones. Older versions kept one document with all messages, which is read as its lines.

use std::collections::HashMap;

use super::content::Content;
use super::json::Object;
use super::records::{Builder, Finish};
use super::{Grammar, SaidKind, SourceClock, Unknown, epoch_ms};
use crate::{Moment, ToolStatus, Usage, Witness};

#[derive(Default)]
pub(crate) struct GeminiStream {
    /// The agent's words come in pieces.
    piece: String,
    piece_at: Option<Moment>,
}

impl Grammar for GeminiStream {
    const WITNESS: Witness = Witness::StreamRecord;

    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        out.records.clock = SourceClock::Epoch;
        let at = out.moment(record.text("timestamp").and_then(|it| epoch_ms(&it)));
        out.touch(at);
        let kind = record.text_or_empty("type");
        let is_piece =
            kind == "message" && record.text_or_empty("role") == "assistant" && record.is_true("delta");
        if !is_piece {
            self.flush(out);
        }
        match &*kind {
            "init" => {
                out.next_turn();
                out.records.meta.session = record.text("session_id").map(Into::into);
                out.records.meta.model = record.text("model").map(Into::into);
            }
            "message" => {
                let content = record.text_or_empty("content");
                match &*record.text_or_empty("role") {
                    "user" => out.say(SaidKind::Prompt, &content, at, None),
                    _ if is_piece => {
                        self.piece.push_str(&content);
                        self.piece_at = self.piece_at.or(at);
                    }
                    _ => out.say(SaidKind::Text, &content, at, None),
                }
            }
            "tool_use" => {
                let input = record.value("parameters");
                out.start(&record.text_or_empty("tool_id"), &record.text_or_empty("tool_name"), input, at);
            }
            "tool_result" => {
                let status = match &*record.text_or_empty("status") {
                    "success" => ToolStatus::Ok,
                    "cancelled" => ToolStatus::Declined,
                    _ => ToolStatus::Failed,
                };
                let error = record.object("error").and_then(|it| it.text("message").map(String::from));
                let output = record.text("output").map(String::from).or(error).unwrap_or_default();
                let finish = Finish { status, exit_code: None, output, bytes: None, images: Vec::new(), at };
                out.finish(&record.text_or_empty("tool_id"), finish);
            }
            "error" => out.say(SaidKind::Notice, &record.text_or_empty("message"), at, None),
            "result" => {
                if let Some(stats) = record.object("stats") {
                    // Output is counted without thoughts; the total holds them.
                    let (input, output) = (stats.count("input_tokens"), stats.count("output_tokens"));
                    let thoughts = stats.count("total_tokens").saturating_sub(input.saturating_add(output));
                    out.count_tokens(
                        &format!("result-{}", out.records.turns),
                        Usage {
                            input_tokens: input,
                            cached_input_tokens: stats.count("cached"),
                            output_tokens: output.saturating_add(thoughts),
                            reasoning_tokens: thoughts,
                        },
                    );
                }
                if let Some(error) = record.object("error") {
                    out.say(SaidKind::Notice, &error.text_or_empty("message"), at, None);
                }
            }
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }

    fn end(mut self, out: &mut Builder) {
        self.flush(out);
    }
}

impl GeminiStream {
    fn flush(&mut self, out: &mut Builder) {
        let piece = std::mem::take(&mut self.piece);
        out.say(SaidKind::Text, &piece, self.piece_at.take(), None);
    }
}

#[derive(Default)]
pub(crate) struct GeminiSession {
    /// How much of each message was taken in: (words said, thoughts said).
    said: HashMap<String, (bool, usize)>,
}

impl Grammar for GeminiSession {
    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        out.records.clock = SourceClock::Epoch;
        if record.has("projectHash") {
            out.records.meta.session =
                record.text("sessionId").map(Into::into).or(out.records.meta.session.take());
            return Ok(());
        }
        if let Some(set) = record.object("$set") {
            for message in set.objects("messages") {
                self.message(&message, out)?;
            }
            return Ok(());
        }
        if record.has("$rewindTo") {
            out.say(SaidKind::Notice, "the conversation was rewound", None, None);
            return Ok(());
        }
        self.message(record, out)
    }
}

impl GeminiSession {
    fn message(&mut self, message: &Object<'_>, out: &mut Builder) -> Result<(), Unknown> {
        let at = out.moment(message.text("timestamp").and_then(|it| epoch_ms(&it)));
        out.touch(at);
        let id = message.text_or_empty("id").into_owned();
        let kind = message.text_or_empty("type");
        match &*kind {
            "user" => {
                if self.said.insert(id, (true, 0)).is_none() {
                    user(message, at, out);
                }
            }
            "gemini" => self.answer(&id, message, at, out),
            "info" | "warning" | "error" => {
                out.say(SaidKind::Notice, &message.text_or_empty("content"), at, None);
            }
            "" => return Err(Unknown("(no type)".to_owned())),
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }

    fn answer(&mut self, id: &str, message: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        let said = self.said.entry(id.to_owned()).or_default();
        let thoughts = message.array("thoughts");
        for thought in thoughts.iter().skip(said.1).filter_map(|it| it.object()) {
            let text = thought.text("description").or_else(|| thought.text("text"));
            out.say(SaidKind::Reasoning, &text.unwrap_or_default(), at, None);
        }
        said.1 = said.1.max(thoughts.len());
        let words = Content::read(message.get("content"));
        if !said.0 && !words.text.is_empty() {
            said.0 = true;
            out.say(SaidKind::Text, &words.text, at, None);
        }
        if let Some(tokens) = message.object("tokens") {
            out.count_tokens(
                id,
                Usage {
                    input_tokens: tokens.count("input").saturating_add(tokens.count("tool")),
                    cached_input_tokens: tokens.count("cached"),
                    output_tokens: tokens.count("output").saturating_add(tokens.count("thoughts")),
                    reasoning_tokens: tokens.count("thoughts"),
                },
            );
        }
        if out.records.meta.model.is_none() {
            out.records.meta.model = message.text("model").map(Into::into);
        }
        for call in message.objects("toolCalls") {
            tool(&call, at, out);
        }
    }
}

/// A prompt, or a result, which the message of the call holds as well.
fn user(message: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
    let is_result = message.objects("content").any(|part| part.get("functionResponse").is_some());
    let words = Content::read(message.get("content")).text;
    if is_result || words.trim_start().starts_with("<session_context>") {
        return;
    }
    out.next_turn();
    out.say(SaidKind::Prompt, &words, at, None);
}

fn tool(call: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
    let key = call.text_or_empty("id");
    if !out.has(&key) {
        out.start(&key, &call.text_or_empty("name"), call.value("args"), at);
    }
    let status = match &*call.text_or_empty("status") {
        "success" => ToolStatus::Ok,
        "error" => ToolStatus::Failed,
        "cancelled" => ToolStatus::Declined,
        // Scheduled, awaiting approval, executing.
        _ => return,
    };
    let end = out.moment(call.text("timestamp").and_then(|it| epoch_ms(&it)));
    let mut images = Vec::new();
    let mut output = String::new();
    for part in call.objects("result") {
        images.extend(super::content::image(&part));
        if let Some(response) = part.object("functionResponse").and_then(|it| it.object("response")) {
            output.push_str(&response.text("output").or_else(|| response.text("error")).unwrap_or_default());
        }
    }
    // What people are shown is the output itself, without the words that are put around it for the model.
    if let Some(shown) = call.text("resultDisplay") {
        output = shown.into_owned();
    }
    let bytes = output.len() as u64 + images.iter().map(|it| it.bytes).sum::<u64>();
    out.finish(&key, Finish { status, exit_code: None, output, bytes: Some(bytes), images, at: end });
}
