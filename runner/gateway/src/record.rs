//! The record of exchanges: opened at a request's arrival, closed exactly once, whatever happens to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};
use proctor_traces::{ExchangeEnd, Usage, WireFormat};

use crate::accounting::Account;
use crate::redact::Redactor;

/// Told of every exchange. It is called on the gateway's tasks and must not block for long; keys are already blanked.
pub trait ExchangeSink: Send + Sync + 'static {
    /// A request has arrived whole (or as far as it ever will).
    fn started(&self, exchange: &ExchangeStarted);

    /// An exchange has ended. Called once for each that was started, never after [`crate::Gateway::close`] returned.
    fn finished(&self, exchange: ExchangeRecord);
}

/// A request at its arrival.
#[derive(Clone, Debug)]
pub struct ExchangeStarted {
    /// Number within this gateway, from 0, in order of arrival.
    pub id: u64,
    /// When its first line arrived.
    pub at: Instant,
    /// Wire format of the route; none for a refused route and for those that belong to no format.
    pub wire: Option<WireFormat>,
    /// HTTP method.
    pub method: String,
    /// Path and query as asked.
    pub path: String,
    /// The model that the request names.
    pub model: Option<String>,
    /// Size of the request body.
    pub request_bytes: u64,
}

/// An exchange that is over.
#[derive(Clone, Debug)]
pub struct ExchangeRecord {
    /// The number it was started with.
    pub id: u64,
    /// Wire format of the route, if it has one.
    pub wire: Option<WireFormat>,
    /// HTTP method.
    pub method: String,
    /// Path and query as asked.
    pub path: String,
    /// When the request's first line arrived.
    pub started: Instant,
    /// When the first byte of the response body was handed to the agent's connection.
    pub first_byte: Option<Instant>,
    /// When the last byte was, or the moment it broke.
    pub ended: Instant,
    /// HTTP status handed to the agent, if it came to that.
    pub status: Option<u16>,
    /// How it ended.
    pub end: ExchangeEnd,
    /// What broke, for readers.
    pub error: Option<String>,
    /// The model that the agent asked for.
    pub model: Option<String>,
    /// The model that the server says answered.
    pub served_model: Option<String>,
    /// The server's fingerprint of its configuration.
    pub fingerprint: Option<String>,
    /// Tokens as the server counted them.
    pub usage: Option<Usage>,
    /// The script's position that was played: user prompts so far, tool results since the last.
    pub step: Option<(u32, u32)>,
    /// How the request differs from the recorded one that a replay holds against it.
    pub divergence: Option<String>,
    /// Headers of the response that mean something to a client ([`is_kept`]).
    pub headers: BTreeMap<String, String>,
    /// Whether the response was longer than what is kept of it.
    pub truncated: bool,
    /// The request body.
    pub request: Bytes,
    /// The response body as far as it was handed over, at most [`crate::GatewayConfig::body_cap`] bytes of it.
    pub response: Bytes,
}

/// All exchanges of one gateway.
pub(crate) struct Recorder {
    sink: Arc<dyn ExchangeSink>,
    redactor: Redactor,
    cap: usize,
    next: AtomicU64,
    late_bytes: AtomicU64,
    open: Mutex<OpenExchanges>,
}

#[derive(Default)]
struct OpenExchanges {
    frozen: bool,
    exchanges: HashMap<u64, Arc<Mutex<Option<Draft>>>>,
}

/// What is known of an open exchange.
struct Draft {
    record: ExchangeRecord,
    response: BytesMut,
    announced: bool,
    cut: bool,
    /// How it ends if it comes to its end, where that is not [`ExchangeEnd::Complete`].
    ending: Option<(ExchangeEnd, String)>,
}

/// Most headers kept of a response, and the longest value of one, in bytes.
const HEADERS_CAP: usize = 64;
const HEADER_CAP: usize = 1024;

