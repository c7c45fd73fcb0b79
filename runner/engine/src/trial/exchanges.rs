//! Keeps the model exchanges of one try: a line each in `model/exchanges.jsonl`, bodies by digest in `model/blobs/`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proctor_gateway::{ExchangeRecord, ExchangeSink, ExchangeStarted};
use proctor_store::append_line;
use proctor_traces::{Clock, Digest, EventKind, Exchange, ExchangeEnd, Source, Usage};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::EngineError;
use crate::record::Recorder;

/// Known when the agent has been exec'd.
pub(super) type ClockSignal = watch::Receiver<Option<Clock>>;

/// What all exchanges of a try add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ModelTotals {
    /// How many there were.
    pub(super) exchanges: u64,
    /// Tokens in all.
    pub(super) tokens: Usage,
    /// Time in which at least one was under way.
    pub(super) wait: Duration,
}

/// The gateway's listener.
pub(super) struct ExchangeLog {
    recorder: Recorder,
    records: mpsc::UnboundedSender<ExchangeRecord>,
    totals: Mutex<Totals>,
    tokens: Arc<AtomicU64>,
}

#[derive(Default)]
struct Totals {
    exchanges: u64,
    tokens: Usage,
    spans: Vec<(Instant, Instant)>,
}

/// The writing side.
pub(super) struct ExchangeWriting(JoinHandle<Result<(), EngineError>>);

impl ExchangeLog {
    /// Starts keeping exchanges in `folder`; `tokens` counts along for whoever shows progress.
    pub(super) fn start(
        folder: PathBuf,
        recorder: Recorder,
        clock: ClockSignal,
        tokens: Arc<AtomicU64>,
    ) -> (Arc<Self>, ExchangeWriting) {
        let (records, queue) = mpsc::unbounded_channel();
        let task = tokio::spawn(write(folder, clock, queue));
        let log = Self { recorder, records, totals: Mutex::default(), tokens };
        (Arc::new(log), ExchangeWriting(task))
    }

    /// The totals so far.
    pub(super) fn totals(&self) -> ModelTotals {
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        ModelTotals { exchanges: totals.exchanges, tokens: totals.tokens, wait: union(totals.spans.clone()) }
    }
}

impl ExchangeWriting {
    /// Waits until all is on disk. The [`ExchangeLog`] must have been dropped.
    pub(super) async fn finish(self) -> Result<(), EngineError> {
        self.0.await.map_err(|_| EngineError::Broken { part: "the writer of exchanges" })?
    }
}

impl ExchangeSink for ExchangeLog {
    fn started(&self, exchange: &ExchangeStarted) {
        let Some(wire) = exchange.wire else { return };
        let kind = EventKind::ModelRequest {
            exchange: exchange.id,
            wire,
            model: exchange.model.clone(),
            bytes: exchange.request_bytes,
        };
        self.recorder.event(exchange.at, Source::Gateway, kind);
    }

    fn finished(&self, exchange: ExchangeRecord) {
        let (id, status, end, usage) = (exchange.id, exchange.status, exchange.end, exchange.usage);
        if end == ExchangeEnd::Refused || exchange.wire.is_none() {
            let text =
                format!("the agent asked for {} {}: not a model route", exchange.method, exchange.path);
            self.recorder.event(exchange.ended, Source::Gateway, EventKind::Notice { text });
        } else {
            let kind = EventKind::ModelResponse { exchange: id, status, end, usage };
            self.recorder.event(exchange.ended, Source::Gateway, kind);
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.exchanges += 1;
            totals.tokens += usage.unwrap_or_default();
            totals.spans.push((exchange.started, exchange.ended));
            self.tokens.store(
                totals.tokens.input_tokens.saturating_add(totals.tokens.output_tokens),
                Ordering::Relaxed,
            );
        }
        // The writer outlives the log, unless the disk failed, which it reports itself.
        let _ = self.records.send(exchange);
    }
}

async fn write(
    folder: PathBuf,
    mut clock: ClockSignal,
    mut queue: mpsc::UnboundedReceiver<ExchangeRecord>,
) -> Result<(), EngineError> {
    let blobs = folder.join("blobs");
    while let Some(record) = queue.recv().await {
        let clock = clock.wait_for(Option::is_some).await.ok().and_then(|clock| *clock);
        let clock = clock.unwrap_or_else(|| Clock::starting_at(record.started));
        std::fs::create_dir_all(&blobs).map_err(EngineError::io("creating", &blobs))?;
        let exchange = Exchange {
            id: record.id,
            wire: record.wire,
            method: record.method,
            path: record.path,
            started_at: Clock::wall_of(record.started),
            start_ms: clock.offset_of(record.started),
            first_byte_ms: record.first_byte.map(|at| clock.offset_of(at)),
            end_ms: clock.offset_of(record.ended),
            status: record.status,
            end: record.end,
            error: record.error,
            model: record.model,
            served_model: record.served_model,
            fingerprint: record.fingerprint,
            usage: record.usage,
            step: record.step,
            request: keep(&blobs, &record.request)?,
            request_bytes: record.request.len() as u64,
            response: keep(&blobs, &record.response)?,
            response_bytes: record.response.len() as u64,
        };
        append_line(&folder.join("exchanges.jsonl"), &exchange)?;
    }
    Ok(())
}

fn keep(blobs: &Path, bytes: &Bytes) -> Result<Digest, EngineError> {
    let digest = Digest::of(bytes);
    let path = blobs.join(digest.hex());
    if !path.exists() {
        std::fs::write(&path, bytes).map_err(EngineError::io("writing", &path))?;
    }
    Ok(digest)
}

/// The time covered by at least one of the spans.
fn union(mut spans: Vec<(Instant, Instant)>) -> Duration {
    spans.sort_unstable();
    let mut covered = Duration::ZERO;
    let mut reached = None::<Instant>;
    for (start, end) in spans {
        let start = reached.map_or(start, |reached| reached.max(start));
        covered += end.saturating_duration_since(start);
        reached = Some(reached.map_or(end, |reached| reached.max(end)));
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_overlap_are_counted_once() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let spans = vec![(at(100), at(200)), (at(0), at(50)), (at(150), at(180)), (at(190), at(260))];
        assert_eq!(union(spans), Duration::from_millis(50 + 160));
        assert_eq!(union(Vec::new()), Duration::ZERO);
    }
}
