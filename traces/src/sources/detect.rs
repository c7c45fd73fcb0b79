//! Which format a file has, told from what is in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::json::Object;
use super::{Format, SourceError, lines};

/// Lines that are looked at.
const SAMPLE: usize = 400;

/// The format for which most of the first lines speak.
pub(crate) fn format(bytes: &[u8]) -> Result<Format, SourceError> {
    let mut votes: BTreeMap<Format, u64> = BTreeMap::new();
    let mut read = 0;
    let mut is_qwen = false;
    for line in lines::lines(bytes).filter(|line| !line.bytes.is_empty()).take(SAMPLE) {
        read += 1;
        let text = lines::text(line.bytes);
        let mended = Object::parse(&text).is_none().then(|| lines::without_controls(&text)).flatten();
        if let Some(record) = Object::parse(mended.as_deref().unwrap_or(&text)) {
            is_qwen |= record.has("qwen_code_version");
            if let Some(format) = of_record(&record) {
                *votes.entry(format).or_default() += 1;
            }
        }
    }
    let best = votes.into_iter().max_by_key(|(_, votes)| *votes);
    match best {
        // Qwen Code prints what Claude Code prints, and counts tokens otherwise.
        Some((Format::ClaudeStream, _)) if is_qwen => Ok(Format::QwenStream),
        Some((format, _)) => Ok(format),
        None => Err(SourceError::UnknownFormat { lines: read }),
    }
}

/// The format that a record looks like.
fn of_record(record: &Object<'_>) -> Option<Format> {
    let kind = record.text_or_empty("type");
    if record.has("kind") && record.has("seq") && record.has("offset_ms") {
        return Some(Format::Proctor);
    }
    match &*kind {
        "thread.started" | "turn.started" | "turn.completed" | "turn.failed" | "item.started"
        | "item.updated" | "item.completed" => return Some(Format::CodexExec),
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "world_state" | "compacted"
        | "token_usage_record"
            if record.has("payload") =>
        {
            return Some(Format::CodexRollout);
        }
        "step_start" | "step_finish" | "tool_use" | "text" | "error" if record.has("sessionID") => {
            return Some(Format::Opencode);
        }
        "init" if record.has("session_id") && record.has("timestamp") => return Some(Format::GeminiStream),
        "tool_use" | "tool_result" if record.has("tool_id") => return Some(Format::GeminiStream),
        "message"
            if record.has("role") && record.has("timestamp") && record.get("content")?.text().is_some() =>
        {
            return Some(Format::GeminiStream);
        }
        "agent_start"
        | "turn_start"
        | "turn_end"
        | "message_update"
        | "message_start"
        | "message_end"
        | "tool_execution_start"
        | "tool_execution_update"
        | "tool_execution_end"
        | "agent_end" => {
            return Some(Format::PiStream);
        }
        "model_change" | "thinking_level_change" => return Some(Format::PiSession),
        "message" if record.object("message").is_some() => return Some(Format::PiSession),
        "gemini" => return Some(Format::GeminiSession),
        _ => {}
    }
    if record.has("projectHash") || record.has("$set") {
        return Some(Format::GeminiSession);
    }
    if let Some(message) = record.object("message") {
        if message.has("parts") {
            return Some(Format::QwenSession);
        }
        if matches!(&*kind, "user" | "assistant") {
            let is_transcript =
                record.has("sessionId") || record.has("parentUuid") || record.has("isSidechain");
            return Some(if is_transcript { Format::ClaudeTranscript } else { Format::ClaudeStream });
        }
    }
    match &*kind {
        "system" if record.has("systemPayload") => Some(Format::QwenSession),
        "system" | "result" | "stream_event" if record.has("session_id") => Some(Format::ClaudeStream),
        "system"
        | "progress"
        | "queue-operation"
        | "attachment"
        | "summary"
        | "file-history-snapshot"
        | "last-prompt"
            if record.has("sessionId") || record.has("uuid") || record.has("leafUuid") =>
        {
            Some(Format::ClaudeTranscript)
        }
        // Rollouts before they had envelopes.
        "message" if record.has("role") && record.has("content") => Some(Format::CodexRollout),
        "function_call" | "function_call_output" | "local_shell_call" if record.has("call_id") => {
            Some(Format::CodexRollout)
        }
        _ if record.text_or_empty("record_type") == "state" => Some(Format::CodexRollout),
        _ => None,
    }
}

/// A file that is one pretty-printed document, or several, as lines: one for each record. None if it has lines already.
///
/// An array holds records; an object with an array `messages` is one of Gemini CLI's older session files.
pub(crate) fn as_lines(bytes: &[u8]) -> Option<Vec<u8>> {
    let first = lines::lines(bytes).find(|line| !line.bytes.is_empty())?;
    let is_array = first.bytes.starts_with(b"[");
    let is_document = is_array || matches!(first.bytes, b"{" | [b'{', .., b',' | b'[' | b'{']);
    if !is_document || (!is_array && Object::parse(&lines::text(first.bytes)).is_some()) {
        return None;
    }
    let text = String::from_utf8_lossy(bytes);
    let mut records = Vec::new();
    for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(elements)) => records.extend(elements),
            Ok(value) => records.push(value),
            // What comes after is torn, and would be one malformed record.
            Err(_) => break,
        }
    }
    if records.is_empty() {
        return None;
    }
    let mut flat = Vec::new();
    for record in &records {
        let messages =
            record.get("messages").and_then(Value::as_array).filter(|_| record.get("type").is_none());
        for record in messages.into_iter().flatten().chain([record]) {
            serde_json::to_writer(&mut flat, record).ok()?;
            flat.push(b'\n');
        }
    }
    Some(flat)
}
