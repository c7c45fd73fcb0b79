//! What a trial has left. Reading one checks what holds for every trial.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proctor_store::{Outcome, TrialDir};
use proctor_traces::{
    ArtifactState, Digest, EventKind, Exchange, JournalReader, Source, ToolCall, ToolResult, TraceEvent,
};
use tempfile::TempDir;

/// A tool call with its moment, and its result with that one's, if there is one.
pub(crate) type SeenCall = (i64, ToolCall, Option<(i64, ToolResult)>);

/// A trial that has its outcome.
pub(crate) struct Trial {
    pub(crate) folder: TrialDir,
    pub(crate) outcome: Outcome,
    /// The run's folder lives as long as somebody reads in it.
    _run: Arc<TempDir>,
}

impl Trial {
    /// Reads it.
    pub(crate) fn read(folder: TrialDir, run: Arc<TempDir>) -> Self {
        let outcome = folder.outcome().expect("it can be read").expect("it is there");
        let trial = Self { folder, outcome, _run: run };
        trial.time_adds_up();
        trial
    }

    /// DESIGN §3.9. Each part is cut to a whole millisecond.
    fn time_adds_up(&self) {
        let it = self.outcome.timing;
        let parts = it.queue_ms + it.prepare_ms + it.agent_ms + it.collect_ms + it.teardown_ms;
        assert!(parts.0.abs_diff(it.wall_ms.0) <= 5, "{}: {it:?}", self.outcome.trial);
        assert!(
            self.outcome.model_wait_ms <= it.agent_ms,
            "{}: model time beyond the agent's",
            self.outcome.trial
        );
    }

    /// The name of its ending.
    pub(crate) fn ending(&self) -> &'static str {
        self.outcome.ending.name()
    }

    /// A file of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bytes of a file of it.
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// What stood where the artifact should be.
    pub(crate) fn state(&self) -> &ArtifactState {
        &self.outcome.artifacts[0].state
    }

    /// The artifact as it was collected; it must be what the outcome says.
    pub(crate) fn artifact(&self) -> Vec<u8> {
        let bytes = self.bytes(&format!("artifacts/{}", self.outcome.artifacts[0].name));
        let expected = ArtifactState::Present { digest: Digest::of(&bytes), bytes: bytes.len() as u64 };
        assert_eq!(self.state(), &expected);
        bytes
    }

    /// The trace: whole, in order of arrival, without gaps.
    pub(crate) fn trace(&self) -> Vec<TraceEvent> {
        read_trace(&self.path("trace.jsonl"))
    }

    /// The model exchanges.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        let text = String::from_utf8(self.bytes("model/exchanges.jsonl")).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("an exchange")).collect()
    }

    /// Tool calls with their results and the moments of both.
    pub(crate) fn tool_calls(&self) -> Vec<SeenCall> {
        let trace = self.trace();
        let result_of = |call: &ToolCall| {
            trace.iter().find_map(|event| match &event.kind {
                EventKind::ToolFinished(result) if result.id == call.id => {
                    Some((event.offset_ms.0, result.clone()))
                }
                _ => None,
            })
        };
        let calls = trace.iter().filter_map(|event| match &event.kind {
            EventKind::ToolStarted(call) => Some((event.offset_ms.0, call.clone(), result_of(call))),
            _ => None,
        });
        calls.collect()
    }

    /// Remarks of the runner.
    pub(crate) fn notices(&self) -> Vec<String> {
        let trace = self.trace().into_iter().filter(|event| event.source == Source::Runner);
        trace
            .filter_map(|event| match event.kind {
                EventKind::Notice { text } => Some(text),
                _ => None,
            })
            .collect()
    }

    /// Versions of the artifact that were kept, by content.
    pub(crate) fn history(&self) -> Vec<Digest> {
        let folder = fs::read_dir(self.path("history")).expect("a history");
        let mut digests: Vec<Digest> = folder
            .flatten()
            .map(|entry| {
                let digest = Digest::of(&fs::read(entry.path()).expect("a version"));
                assert_eq!(entry.file_name().to_string_lossy(), digest.hex());
                digest
            })
            .collect();
        digests.sort_by_key(Digest::hex);
        digests
    }
}

/// Reads a trace and checks its form.
pub(crate) fn read_trace(path: &Path) -> Vec<TraceEvent> {
    let (events, stats) = JournalReader::read(path).expect("a trace");
    assert_eq!(stats.malformed, 0, "{}", path.display());
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event.seq, number as u64, "{}", path.display());
    }
    events
}
