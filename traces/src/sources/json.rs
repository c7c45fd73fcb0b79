//! Records read only as deep as they are looked at. A line may be megabytes of base64 or of output; each level is passed
//! over once, and text is copied only where it has escapes.
//!
//! A field of an unexpected type reads as absent: agents change their records with every version.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON object with its values unread.
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A JSON value, unread.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a>(&'a RawValue);

impl<'a> Object<'a> {
    /// Reads an object; none if the text is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value at `key`, unless it is null. Of several the last counts.
    pub(crate) fn get(&self, key: &str) -> Option<Raw<'a>> {
        let found = self.0.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, raw)| Raw(raw)).filter(|raw| raw.0.get() != "null")
    }

    /// Whether there is such a field, null or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// The fields in their order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), Raw(raw)))
    }

    /// The text at `key`.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.text()
    }

    /// The text at `key`, or nothing.
    pub(crate) fn text_or_empty(&self, key: &str) -> Cow<'a, str> {
        self.text(key).unwrap_or_default()
    }

    /// The object at `key`.
    pub(crate) fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key)?.object()
    }

    /// The elements at `key`; none if it is no array.
    pub(crate) fn array(&self, key: &str) -> Vec<Raw<'a>> {
        self.get(key).map(Raw::array).unwrap_or_default()
    }

    /// The objects among the elements at `key`.
    pub(crate) fn objects(&self, key: &str) -> impl Iterator<Item = Object<'a>> {
        self.array(key).into_iter().filter_map(Raw::object)
    }

    /// The whole number at `key`; a fraction is cut off.
    pub(crate) fn int(&self, key: &str) -> Option<i64> {
        let text = self.get(key)?.0.get();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a cast from float saturates, which is what is wanted"
        )]
        let of_float = || text.parse::<f64>().ok().filter(|it| it.is_finite()).map(|it| it as i64);
        text.parse().ok().or_else(of_float)
    }

    /// The count at `key`; anything that is no count is zero.
    pub(crate) fn count(&self, key: &str) -> u64 {
        self.int(key).and_then(|it| u64::try_from(it).ok()).unwrap_or(0)
    }

    /// The exit status at `key`.
    pub(crate) fn exit_code(&self, key: &str) -> Option<i32> {
        self.int(key).and_then(|it| i32::try_from(it).ok())
    }

    /// Whether `key` is true.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.0.get() == "true")
    }

    /// The object read whole, as a `T`.
    pub(crate) fn to<T: serde::de::DeserializeOwned>(&self) -> Option<T> {
        let value: serde_json::Map<String, Value> =
            self.fields().map(|(key, raw)| (key.to_owned(), raw.value())).collect();
        serde_json::from_value(Value::Object(value)).ok()
    }

    /// The value at `key`, read whole; null if there is none.
    pub(crate) fn value(&self, key: &str) -> Value {
        self.get(key).map_or(Value::Null, Raw::value)
    }
}

impl<'a> Raw<'a> {
    /// As it is written.
    pub(crate) fn as_written(self) -> &'a str {
        self.0.get()
    }

    pub(crate) fn object(self) -> Option<Object<'a>> {
        if !self.0.get().starts_with('{') {
            return None;
        }
        Object::parse(self.0.get())
    }

    pub(crate) fn array(self) -> Vec<Raw<'a>> {
        if !self.0.get().starts_with('[') {
            return Vec::new();
        }
        let elements: Vec<&'a RawValue> = serde_json::from_str(self.0.get()).unwrap_or_default();
        elements.into_iter().map(Raw).collect()
    }

    /// The text, if it is one. Half of a surrogate pair, which other languages let through, becomes U+FFFD.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let written = self.0.get();
        let inner = written.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let read = serde_json::from_str::<String>(written);
        read.or_else(|_| serde_json::from_str(&without_lone_surrogates(written))).ok().map(Cow::Owned)
    }

    /// The whole value. What cannot be read, such as a nesting without end, is given as text.
    pub(crate) fn value(self) -> Value {
        let written = self.0.get();
        let read = serde_json::from_str(written);
        read.or_else(|_| serde_json::from_str(&without_lone_surrogates(written)))
            .unwrap_or_else(|_| Value::String(written.to_owned()))
    }
}

/// JSON text with each `\uD800`–`\uDFFF` that has no partner replaced by `\uFFFD`.
fn without_lone_surrogates(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (unit(rest), unit(rest.get(6..).unwrap_or_default())) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str("\\uFFFD");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    mended.push_str(rest);
    mended
}

/// The UTF-16 unit of an escape that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(12);
                while let Some(Key(key)) = map.next_key()? {
                    fields.push((key, map.next_value::<&'de RawValue>()?));
                }
                Ok(Object(fields))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
                Err(serde::de::Error::custom("an array"))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A key, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_unexpected_type_is_absent() {
        let object = Object::parse(r#"{"a":{"b":1},"c":null,"d":[1,{"e":"x"}],"f":"é\n","a":7.9}"#).unwrap();
        assert_eq!(object.int("a"), Some(7));
        assert!(object.object("a").is_none() && object.text("a").is_none());
        assert!(object.get("c").is_none() && object.has("c"));
        assert_eq!(object.objects("d").next().unwrap().text_or_empty("e"), "x");
        assert_eq!(object.text_or_empty("f"), "é\n");
        assert!(Object::parse("[1]").is_none() && Object::parse("{\"a\":").is_none());
    }

    #[test]
    fn half_a_surrogate_pair_costs_one_character() {
        let object = Object::parse(r#"{"a":"x\ud83dy\\ud800 \ud83d\ude00","b":{"c":"\udc00"}}"#).unwrap();
        assert_eq!(object.text_or_empty("a"), "x\u{fffd}y\\ud800 😀");
        assert_eq!(object.value("b"), serde_json::json!({"c": "\u{fffd}"}));
    }

    #[test]
    fn nesting_without_end_is_kept_as_text() {
        let text = format!("{{\"a\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(Object::parse(&text).unwrap().value("a").is_string());
    }
}
