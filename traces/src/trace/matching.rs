//! Which call of a stream is which of a session file.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::{Call, Format, ToolCallId, ToolKind};

/// For each call of the stream the index of the same call in the session, or none.
///
/// Most agents use the model's own id in both. Codex numbers what it prints: there a call is found by what it does, and of
/// several that do the same the first is meant. What only a session shows is matched by nothing.
pub(super) fn pair(
    stream: &[Call],
    session: &[Call],
    format: Format,
    patched: &[ToolCallId],
) -> Vec<Option<usize>> {
    let by_id: HashMap<&ToolCallId, usize> =
        session.iter().enumerate().map(|(index, call)| (&call.id, index)).collect();
    let mut pairs: Vec<Option<usize>> = stream.iter().map(|call| by_id.get(&call.id).copied()).collect();
    if format != Format::CodexRollout {
        return pairs;
    }
    let taken: HashSet<usize> = pairs.iter().flatten().copied().collect();
    let patched: HashSet<&ToolCallId> = patched.iter().collect();
    let mut waiting: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, call) in session.iter().enumerate().filter(|(index, _)| !taken.contains(index)) {
        waiting.entry(deed(call)).or_default().push_back(index);
        if patched.contains(&call.id) && call.name != "apply_patch" {
            waiting.entry(PATCH.to_owned()).or_default().push_back(index);
        }
    }
    for (call, pair) in stream.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
        *pair = waiting.get_mut(&deed(call)).and_then(VecDeque::pop_front);
    }
    pairs
}

const PATCH: &str = "patch";

/// What a call does, as far as stream and session both tell it.
fn deed(call: &Call) -> String {
    match call.kind() {
        ToolKind::Shell => format!("shell {}", call.command().unwrap_or_default()),
        _ if call.name == "apply_patch" => PATCH.to_owned(),
        // The name that the model uses, and the parts of it that are printed.
        _ if call.name.starts_with("mcp__") => call.name.replacen("mcp__", "mcp ", 1).replacen("__", " ", 1),
        _ if call.input.get("server").is_some_and(serde_json::Value::is_string) => {
            format!("mcp {} {}", call.input["server"].as_str().unwrap_or_default(), call.name)
        }
        ToolKind::Search => {
            let query = call.input.get("query").and_then(serde_json::Value::as_str).unwrap_or_default();
            format!("{} {query}", call.name)
        }
        _ => call.name.clone(),
    }
}

/// The program inside which a call was made that only the stream tells of: it was at work when all ended, so that the
/// session holds no item of it.
pub(super) fn program_of<'a>(call: &Call, session: &'a [Call]) -> Option<&'a Call> {
    let command = call.command().unwrap_or_default();
    let mut programs = session.iter().rev().filter(|it| it.kind() == ToolKind::Program);
    programs.find(|it| {
        let program = it.input.get("input").and_then(serde_json::Value::as_str).unwrap_or_default();
        it.end.is_none() || (!command.is_empty() && program.contains(&command))
    })
}