/// Whether agent CLIs read this header of a response: what its body is, when to come back, how much is left, which
/// model answered. All others say something about the way only, or are nobody's affair.
fn is_kept(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "content-type",
        "content-encoding",
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "request-id",
        "x-request-id",
        "openai-model",
        "x-models-etag",
    ];
    const FAMILIES: [&str; 3] = ["anthropic-ratelimit-", "x-ratelimit-", "x-codex-"];
    NAMES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere must not cost the record: its data are plain values, whole at every step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    pub(crate) fn new(sink: Arc<dyn ExchangeSink>, redactor: Redactor, cap: usize) -> Arc<Self> {
        Arc::new(Self {
            sink,
            redactor,
            cap,
            next: AtomicU64::new(0),
            late_bytes: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    /// Opens an exchange; none once the record is frozen.
    pub(crate) fn begin(
        self: &Arc<Self>,
        wire: Option<WireFormat>,
        method: &str,
        path: &str,
    ) -> Option<Ticket> {
        let started = Instant::now();
        let mut open = lock(&self.open);
        if open.frozen {
            return None;
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let record = ExchangeRecord {
            id,
            wire,
            method: self.redactor.text(method.to_owned()),
            path: self.redactor.text(path.to_owned()),
            started,
            first_byte: None,
            ended: started,
            status: None,
            end: ExchangeEnd::ClientGone,
            error: None,
            model: None,
            served_model: None,
            fingerprint: None,
            usage: None,
            step: None,
            divergence: None,
            headers: BTreeMap::new(),
            truncated: false,
            request: Bytes::new(),
            response: Bytes::new(),
        };
        let draft = Draft { record, response: BytesMut::new(), announced: false, cut: false, ending: None };
        let draft = Arc::new(Mutex::new(Some(draft)));
        open.exchanges.insert(id, draft.clone());
        Some(Ticket { id, draft, recorder: self.clone() })
    }

    /// Ends every open exchange as [`ExchangeEnd::Deadline`] and takes no more; returns how many those were.
    pub(crate) fn freeze(&self) -> u64 {
        let exchanges = {
            let mut open = lock(&self.open);
            open.frozen = true;
            std::mem::take(&mut open.exchanges)
        };
        let mut cut = 0;
        let mut ids: Vec<_> = exchanges.into_iter().collect();
        ids.sort_unstable_by_key(|(id, _)| *id);
        for (_, draft) in ids {
            // Held while the sink is told: who loses the race for an exchange also waits until it was delivered.
            let mut guard = lock(&draft);
            if let Some(draft) = guard.take() {
                cut += 1;
                self.deliver(draft, ExchangeEnd::Deadline, None);
            }
        }
        cut
    }

    /// Bytes that came after the freeze and were dropped.
    pub(crate) fn late_bytes(&self) -> u64 {
        self.late_bytes.load(Ordering::Relaxed)
    }

    fn deliver(&self, mut draft: Draft, end: ExchangeEnd, error: Option<String>) {
        draft.record.ended = Instant::now();
        self.announce(&mut draft);
        let Draft { mut record, response, cut, .. } = draft;
        let response = response.freeze();
        record.end = end;
        if let Some(wire) = record.wire {
            let account = Account::of_response(wire, &response);
            record.usage = account.usage;
            record.served_model = account.served_model;
            record.fingerprint = account.fingerprint;
        }
        record.response = response;
        record.truncated = cut;
        record.error = error
            .or_else(|| cut.then(|| format!("only the first {} bytes of the response are kept", self.cap)))
            .map(|text| self.redactor.text(text));
        self.sink.finished(record);
    }

    fn announce(&self, draft: &mut Draft) {
        if std::mem::replace(&mut draft.announced, true) {
            return;
        }
        let record = &draft.record;
        self.sink.started(&ExchangeStarted {
            id: record.id,
            at: record.started,
            wire: record.wire,
            method: record.method.clone(),
            path: record.path.clone(),
            model: record.model.clone(),
            request_bytes: record.request.len() as u64,
        });
    }
}

/// One open exchange. Dropped without an ending it ends as [`ExchangeEnd::ClientGone`]: the server drops a request's
/// work exactly when its connection is gone.
pub(crate) struct Ticket {
    id: u64,
    draft: Arc<Mutex<Option<Draft>>>,
    recorder: Arc<Recorder>,
}

impl Ticket {
    pub(crate) fn redactor(&self) -> Redactor {
        self.recorder.redactor.clone()
    }

    /// The request has arrived; announces it.
    pub(crate) fn request(&self, model: Option<String>, body: Bytes) {
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.record.model = model.map(|model| self.recorder.redactor.text(model));
            draft.record.request = self.recorder.redactor.bytes(body);
            self.recorder.announce(draft);
        }
    }

    /// The script's position that is played.
    pub(crate) fn step(&self, step: Option<(u32, u32)>) {
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.record.step = step;
        }
    }

    /// The request is not what a replay has recorded.
    pub(crate) fn diverged(&self, difference: String) {
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.record.divergence = Some(difference);
        }
    }

    /// The response's head is about to be sent.
    pub(crate) fn head(&self, status: u16, headers: &HeaderMap) {
        let kept = headers.iter().filter(|(name, _)| is_kept(name.as_str()));
        let kept = kept.filter_map(|(name, value)| {
            let value = value.to_str().ok().filter(|value| value.len() <= HEADER_CAP)?;
            Some((name.as_str().to_owned(), self.recorder.redactor.text(value.to_owned())))
        });
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.record.status = Some(status);
            draft.record.headers = kept.take(HEADERS_CAP).collect();
        }
    }

    /// Some of the body is about to be handed over; false if it came too late, and must not be.
    pub(crate) fn hand_over(&self, bytes: &Bytes) -> bool {
        let mut guard = lock(&self.draft);
        let Some(draft) = guard.as_mut() else {
            self.recorder.late_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            return false;
        };
        if draft.record.first_byte.is_none() && !bytes.is_empty() {
            draft.record.first_byte = Some(Instant::now());
        }
        let room = self.recorder.cap.saturating_sub(draft.response.len()).min(bytes.len());
        draft.response.extend_from_slice(&bytes[..room]);
        draft.cut |= room < bytes.len();
        true
    }

    /// All of the response was handed over.
    pub(crate) fn complete(&self) {
        let ending = lock(&self.draft).as_mut().and_then(|draft| draft.ending.take());
        match ending {
            Some((end, error)) => self.finish(end, Some(error)),
            None => self.finish(ExchangeEnd::Complete, None),
        }
    }

    /// The response that is about to be sent tells of this failure.
    pub(crate) fn will_end(&self, end: ExchangeEnd, error: String) {
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.ending = Some((end, error));
        }
    }

    /// Ends the exchange; the first ending counts.
    pub(crate) fn finish(&self, end: ExchangeEnd, error: Option<String>) {
        {
            let mut guard = lock(&self.draft);
            let Some(draft) = guard.take() else { return };
            self.recorder.deliver(draft, end, error);
        }
        lock(&self.recorder.open).exchanges.remove(&self.id);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.finish(ExchangeEnd::ClientGone, None);
    }
}
