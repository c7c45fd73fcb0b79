//! Names that a harness makes up, that the model reads in a tool's output and says again.
//!
//! Codex numbers a command that goes on at random, and the model polls that number; Claude Code does so with tasks in the
//! background and the file of their output. A recording says the old name. So pairs of old and new names are learnt where a
//! request equals a recorded one but for them; responses are given with the new, and requests compared with the old.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use regex::bytes::{Captures, Regex};
use serde_json::{Value, json};

use crate::sse::SseFramer;

/// Most names of one recording.
const CAP: usize = 1000;

/// Where names stand in the output of a tool, each in a group of its own. They are too long to be a word by chance.
static IN_OUTPUT: LazyLock<Vec<regex::Regex>> = LazyLock::new(|| {
    let patterns = [
        r#"(?:session ID |session_id\\*"?: ?)(\d{4,6})\b"#,
        r"with ID: ([0-9a-z]{6,40})\b",
        r"/tmp/claude-\d+/[^/\s]+/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/tasks/([0-9a-z]{6,40})\.output",
    ];
    // A test holds that all of them can be read.
    patterns.into_iter().filter_map(|pattern| regex::Regex::new(pattern).ok()).collect()
});

/// The names in what a tool has printed, in order, pattern by pattern.
pub(super) fn names_in(output: &str, names: &mut Vec<String>) {
    for found in IN_OUTPUT.iter().flat_map(|pattern| pattern.captures_iter(output)) {
        let groups = found.iter().skip(1).flatten().map(|name| name.as_str().to_owned());
        names.extend(groups.take(CAP.saturating_sub(names.len())));
    }
}

/// Recorded names and what stands for them now.
#[derive(Debug, Default)]
pub(super) struct Names {
    now: BTreeMap<String, String>,
}

impl Names {
    /// Takes the pairs of two requests that are the same otherwise.
    pub(super) fn learn(&mut self, recorded: &[String], sent: &[String]) {
        for (old, new) in recorded.iter().zip(sent) {
            if old != new && self.now.len() < CAP {
                self.now.insert(old.clone(), new.clone());
            }
        }
    }

    /// A request, with the recorded names.
    pub(super) fn as_recorded<'a>(&self, request: &'a [u8]) -> Cow<'a, [u8]> {
        renamed(request, &self.now.iter().map(|(old, new)| (new, old)).collect())
    }

    /// A recorded response, with the names of now.
    pub(super) fn as_now(&self, response: &Bytes) -> Bytes {
        if self.now.is_empty() {
            return response.clone();
        }
        let joined = joined(response);
        Bytes::from(renamed(&joined, &self.now.iter().collect()).into_owned())
    }
}

/// All names at once: a new one may be another's old.
fn renamed<'a>(text: &'a [u8], names: &BTreeMap<&String, &String>) -> Cow<'a, [u8]> {
    let pattern = names.keys().map(|name| word(name)).collect::<Vec<_>>().join("|");
    match Regex::new(&pattern) {
        Ok(pattern) if !names.is_empty() => pattern.replace_all(text, |found: &Captures<'_>| {
            let whole = found.get(0).map_or(&b""[..], |it| it.as_bytes());
            let end = whole.iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
            let (before, name) = whole.split_at(end.map_or(0, |at| at + 1));
            let name = std::str::from_utf8(name).ok().and_then(|name| names.get(&name.to_owned()));
            let mut new = before.to_vec();
            new.extend_from_slice(name.map_or(&whole[before.len()..], |name| name.as_bytes()));
            new
        }),
        _ => Cow::Borrowed(text),
    }
}

/// A number is a name only where it is said to be one.
fn word(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        format!(r#"(?:session ID |session_id\\*"?\s*:\s*){name}\b"#)
    } else {
        format!(r"\b{}\b", regex::escape(name))
    }
}

