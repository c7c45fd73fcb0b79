//! The clock of a run: monotonic, with the time the machine slept counted apart (DESIGN §3.9).

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use proctor_traces::Millis;

/// When the run began, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start: Instant,
    asleep: Duration,
}

impl RunClock {
    /// Starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), asleep: asleep_since_boot() }
    }

    /// Monotonic time from the start of the run to `instant`.
    pub fn at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.start)
    }

    /// Time since the start of the run that the machine slept. The monotonic clock stood still in it.
    pub fn suspended(&self) -> Millis {
        asleep_since_boot().saturating_sub(self.asleep).into()
    }
}

/// BOOTTIME − MONOTONIC.
fn asleep_since_boot() -> Duration {
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    // Read in this order the difference is never negative by the time between the two calls.
    let monotonic = read(ClockId::CLOCK_MONOTONIC);
    read(ClockId::CLOCK_BOOTTIME).saturating_sub(monotonic)
}
