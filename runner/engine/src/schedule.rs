//! How many trials run at a time, and when the next one may start.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Ceiling;

/// What is run side by side.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Trials at a time that take a room, of all methods; the others are bounded by their method and provider alone.
    pub jobs: usize,
    /// Trials at a time that ask the same provider, by its name.
    pub provider_jobs: BTreeMap<String, usize>,
    /// Least time between the starts of two trials.
    pub launch_interval: Duration,
    /// What the whole run may use at most: no more trials are started when it has.
    pub ceiling: Ceiling,
    /// Whether trials that somebody else runs are waited for: should their runner die, they are taken over.
    pub linger: bool,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            jobs: 1,
            provider_jobs: BTreeMap::new(),
            launch_interval: Duration::ZERO,
            ceiling: Ceiling::default(),
            linger: true,
        }
    }
}

/// Memory that is left to everything else on the machine, in bytes.
const ELSEWHERE: u64 = 1 << 30;

/// How many rooms that may take `each` bytes fit into a machine with `total` bytes, at least one.
pub fn rooms_that_fit(total: u64, each: u64) -> usize {
    let for_rooms = total.saturating_sub(ELSEWHERE.min(total / 4));
    usize::try_from(for_rooms / each.max(1)).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_fit_when_all_of_them_may_be_full() {
        let gib = 1 << 30;
        for (total, each, rooms) in
            [(24 * gib, 4 * gib, 5), (2 * gib, 4 * gib, 1), (8 * gib, gib / 2, 14), (gib, 1, 805_306_368)]
        {
            assert_eq!(rooms_that_fit(total, each), rooms, "{total} by {each}");
        }
    }
}
