//! Parts of a run, and methods of another one beside them: ablations are compared with baselines "retrieved from the main
//! experiment by task ID" (VAO-Bench, A.1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proctor_store::{MethodId, TaskRecord};

use crate::row::Rows;
use crate::words::{agreeing, counted};

/// A file with more names than this is none of ours.
const MOST: usize = 1_000_000;

/// So many names stand in a sentence.
const NAMED: usize = 10;

/// Names of tasks, each as `TASK` or `SUITE/TASK`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNames(BTreeSet<String>);

/// Why a list of tasks, or a baseline, cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubsetError {
    /// It is not one of the two forms.
    #[error("it is neither a JSON list of names nor one name a line: {0}")]
    Form(String),
    /// It names nothing.
    #[error("it names no task")]
    Empty,
    /// None of the tasks is in the run.
    #[error("none of its tasks is in the run; it names {0}")]
    Strange(String),
    /// The two runs have no task in common.
    #[error("the baseline has none of the tasks")]
    NothingInCommon,
    /// Attempts cannot be paired.
    #[error("the run has {} at each task and the baseline {}: they cannot be put side by side", counted(*run, "attempt"), counted(*baseline, "attempt"))]
    Attempts {
        /// Of the run.
        run: u32,
        /// Of the baseline.
        baseline: u32,
    },
}

impl TaskNames {
    /// Reads a list: JSON, or one name a line, where empty lines and those that begin with `#` say nothing.
    pub fn parse(text: &str) -> Result<Self, SubsetError> {
        let text = text.trim_start_matches('\u{feff}');
        let names: BTreeSet<String> = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map_err(|error| SubsetError::Form(error.to_string()))?
        } else {
            let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
            lines.map(str::to_owned).collect()
        };
        if let Some(strange) = names.iter().find(|it| it.contains(char::is_whitespace) || it.is_empty()) {
            let shown: String = strange.chars().take(60).collect();
            return Err(SubsetError::Form(format!("`{}` is no name of a task", shown.escape_debug())));
        }
        match names.len() {
            0 => Err(SubsetError::Empty),
            many if many > MOST => Err(SubsetError::Form("it is too long".to_owned())),
            _ => Ok(Self(names)),
        }
    }

    fn has(&self, task: &TaskRecord) -> bool {
        self.0.contains(&task.id) || self.0.contains(&format!("{}/{}", task.suite, task.id))
    }

    /// Those that are none of the tasks.
    fn missing<'a>(&'a self, tasks: &[TaskRecord]) -> Vec<&'a str> {
        let known: BTreeSet<String> =
            tasks.iter().flat_map(|it| [it.id.clone(), format!("{}/{}", it.suite, it.id)]).collect();
        self.0.iter().filter(|it| !known.contains(*it)).map(String::as_str).collect()
    }
}

impl Rows {
    /// Leaves these tasks only, as if no other had been planned. Names that the run does not have are a problem, and told.
    pub fn keep(&mut self, names: &TaskNames) -> Result<(), SubsetError> {
        let missing = names.missing(&self.record.tasks);
        if missing.len() == names.0.len() {
            return Err(SubsetError::Strange(some(&missing)));
        }
        if !missing.is_empty() {
            self.problems.push(format!(
                "{} of the subset {} not in the run: {}",
                counted(missing.len(), "task"),
                agreeing(missing.len(), "is", "are"),
                some(&missing)
            ));
        }
        self.retain(|task| names.has(task));
        Ok(())
    }

    fn retain(&mut self, keeps: impl Fn(&TaskRecord) -> bool) {
        self.rows.retain(|row| keeps(&row.task));
        self.record.tasks.retain(keeps);
    }

    /// Puts the methods of another run beside those of this one, under names that say so. Only tasks that both runs have
    /// count then; those that the baseline has not are told.
    pub fn put_beside(&mut self, mut baseline: Self) -> Result<(), SubsetError> {
        let (run, theirs) = (self.record.attempts, baseline.record.attempts);
        if run != theirs {
            return Err(SubsetError::Attempts { run, baseline: theirs });
        }
        let key = |task: &TaskRecord| (task.suite.clone(), task.id.clone());
        let digests = |rows: &Self| -> BTreeMap<(String, String), proctor_traces::Digest> {
            rows.record.tasks.iter().map(|it| (key(it), it.digest)).collect()
        };
        let (ours, theirs) = (digests(self), digests(&baseline));
        let missing: Vec<&str> =
            ours.keys().filter(|it| !theirs.contains_key(*it)).map(|it| it.1.as_str()).collect();
        if missing.len() == ours.len() {
            return Err(SubsetError::NothingInCommon);
        }
        if !missing.is_empty() {
            self.problems.push(format!(
                "{} not in the baseline, and left out: {}",
                counted(missing.len(), "task"),
                some(&missing)
            ));
        }
        let changed: Vec<&str> = ours
            .iter()
            .filter(|(task, digest)| theirs.get(*task).is_some_and(|it| it != *digest))
            .map(|(task, _)| task.1.as_str())
            .collect();
        if !changed.is_empty() {
            self.problems.push(format!(
                "{} {} another package in the baseline: {}",
                counted(changed.len(), "task"),
                agreeing(changed.len(), "has", "have"),
                some(&changed)
            ));
        }
        if self.record.image.id != baseline.record.image.id {
            self.problems.push("the baseline was made with another toolchain image".to_owned());
        }
        self.retain(|task| theirs.contains_key(&key(task)));
        baseline.retain(|task| ours.contains_key(&key(task)));
        self.take_over(baseline);
        Ok(())
    }