/// An event stream in which the arguments of each call are one piece, so that no name is cut in two: Anthropic's
/// `input_json_delta`. The other formats repeat the arguments whole. Anything else stays as it is.
fn joined(body: &[u8]) -> Cow<'_, [u8]> {
    if !body.windows(16).any(|it| it == b"input_json_delta") {
        return Cow::Borrowed(body);
    }
    let (mut events, mut out) = (Vec::new(), Vec::new());
    SseFramer::default().push(body, &mut events);
    let mut pending: Option<(Value, String)> = None;
    let flush = |pending: &mut Option<(Value, String)>, out: &mut Vec<u8>| {
        if let Some((index, arguments)) = pending.take() {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": arguments}});
            out.extend_from_slice(format!("event: content_block_delta\ndata: {delta}\n\n").as_bytes());
        }
    };
    for event in events {
        let value: Value = serde_json::from_slice(&event.data).unwrap_or_default();
        if let Some(piece) = value.pointer("/delta/partial_json").and_then(Value::as_str) {
            if pending.as_ref().is_some_and(|(index, _)| *index != value["index"]) {
                flush(&mut pending, &mut out);
            }
            pending.get_or_insert_with(|| (value["index"].clone(), String::new())).1.push_str(piece);
            continue;
        }
        flush(&mut pending, &mut out);
        for (field, text) in [(&b"event: "[..], &event.name), (b"data: ", &event.data)] {
            for line in text.split(|byte| *byte == b'\n').filter(|_| !text.is_empty()) {
                out.extend_from_slice(&[field, line, b"\n"].concat());
            }
        }
        out.push(b'\n');
    }
    flush(&mut pending, &mut out);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(output: &str) -> Vec<String> {
        let mut names = Vec::new();
        names_in(output, &mut names);
        names
    }

    fn learnt(old: &str, new: &str) -> Names {
        let mut learnt = Names::default();
        learnt.learn(&names(old), &names(new));
        learnt
    }

    #[test]
    fn a_command_of_codex_that_goes_on() {
        let printed = |number: u32| {
            format!("Wall time: 10.0 seconds\nProcess running with session ID {number}\nOutput:\n")
        };
        let known = learnt(&printed(33845), &printed(71002));
        let said = |number: u32| {
            format!(
                r#"data: {{"item":{{"name":"write_stdin","arguments":"{{\"session_id\": {number},\"chars\":\"33845\"}}"}}}}"#
            )
        };
        assert_eq!(known.as_now(&Bytes::from(said(33845))), said(71002).as_bytes());
        assert_eq!(*known.as_recorded(said(71002).as_bytes()), *said(33845).as_bytes());
        assert_eq!(*known.as_recorded(printed(71002).as_bytes()), *printed(33845).as_bytes());
    }

    #[test]
    fn a_task_of_claude_code_in_the_background_though_its_name_came_in_pieces() {
        let printed = |id: &str, session: &str| {
            format!(
                "Command running in background with ID: {id}. Output: /tmp/claude-1000/-work/{session}/tasks/{id}.output"
            )
        };
        let (old, new) = ("01a22e26-4f13-7031-9a64-13dbc5e13f05", "01a22e26-895d-7b62-a030-4c6f1e6dc2c8");
        let known = learnt(&printed("b4f21ac", old), &printed("bq7720d", new));
        let piece = |text: &str| {
            format!(
                "event: content_block_delta\ndata: {}\n\n",
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": text}})
            )
        };
        let (start, stop) = (
            "event: content_block_start\ndata: {\"index\":1}\n\n",
            "event: content_block_stop\ndata: {}\n\n",
        );
        let response = [start, &piece("{\"task_id\": \"b4f"), &piece("21ac\"}"), stop].concat();
        let expected = [start, &piece("{\"task_id\": \"bq7720d\"}"), stop].concat();
        assert_eq!(known.as_now(&Bytes::from(response)), expected.as_bytes());
        let path = format!("cat /tmp/claude-1000/-work/{old}/tasks/b4f21ac.output");
        assert_eq!(
            known.as_now(&Bytes::from(path)),
            format!("cat /tmp/claude-1000/-work/{new}/tasks/bq7720d.output").as_bytes()
        );
    }

    #[test]
    fn names_that_change_places() {
        let known = learnt("with ID: aaaaaa with ID: bbbbbb", "with ID: bbbbbb with ID: aaaaaa");
        assert_eq!(
            known.as_now(&Bytes::from_static(b"aaaaaa bbbbbb xaaaaaa")),
            "bbbbbb aaaaaa xaaaaaa".as_bytes()
        );
    }

    #[test]
    fn nothing_learnt_changes_nothing() {
        let response = Bytes::from_static(b"data: {\"delta\":{\"type\":\"input_json_delta\"}}\n\n");
        assert_eq!(Names::default().as_now(&response), response);
        assert_eq!(*Names::default().as_recorded(b"x"), *b"x");
        assert_eq!(IN_OUTPUT.len(), 3);
    }

    proptest! {
        #[test]
        fn what_is_renamed_can_be_named_back(text in "[ab ]{0,60}") {
            let known = learnt("with ID: aaaaaa", "with ID: ababab");
            let now = known.as_now(&Bytes::from(text.clone()));
            prop_assume!(!text.split(' ').any(|word| word == "ababab"));
            prop_assert_eq!(&*known.as_recorded(&now), text.as_bytes());
        }
    }
}
