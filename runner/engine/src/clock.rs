//! The clock of a run: monotonic, with the time the machine slept counted apart (DESIGN §3.9).

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use proctor_traces::Millis;

/// When the run began, on all clocks.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start: Instant,
    readings: Readings,
}

/// What the kernel's clocks say at one moment, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Readings {
    /// Does not go on while the machine sleeps.
    monotonic: i128,
    /// Goes on while the machine sleeps.
    boot: i128,
    /// The time of day, which anybody may set.
    real: i128,
}

/// The time of day is adjusted all the time; below this that is all it is.
const ORDINARY_STEP_MS: u64 = 1000;

impl RunClock {
    /// Starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), readings: Readings::now() }
    }

    /// Monotonic time from the start of the run to `instant`.
    pub fn at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.start)
    }

    /// Time since the start of the run that the machine slept. The monotonic clock stood still in it.
    pub fn suspended(&self) -> Millis {
        self.readings.suspended_until(Readings::now())
    }

    /// Milliseconds by which the time of day has gone ahead of the time since boot, since the start of the run: what the
    /// machine was paused for from outside, or its clock was set by.
    pub fn step_ms(&self) -> i64 {
        self.readings.step_until(Readings::now())
    }
}

impl Readings {
    fn now() -> Self {
        let nanos = |clock| {
            let read = clock_gettime(clock)
                .map(|it| i128::from(it.tv_sec()) * 1_000_000_000 + i128::from(it.tv_nsec()));
            read.unwrap_or_default()
        };
        // In this order sleep is never negative by the time between two calls.
        let monotonic = nanos(ClockId::CLOCK_MONOTONIC);
        let boot = nanos(ClockId::CLOCK_BOOTTIME);
        Self { monotonic, boot, real: nanos(ClockId::CLOCK_REALTIME) }
    }

    fn suspended_until(self, later: Self) -> Millis {
        let slept = (later.boot - later.monotonic) - (self.boot - self.monotonic);
        Millis(u64::try_from(slept / 1_000_000).unwrap_or(0))
    }

    fn step_until(self, later: Self) -> i64 {
        let step = (later.real - later.boot) - (self.real - self.boot);
        let step = i64::try_from(step / 1_000_000).unwrap_or(i64::MAX);
        if step.unsigned_abs() < ORDINARY_STEP_MS { 0 } else { step }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_and_pauses_from_outside_are_told_apart() {
        let start = Readings { monotonic: 5_000, boot: 9_000, real: 1_000_000 };
        let after = |monotonic: i128, boot: i128, real: i128| {
            let nanos = |seconds: i128| seconds * 1_000_000_000;
            Readings {
                monotonic: start.monotonic + nanos(monotonic),
                boot: start.boot + nanos(boot),
                real: start.real + nanos(real),
            }
        };
        for (what, later, suspended, step) in [
            ("nothing", after(10, 10, 10), 0, 0),
            ("an hour of sleep", after(10, 3610, 3610), 3_600_000, 0),
            ("an hour's pause of a virtual machine", after(10, 10, 3610), 0, 3_600_000),
            ("a clock that was set back", after(10, 10, -50), 0, -60_000),
        ] {
            assert_eq!(
                (start.suspended_until(later).0, start.step_until(later)),
                (suspended, step),
                "{what}"
            );
        }
    }

    #[test]
    fn the_clocks_of_this_machine_agree() {
        let clock = RunClock::start();
        assert_eq!((clock.suspended(), clock.step_ms()), (Millis(0), 0));
        assert!(clock.at(Instant::now()) < Duration::from_secs(60));
    }
}
