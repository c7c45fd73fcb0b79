//! Values that are read from a text, or from a bare number where that has only one meaning.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{Error, Visitor};

/// Reads a `T` from a text or a number; `expected` completes “expected …”.
pub(super) struct Written<T> {
    expected: &'static str,
    read: PhantomData<T>,
}

impl<T> Written<T> {
    pub(super) fn new(expected: &'static str) -> Self {
        Self { expected, read: PhantomData }
    }
}

impl<T> Visitor<'_> for Written<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|error| E::custom(format!("`{text}`: {error}")))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}
