//! Where two requests differ, for people.

use std::fmt::{self, Write as _};

use serde_json::Value;

/// How much of a text is shown before the place where it differs, and from there on, in characters.
const BEFORE: usize = 14;
const AFTER: usize = 34;
/// Longest path shown.
const PATH: usize = 120;

/// The first difference of two requests, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Where, as in `$.input[6].output`.
    path: String,
    recorded: String,
    sent: String,
    /// In how many places they differ.
    pub(super) places: usize,
}

impl Difference {
    /// None if there is none.
    pub(super) fn between(recorded: &Value, sent: &Value) -> Option<Self> {
        let mut found = Found::default();
        found.compare(&mut "$".to_owned(), Some(recorded), Some(sent));
        let (path, recorded, sent) = found.first?;
        Some(Self { path, recorded, sent, places: found.places })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: recorded {}, sent {}", self.path, self.recorded, self.sent)?;
        match self.places {
            1 => Ok(()),
            places => write!(f, " (and {} more places)", places - 1),
        }
    }
}

#[derive(Default)]
struct Found {
    first: Option<(String, String, String)>,
    places: usize,
}

impl Found {
    /// Depth is that of what `serde_json` reads, 128 at most.
    fn compare(&mut self, path: &mut String, recorded: Option<&Value>, sent: Option<&Value>) {
        let length = path.len();
        match (recorded, sent) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                let more = b.keys().filter(|key| !a.contains_key(*key));
                for key in a.keys().chain(more) {
                    path.push('.');
                    path.push_str(key);
                    self.compare(path, a.get(key), b.get(key));
                    path.truncate(length);
                }
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => {
                for index in 0..a.len().max(b.len()) {
                    // Writing to a string never fails.
                    let _ = write!(path, "[{index}]");
                    self.compare(path, a.get(index), b.get(index));
                    path.truncate(length);
                }
            }
            (a, b) if a == b => {}
            (a, b) => {
                self.places += 1;
                if self.first.is_none() {
                    let (recorded, sent) = shown(a, b);
                    self.first = Some((path.chars().take(PATH).collect(), recorded, sent));
                }
            }
        }
    }
}

/// Both, shortened to where they begin to differ.
fn shown(a: Option<&Value>, b: Option<&Value>) -> (String, String) {
    let text = |value: Option<&Value>| match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => format!("{text:?}"),
        Some(value) => value.to_string(),
    };
    let (a, b) = (text(a), text(b));
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    (around(&a, common), around(&b, common))
}

fn around(text: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE);
    let part: String = text.chars().skip(from).take(BEFORE + AFTER).collect();
    let cut = text.chars().nth(from + BEFORE + AFTER).is_some();
    format!("{}{part}{}", if from > 0 { "…" } else { "" }, if cut { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(a: &Value, b: &Value) -> Option<String> {
        Difference::between(a, b).map(|it| it.to_string())
    }

    #[test]
    fn the_place_and_both_sides() {
        let a = json!({"input": [{"a": 1}, {"output": format!("{}left end", "x".repeat(400))}], "n": 1});
        let b = json!({"input": [{"a": 1}, {"output": format!("{}right end", "x".repeat(400))}], "n": 2});
        assert_eq!(
            says(&a, &b).unwrap(),
            "$.input[1].output: recorded …xxxxxxxxxxxxxxleft end\", sent …xxxxxxxxxxxxxxright end\" (and 1 more places)"
        );
        assert_eq!(says(&a, &a), None);
    }

    #[test]
    fn what_is_missing_is_nothing() {
        let (a, b) = (json!({"a": [1, 2]}), json!({"a": [1], "b": null}));
        assert_eq!(says(&a, &b).unwrap(), "$.a[1]: recorded 2, sent nothing (and 1 more places)");
        assert_eq!(says(&json!({}), &json!({"b": null})).unwrap(), "$.b: recorded nothing, sent null");
        assert_eq!(says(&json!("a"), &json!(["a"])).unwrap(), "$: recorded \"a\", sent [\"a\"]");
    }

    #[test]
    fn it_is_short_whatever_differs() {
        let (a, b) = (json!({"k".repeat(5000): "ä".repeat(5000)}), json!({"k".repeat(5000): vec![1; 5000]}));
        assert!(says(&a, &b).unwrap().chars().count() < 300);
    }
}
