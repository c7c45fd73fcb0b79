//! Carries connections between loopback ports and Unix sockets, byte for byte.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use proctor_guest::{Bridge, Endpoint};

use crate::complain;

/// Starts accepting; returns when connections can be made.
pub(crate) fn open(bridge: Bridge) -> io::Result<()> {
    let listener = Listener::bind(&bridge.listen)?;
    let accept = move || {
        loop {
            let carried = listener.accept().and_then(|near| Ok((near, Stream::connect(&bridge.connect)?)));
            if let Err(error) = carried.and_then(|(near, far)| carry(near, far)) {
                complain(&format!("bridge: {error}"));
                // Out of descriptors or threads: give the container a moment instead of spinning.
                thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    };
    thread::Builder::new().name("bridge".into()).spawn(accept).map(drop)
}

/// Copies both ways until both are done. Each way is a thread of its own; the second closes the connection.
fn carry(near: Stream, far: Stream) -> io::Result<()> {
    let (near_out, far_out) = (near.try_clone()?, far.try_clone()?);
    let spawn = |from, to| thread::Builder::new().spawn(move || copy(from, to));
    spawn(near, far_out)?;
    spawn(far, near_out).map(drop)
}

fn copy(mut from: Stream, mut to: Stream) {
    // A broken connection ends like a finished one: the other side sees the end of the stream.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Loopback(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map(Self::Tcp),
            Endpoint::Unix(path) => UnixListener::bind(path).map(Self::Unix),
        }
    }

    fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn connect(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Loopback(port) => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
                stream.set_nodelay(true)?;
                Ok(Self::Tcp(stream))
            }
            Endpoint::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        }
    }
}

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl io::Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buffer),
            Self::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
