//! Names of tasks.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a task: `[a-z0-9][a-z0-9_.-]{0,99}` without `..`, so that it is safe as a folder name, in a container
/// label and in a table. It is metadata: a solver never sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

/// A text that cannot name a task.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` cannot name a task: 1 to 100 of a-z, 0-9, `_`, `.`, `-`, beginning with a letter or digit, without `..`"
)]
pub struct TaskIdError(String);

impl TaskId {
    /// The longest name, in bytes.
    pub const MAX_LENGTH: usize = 100;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskId {
    type Err = TaskIdError;

    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = (1..=Self::MAX_LENGTH).contains(&text.len())
            && text.bytes().all(|b| plain(b) || matches!(b, b'_' | b'.' | b'-'))
            && text.bytes().next().is_some_and(plain)
            && !text.contains("..");
        if fits { Ok(Self(text.to_owned())) } else { Err(TaskIdError(text.chars().take(120).collect())) }
    }
}

impl TryFrom<String> for TaskId {
    type Error = TaskIdError;

    fn try_from(text: String) -> Result<Self, TaskIdError> {
        text.parse()
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for TaskId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl schemars::JsonSchema for TaskId {
    fn schema_name() -> Cow<'static, str> {
        "TaskId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^(?!.*\\.\\.)[a-z0-9][a-z0-9_.-]{0,99}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_safe_in_a_path() {
        for good in ["a", "0", "html_business_crm_0046", "dashboard-threshold", "v1.2", &"a".repeat(100)] {
            assert_eq!(good.parse::<TaskId>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn refuses_what_is_not() {
        for bad in
            ["", ".", "..", "-a", "_a", ".a", "a/b", "a..b", "A", "é", "a b", "a\0", "a\n", &"a".repeat(101)]
        {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
    }
}
