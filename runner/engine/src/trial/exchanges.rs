//! Keeps the model exchanges of one try: a line each in `model/exchanges.jsonl`, bodies by digest in `model/blobs/`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proctor_gateway::{ExchangeRecord, ExchangeSink, ExchangeStarted};
use proctor_store::{Price, append_line};
use proctor_traces::{Clock, Digest, EventKind, Exchange, ExchangeEnd, Limit, Source, Usage};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::record::Recorder;
use crate::{Ceiling, EngineError, Method};

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
    /// Time lost to the provider's failures: failed exchanges, and the pauses until the agent asked again.
    pub(super) provider_wait: Duration,
}

/// The gateway's listener.
pub(super) struct ExchangeLog {
    recorder: Recorder,
    records: mpsc::UnboundedSender<ExchangeRecord>,
    totals: Mutex<Totals>,
    tokens: Arc<AtomicU64>,
    ceiling: Ceiling,
    price: Option<Price>,
    exceeded: watch::Sender<Option<Limit>>,
    diverged: watch::Sender<Option<String>>,
    ended: watch::Sender<u64>,
}

#[derive(Default)]
struct Totals {
    exchanges: u64,
    tokens: Usage,
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    start: Instant,
    end: Instant,
    failed: bool,
}

/// The writing side.
pub(super) struct ExchangeWriting(JoinHandle<Result<(), EngineError>>);

impl ExchangeLog {
    /// Starts keeping exchanges in `folder`; `tokens` counts along for whoever shows progress. What `method` may use per
    /// trial is watched over.
    pub(super) fn start(
        folder: PathBuf,
        recorder: Recorder,
        clock: ClockSignal,
        tokens: Arc<AtomicU64>,
        method: &Method,
    ) -> (Arc<Self>, ExchangeWriting) {
        let (records, queue) = mpsc::unbounded_channel();
        let task = tokio::spawn(write(folder, clock, queue));
        let log = Self {
            recorder,
            records,
            totals: Mutex::default(),
            tokens,
            ceiling: method.ceiling,
            price: method.price,
            exceeded: watch::Sender::new(None),
            diverged: watch::Sender::new(None),
            ended: watch::Sender::new(0),
        };
        (Arc::new(log), ExchangeWriting(task))
    }

    /// Says when the trial has used more than it may.
    pub(super) fn exceeded(&self) -> watch::Receiver<Option<Limit>> {
        self.exceeded.subscribe()
    }

    /// Says when a replay had no answer, and why.
    pub(super) fn diverged(&self) -> watch::Receiver<Option<String>> {
        self.diverged.subscribe()
    }

    /// Waits until an exchange is over, for so long at most: whoever has read a response is faster than the record of it.
    pub(super) async fn settled(&self, patience: Duration) {
        let mut ended = self.ended.subscribe();
        // Whatever comes of it, the gateway is closed next.
        let _ = tokio::time::timeout(patience, ended.wait_for(|count| *count > 0)).await;
    }

    /// What a replay had no answer to ends the trial.
    fn note_divergence(&self, exchange: &ExchangeRecord) {
        let text = exchange.divergence.clone().unwrap_or_default();
        self.recorder.event(exchange.ended, Source::Gateway, EventKind::Notice { text: text.clone() });
        self.diverged.send_if_modified(|it| {
            let is_first = it.is_none();
            it.get_or_insert(text);
            is_first
        });
    }

    /// The totals so far.
    pub(super) fn totals(&self) -> ModelTotals {
        let totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        ModelTotals {
            exchanges: totals.exchanges,
            tokens: totals.tokens,
            wait: union(totals.spans.iter().map(|it| (it.start, it.end)).collect()),
            provider_wait: union(lost(&totals.spans)),
        }
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
        if end == ExchangeEnd::Diverged {
            self.note_divergence(&exchange);
        }
        if end == ExchangeEnd::Diverged && exchange.wire.is_none() {
            // No model route, but one that was recorded of: that it diverged is all there is to say.
        } else if end == ExchangeEnd::Refused || exchange.wire.is_none() {
            let text =
                format!("the agent asked for {} {}: not a model route", exchange.method, exchange.path);
            self.recorder.event(exchange.ended, Source::Gateway, EventKind::Notice { text });
        } else {
            let kind = EventKind::ModelResponse { exchange: id, status, end, usage };
            self.recorder.event(exchange.ended, Source::Gateway, kind);
            let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
            totals.exchanges += 1;
            totals.tokens += usage.unwrap_or_default();
            let failed = is_the_providers(status, end);
            totals.spans.push(Span { start: exchange.started, end: exchange.ended, failed });
            if let Some(limit) = self.ceiling.exceeded_by(totals.tokens, self.price) {
                self.exceeded.send_if_modified(|it| it.replace(limit).is_none());
            }
            self.tokens.store(
                totals.tokens.input_tokens.saturating_add(totals.tokens.output_tokens),
                Ordering::Relaxed,
            );
        }
        // The writer outlives the log, unless the disk failed, which it reports itself.
        let _ = self.records.send(exchange);
        self.ended.send_modify(|count| *count += 1);
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
            divergence: record.divergence,
            headers: record.headers,
            truncated: record.truncated,
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

/// Whether an exchange failed on the provider's side: a rate limit, an overload, an outage.
fn is_the_providers(status: Option<u16>, end: ExchangeEnd) -> bool {
    end == ExchangeEnd::UpstreamBroke || status.is_some_and(|status| status == 429 || status >= 500)
}

/// What failed exchanges cost: each until the next one begins, since the agent waits before it asks again.
fn lost(spans: &[Span]) -> Vec<(Instant, Instant)> {
    let next = |end| spans.iter().map(|it| it.start).filter(|start| *start >= end).min();
    spans.iter().filter(|it| it.failed).map(|it| (it.start, next(it.end).unwrap_or(it.end))).collect()
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

    #[test]
    fn a_refused_request_costs_the_time_until_the_next() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let span = |start, end, failed| Span { start: at(start), end: at(end), failed };
        // One of two at once fails, is asked again after a pause, fails again, and then there is no other.
        let spans = [span(0, 90, false), span(10, 20, true), span(120, 130, true), span(400, 450, true)];
        assert_eq!(union(lost(&spans)), Duration::from_millis(110 + 280 + 50));
        assert_eq!(lost(&[span(0, 90, false)]), Vec::new());
        for (status, end, theirs) in [
            (Some(429), ExchangeEnd::Complete, true),
            (Some(529), ExchangeEnd::Complete, true),
            (None, ExchangeEnd::UpstreamBroke, true),
            (Some(400), ExchangeEnd::Complete, false),
            (Some(200), ExchangeEnd::ClientGone, false),
        ] {
            assert_eq!(is_the_providers(status, end), theirs, "{status:?} {end:?}");
        }
    }
}
