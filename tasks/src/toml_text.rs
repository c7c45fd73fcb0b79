//! Reading TOML that people write: every mistake gets its place and, where it can be guessed, what was meant.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use miette::NamedSource;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use crate::error::TaskError;

/// Reads `text`, which is the content of `file`.
pub(crate) fn parse<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, TaskError> {
    toml::from_str(text).map_err(|error| {
        let message = error.message().trim_end().to_owned();
        let hint = hint(&message);
        TaskError::Toml {
            file: file.to_owned(),
            hint,
            message,
            text: named(file, text),
            span: error.span().map(Into::into),
        }
    })
}

/// `text` with its file's name, as a report shows it.
pub fn named(file: &Path, text: &str) -> Arc<NamedSource<String>> {
    Arc::new(NamedSource::new(file.display().to_string(), text.to_owned()).with_language("toml"))
}

/// One step into a TOML document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Into a table.
    Key(&'a str),
    /// Into an array.
    Index(usize),
}

/// Where the value at `path` stands in `text`; if there is no such value, the nearest one above it.
pub fn locate(text: &str, path: &[Step<'_>]) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let mut found = None;
    let (first, rest) = path.split_first()?;
    let Step::Key(key) = first else { return None };
    let mut value = table.get_ref().get(*key)?;
    found = Some(value.span()).or(found);
    for step in rest {
        let next = match (step, value.get_ref()) {
            (Step::Key(key), DeValue::Table(table)) => table.get(*key),
            (Step::Index(index), DeValue::Array(array)) => array.get(*index),
            _ => None,
        };
        let Some(next) = next else { break };
        found = Some(next.span());
        value = next;
    }
    found
}

/// What to do about a message of the parser.
pub fn hint(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (wrong, known) = quoted.split_first()?;
    if message.starts_with("missing field") {
        return Some(format!("add `{wrong} = …`"));
    }
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return None;
    }
    nearest(wrong, known.iter().copied()).first().map(|meant| format!("did you mean `{meant}`?"))
}

/// Those of `known` that `wrong` may have been meant to be, nearest first.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let measured = known.into_iter().map(|name| (distance(wrong, name), name));
    let mut near: Vec<(usize, &str)> = measured.filter(|(far, _)| *far <= 1 + wrong.len() / 3).collect();
    near.sort_by_key(|(far, _)| *far);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Levenshtein distance in characters, of texts that a person typed as one word.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the reading of it is tested")]
    struct Document {
        instruction: String,
        language: String,
    }

    #[test]
    fn a_mistyped_key_is_shown_where_it_stands() {
        let text = "language = \"html\"\ninstrction = \"x\"\n";
        let error = parse::<Document>(Path::new("task.toml"), text).unwrap_err();
        let TaskError::Toml { hint, span, .. } = error else { panic!("{error:?}") };
        assert_eq!(hint.as_deref(), Some("did you mean `instruction`?"));
        let span = span.unwrap();
        assert_eq!(&text[span.offset()..span.offset() + span.len()], "instrction");
    }

    #[test]
    fn a_missing_key_is_named() {
        let error = parse::<Document>(Path::new("task.toml"), "language = \"html\"\n").unwrap_err();
        let TaskError::Toml { hint, .. } = error else { panic!("{error:?}") };
        assert_eq!(hint.as_deref(), Some("add `instruction = …`"));
    }

    #[test]
    fn a_far_word_is_not_guessed() {
        assert_eq!(hint("unknown field `xyz`, expected `instruction` or `language`"), None);
    }

    #[test]
    fn values_are_found_by_path() {
        let text = "[a]\nb = [1, { c = \"x\" }]\n[[p]]\nid = \"one\"\n[[p]]\nid = \"two\"\n";
        let at = |path: &[Step<'_>]| locate(text, path).map(|span| &text[span]);
        assert_eq!(at(&[Step::Key("a"), Step::Key("b"), Step::Index(1), Step::Key("c")]), Some("\"x\""));
        assert_eq!(at(&[Step::Key("p"), Step::Index(1), Step::Key("id")]), Some("\"two\""));
        assert_eq!(at(&[Step::Key("nothing")]), None);
    }
}
