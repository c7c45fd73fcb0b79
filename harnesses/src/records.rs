//! What the readers of all CLIs share: a line as a record, the count of what was met, the calls in flight.

use std::collections::{HashMap, HashSet};

use proctor_traces::{EventKind, ToolCall, ToolCallId, ToolResult, ToolStatus};
use serde_json::{Map, Value};

use crate::verdict::AgentVerdict;

/// A JSON object, as one line holds it.
pub(crate) type Record = Map<String, Value>;

/// What a line turned out to be.
pub(crate) enum Line {
    Blank,
    Record(Record),
    Malformed,
}

/// Reads one line. Invalid UTF-8 is replaced rather than refused: one bad byte in a tool's output must not cost the
/// call.
pub(crate) fn parse(line: &[u8]) -> Line {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Line::Blank;
    }
    let value = match std::str::from_utf8(line) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)),
    };
    match value {
        Ok(Value::Object(record)) => Line::Record(record),
        Ok(_) | Err(_) => Line::Malformed,
    }
}

/// The text at `key`, or nothing.
pub(crate) fn text<'a>(record: &'a Record, key: &str) -> &'a str {
    record.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The object at `key`, if there is one.
pub(crate) fn object<'a>(record: &'a Record, key: &str) -> Option<&'a Record> {
    record.get(key).and_then(Value::as_object)
}

/// The count at `key`; anything that is no count is zero.
pub(crate) fn count(record: &Record, key: &str) -> u64 {
    record.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// Lines met in one turn.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) recognised: u64,
    pub(crate) unknown: u64,
    pub(crate) malformed: u64,
}

impl Tally {
    /// Unknown lines that become events of their own in one turn; `raw/` holds them all, and an agent that prints
    /// garbage for half an hour must not make the trace unreadable.
    const RAW_KEPT: u64 = 1_000;

    /// Counts a record that no rule knows, and keeps it.
    pub(crate) fn unknown(&mut self, line: &[u8]) -> Vec<EventKind> {
        self.unknown += 1;
        self.keep(line)
    }

    /// Counts a line that is no record, and keeps it.
    pub(crate) fn malformed(&mut self, line: &[u8]) -> Vec<EventKind> {
        self.malformed += 1;
        self.keep(line)
    }

    fn keep(&self, line: &[u8]) -> Vec<EventKind> {
        // Only what is kept has to become text: a line may be megabytes long.
        let head = &line[..line.len().min(ToolResult::OUTPUT_CAP)];
        match self.unknown.saturating_add(self.malformed) {
            ..=Self::RAW_KEPT => vec![EventKind::raw(String::from_utf8_lossy(head).trim_end())],
            n if n == Self::RAW_KEPT + 1 => vec![EventKind::Notice {
                text: "further lines that no rule knows are only counted; raw/ has them all".to_owned(),
            }],
            _ => Vec::new(),
        }
    }

    /// What the stream says, unless none of it was understood: that is an error, never an empty trace (DESIGN §3.11).
    pub(crate) fn verdict(&self, said: AgentVerdict) -> AgentVerdict {
        let lines = self.unknown.saturating_add(self.malformed);
        if self.recognised > 0 || lines == 0 {
            return said;
        }
        AgentVerdict::Failed { message: format!("0 of {lines} lines on stdout were recognised") }
    }
}

/// A call that has been issued and has not returned.
#[derive(Debug)]
pub(crate) struct OpenCall {
    ordinal: u64,
    pub(crate) id: ToolCallId,
    pub(crate) name: String,
}

/// The calls in flight, by the name that the CLI gives them.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: HashMap<String, OpenCall>,
    started: u64,
    /// Every id given out in this trial, and how often each was asked for.
    given: HashSet<String>,
    asked: HashMap<String, u64>,
}

impl Calls {
    /// Notes a call that was issued.
    pub(crate) fn start(&mut self, key: &str, call: ToolCall) -> EventKind {
        self.started += 1;
        let open = OpenCall { ordinal: self.started, id: call.id.clone(), name: call.name.clone() };
        self.open.insert(key.to_owned(), open);
        EventKind::ToolStarted(call)
    }

    /// `wanted` as the id of a call, or what comes nearest to it: a model may use an id twice, the trace must not.
    pub(crate) fn id(&mut self, wanted: &str) -> ToolCallId {
        let asked = self.asked.entry(wanted.to_owned()).or_default();
        loop {
            *asked += 1;
            let id = if *asked == 1 { wanted.to_owned() } else { format!("{wanted}#{asked}") };
            if self.given.insert(id.clone()) {
                return ToolCallId(id);
            }
        }
    }

    /// The call in flight under `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&OpenCall> {
        self.open.get(key)
    }

    /// Takes the call that has returned.
    pub(crate) fn finish(&mut self, key: &str) -> Option<OpenCall> {
        self.open.remove(key)
    }

    /// What is still in flight becomes unfinished, in the order of its start.
    pub(crate) fn end(&mut self) -> Vec<EventKind> {
        let mut left: Vec<OpenCall> = self.open.drain().map(|(_, call)| call).collect();
        left.sort_by_key(|call| call.ordinal);
        let unfinished = |call: OpenCall| ToolResult::new(call.id, ToolStatus::Unfinished, None, "");
        left.into_iter().map(|call| EventKind::ToolFinished(unfinished(call))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_bytes_cost_as_little_as_possible() {
        assert!(matches!(parse(b" \r\n"), Line::Blank));
        assert!(matches!(parse(b"\xef\xbb\xbf{\"a\":1}\r\n"), Line::Record(_)));
        assert!(matches!(parse(b"[1]"), Line::Malformed));
        assert!(matches!(parse(b"{\"a\":1"), Line::Malformed));
        assert!(matches!(parse(b"\0{\"a\":1}"), Line::Malformed));
        assert!(matches!(parse("[".repeat(100_000).as_bytes()), Line::Malformed));
        let Line::Record(record) = parse(b"{\"a\":\"x\xffy\"}") else { panic!("a bad byte cost the record") };
        assert_eq!(text(&record, "a"), "x\u{fffd}y");
    }

    #[test]
    fn a_flood_of_unknown_lines_is_counted_and_not_kept() {
        let mut tally = Tally::default();
        let kept: usize = (0..5_000).map(|_| tally.malformed(b"garbage").len()).sum();
        assert_eq!(kept, 1_001);
        assert_eq!(tally.malformed, 5_000);
        let verdict = tally.verdict(AgentVerdict::Finished);
        assert_eq!(
            verdict,
            AgentVerdict::Failed { message: "0 of 5000 lines on stdout were recognised".to_owned() }
        );
    }
}
