//! Which tasks: filters that narrow one after the other, then the sample, then the limit.

use std::collections::BTreeSet;
use std::path::Path;

use globset::{Glob, GlobMatcher};
use proctor_tasks::toml_text::nearest;
use proctor_tasks::{Category, Difficulty, RenderMode, Task};

use crate::ExperimentError;
use crate::experiment::TaskSelection;
use crate::file::read_text;
use crate::sample::draw;

/// What a task is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// Its name.
    pub id: &'a str,
    /// What kind of artifact it is.
    pub category: Category,
    /// How it is rendered.
    pub mode: RenderMode,
    /// The scope of coordination that it needs.
    pub difficulty: Difficulty,
    /// What is asked for.
    pub operation: &'a str,
    /// The batch of its source.
    pub batch: &'a str,
}

impl<'a> Facts<'a> {
    /// Of `task`.
    pub fn of(task: &'a Task) -> Self {
        Self {
            id: task.id().as_str(),
            category: task.metadata.category,
            mode: task.mode(),
            difficulty: task.metadata.difficulty,
            operation: &task.metadata.operation,
            batch: &task.metadata.source_batch,
        }
    }
}

/// Those of `tasks` that `selection` selects, by name.
pub fn choose(selection: &TaskSelection, tasks: Vec<Task>) -> Result<Vec<Task>, ExperimentError> {
    let facts: Vec<Facts<'_>> = tasks.iter().map(Facts::of).collect();
    let chosen: BTreeSet<String> =
        select(selection, &facts)?.into_iter().map(|task| task.id.to_owned()).collect();
    let mut tasks = tasks;
    tasks.retain(|task| chosen.contains(task.id().as_str()));
    tasks.sort_by(|a, b| a.id().cmp(b.id()));
    Ok(tasks)
}

/// Those of `tasks` that `selection` selects, by name. Its paths are not looked at.
pub fn select<'a>(selection: &TaskSelection, tasks: &[Facts<'a>]) -> Result<Vec<Facts<'a>>, ExperimentError> {
    let mut tasks = tasks.to_vec();
    tasks.sort_by_key(|task| task.id);
    let globs = patterns(&selection.globs, &tasks)?;
    let excluded = patterns(&selection.exclude, &tasks)?;
    known_ids(&selection.ids, &tasks)?;

    let mut left = Narrowing { tasks };
    let TaskSelection { ids, category, mode, difficulty, operation, .. } = selection;
    let named: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    left.keep(ids, "ids", |task| named.contains(task.id))?;
    left.keep(&selection.globs, "globs", |task| globs.iter().any(|glob| glob.is_match(task.id)))?;
    left.keep(category, "category", |task| category.contains(&task.category))?;
    left.keep(mode, "mode", |task| mode.contains(&task.mode))?;
    left.keep(difficulty, "difficulty", |task| difficulty.contains(&task.difficulty))?;
    left.keep(operation, "operation", |task| operation.iter().any(|name| name.as_str() == task.operation))?;
    left.keep(&selection.exclude, "exclude", |task| !excluded.iter().any(|glob| glob.is_match(task.id)))?;
    let mut tasks = left.tasks;
    if let Some(sample) = &selection.sample {
        if tasks.len() < sample.size.as_usize() {
            return Err(ExperimentError::input(format!(
                "a sample of {} cannot be drawn from {} tasks",
                sample.size,
                tasks.len()
            ))
            .with_hint("ask for fewer, or take away a filter"));
        }
        tasks = draw(sample, &tasks);
    }
    if let Some(limit) = selection.limit {
        tasks.truncate(limit.as_usize());
    }
    Ok(tasks)
}

struct Narrowing<'a> {
    tasks: Vec<Facts<'a>>,
}

