//! The guest's `CLOCK_MONOTONIC` is the host's; this turns its nanoseconds into an [`Instant`].

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// The instant at which the monotonic clock showed `ns`. A time that cannot be represented becomes now.
pub(crate) fn instant_at(ns: u64) -> Instant {
    let now = Instant::now();
    let Ok(clock) = clock_gettime(ClockId::CLOCK_MONOTONIC) else { return now };
    let clock = Duration::from(clock);
    let then = Duration::from_nanos(ns);
    match clock.checked_sub(then) {
        Some(ago) => now.checked_sub(ago).unwrap_or(now),
        // A time ahead of ours cannot have been seen yet.
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_read_before_lies_before() {
        let ns = u64::try_from(Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_nanos())
            .unwrap();
        let before = Instant::now();
        let read = instant_at(ns);
        assert!(read <= before);
        assert!(instant_at(ns + 1_000_000) > read);
        assert!(instant_at(u64::MAX) >= before);
    }
}
