//! How the clock of the agent's machine stands to that of the host.
//!
//! In a container on this machine it is the same clock; elsewhere it need not be. Two facts bound the difference: a line
//! cannot arrive before it was written, and an agent cannot wish for a call before the model was asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to be added to the times of a source to get those of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockEstimate {
    /// The source.
    pub source: String,
    /// What is added, in milliseconds: 0 if that agrees with all that is known, else the nearest that does.
    pub offset_ms: i64,
    /// The least that agrees: nothing was wished for before the model was asked.
    pub low_ms: Option<i64>,
    /// The most that agrees: no line arrived before it was written.
    pub high_ms: Option<i64>,
    /// Moments that both clocks have told.
    pub pairs: u64,
}

/// The estimate from pairs (written by the source's clock, arrived by the host's) and, by the same two clocks, the first
/// call and the first model request.
pub(crate) fn estimate(source: &str, pairs: &[(i64, i64)], first: Option<(i64, i64)>) -> ClockEstimate {
    let high = pairs.iter().map(|(written, arrived)| arrived.saturating_sub(*written)).min();
    let low = first.map(|(called, asked)| asked.saturating_sub(called));
    let offset = match (low, high) {
        (Some(low), Some(high)) if low > high => low.midpoint(high),
        (low, high) => 0.clamp(low.unwrap_or(i64::MIN), high.unwrap_or(i64::MAX)),
    };
    ClockEstimate {
        source: source.to_owned(),
        offset_ms: offset,
        low_ms: low,
        high_ms: high,
        pairs: pairs.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_clock_needs_no_correction() {
        assert_eq!(estimate("s", &[(100, 130), (200, 204)], Some((90, 50))).offset_ms, 0);
        assert_eq!(estimate("s", &[], None).offset_ms, 0);
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_corrected_as_far_as_it_must_be() {
        // Written at 5,100 by a clock that is 5 s ahead.
        assert_eq!(estimate("s", &[(5_100, 130), (5_200, 204)], Some((5_090, 50))).offset_ms, -4_996);
        assert_eq!(estimate("s", &[(100, 5_130)], Some((90, 5_050))).offset_ms, 4_960);
        assert_eq!(estimate("s", &[(100, 100)], Some((100, 120))).offset_ms, 10);
    }
}
