//! What an agent states outside of any call: messages and recorded reasoning in which a scope or geometry is written down.
//!
//! A call keeps the actions of its own text; these stand beside the calls, in the same causal order, and are counted apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Action, CallActions, Reason, prose};
use crate::{Moment, Said, SaidKind, Trace};

/// Most of the words of a statement that is quoted, in characters.
const QUOTED: usize = 160;

/// A message or a piece of reasoning that carries actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatedActions {
    /// Its place in the causal order that it shares with the calls.
    pub seq: u32,
    /// When it was said, where that is known.
    pub at: Option<Moment>,
    /// Whether it is recorded reasoning, and not a message.
    pub reasoning: bool,
    /// `identify_scope`, `analyze_layout`, or both.
    pub actions: Vec<Action>,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// The statements of a trace that carry actions, in causal order; `calls` are the labelled calls of the same trace.
///
/// After the answer is first written, a message that says what changed reports on work done and identifies nothing; geometry
/// counts after that in reasoning only.
pub fn stated(trace: &Trace, calls: &[CallActions]) -> Vec<StatedActions> {
    let writes = calls.iter().find(|it| it.actions.contains(&Action::EditAnswer));
    let written = writes.and_then(|it| trace.call(&it.call)).map_or(u32::MAX, |call| call.seq);
    trace.said.iter().filter_map(|said| of(said, said.seq > written)).collect()
}

fn of(said: &Said, after_writing: bool) -> Option<StatedActions> {
    let reasoning = match said.kind {
        SaidKind::Reasoning => true,
        SaidKind::Text => false,
        SaidKind::Prompt | SaidKind::Notice | SaidKind::Raw => return None,
    };
    let mut reasons = Vec::new();
    let mut add = |action, because: &'static str, words: &str| {
        let evidence = words.chars().take(QUOTED).collect();
        reasons.push(Reason { action, because: because.into(), evidence });
    };
    if !after_writing && let Some(words) = prose::scope(&said.text) {
        add(Action::IdentifyScope, "it says what changes or stays", words);
    }
    if (reasoning || !after_writing)
        && let Some(words) = prose::geometry(&said.text)
    {
        add(Action::AnalyzeLayout, "worked-out geometry is written down", words);
    }
    if reasons.is_empty() {
        return None;
    }
    let actions = reasons.iter().map(|it| it.action).collect();
    Some(StatedActions { seq: said.seq, at: said.at, reasoning, actions, reasons })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actions::classify;
    use crate::{Format, SourceFile};

    /// A transcript of Claude Code: each message is words (`t`), reasoning (`r`), or a written artifact (`w`).
    fn trace(messages: &[(&str, &str)]) -> Trace {
        let mut lines = String::new();
        for (number, (kind, text)) in messages.iter().enumerate() {
            let block = match *kind {
                "t" => serde_json::json!({"type": "text", "text": text}),
                "r" => serde_json::json!({"type": "thinking", "thinking": text, "signature": ""}),
                _ => serde_json::json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Write",
                    "input": {"file_path": "/work/artifact.dot", "content": text}}),
            };
            let line = serde_json::json!({
                "type": "assistant", "sessionId": "s", "uuid": format!("u{number}"),
                "timestamp": format!("2026-11-30T10:00:{number:02}.000Z"), "cwd": "/work", "version": "2.1.332",
                "message": {"id": format!("m{number}"), "role": "assistant", "content": [block],
                    "usage": {"input_tokens": 1, "output_tokens": 1}},
            });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let file = SourceFile {
            name: "s.jsonl".into(),
            bytes: lines.into_bytes(),
            format: Some(Format::ClaudeTranscript),
            arrivals: None,
        };
        Trace::read(&[file], None).unwrap()
    }

    #[test]
    fn a_scope_is_identified_before_the_answer_is_written_and_geometry_also_thought_of_later() {
        let scope = "The title must change to `Approved`; all other boxes must stay where they are.";
        let geometry = "The grid has columns at x=40 px and x=200 px, with a row height of 28 px.";
        let trace = trace(&[
            ("t", "I will begin by looking at the picture."),
            ("t", scope),
            ("r", geometry),
            ("w", "digraph { a -> b }"),
            ("t", scope),
            ("t", geometry),
            ("r", geometry),
        ]);
        let labelled = classify(&trace, None);
        assert!(labelled[0].first);
        let found: Vec<(bool, Vec<Action>)> =
            stated(&trace, &labelled).into_iter().map(|it| (it.reasoning, it.actions)).collect();
        assert_eq!(
            found,
            [
                (false, vec![Action::IdentifyScope]),
                (true, vec![Action::AnalyzeLayout]),
                (true, vec![Action::AnalyzeLayout]),
            ]
        );
    }
}
