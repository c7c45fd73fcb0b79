//! The clock of a run: monotonic, with the time the machine slept counted apart (DESIGN §3.9).

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use proctor_traces::Millis;

/// When the run began, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start: Instant,
    asleep: Duration,
    ahead: i128,
}

impl RunClock {
    /// Starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), asleep: asleep_since_boot(), ahead: wall_ahead_of_boot() }
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

impl RunClock {
    /// Milliseconds by which the time of day has gone ahead of the time since boot, since the start of the run: what the
    /// machine was paused for from outside, or its clock was set by. Less than a second is the ordinary adjustment.
    pub fn step_ms(&self) -> i64 {
        let step = i64::try_from((wall_ahead_of_boot() - self.ahead) / 1_000_000).unwrap_or(i64::MAX);
        if step.abs() < 1000 { 0 } else { step }
    }
}

/// Nanoseconds of REALTIME − BOOTTIME.
fn wall_ahead_of_boot() -> i128 {
    let nanos = |clock| {
        clock_gettime(clock).map(|it| i128::from(it.tv_sec()) * 1_000_000_000 + i128::from(it.tv_nsec()))
    };
    nanos(ClockId::CLOCK_REALTIME).unwrap_or_default() - nanos(ClockId::CLOCK_BOOTTIME).unwrap_or_default()
}

/// BOOTTIME − MONOTONIC.
fn asleep_since_boot() -> Duration {
    let read = |clock| clock_gettime(clock).map(Duration::from).unwrap_or_default();
    // Read in this order the difference is never negative by the time between the two calls.
    let monotonic = read(ClockId::CLOCK_MONOTONIC);
    read(ClockId::CLOCK_BOOTTIME).saturating_sub(monotonic)
}
