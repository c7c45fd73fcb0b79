//! What a backend answers, before it is handed over and written down.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use proctor_traces::{ExchangeEnd, WireFormat};
use serde_json::Value;

use crate::body::{Source, whole};
use crate::wire::error_body;

/// A response with a head.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Source,
    /// What `content-length` promises.
    pub(crate) length: Option<u64>,
    /// How the exchange ends if all of the body is handed over, and why it is not [`ExchangeEnd::Complete`].
    pub(crate) failed: Option<(ExchangeEnd, String)>,
}

/// What becomes of a request.
pub(crate) enum Outcome {
    Answer(Answer),
    /// The connection is closed without an answer.
    Drop,
    /// Nothing, ever.
    Hang,
}

impl Answer {
    /// One JSON object.
    pub(crate) fn json(status: u16, value: &Value) -> Self {
        Self::text(status, "application/json", value.to_string())
    }

    /// A body known in full.
    pub(crate) fn text(status: u16, media_type: &'static str, text: String) -> Self {
        let length = text.len() as u64;
        Self {
            status,
            headers: HeaderMap::from_iter([
                (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
                (header::CONTENT_LENGTH, HeaderValue::from(length)),
            ]),
            body: whole(text),
            length: Some(length),
            failed: None,
        }
    }

    /// An event stream.
    pub(crate) fn stream(body: Source) -> Self {
        Self {
            status: 200,
            headers: HeaderMap::from_iter([
                (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
                (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            ]),
            body,
            length: None,
            failed: None,
        }
    }

    /// Our own error: nothing was asked of anybody.
    pub(crate) fn refused(wire: Option<WireFormat>, status: u16, message: String) -> Self {
        Self::failure(wire, status, ExchangeEnd::Refused, message)
    }

    /// The upstream could not be asked, or did not answer.
    pub(crate) fn unreachable(wire: Option<WireFormat>, message: String) -> Self {
        Self::failure(wire, 502, ExchangeEnd::UpstreamBroke, message)
    }

    /// A replay that has no response to this. The status is one after which clients do not ask again.
    pub(crate) fn diverged(wire: Option<WireFormat>, message: String) -> Self {
        Self::failure(wire, 400, ExchangeEnd::Diverged, message)
    }

    fn failure(wire: Option<WireFormat>, status: u16, end: ExchangeEnd, message: String) -> Self {
        let body = error_body(wire, status, &format!("proctor gateway: {message}"));
        Self { failed: Some((end, message)), ..Self::json(status, &body) }
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Tells the client when to come back, in whole seconds.
    pub(crate) fn with_retry_after(self, wait: Option<Duration>) -> Self {
        let Some(wait) = wait else { return self };
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }
}
