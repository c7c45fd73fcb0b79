//! PID 1: takes requests over the control socket until it closes, then takes everything down.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use proctor_guest::{Reply, Request};

use crate::processes::Processes;
use crate::stillness::{self, Stop};
use crate::{bridge, cgroup, processes};

/// The way back to the runner. Whole lines only, so that replies of different threads never mix.
#[derive(Clone)]
pub(crate) struct Replies(Arc<Mutex<UnixStream>>);

impl Replies {
    /// Sends one reply. A runner that is gone is noticed by the reading side, so errors are dropped here.
    pub(crate) fn send(&self, reply: &Reply) {
        let Ok(mut line) = serde_json::to_vec(reply) else { return };
        line.push(b'\n');
        if let Ok(mut stream) = self.0.lock() {
            let _ = stream.write_all(&line);
        }
    }
}

/// Serves the runner at `socket` until it hangs up; then kills every process and returns.
pub(crate) fn serve(socket: &str) -> io::Result<()> {
    // A dumpable PID 1 of the same uid could be traced by the agent, and told anything.
    nix::sys::prctl::set_dumpable(false)?;
    let stream = UnixStream::connect(socket)?;
    let replies = Replies(Arc::new(Mutex::new(stream.try_clone()?)));
    let processes = Processes::new(replies.clone())?;
    replies.send(&Reply::Ready { version: env!("CARGO_PKG_VERSION").to_owned() });

    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(request) => handle(request, &processes, &replies),
            Err(error) => replies.send(&Reply::Failed { message: format!("not a request: {error}") }),
        }
    }
    processes::signal_all(Signal::SIGKILL);
    Ok(())
}

fn handle(request: Request, processes: &Processes, replies: &Replies) {
    match request {
        Request::Run(command) => processes.start(command),
        Request::Bridge(bridge) => replies.send(&match bridge::open(bridge) {
            Ok(()) => Reply::Bridged,
            Err(error) => Reply::Failed { message: format!("opening the bridge: {error}") },
        }),
        Request::Stop => {
            let Stop { alone, still } = stillness::stop_all();
            let at_ns = processes::monotonic_ns();
            replies.send(&Reply::Stopped { at_ns, alone, still, usage: cgroup::usage() });
        }
        Request::Continue => {
            processes::signal_all(Signal::SIGCONT);
            replies.send(&Reply::Continued);
        }
        Request::Signal(number) => match Signal::try_from(number) {
            Ok(signal) => {
                processes::signal_all(signal);
                replies.send(&Reply::Signalled);
            }
            Err(error) => replies.send(&Reply::Failed { message: format!("signal {number}: {error}") }),
        },
    }
}
