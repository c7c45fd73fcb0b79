//! Connections that can be cut from our side, at once and without an answer.
//!
//! HTTP libraries only know polite endings. A scripted `drop` and the freeze at the end of a trial are not polite, so
//! the cut is made below HTTP: the stream fails, and everything above it is dropped.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Accepts connections until its token is cancelled, which also cuts all of them.
#[derive(Debug)]
pub(crate) struct CuttableListener {
    pub(crate) socket: UnixListener,
    pub(crate) token: CancellationToken,
}

/// The handle by which a request cuts its own connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection(pub(crate) CancellationToken);

/// A stream that fails once its token is cancelled.
pub(crate) struct CuttableStream {
    stream: UnixStream,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Listener for CuttableListener {
    type Io = CuttableStream;
    type Addr = Connection;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, _) = Listener::accept(&mut self.socket).await;
        let token = self.token.child_token();
        let cut = Box::pin(token.clone().cancelled_owned());
        (CuttableStream { stream, cut }, Connection(token))
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(Connection(self.token.clone()))
    }
}

impl Connected<IncomingStream<'_, CuttableListener>> for Connection {
    fn connect_info(stream: IncomingStream<'_, CuttableListener>) -> Self {
        stream.remote_addr().clone()
    }
}

impl CuttableStream {
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionReset.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for CuttableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CuttableStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let () = ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
