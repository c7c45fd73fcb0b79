//! The append-only journal of a trace: one JSON object a line, and a reader that survives whatever a crash left.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::{EventKind, OffsetMs, Source, Timestamp, TraceEvent};

/// A journal that could not be opened, written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system refused.
    #[error("{action} the trace {path}", path = path.display())]
    Io {
        /// "opening", "writing to", "reading".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has lines, and not one of them is an event (DESIGN §3.11).
    #[error("none of the {lines} lines of {path} is a trace event", path = path.display())]
    NothingRecognised {
        /// The file.
        path: PathBuf,
        /// Lines read.
        lines: u64,
    },
}

/// Appends events. Each is written with one `write`, so that a killed runner leaves at most one torn line, the last.
#[derive(Debug)]
pub struct JournalWriter {
    file: File,
    path: PathBuf,
    next_seq: u64,
}

impl JournalWriter {
    /// Opens a new journal at `path`; an existing file there is an error.
    pub fn create(path: &Path) -> Result<Self, JournalError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| JournalError::Io { action: "opening", path: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned(), next_seq: 0 })
    }

    /// Appends one event and returns it as written.
    pub fn append(
        &mut self,
        at: Timestamp,
        offset_ms: OffsetMs,
        turn: u32,
        source: Source,
        kind: EventKind,
    ) -> Result<TraceEvent, JournalError> {
        let event = TraceEvent { seq: self.next_seq, at, offset_ms, turn, source, untimed: false, kind };
        let failed = |source| JournalError::Io { action: "writing to", path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&event).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(failed)?;
        self.next_seq += 1;
        Ok(event)
    }
}

/// What a reader met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalStats {
    /// Events read.
    pub events: u64,
    /// Lines that are not events: torn, garbled, or of a newer version.
    pub malformed: u64,
}

/// Reads a journal to its end, skipping and counting lines that are no events.
#[derive(Debug)]
pub struct JournalReader;

impl JournalReader {
    /// Every event of the journal at `path`, and what was met on the way.
    pub fn read(path: &Path) -> Result<(Vec<TraceEvent>, JournalStats), JournalError> {
        let failed = |action| move |source| JournalError::Io { action, path: path.to_owned(), source };
        let mut lines = BufReader::new(File::open(path).map_err(failed("opening"))?);
        let mut events = Vec::new();
        let mut stats = JournalStats::default();
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(failed("reading"))? > 0 {
            if !line.trim_ascii().is_empty() {
                match serde_json::from_slice(&line) {
                    Ok(event) => events.push(event),
                    Err(_) => stats.malformed += 1,
                }
            }
            line.clear();
        }
        stats.events = events.len() as u64;
        if events.is_empty() && stats.malformed > 0 {
            return Err(JournalError::NothingRecognised { path: path.to_owned(), lines: stats.malformed });
        }
        Ok((events, stats))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(text: &str) -> EventKind {
        EventKind::Notice { text: text.into() }
    }

    fn journal_with(extra: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let mut writer = JournalWriter::create(&path).unwrap();
        for text in ["one", "two"] {
            writer.append(Timestamp::from_millis(0), OffsetMs(1), 1, Source::Runner, notice(text)).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(extra).unwrap();
        (dir, path)
    }

    #[test]
    fn a_torn_last_line_costs_only_itself() {
        let (_dir, path) = journal_with(br#"{"seq":2,"at":"2026-"#);
        let (events, stats) = JournalReader::read(&path).unwrap();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(stats, JournalStats { events: 2, malformed: 1 });
    }

    #[test]
    fn bytes_that_are_not_text_are_counted() {
        let (_dir, path) = journal_with(b"\xff\xfe\0\n\n\n");
        assert_eq!(JournalReader::read(&path).unwrap().1, JournalStats { events: 2, malformed: 1 });
    }

    #[test]
    fn a_file_without_any_event_is_an_error_and_not_an_empty_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        std::fs::write(&path, "hello\n").unwrap();
        assert!(matches!(JournalReader::read(&path), Err(JournalError::NothingRecognised { lines: 1, .. })));
    }

    #[test]
    fn an_existing_journal_is_never_written_over() {
        let (_dir, path) = journal_with(b"");
        assert!(JournalWriter::create(&path).is_err());
    }
}
