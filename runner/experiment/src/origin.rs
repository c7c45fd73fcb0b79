//! Where each setting came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::Experiment;

/// An experiment, and where its settings came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The experiment.
    pub experiment: Experiment,
    /// Origins by the path of a setting, as in `schedule.jobs` and `methods.codex-gpt.budget`. What is not here is as
    /// proctor has it.
    pub origins: BTreeMap<String, Origin>,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
    },
    /// The command line.
    Flag(&'static str),
    /// The plan of the run that was joined.
    Run,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => write!(f, "{}", path.display()),
            Self::Flag(name) => f.write_str(name),
            Self::Run => f.write_str("the run"),
        }
    }
}

/// One setting of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its path.
    pub path: String,
    /// Its value, as in the plan.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

impl Setting {
    /// The value as a person writes it.
    pub fn text(&self) -> String {
        fn text(value: &Value) -> String {
            match value {
                Value::Null => "–".to_owned(),
                Value::Bool(true) => "yes".to_owned(),
                Value::Bool(false) => "no".to_owned(),
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Array(items) if items.is_empty() => "–".to_owned(),
                Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
                Value::Object(fields) if fields.is_empty() => "–".to_owned(),
                Value::Object(fields) => {
                    let set = fields.iter().filter(|(_, value)| !value.is_null());
                    set.map(|(key, value)| format!("{key} {}", text(value))).collect::<Vec<_>>().join(", ")
                }
            }
        }
        text(&self.value)
    }
}

/// The order in which a reader meets them; what is not named here comes after.
const TABLES: [&str; 8] = ["name", "attempts", "tasks", "methods", "schedule", "retry", "limits", "ceilings"];

impl Resolved {
    /// Every setting: table by table as in [`Experiment`], by name within each.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = Vec::new();
        let mut add = |path: String, value: Value| {
            let origin = self.origins.get(&path).cloned().unwrap_or(Origin::Default);
            settings.push(Setting { path, value, origin });
        };
        // Its values are texts, numbers and lists of them: it is always JSON.
        let Ok(Value::Object(mut plan)) = serde_json::to_value(&self.experiment) else { return settings };
        let first = TABLES.iter().filter_map(|key| plan.remove_entry(*key)).collect::<Vec<_>>();
        for (key, value) in first.into_iter().chain(plan) {
            match (key.as_str(), value) {
                ("methods", Value::Array(methods)) => {
                    for method in methods {
                        let Value::Object(mut method) = method else { continue };
                        let id = method.remove("id").unwrap_or_default();
                        let id = id.as_str().unwrap_or_default();
                        for (key, value) in method {
                            add(format!("methods.{id}.{key}"), value);
                        }
                    }
                }
                ("judge", value) => add(key, value),
                (_, Value::Object(fields)) => {
                    for (inner, value) in fields {
                        add(format!("{key}.{inner}"), value);
                    }
                }
                (_, value) => add(key, value),
            }
        }
        settings
    }
}
