//! Two clocks, never mixed: wall time says *when* for a reader, monotonic time says *how long* for the accounts.

use std::fmt;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Wall time in UTC with millisecond precision, written in RFC 3339 (`2026-11-30T11:27:33.255Z`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The wall clock now.
    pub fn now() -> Self {
        Self::from_millis(jiff::Timestamp::now().as_millisecond())
    }

    /// A time given in milliseconds since the Unix epoch; out of range values are clamped to the epoch.
    pub fn from_millis(millis: i64) -> Self {
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Reads RFC 3339; anything finer than a millisecond is cut off.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|time| Self::from_millis(time.as_millisecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not an RFC 3339 time"))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A duration in whole milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// The duration as seconds, for people.
    #[expect(clippy::cast_precision_loss, reason = "a trial lasts far less than 2^52 ms")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Millis> for Duration {
    fn from(millis: Millis) -> Self {
        Self::from_millis(millis.0)
    }
}

impl std::ops::Add for Millis {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Millis {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), |sum, next| sum + next)
    }
}

/// Monotonic milliseconds since the agent was started; negative while the trial is being prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct OffsetMs(pub i64);

/// The clock of one trial: turns "now" into a wall time and an offset from the start of the agent.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock whose offset is zero at `zero`, the moment the agent had been exec'd.
    pub fn starting_at(zero: Instant) -> Self {
        Self { zero }
    }

    /// The moment of offset zero.
    pub fn zero(&self) -> Instant {
        self.zero
    }

    /// The offset of `instant`, which may lie before zero.
    pub fn offset_of(&self, instant: Instant) -> OffsetMs {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        match instant.checked_duration_since(self.zero) {
            Some(after) => OffsetMs(ms(after)),
            None => OffsetMs(-ms(self.zero.duration_since(instant))),
        }
    }

    /// The wall time of `instant`, seen from the wall clock now.
    pub fn wall_of(instant: Instant) -> Timestamp {
        let ago = i64::try_from(instant.elapsed().as_millis()).unwrap_or(0);
        Timestamp::from_millis(Timestamp::now().as_millis() - ago)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_keep_milliseconds_and_no_more() {
        let time = Timestamp::parse("2026-11-30T11:27:33.255999Z").unwrap();
        assert_eq!(time.to_string(), "2026-11-30T11:27:33.255Z");
        assert_eq!(
            Timestamp::parse("2026-11-30T12:27:33+01:00").unwrap().to_string(),
            "2026-11-30T11:27:33.000Z"
        );
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn offsets_before_the_start_are_negative() {
        let early = Instant::now();
        let clock = Clock::starting_at(early + Duration::from_millis(250));
        assert_eq!(clock.offset_of(early), OffsetMs(-250));
        assert_eq!(clock.offset_of(early + Duration::from_millis(300)), OffsetMs(50));
    }
}
