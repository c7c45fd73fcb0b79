//! JSON that remembers a key told twice: the usual reader keeps the last, and says nothing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value, and a key that one of its objects has twice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) value: Value,
    pub(super) twice: Option<String>,
}

impl From<Value> for Told {
    fn from(value: Value) -> Self {
        Self { value, twice: None }
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Told;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Told, E> {
        Ok(Value::Null.into())
    }

    fn visit_bool<E>(self, it: bool) -> Result<Told, E> {
        Ok(Value::from(it).into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Told, E> {
        Ok(Value::from(it).into())
    }

    fn visit_i64<E>(self, it: i64) -> Result<Told, E> {
        Ok(Value::from(it).into())
    }

    fn visit_f64<E>(self, it: f64) -> Result<Told, E> {
        Ok(Value::from(it).into())
    }

    fn visit_str<E>(self, it: &str) -> Result<Told, E> {
        Ok(Value::from(it).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Told, A::Error> {
        let mut list = Vec::new();
        let mut twice = None;
        while let Some(it) = items.next_element::<Told>()? {
            twice = twice.or(it.twice);
            list.push(it.value);
        }
        Ok(Told { value: Value::Array(list), twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Told, A::Error> {
        let mut object = Map::new();
        let mut twice = None;
        while let Some((key, it)) = entries.next_entry::<String, Told>()? {
            twice = twice.or(it.twice);
            if object.contains_key(&key) {
                twice = twice.or_else(|| Some(key.clone()));
            }
            object.insert(key, it.value);
        }
        Ok(Told { value: Value::Object(object), twice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_always_is_and_a_second_key_is_remembered() {
        let text = r#"{"a": [null, true, 1, -1, 1.5, "b\n"], "c": {"a": {}}}"#;
        let told: Told = serde_json::from_str(text).unwrap();
        assert_eq!(told, serde_json::from_str::<Value>(text).unwrap().into());
        for text in [r#"{"a": 1, "a": 1}"#, r#"[{"b": {"a": 1, "\u0061": 2}}]"#] {
            assert_eq!(serde_json::from_str::<Told>(text).unwrap().twice.as_deref(), Some("a"));
        }
    }
}
