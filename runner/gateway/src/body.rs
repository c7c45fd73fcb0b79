//! Response bodies that write themselves down while they are handed over.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use proctor_traces::ExchangeEnd;

use crate::record::Ticket;
use crate::redact::StreamRedactor;

/// The bytes of a response as they come, or what broke.
pub(crate) type Source = BoxStream<'static, Result<Bytes, Broken>>;

/// Why a body ended before its end. The connection is cut, so that the agent sees it too.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(pub(crate) String);

/// A body of one piece.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Source {
    let bytes = bytes.into();
    futures_util::stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed()
}

/// A body of which `ticket` keeps a copy, and which ends its exchange.
///
/// `length` is what the head promised: HTTP stops asking for more once that many bytes were written, so the end of
/// the body is then never seen, only its being dropped.
pub(crate) fn recorded(source: Source, length: Option<u64>, ticket: Ticket) -> Body {
    let redactor = StreamRedactor::new(ticket.redactor());
    Body::from_stream(Recorded { source, redactor, ticket, left: length, breaking: None, over: false })
}

struct Recorded {
    source: Source,
    redactor: StreamRedactor,
    ticket: Ticket,
    left: Option<u64>,
    breaking: Option<Broken>,
    over: bool,
}

impl Recorded {
    fn hand_over(&mut self, bytes: Bytes) -> Result<Bytes, Broken> {
        if !self.ticket.hand_over(&bytes) {
            self.over = true;
            return Err(Broken("the trial is over".to_owned()));
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes.len() as u64);
        }
        Ok(bytes)
    }
}

impl Stream for Recorded {
    type Item = Result<Bytes, Broken>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(broken) = self.breaking.take() {
            self.over = true;
            self.ticket.finish(ExchangeEnd::UpstreamBroke, Some(broken.0.clone()));
            return Poll::Ready(Some(Err(broken)));
        }
        while !self.over {
            match std::task::ready!(self.source.poll_next_unpin(cx)) {
                Some(Ok(chunk)) => {
                    let ready = self.redactor.push(chunk);
                    if !ready.is_empty() {
                        return Poll::Ready(Some(self.hand_over(ready)));
                    }
                }
                Some(Err(broken)) => {
                    // At an error the server throws away what it has not written yet, be it the head. It writes
                    // whenever we have nothing for it, so have nothing once: what was recorded as handed over must
                    // be on its way before the connection is cut.
                    self.breaking = Some(broken);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                None => {
                    let rest = self.redactor.finish();
                    let rest = (!rest.is_empty()).then(|| self.hand_over(rest));
                    self.over = true;
                    if !matches!(rest, Some(Err(_))) {
                        self.ticket.complete();
                    }
                    return Poll::Ready(rest);
                }
            }
        }
        Poll::Ready(None)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if self.left == Some(0) {
            self.ticket.complete();
        }
    }
}
