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
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

/// A JSON value, unread: text that is known to be well-formed.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a>(&'a str);

impl<'a> Object<'a> {
    /// Reads an object; none if the text is none.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value at `key`, unless it is null. Of several the last counts.
    pub(crate) fn get(&self, key: &str) -> Option<Raw<'a>> {
        let found = self.0.iter().rev().find(|(name, _)| name == key);
        found.map(|(_, raw)| *raw).filter(|raw| raw.0 != "null")
    }

    /// Whether there is such a field, null or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// The fields in their order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
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
        let text = self.get(key)?.0;
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
        self.get(key).is_some_and(|raw| raw.0 == "true")
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
        self.0
    }

    pub(crate) fn object(self) -> Option<Object<'a>> {
        let mut split = Split::inside(self.0, b'{', b'}')?;
        let mut fields = Vec::with_capacity(12);
        while let Some(key) = split.next() {
            let value = split.next()?;
            fields.push((key.text()?, value));
        }
        Some(Object(fields))
    }

    pub(crate) fn array(self) -> Vec<Raw<'a>> {
        Split::inside(self.0, b'[', b']').map(Iterator::collect).unwrap_or_default()
    }

    /// The beginning of the text, at least `bytes` of it as written, for those who look at no more.
    pub(crate) fn head(self, bytes: usize) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.len() <= bytes {
            return self.text();
        }
        // Before the last escape, of which the cut might leave half.
        let mut end = bytes;
        while !inner.is_char_boundary(end) {
            end -= 1;
        }
        let cut = inner[..end]
            .rfind(['\\', '"'])
            .map_or(end, |at| at - trailing_backslashes(&inner.as_bytes()[..at]));
        let head = format!("\"{}\"", &inner[..cut]);
        Raw(&head).text().map(|text| Cow::Owned(text.into_owned()))
    }

    /// The text, if it is one. Half of a surrogate pair, which other languages let through, becomes U+FFFD.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let written = self.0;
        let inner = written.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        let read = serde_json::from_str::<String>(written);
        read.or_else(|_| serde_json::from_str(&without_lone_surrogates(written))).ok().map(Cow::Owned)
    }

    /// The whole value. What cannot be read, such as a nesting without end, is given as text.
    pub(crate) fn value(self) -> Value {
        let written = self.0;
        let read = serde_json::from_str(written);
        read.or_else(|_| serde_json::from_str(&without_lone_surrogates(written)))
            .unwrap_or_else(|_| Value::String(written.to_owned()))
    }
}

/// The values between two brackets, keys included, of text that is known to be well-formed.
///
/// This passes over strings from quote to quote, whatever else is in them, which is why deep levels cost next to nothing.
struct Split<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Split<'a> {
    fn inside(text: &'a str, open: u8, close: u8) -> Option<Self> {
        let bytes = text.as_bytes();
        (bytes.first() == Some(&open) && bytes.last() == Some(&close) && text.len() >= 2)
            .then(|| Self { text: &text[..text.len() - 1], at: 1 })
    }
}

impl<'a> Iterator for Split<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        let bytes = self.text.as_bytes();
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':');
        let start = self.at + bytes.get(self.at..)?.iter().position(|byte| !is_between(byte))?;
        let mut at = start;
        let mut depth = 0_usize;
        loop {
            match bytes.get(at) {
                Some(b'"') => at = end_of_string(bytes, at)?,
                Some(b'{' | b'[') => {
                    depth += 1;
                    at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.checked_sub(1)?;
                    at += 1;
                }
                Some(_) if depth > 0 => {
                    // Numbers, words and what stands between them hold no bracket and no quote.
                    at += bytes[at..]
                        .iter()
                        .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))?;
                    continue;
                }
                Some(byte) if is_between(byte) => break,
                Some(_) => {
                    at += 1;
                    continue;
                }
                None => break,
            }
            if depth == 0 {
                break;
            }
        }
        self.at = at;
        self.text.get(start..at).filter(|text| !text.is_empty()).map(Raw)
    }
}

/// The position behind the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr(b'"', bytes.get(at..)?)?;
        if trailing_backslashes(&bytes[start + 1..at]).is_multiple_of(2) {
            return Some(at + 1);
        }
        at += 1;
    }
}

fn trailing_backslashes(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| **byte == b'\\').count()
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
                    fields.push((key, Raw(map.next_value::<&'de RawValue>()?.get())));
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
    fn levels_are_split_as_a_full_reader_does() {
        let text =
            r#"{"a\\\"b":[1, -2.5e3 ,"x\\",[],{"k":[{"q":"}]\""}]},null],"":{},"z" : "\\\\\"" , "t":true}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        let object = Raw(text).object().unwrap();
        assert_eq!(object.0.len(), value.as_object().unwrap().len());
        for (key, raw) in object.fields() {
            assert_eq!(raw.value(), value[key], "{key}");
        }
        let array = object.array("a\\\"b");
        let values: Vec<Value> = array.iter().map(|it| it.value()).collect();
        assert_eq!(Value::Array(values), value["a\\\"b"]);
        assert_eq!(object.to::<Value>().unwrap(), value);
    }

    #[test]
    fn a_head_is_cut_before_an_escape() {
        let head = |text: &str, bytes| Raw(text).head(bytes).unwrap().into_owned();
        assert_eq!(head(r#""ab\ncdéfgh""#, 100), "ab\ncdéfgh");
        assert!("ab\ncdéfgh".starts_with(&head(r#""ab\ncdéfgh""#, 8)));
        for cut in 1..12 {
            assert!("a\\\\b\n".starts_with(&head(r#""a\\\\b\n""#, cut)), "{cut}");
        }
    }

    #[test]
    fn nesting_without_end_is_kept_as_text() {
        let text = format!("{{\"a\":{}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(Object::parse(&text).unwrap().value("a").is_string());
    }
}