impl<'a> Narrowing<'a> {
    /// Keeps what a filter keeps; none left is an error that names it.
    fn keep<T: ToString>(
        &mut self,
        wanted: &[T],
        filter: &str,
        keep: impl Fn(&Facts<'a>) -> bool,
    ) -> Result<(), ExperimentError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let before = self.tasks.len();
        self.tasks.retain(keep);
        if !self.tasks.is_empty() {
            return Ok(());
        }
        let shown: Vec<String> = wanted.iter().take(5).map(ToString::to_string).collect();
        let more = if wanted.len() > shown.len() { ", …" } else { "" };
        let (verb, of) = match (filter, before) {
            ("exclude", 1) => ("takes away", "the one task that was".to_owned()),
            ("exclude", _) => ("takes away", format!("all {before} tasks that were")),
            (_, 1) => ("keeps", "not the one task that was".to_owned()),
            (_, _) => ("keeps", format!("none of the {before} tasks that were")),
        };
        Err(ExperimentError::input(format!(
            "no task is left: `{filter}` = {}{more} {verb} {of} left before it",
            shown.join(", ")
        ))
        .with_hint("`proctor tasks stats PATH` counts tasks by category, mode, difficulty and operation"))
    }
}

/// Every name must be that of a task.
fn known_ids(ids: &[String], tasks: &[Facts<'_>]) -> Result<(), ExperimentError> {
    let known: BTreeSet<&str> = tasks.iter().map(|task| task.id).collect();
    match ids.iter().find(|id| !known.contains(id.as_str())) {
        Some(unknown) => Err(no_such_task(unknown, tasks)),
        None => Ok(()),
    }
}

fn no_such_task(id: &str, tasks: &[Facts<'_>]) -> ExperimentError {
    let shown: String = id.chars().take(120).collect();
    let near = nearest(id, tasks.iter().map(|task| task.id));
    let hint = if near.is_empty() {
        let some: Vec<&str> = tasks.iter().take(20).map(|task| task.id).collect();
        let more = if tasks.len() > some.len() { ", …" } else { "" };
        format!("there is: {}{more}", some.join(", "))
    } else {
        format!("nearest: {}", near.into_iter().take(3).collect::<Vec<_>>().join(", "))
    };
    ExperimentError::input(format!("there is no task `{shown}`")).with_hint(hint)
}

/// Patterns over names of tasks. One that matches none is a slip.
fn patterns(texts: &[String], tasks: &[Facts<'_>]) -> Result<Vec<GlobMatcher>, ExperimentError> {
    let mut matchers = Vec::new();
    for text in texts {
        let shown: String = text.chars().take(120).collect();
        let glob = Glob::new(text).map_err(|error| {
            ExperimentError::input(format!("`{shown}` is no pattern: {}", error.kind()))
                .with_hint("as in `chart-*`, `*-00[12]?` or `{flow,arch}-*`")
        })?;
        let matcher = glob.compile_matcher();
        if !tasks.iter().any(|task| matcher.is_match(task.id)) {
            let is_name = !text.contains(['*', '?', '[', '{']);
            return Err(if is_name {
                no_such_task(text, tasks)
            } else {
                ExperimentError::input(format!("the pattern `{shown}` matches no task"))
                    .with_hint("`proctor tasks list PATH` lists their names")
            });
        }
        matchers.push(matcher);
    }
    Ok(matchers)
}

/// Reads a list of tasks: one name a line, `#` begins a comment.
pub fn read_ids(path: &Path) -> Result<Vec<String>, ExperimentError> {
    let ids = parse_ids(&read_text(path)?);
    if ids.is_empty() {
        return Err(ExperimentError::input(format!("{}: it names no task", path.display()))
            .with_hint("one name a line; `#` begins a comment"));
    }
    Ok(ids)
}

/// The names in such a list.
pub fn parse_ids(text: &str) -> Vec<String> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    let names = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Sample, Stratum};
    use crate::value::TaskCount;

    const TASKS: [(&str, Category, RenderMode, Difficulty); 5] = [
        ("flow-b", Category::Flowchart, RenderMode::Dot, Difficulty::Hard),
        ("chart-a", Category::StatisticalChart, RenderMode::Python, Difficulty::Easy),
        ("chart-b", Category::StatisticalChart, RenderMode::Python, Difficulty::Hard),
        ("flow-a", Category::Flowchart, RenderMode::Tikz, Difficulty::Easy),
        ("page-a", Category::Dashboard, RenderMode::Html, Difficulty::Medium),
    ];

    fn tasks() -> Vec<Facts<'static>> {
        TASKS
            .map(|(id, category, mode, difficulty)| Facts {
                id,
                category,
                mode,
                difficulty,
                operation: "text_edit",
                batch: "b",
            })
            .to_vec()
    }

    fn selected(change: impl FnOnce(&mut TaskSelection)) -> Result<Vec<&'static str>, String> {
        let mut selection = TaskSelection::default();
        change(&mut selection);
        match select(&selection, &tasks()) {
            Ok(tasks) => Ok(tasks.into_iter().map(|task| task.id).collect()),
            Err(error) => Err(format!("{error}; {}", error.hint().unwrap_or_default())),
        }
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn filters_narrow_one_after_the_other() {
        assert_eq!(selected(|_| ()).unwrap(), ["chart-a", "chart-b", "flow-a", "flow-b", "page-a"]);
        let both = selected(|it| {
            it.globs = texts(&["*-a"]);
            it.category = vec![Category::Flowchart, Category::Dashboard];
        });
        assert_eq!(both.unwrap(), ["flow-a", "page-a"]);
        let rest = selected(|it| {
            it.difficulty = vec![Difficulty::Hard, Difficulty::Easy];
            it.exclude = texts(&["flow-*"]);
            it.limit = Some(TaskCount::clamped(1));
        });
        assert_eq!(rest.unwrap(), ["chart-a"]);
        assert_eq!(selected(|it| it.ids = texts(&["page-a", "flow-b"])).unwrap(), ["flow-b", "page-a"]);
    }

    #[test]
    fn what_keeps_nothing_is_named() {
        let nothing = selected(|it| {
            it.category = vec![Category::Flowchart];
            it.mode = vec![RenderMode::Html];
        });
        let message = nothing.unwrap_err();
        assert!(message.starts_with("no task is left: `mode` = html keeps none of the 2 tasks"), "{message}");
        let message = selected(|it| it.exclude = texts(&["*"])).unwrap_err();
        assert!(message.contains("`exclude` = * takes away all 5 tasks"), "{message}");
    }

    #[test]
    fn unknown_names_are_answered_with_the_nearest() {
        let message = selected(|it| it.ids = texts(&["chart-c"])).unwrap_err();
        assert_eq!(message, "there is no task `chart-c`; nearest: chart-a, chart-b");
        let message = selected(|it| it.exclude = texts(&["flow-z"])).unwrap_err();
        assert!(message.contains("there is no task `flow-z`; nearest: flow-a"), "{message}");
        let message = selected(|it| it.globs = texts(&["chrat-*"])).unwrap_err();
        assert!(message.starts_with("the pattern `chrat-*` matches no task"), "{message}");
        let message = selected(|it| it.globs = texts(&["a[b"])).unwrap_err();
        assert!(message.starts_with("`a[b` is no pattern"), "{message}");
    }

    #[test]
    fn a_sample_larger_than_what_is_left_is_refused() {
        let sample = |size| Some(Sample { size: TaskCount::clamped(size), seed: 0, by: vec![Stratum::Mode] });
        assert_eq!(selected(|it| it.sample = sample(5)).unwrap().len(), 5);
        let message = selected(|it| it.sample = sample(6)).unwrap_err();
        assert!(message.starts_with("a sample of 6 cannot be drawn from 5 tasks"), "{message}");
    }

    #[test]
    fn lists_have_comments() {
        assert_eq!(parse_ids("\u{feff}# all\na # one\r\n\n  b\n"), ["a", "b"]);
    }
}
