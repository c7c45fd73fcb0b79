//! How two plans of a run differ: what would mix two experiments, and what only adds to one.

use std::collections::{BTreeMap, BTreeSet};

use proctor_traces::Millis;

use crate::{MethodRecord, RunRecord};

impl RunRecord {
    /// What differs from `other` in a way that matters.
    pub fn differences(&self, other: &Self) -> Differences {
        let mut lines = Differences::default();
        lines.compare("image", Some(self.image.id.clone()), Some(other.image.id.clone()));
        if self.attempts < other.attempts {
            lines.added.push(format!("attempts: was {}, now {}", self.attempts, other.attempts));
        } else {
            lines.compare("attempts", Some(self.attempts.to_string()), Some(other.attempts.to_string()));
        }
        lines.compare_all("limit", &self.limits, &other.limits);
        lines.compare_methods(&self.methods, &other.methods);
        let tasks =
            |record: &Self| record.tasks.iter().map(|it| (it.id.clone(), it.digest.short())).collect();
        lines.compare_all("task", &tasks(self), &tasks(other));
        lines
    }
}

/// How two plans differ, one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// What only the later one has: it mixes no experiments.
    pub added: Vec<String>,
    /// What would mix two experiments.
    pub changed: Vec<String>,
}

impl Differences {
    /// Whether the plans are the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty()
    }

    fn compare(&mut self, what: &str, was: Option<String>, now: Option<String>) {
        match (was, now) {
            (was, now) if was == now => {}
            (None, Some(now)) => self.added.push(format!("{what}: {now}")),
            (was, now) => {
                let text = |it: Option<String>| it.unwrap_or_else(|| "absent".to_owned());
                self.changed.push(format!("{what}: was {}, now {}", text(was), text(now)));
            }
        }
    }

    fn compare_all(&mut self, kind: &str, was: &BTreeMap<String, String>, now: &BTreeMap<String, String>) {
        let names: BTreeSet<&String> = was.keys().chain(now.keys()).collect();
        for name in names {
            self.compare(&format!("{kind} {name}"), was.get(name).cloned(), now.get(name).cloned());
        }
    }

    /// A method that is in both is told by what of it changed, and by nothing else.
    fn compare_methods(&mut self, was: &[MethodRecord], now: &[MethodRecord]) {
        let by_name = |methods: &'_ [MethodRecord]| -> BTreeMap<String, MethodRecord> {
            methods.iter().map(|it| (it.id.to_string(), it.clone())).collect()
        };
        let (was, now) = (by_name(was), by_name(now));
        let names: BTreeSet<&String> = was.keys().chain(now.keys()).collect();
        for name in names {
            let what = format!("method {name}");
            let (Some(old), Some(new)) = (was.get(name), now.get(name)) else {
                self.compare(&what, was.get(name).map(describe), now.get(name).map(describe));
                continue;
            };
            let (old, new) = (fields(old), fields(new));
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let changed = keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).map(|key| {
                let text = |fields: &BTreeMap<String, String>| {
                    fields.get(key).cloned().unwrap_or_else(|| "absent".to_owned())
                };
                format!("{key} was {}, now {}", text(&old), text(&new))
            });
            let changed: Vec<String> = changed.collect();
            if !changed.is_empty() {
                self.changed.push(format!("{what}: {}", changed.join("; ")));
            }
        }
    }
}

/// A method in one line.
fn describe(it: &MethodRecord) -> String {
    let settings: Vec<String> = it.settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
    let model = it.model.as_deref().unwrap_or("no model");
    format!("{} with {model}, {}{}", it.harness, seconds(it.budget_ms), settings.concat())
}

/// What makes a method the one that it is, by name. Two methods are the same if and only if all of it is.
fn fields(it: &MethodRecord) -> BTreeMap<String, String> {
    let MethodRecord { id: _, track, harness, model, budget_ms, settings, harness_digest } = it;
    let mut fields: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| (format!("setting {key}"), value.clone())).collect();
    fields.insert("track".to_owned(), track.clone());
    fields.insert("harness".to_owned(), harness.clone());
    fields.extend(model.iter().map(|model| ("model".to_owned(), model.clone())));
    fields.insert("budget".to_owned(), seconds(*budget_ms));
    fields.insert("installation".to_owned(), harness_digest.short());
    fields
}

fn seconds(time: Millis) -> String {
    match time.0 % 1000 {
        0 => format!("{} s", time.0 / 1000),
        _ => format!("{} ms", time.0),
    }
}

#[cfg(test)]
mod tests {
    use proctor_traces::Digest;

    use super::*;
    use crate::run::tests::record;

    #[test]
    fn of_a_changed_method_only_what_changed_is_told() {
        let method = MethodRecord {
            id: "codex".to_owned().try_into().unwrap(),
            track: "agent".into(),
            harness: "codex@1".into(),
            model: Some("script".into()),
            budget_ms: Millis(1_800_000),
            settings: BTreeMap::from([("tell_budget".into(), "false".into())]),
            harness_digest: Digest::of(b"codex"),
        };
        let was = RunRecord { methods: vec![method.clone()], ..record(1) };
        let with = |method: MethodRecord| RunRecord { methods: vec![method], ..record(1) };
        let short = with(MethodRecord { budget_ms: Millis(60_500), ..method.clone() });
        assert_eq!(
            was.differences(&short).changed,
            ["method codex: budget was 1800 s, now 60500 ms"],
            "and not a word of harness, model and digest"
        );
        // Every field of a method is one that two plans can differ in.
        for other in [
            MethodRecord { track: "native".into(), ..method.clone() },
            MethodRecord { harness: "codex@2".into(), ..method.clone() },
            MethodRecord { model: None, ..method.clone() },
            MethodRecord { settings: BTreeMap::new(), ..method.clone() },
            MethodRecord { harness_digest: Digest::of(b"other"), ..method.clone() },
        ] {
            let changed = was.differences(&with(other)).changed;
            assert!(changed.len() == 1 && changed[0].matches(" was ").count() == 1, "{changed:?}");
        }
        assert_eq!(
            record(1).differences(&was).added,
            ["method codex: codex@1 with script, 1800 s tell_budget=false"]
        );
    }
}
