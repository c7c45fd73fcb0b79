//! The trace of one try, written by one task from what all witnesses send it.
//!
//! Witnesses only know instants. The recorder holds what it is sent until the clock of the trial is known (the agent
//! has been exec'd, or never will be), then writes on as events come.

use std::path::{Path, PathBuf};
use std::time::Instant;

use proctor_traces::{Clock, EventKind, JournalWriter, Source};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::EngineError;

/// The end that witnesses write to. Cheap to clone; never blocks.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(mpsc::UnboundedSender<Message>);

#[derive(Debug)]
enum Message {
    Event(Instant, Source, EventKind),
    Clock(Clock),
}

impl Recorder {
    /// Starts a trace at `path`.
    pub(crate) fn start(path: &Path) -> Result<(Self, Writing), EngineError> {
        let journal = JournalWriter::create(path)?;
        let (sender, messages) = mpsc::unbounded_channel();
        let task = tokio::spawn(write(journal, messages));
        Ok((Self(sender), Writing { task, path: path.to_owned() }))
    }

    /// Something happened at `at`.
    pub(crate) fn event(&self, at: Instant, source: Source, kind: EventKind) {
        // After the end of the trace there is nobody to tell, and nothing to add.
        let _ = self.0.send(Message::Event(at, source, kind));
    }

    /// A remark of the runner's own, now.
    pub(crate) fn notice(&self, text: impl Into<String>) {
        self.event(Instant::now(), Source::Runner, EventKind::Notice { text: text.into() });
    }

    /// Offset zero is known.
    pub(crate) fn clock(&self, clock: Clock) {
        let _ = self.0.send(Message::Clock(clock));
    }
}

/// The writing side.
pub(crate) struct Writing {
    task: JoinHandle<Result<(), EngineError>>,
    path: PathBuf,
}

impl Writing {
    /// Waits until everything sent so far is on disk. Every [`Recorder`] must have been dropped.
    pub(crate) async fn finish(self) -> Result<(), EngineError> {
        tracing::trace!(path = %self.path.display(), "trace ends");
        self.task.await.map_err(|_| EngineError::Broken { part: "the writer of the trace" })?
    }
}

/// All trials have one turn so far; several come with the suites that have them.
const TURN: u32 = 1;

async fn write(
    mut journal: JournalWriter,
    mut messages: mpsc::UnboundedReceiver<Message>,
) -> Result<(), EngineError> {
    let mut waiting = Vec::new();
    let mut clock = None;
    while let Some(message) = messages.recv().await {
        match (message, clock) {
            (Message::Clock(known), _) => {
                clock = Some(known);
                for (at, source, kind) in waiting.drain(..) {
                    journal.append(Clock::wall_of(at), known.offset_of(at), TURN, source, kind)?;
                }
            }
            (Message::Event(at, source, kind), Some(clock)) => {
                journal.append(Clock::wall_of(at), clock.offset_of(at), TURN, source, kind)?;
            }
            (Message::Event(at, source, kind), None) => waiting.push((at, source, kind)),
        }
    }
    // The agent never started: offsets count from the last thing that happened, so all are negative or zero.
    let zero = waiting.last().map_or_else(Instant::now, |(at, ..)| *at);
    for (at, source, kind) in waiting {
        journal.append(Clock::wall_of(at), Clock::starting_at(zero).offset_of(at), TURN, source, kind)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proctor_traces::{JournalReader, OffsetMs};

    use super::*;

    async fn offsets(record: impl FnOnce(&Recorder, Instant)) -> Vec<OffsetMs> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.jsonl");
        let (recorder, writing) = Recorder::start(&path).unwrap();
        record(&recorder, Instant::now() + Duration::from_secs(1));
        drop(recorder);
        writing.finish().await.unwrap();
        JournalReader::read(&path).unwrap().0.into_iter().map(|event| event.offset_ms).collect()
    }

    fn notice() -> EventKind {
        EventKind::Notice { text: "x".into() }
    }

    #[tokio::test]
    async fn what_came_before_the_start_has_a_negative_offset() {
        let ms = Duration::from_millis;
        let seen = offsets(|recorder, zero| {
            recorder.event(zero - ms(40), Source::Runner, notice());
            recorder.clock(Clock::starting_at(zero));
            recorder.event(zero + ms(7), Source::Guest, notice());
        });
        assert_eq!(seen.await, [OffsetMs(-40), OffsetMs(7)]);
    }

    #[tokio::test]
    async fn a_trial_that_never_started_still_has_its_trace() {
        let seen = offsets(|recorder, zero| {
            recorder.event(zero - Duration::from_millis(5), Source::Runner, notice());
            recorder.event(zero, Source::Runner, notice());
        });
        assert_eq!(seen.await, [OffsetMs(-5), OffsetMs(0)]);
    }
}
