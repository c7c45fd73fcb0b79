//! Lengths of time and of files.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ValueError;
use super::text::Written;

/// A length of time: `90`, `90s`, `1.5m`, `2h`, `500ms`; at least a millisecond and at most a week, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    millis: u64,
}

impl Span {
    /// A week.
    pub const MAX: Self = Self::from_secs(7 * 86400);

    /// So many milliseconds.
    pub const fn from_millis(millis: u32) -> Self {
        Self { millis: millis as u64 }
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u32) -> Self {
        Self { millis: seconds as u64 * 1000 }
    }

    /// As the clock counts it.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

impl FromStr for Span {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let wrong = |message: &str| ValueError(message.to_owned());
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit {
            "ms" => 1.0,
            "" | "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return Err(wrong("a time is a number with ms, s, m or h")),
        };
        let number: f64 = number.parse().map_err(|_| wrong("a time begins with a number"))?;
        let millis = (number * factor).round();
        if (1.0..=604_800_000.0).contains(&millis) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "checked to be in range"
            )]
            Ok(Self { millis: millis as u64 })
        } else {
            Err(wrong("it must be more than nothing and at most a week"))
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.millis.is_multiple_of(1000) {
            write!(f, "{}s", self.millis / 1000)
        } else {
            write!(f, "{}ms", self.millis)
        }
    }
}

/// A number of bytes: `512m`, `4g`, `4GiB`, powers of 1024; at least 64 MiB and less than 2^50.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    bytes: u64,
}

impl Size {
    /// So many mebibytes, at least 64.
    pub const fn from_mib(mib: u32) -> Self {
        Self { bytes: (if mib < 64 { 64 } else { mib as u64 }) << 20 }
    }

    /// The bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

impl FromStr for Size {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let lower = text.to_ascii_lowercase();
        let lower = lower.trim_end_matches("ib").trim_end_matches('b');
        let (number, shift) = match lower.char_indices().last() {
            Some((at, 'k')) => (&lower[..at], 10),
            Some((at, 'm')) => (&lower[..at], 20),
            Some((at, 'g')) => (&lower[..at], 30),
            _ => (lower, 0),
        };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = Some(number)
            .filter(|_| digits)
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| ValueError("a size is a number with k, m or g".to_owned()))?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes < 1 << 50);
        bytes
            .filter(|bytes| *bytes >= 64 << 20)
            .map(|bytes| Self { bytes })
            .ok_or_else(|| ValueError("it must be at least 64m, and possible".to_owned()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "g"), (20, "m"), (10, "k")];
        match units.into_iter().find(|(shift, _)| self.bytes.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(f, "{}{unit}", self.bytes >> shift),
            None => write!(f, "{}", self.bytes),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written::new("a time such as \"30m\", or a number of seconds"))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time: a number with ms, s, m or h; or a bare number of seconds.",
            "type": ["string", "number"],
            "pattern": "^[0-9.]+(ms|s|m|h)?$",
        })
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written::new("a size such as \"4g\", or a number of bytes"))
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes: a number with k, m or g (powers of 1024), or a bare number.",
            "type": ["string", "integer"],
            "pattern": "^[0-9]+[kKmMgG]?(i?[bB])?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(text: &str) -> Option<Duration> {
        text.parse().ok().map(Span::duration)
    }

    #[test]
    fn times_and_sizes_as_people_write_them() {
        assert_eq!(seconds("1800s"), Some(Duration::from_secs(1800)));
        assert_eq!(seconds("90"), Some(Duration::from_secs(90)));
        assert_eq!(seconds("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(seconds("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("168h"), Some(Span::MAX.duration()));
        for wrong in ["", "0", "0.1ms", "-3s", "3 s", "3d", "1e9h", "nan", "inf", "999999h", "1.2.3s"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        let size = |text: &str| text.parse().ok().map(Size::bytes);
        assert_eq!(size("4g"), Some(4 << 30));
        assert_eq!(size("512MiB"), Some(512 << 20));
        for wrong in ["", "g", "1k", "99999999999g", "-1g", "+1g", "4t"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_bare_number_in_a_file_is_seconds_or_bytes() {
        #[derive(Deserialize)]
        struct File {
            time: Span,
            size: Size,
        }
        let file: File = toml::from_str("time = 90\nsize = 134217728").unwrap();
        assert_eq!((file.time.to_string(), file.size.to_string()), ("90s".to_owned(), "128m".to_owned()));
        let error = toml::from_str::<File>("time = true\nsize = 134217728").err().unwrap().to_string();
        assert!(error.contains("a time such as"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(millis in 1u64..=604_800_000, bytes in 64u64 << 20..1 << 50, shift in 0u32..30) {
            let span = Span { millis };
            prop_assert_eq!(span.to_string().parse(), Ok(span));
            let bytes = (bytes >> shift << shift).max(64 << 20);
            let size = Size { bytes };
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,40}") {
            let _ = text.parse::<Span>();
            let _ = text.parse::<Size>();
        }
    }
}
