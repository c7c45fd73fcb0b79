//! Numbers with bounds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ValueError;
use super::text::Written;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bounded<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Bounded<MIN, MAX> {
    /// The number nearest to `number` that is allowed.
    pub const fn clamped(number: u64) -> Self {
        Self(if number < MIN {
            MIN
        } else if number > MAX {
            MAX
        } else {
            number
        })
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number, as a count of things in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number; where it is allowed to be larger, the largest that fits.
    pub fn as_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> FromStr for Bounded<MIN, MAX> {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        // As in TOML, digits may be set apart.
        let number: Option<u64> = text.replace('_', "").parse().ok();
        number
            .filter(|number| (MIN..=MAX).contains(number))
            .map(Self)
            .ok_or_else(|| ValueError(format!("it must be a whole number from {MIN} to {MAX}")))
    }
}

impl<const MIN: u64, const MAX: u64> fmt::Display for Bounded<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Bounded<MIN, MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written::new("a whole number"))
    }
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Bounded<MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        format!("From{MIN}To{MAX}").into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// Processors, or parts of one: 0.05 to 512, to the thousandth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpus {
    millis: u32,
}

impl Cpus {
    /// In thousandths of a processor.
    pub const fn millis(self) -> u32 {
        self.millis
    }
}

impl FromStr for Cpus {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text.parse().ok().filter(|n: &f64| (0.05..=512.0).contains(n));
        let number = number.ok_or_else(|| ValueError("it must be between 0.05 and 512".to_owned()))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        Ok(Self { millis: (number * 1000.0).round() as u32 })
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.millis) / 1000.0)
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(f64::from(self.millis) / 1000.0)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written::new("a number of processors"))
    }
}

impl JsonSchema for Cpus {
    fn schema_name() -> Cow<'static, str> {
        "Cpus".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0.05, "maximum": 512 })
    }
}

/// US dollars, from nothing to a billion, to the millionth: sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd {
    micros: u64,
}

impl Usd {
    /// So many millionths of a dollar.
    pub const fn from_micros(micros: u64) -> Self {
        Self { micros }
    }

    /// In millionths of a dollar.
    pub const fn micros(self) -> u64 {
        self.micros
    }

    /// In dollars.
    #[expect(clippy::cast_precision_loss, reason = "a number of 16 digits is exact enough for a price")]
    pub fn dollars(self) -> f64 {
        self.micros as f64 / 1e6
    }
}

impl FromStr for Usd {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let number = text.parse().ok().filter(|n: &f64| (0.0..=1e9).contains(n));
        let number = number.ok_or_else(|| ValueError("it must be US dollars, from 0 to 1e9".to_owned()))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        Ok(Self { micros: (number * 1e6).round() as u64 })
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dollars())
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Written::new("a number of US dollars"))
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 1e9 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_out_of_bounds_are_refused_with_the_bounds() {
        assert_eq!("512".parse::<Bounded<1, 512>>().map(Bounded::get), Ok(512));
        assert_eq!("2_000".parse::<Bounded<1, 5000>>().map(Bounded::get), Ok(2000));
        for wrong in ["0", "513", "-1", "1.5", "", "x"] {
            let message = wrong.parse::<Bounded<1, 512>>().unwrap_err().to_string();
            assert_eq!(message, "it must be a whole number from 1 to 512");
        }
        for wrong in ["0.04", "513", "nan", "inf", ""] {
            assert!(wrong.parse::<Cpus>().is_err(), "{wrong}");
        }
        for wrong in ["-1", "nan", "inf", "2e9"] {
            assert!(wrong.parse::<Usd>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn prices_are_exact() {
        let price: Usd = "0.125".parse().unwrap();
        assert_eq!((price.micros(), price.to_string()), (125_000, "0.125".to_owned()));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(micros in 0u64..=1_000_000_000_000_000, millis in 50u32..=512_000) {
            let usd = Usd { micros };
            prop_assert_eq!(usd.to_string().parse(), Ok(usd));
            let text = serde_json::to_string(&usd).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&text).unwrap(), usd);
            let cpus = Cpus { millis };
            prop_assert_eq!(cpus.to_string().parse(), Ok(cpus));
            let text = serde_json::to_string(&cpus).unwrap();
            prop_assert_eq!(serde_json::from_str::<Cpus>(&text).unwrap(), cpus);
        }
    }
}
