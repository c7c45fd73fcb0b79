//! Names of methods and trials: readable, stable, and safe as folder names.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A text that cannot be a name here.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` cannot be {what}: {rule}")]
pub struct IdError {
    text: String,
    what: &'static str,
    rule: &'static str,
}

/// A part of a name: never a way out of its folder.
fn is_safe(part: &str) -> bool {
    let ordinary = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+' | '=');
    (1..=120).contains(&part.len()) && part.chars().all(ordinary) && !part.starts_with('.')
}

/// Name of a method (track, harness, model and settings): the rows of every table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct MethodId(String);

impl MethodId {
    /// A name made of `parts`, joined by `-`; characters that a folder name should not have become `_`.
    pub fn from_parts<'a>(parts: impl IntoIterator<Item = &'a str>) -> Self {
        let joined = parts.into_iter().collect::<Vec<_>>().join("-");
        let mut name: String =
            joined.chars().map(|c| if is_safe(&format!("x{c}")) { c } else { '_' }).take(120).collect();
        if !is_safe(&name) {
            name.insert_str(0, "method-");
            name.truncate(120);
        }
        Self(name)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MethodId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        if is_safe(&text) {
            Ok(Self(text))
        } else {
            let rule =
                "letters, digits and . _ - @ + = only, not starting with a dot, at most 120 characters";
            Err(IdError { text: text.chars().take(200).collect(), what: "the name of a method", rule })
        }
    }
}

impl From<MethodId> for String {
    fn from(id: MethodId) -> Self {
        id.0
    }
}

impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An attempt of a method at a task: `2` is the second, and `2.1` the first rerun of it, which stands in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Attempt {
    number: u32,
    rerun: u32,
}

impl Attempt {
    /// The attempt with this number, from 1, as it is first made.
    pub const fn nth(number: u32) -> Self {
        Self { number, rerun: 0 }
    }

    /// Its number, from 1.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Which rerun of it this is; 0 is the attempt as first made.
    pub const fn rerun(self) -> u32 {
        self.rerun
    }

    /// This attempt, made once more.
    #[must_use]
    pub const fn again(self) -> Self {
        Self { number: self.number, rerun: self.rerun.saturating_add(1) }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rerun {
            0 => write!(f, "{}", self.number),
            rerun => write!(f, "{}.{rerun}", self.number),
        }
    }
}

impl FromStr for Attempt {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let counted = |text: &str| text.parse().ok().filter(|n: &u32| *n > 0 && n.to_string() == text);
        let attempt = match text.split_once('.') {
            None => counted(text).map(Self::nth),
            Some((number, rerun)) => {
                counted(number).zip(counted(rerun)).map(|(number, rerun)| Self { number, rerun })
            }
        };
        attempt.ok_or_else(|| IdError {
            text: text.chars().take(200).collect(),
            what: "an attempt",
            rule: "it is a number from 1, and `.1` and so on for its reruns",
        })
    }
}

impl TryFrom<String> for Attempt {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<Attempt> for String {
    fn from(attempt: Attempt) -> Self {
        attempt.to_string()
    }
}

/// Name of a trial: `<suite>/<task>/<method>/<attempt>`, which is also its folder below `trials/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrialId {
    suite: String,
    task: String,
    method: MethodId,
    attempt: Attempt,
}

impl TrialId {
    /// The trial of `task` by `method`.
    pub fn new(suite: &str, task: &str, method: MethodId, attempt: Attempt) -> Result<Self, IdError> {
        for (text, what) in
            [(suite, "a suite in the name of a trial"), (task, "a task in the name of a trial")]
        {
            if !is_safe(text) {
                let rule =
                    "letters, digits and . _ - @ + = only, not starting with a dot, at most 120 characters";
                return Err(IdError { text: text.chars().take(200).collect(), what, rule });
            }
        }
        Ok(Self { suite: suite.to_owned(), task: task.to_owned(), method, attempt })
    }

    /// The suite.
    pub fn suite(&self) -> &str {
        &self.suite
    }

    /// The task.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The method.
    pub fn method(&self) -> &MethodId {
        &self.method
    }

    /// The attempt.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The same task and method at another attempt.
    #[must_use]
    pub fn at(&self, attempt: Attempt) -> Self {
        Self { attempt, ..self.clone() }
    }

    /// The same task and attempt by another method.
    #[must_use]
    pub fn by(&self, method: MethodId) -> Self {
        Self { method, ..self.clone() }
    }
}

impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.suite, self.task, self.method, self.attempt)
    }
}

impl From<TrialId> for String {
    fn from(id: TrialId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for TrialId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl FromStr for TrialId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError {
            text: text.chars().take(200).collect(),
            what: "the name of a trial",
            rule: "it is <suite>/<task>/<method>/<attempt>",
        };
        let parts: Vec<&str> = text.split('/').collect();
        let [suite, task, method, attempt] = parts.as_slice() else { return Err(wrong()) };
        Self::new(suite, task, MethodId::try_from((*method).to_owned())?, attempt.parse()?)
    }
}

impl JsonSchema for Attempt {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Attempt".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[1-9][0-9]*([.][1-9][0-9]*)?$" })
    }
}

impl JsonSchema for TrialId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TrialId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[^/]+/[^/]+/[^/]+/[1-9][0-9]*([.][1-9][0-9]*)?$" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_trial_is_named_by_its_path() {
        let id: TrialId = "vao/dash-001/codex-gpt-5.5/2".parse().unwrap();
        assert_eq!(
            (id.suite(), id.task(), id.method().as_str(), id.attempt()),
            ("vao", "dash-001", "codex-gpt-5.5", Attempt::nth(2))
        );
        let again = id.at(id.attempt().again());
        assert_eq!(again.to_string(), "vao/dash-001/codex-gpt-5.5/2.1");
        assert_eq!(again.to_string().parse::<TrialId>().unwrap(), again);
        for wrong in [
            "",
            "a/b/c",
            "vao/../m/1",
            "vao/x/m/0",
            "vao/x/m/01",
            "vao/x/m/1.",
            "vao/x/m/1.0",
            "vao/x/m/1.1.1",
            "vao/x/m/1/",
            "vao/.x/m/1",
            "vao/a b/m/1",
        ] {
            assert!(wrong.parse::<TrialId>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn method_names_are_always_safe(parts in prop::collection::vec(".{0,60}", 0..4)) {
            let id = MethodId::from_parts(parts.iter().map(String::as_str));
            prop_assert!(MethodId::try_from(id.as_str().to_owned()).is_ok(), "{id}");
        }
    }
}
