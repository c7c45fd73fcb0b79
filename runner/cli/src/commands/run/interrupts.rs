//! How a user stops a run.

use proctor_engine::Stop;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::{Failure, Kind};

/// Ctrl-C and SIGTERM: once, no new trials; twice, running ones are cancelled; a third time ends at once. A terminal
/// that hangs up counts for two: nobody is there to ask again.
pub(super) struct Interrupts {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    count: u32,
}

impl Interrupts {
    pub(super) fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::internal(format!("listening for signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            count: 0,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => self.count = self.count.max(1),
        }
    }

    /// Does what the next interrupt means, and says it.
    pub(super) fn act(&mut self, stop: &Stop) -> &'static str {
        self.count += 1;
        match self.count {
            1 => {
                stop.drain.cancel();
                "no new trials are started; running ones finish (once more: cancel them)"
            }
            2 => {
                stop.drain.cancel();
                stop.cancel.cancel();
                "running trials are frozen, collected and cancelled (once more: end at once)"
            }
            _ => {
                // The user asked three times; the next start sweeps up.
                eprintln!(
                    "ended at once; the next start, or `proctor sweep`, removes what is left in the engine"
                );
                std::process::exit(Kind::Stopped as i32)
            }
        }
    }
}
