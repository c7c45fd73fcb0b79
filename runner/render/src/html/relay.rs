//! The way to the browser: a loopback port on the host that accepts one connection and closes, carried to a Unix socket in
//! a folder that the room shares, carried by the guest to the browser's own port.

use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::net::{TcpListener, UnixStream, unix};
use tokio::task::JoinHandle;

/// Most bytes that a browser may send for one page: screenshots come in base64, and everything else is small. A page
/// can make the browser send as much as it likes (a dialog's text, an address), and we would hold all of it.
const MOST_BYTES: u64 = 256 << 20;

/// How long our own client may take to come.
const COME: Duration = Duration::from_secs(10);

/// The host end of the way.
pub(crate) struct Relay {
    /// Where our client connects.
    pub(crate) port: u16,
    received: Arc<AtomicU64>,
    carrier: JoinHandle<()>,
}

impl Relay {
    /// Opens the port. What connects first is carried to `socket`, which is then removed; nothing connects second.
    pub(crate) async fn open(socket: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        let carrier = tokio::spawn(async move {
            if let Err(error) = carry(listener, &socket, &counter).await {
                tracing::debug!(%error, "the way to the browser ended");
            }
        });
        Ok(Self { port, received, carrier })
    }

    /// Begins to count anew.
    pub(crate) fn reset(&self) {
        self.received.store(0, Ordering::Relaxed);
    }

    /// Whether the browser sent too much, for which the way was closed.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.received.load(Ordering::Relaxed) > MOST_BYTES
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

async fn carry(listener: TcpListener, socket: &Path, received: &AtomicU64) -> io::Result<()> {
    let accepted = tokio::time::timeout(COME, listener.accept()).await;
    drop(listener);
    let (near, _) = accepted.map_err(io::Error::other)??;
    near.set_nodelay(true)?;
    let far = UnixStream::connect(socket).await?;
    // It is in a folder of this room alone; a leftover would be in the way of nobody.
    let _ = std::fs::remove_file(socket);
    let (mut near_in, near_out) = near.into_split();
    let (far_in, mut far_out) = far.into_split();
    let there = async {
        tokio::io::copy(&mut near_in, &mut far_out).await?;
        far_out.shutdown().await
    };
    tokio::select! {
        ended = there => ended,
        ended = back(far_in, near_out, received) => ended,
    }
}

async fn back(mut from: unix::OwnedReadHalf, mut to: OwnedWriteHalf, received: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        if received.fetch_add(count as u64, Ordering::Relaxed) + count as u64 > MOST_BYTES {
            return Err(io::Error::other("the browser sent too much"));
        }
        to.write_all(&buffer[..count]).await?;
    }
}
