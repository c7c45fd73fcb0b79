//! Keeps what the agent prints exactly as it came, with the arrival time of each line beside it, and reads stdout
//! through the harness into events.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use proctor_harnesses::{StreamEnd, StreamReader};
use proctor_sandbox::{OutputChunk, Stream};
use proctor_traces::{Clock, EventKind, Limit, Source};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::exchanges::ClockSignal;
use crate::EngineError;
use crate::record::Recorder;

/// Most bytes of both streams that are kept; more is a limit that is exceeded.
const STREAM_CAP: u64 = 512 << 20;

/// Longest line that is handed to the harness; a longer one is kept raw, and read up to here.
const LINE_CAP: usize = 16 << 20;

/// What the streams came to.
pub(super) struct StreamsEnd {
    /// What the harness made of stdout; its last events are not told yet, for nobody here knows when the agent ended.
    pub(super) reader: StreamEnd,
    /// Bytes on both.
    pub(super) bytes: u64,
}

/// The reading of one room's output.
pub(super) struct Streams {
    task: JoinHandle<Result<StreamsEnd, EngineError>>,
}

impl Streams {
    /// Starts reading `output` into `folder`. The receiver resolves when [`STREAM_CAP`] is passed.
    pub(super) fn start(
        output: mpsc::Receiver<OutputChunk>,
        reader: Box<dyn StreamReader>,
        folder: PathBuf,
        recorder: Recorder,
        clock: ClockSignal,
        tool_calls: Arc<AtomicU64>,
    ) -> (Self, oneshot::Receiver<Limit>) {
        let (passed, limit) = oneshot::channel();
        let work = Reading { reader, recorder, tool_calls, bytes: 0, passed: Some(passed) };
        (Self { task: tokio::spawn(work.run(output, folder, clock)) }, limit)
    }

    /// Waits for the end of the output, which comes with the end of the room.
    pub(super) async fn finish(self) -> Result<StreamsEnd, EngineError> {
        self.task.await.map_err(|_| EngineError::Broken { part: "the reader of the agent's output" })?
    }
}

struct Reading {
    reader: Box<dyn StreamReader>,
    recorder: Recorder,
    tool_calls: Arc<AtomicU64>,
    bytes: u64,
    passed: Option<oneshot::Sender<Limit>>,
}

impl Reading {
    async fn run(
        mut self,
        mut output: mpsc::Receiver<OutputChunk>,
        folder: PathBuf,
        mut clock: ClockSignal,
    ) -> Result<StreamsEnd, EngineError> {
        let mut stdout = Kept::create(&folder, "stdout.jsonl", "stdout.times")?;
        let mut stderr = Kept::create(&folder, "stderr.log", "stderr.times")?;
        let mut at = Instant::now();
        while let Some(chunk) = output.recv().await {
            at = chunk.at;
            self.bytes += chunk.bytes.len() as u64;
            if self.bytes > STREAM_CAP {
                if let Some(passed) = self.passed.take() {
                    // The trial may be over already.
                    let _ = passed.send(Limit::StreamBytes);
                }
                continue;
            }
            let clock = clock.wait_for(Option::is_some).await.ok().and_then(|clock| *clock);
            let clock = clock.unwrap_or_else(|| Clock::starting_at(chunk.at));
            match chunk.stream {
                Stream::Stdout => {
                    stdout.add(&chunk, clock, |line, at| {
                        Self::tell(&mut *self.reader, &self.recorder, &self.tool_calls, line, at);
                    })?;
                }
                Stream::Stderr => stderr.add(&chunk, clock, |_, _| ())?,
            }
        }
        // What has no end came with the last that arrived.
        stdout.finish(|line| Self::tell(&mut *self.reader, &self.recorder, &self.tool_calls, line, at))?;
        stderr.finish(|_| ())?;
        Ok(StreamsEnd { reader: self.reader.end(), bytes: self.bytes })
    }

