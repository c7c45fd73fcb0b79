//! What came of a tool call of Claude Code.

use proctor_traces::ToolStatus;
use serde_json::Value;

use crate::records::{Record, object, text};

/// How the call went.
pub(super) fn status(block: &Record, record: &Record) -> ToolStatus {
    let id = text(block, "tool_use_id");
    let meta = record.get("tool_result_meta").and_then(Value::as_array).into_iter().flatten();
    let refused = meta
        .filter_map(Value::as_object)
        .any(|meta| text(meta, "id") == id && !text(meta, "non_execution_kind").is_empty());
    let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    match (refused, failed) {
        (true, _) => ToolStatus::Declined,
        (false, true) => ToolStatus::Failed,
        (false, false) => ToolStatus::Ok,
    }
}

/// The exit status of a command, where it can be known: a failed one says `Exit code n` first. A good one says
/// nothing, and is 0 unless it was interrupted, went to the background, or has a status that its program uses for
/// something else than failure.
pub(super) fn exit_code(tool: &str, block: &Record, record: &Record) -> Option<i32> {
    if tool != "Bash" {
        return None;
    }
    if block.get("is_error").and_then(Value::as_bool).unwrap_or(false) {
        let (text, _) = output(block);
        let digits = text.strip_prefix("Exit code ")?.split(|c: char| !c.is_ascii_digit()).next()?;
        return digits.parse().ok();
    }
    let details = object(record, "tool_use_result")?;
    let odd = ["backgroundTaskId", "returnCodeInterpretation"].iter().any(|key| details.contains_key(*key))
        || details.get("interrupted") != Some(&Value::Bool(false));
    (!odd).then_some(0)
}

/// What the call gave back as text, and the size of all it gave back in bytes, pictures included.
pub(super) fn output(block: &Record) -> (String, u64) {
    match block.get("content") {
        Some(Value::String(text)) => (text.clone(), text.len() as u64),
        Some(Value::Array(parts)) => {
            let parts = parts.iter().filter_map(Value::as_object).map(part);
            parts.fold((String::new(), 0), |(mut all, bytes), (text, size)| {
                if !all.is_empty() {
                    all.push('\n');
                }
                all.push_str(&text);
                (all, bytes + size)
            })
        }
        Some(Value::Null) | None => (String::new(), 0),
        Some(other) => {
            let text = other.to_string();
            let bytes = text.len() as u64;
            (text, bytes)
        }
    }
}

/// One part of a result; of a picture, what it is and how large.
fn part(part: &Record) -> (String, u64) {
    match text(part, "type") {
        "text" => (text(part, "text").to_owned(), text(part, "text").len() as u64),
        kind => {
            let Some(source) = object(part, "source") else {
                let text = Value::Object(part.clone()).to_string();
                let bytes = text.len() as u64;
                return (text, bytes);
            };
            let encoded = text(source, "data").trim_end_matches('=').len() as u64;
            let bytes = encoded * 3 / 4;
            (format!("[{kind} {}, {bytes} bytes]", text(source, "media_type")), bytes)
        }
    }
}