    fn take_over(&mut self, baseline: Self) {
        let first = self.record.methods.len();
        for mut method in baseline.record.methods {
            let name = format!("{}@{}", method.id, baseline.record.name);
            let taken = |id: &MethodId| self.record.methods.iter().any(|it| it.id == *id);
            let mut id = MethodId::from_parts([name.as_str()]);
            let mut number = 1;
            while taken(&id) {
                number += 1;
                id = MethodId::from_parts([format!("{number}+{name}").as_str()]);
            }
            method.id = id;
            self.record.methods.push(method);
        }
        for (model, price) in baseline.record.prices {
            self.record.prices.entry(model).or_insert(price);
        }
        let tasks: BTreeMap<(&str, &str), Arc<TaskRecord>> = self
            .record
            .tasks
            .iter()
            .map(|it| ((it.suite.as_str(), it.id.as_str()), Arc::new(it.clone())))
            .collect();
        for mut row in baseline.rows {
            row.method += first;
            // What a task is, this run says.
            if let Some(task) = tasks.get(&(row.task.suite.as_str(), row.task.id.as_str())) {
                row.task = Arc::clone(task);
            }
            self.rows.push(row);
        }
        let told = |it: String| format!("baseline {}: {it}", baseline.record.name);
        self.problems.extend(baseline.problems.into_iter().map(told));
        let judges: BTreeSet<&str> =
            self.rows.iter().filter_map(|row| Some(&*row.ended()?.score.as_ref()?.judge)).collect();
        if judges.len() > 1 {
            let names = judges.into_iter().collect::<Vec<_>>().join(", ");
            let mixed = format!("marks of different judges stand side by side: {names}");
            self.problems.push(mixed);
        }
    }
}

fn some(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::tests::{ended, rows};
    use crate::row::{Judged, RenderState, RowState};
    use crate::{Options, Report};
    use proctor_traces::Ending;

    fn three() -> Rows {
        let done = || RowState::Ended(Box::new(ended(Ending::Completed, RenderState::Rendered, Judged::No)));
        rows(vec![done(), done(), RowState::Pending { tries: 0 }])
    }

    #[test]
    fn a_list_is_json_or_lines() {
        let names = |text: &str| TaskNames::parse(text).map(|it| it.0.into_iter().collect::<Vec<_>>());
        assert_eq!(names("t1\r\n# two\n\n  t0 \n").unwrap(), ["t0", "t1"]);
        assert_eq!(names(" [\"t1\", \"vao/t0\"]").unwrap(), ["t1", "vao/t0"]);
        assert_eq!(names("# none\n"), Err(SubsetError::Empty));
        assert!(matches!(names("[\"t1\""), Err(SubsetError::Form(_))));
        assert!(matches!(names("t1 t2"), Err(SubsetError::Form(_))));
        assert!(matches!(names("[1]"), Err(SubsetError::Form(_))));
    }

    #[test]
    fn only_the_tasks_of_the_list_count_and_what_is_missing_is_named() {
        let mut rows = three();
        rows.keep(&TaskNames::parse("t1\nvao/t2\nt7").unwrap()).unwrap();
        let report = Report::new(&rows, &Options::default()).unwrap();
        assert_eq!((report.tasks, report.methods[0].figures.registered), (2, 2));
        assert_eq!(report.methods[0].figures.completed.numerator, 1);
        assert_eq!(rows.problems, ["1 task of the subset is not in the run: t7"]);
        assert_eq!(three().keep(&TaskNames::parse("x").unwrap()), Err(SubsetError::Strange("x".into())));
    }

    #[test]
    fn a_baseline_stands_beside_the_run_on_the_tasks_of_both() {
        let (mut run, mut other) = (three(), three());
        other.record.name = "main".into();
        other.record.tasks[0].id = "elsewhere".into();
        other.rows[0].task = Arc::new(other.record.tasks[0].clone());
        run.put_beside(other).unwrap();
        let report = Report::new(&run, &Options::default()).unwrap();
        let methods: Vec<(&str, u64)> =
            report.methods.iter().map(|it| (it.method.as_str(), it.figures.registered)).collect();
        assert_eq!(methods, [("m", 2), ("m@main", 2)]);
        assert_eq!(run.problems, ["1 task not in the baseline, and left out: t0"]);
        // Once more: the name is taken, and a method is never mixed up with another.
        let mut third = three();
        third.record.name = "main".into();
        run.put_beside(third).unwrap();
        assert_eq!(run.record.methods[2].id.as_str(), "2+m@main");
        let mut twice = three();
        twice.record.attempts = 2;
        assert_eq!(run.put_beside(twice), Err(SubsetError::Attempts { run: 1, baseline: 2 }));
    }
}