    fn tell(
        reader: &mut dyn StreamReader,
        recorder: &Recorder,
        tool_calls: &AtomicU64,
        line: &[u8],
        at: Instant,
    ) {
        for kind in reader.line(line) {
            if matches!(kind, EventKind::ToolStarted(_)) {
                tool_calls.fetch_add(1, Ordering::Relaxed);
            }
            recorder.event(at, Source::AgentStream, kind);
        }
    }
}

/// One stream on disk: its bytes, and for each line `<offset in ms>\t<position of its first byte>`.
struct Kept {
    raw: BufWriter<File>,
    times: BufWriter<File>,
    path: PathBuf,
    /// Position of the next byte, and of the first byte of the line it belongs to.
    position: u64,
    line_start: u64,
    line: Vec<u8>,
}

impl Kept {
    fn create(folder: &Path, raw: &str, times: &str) -> Result<Self, EngineError> {
        let path = folder.join(raw);
        let create = |path: &Path| {
            File::create_new(path).map(BufWriter::new).map_err(EngineError::io("creating", path))
        };
        let (raw, times) = (create(&path)?, create(&folder.join(times))?);
        Ok(Self { raw, times, path, position: 0, line_start: 0, line: Vec::new() })
    }

    /// Appends a chunk; calls `on_line` for each line that it ends, without its newline.
    fn add(
        &mut self,
        chunk: &OutputChunk,
        clock: Clock,
        mut on_line: impl FnMut(&[u8], Instant),
    ) -> Result<(), EngineError> {
        let Self { raw, times, path, position, line_start, line } = self;
        let failed = |error| EngineError::io("writing", path)(error);
        raw.write_all(&chunk.bytes).map_err(failed)?;
        for piece in chunk.bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_CAP.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            *position += piece.len() as u64;
            if piece.ends_with(b"\n") {
                let offset = clock.offset_of(chunk.at).0;
                writeln!(times, "{offset}\t{line_start}").map_err(failed)?;
                on_line(line.strip_suffix(b"\n").unwrap_or(line), chunk.at);
                line.clear();
                *line_start = *position;
            }
        }
        // A crash of ours must not cost what has arrived.
        raw.flush().and_then(|()| times.flush()).map_err(failed)
    }

    /// Ends the stream; a last line without newline is a line.
    fn finish(mut self, mut on_line: impl FnMut(&[u8])) -> Result<(), EngineError> {
        if !self.line.is_empty() {
            on_line(&self.line);
        }
        self.raw.flush().map_err(EngineError::io("writing", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn lines(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>, String) {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Kept::create(dir.path(), "raw", "times").unwrap();
        let zero = Instant::now();
        let mut seen = Vec::new();
        for (number, bytes) in chunks.iter().enumerate() {
            let at = zero + Duration::from_millis(10 * number as u64);
            let chunk = OutputChunk { stream: Stream::Stdout, bytes: Bytes::copy_from_slice(bytes), at };
            kept.add(&chunk, Clock::starting_at(zero), |line, _| seen.push(line.to_vec())).unwrap();
        }
        kept.finish(|line| seen.push(line.to_vec())).unwrap();
        let read = |name| std::fs::read(dir.path().join(name)).unwrap();
        (seen, read("raw"), String::from_utf8(read("times")).unwrap())
    }

    #[test]
    fn lines_have_the_time_of_their_last_byte_and_the_place_of_their_first() {
        let (seen, raw, times) = lines(&[b"one\ntw", b"o\n\xc3", b"\xa9\0\nlast"]);
        assert_eq!(seen, [b"one".to_vec(), b"two".to_vec(), b"\xc3\xa9\0".to_vec(), b"last".to_vec()]);
        assert_eq!(raw, b"one\ntwo\n\xc3\xa9\0\nlast");
        assert_eq!(times, "0\t0\n10\t4\n20\t8\n");
    }

    #[test]
    fn a_line_beyond_the_cap_is_kept_raw_and_read_up_to_it() {
        let long = vec![b'x'; LINE_CAP + 5];
        let (seen, raw, _) = lines(&[&long, b"\nnext\n"]);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [LINE_CAP, 4]);
        assert_eq!(raw.len(), LINE_CAP + 5 + 6);
    }
}
