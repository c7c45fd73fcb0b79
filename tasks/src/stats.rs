//! The paper's composition tables (VAO-Bench, tables 5, 6 and 10) over any set of tasks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::annotations::PointType;
use crate::operations::operations;
use crate::package::{Category, Difficulty, Language};
use crate::render_mode::RenderMode;
use crate::task::Task;

/// Counts over a set of tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// All tasks.
    pub total: Composition,
    /// By category, in the paper's order; only those that occur.
    pub categories: Vec<(Category, Composition)>,
    /// By rendering mode, in the paper's order; only those that occur.
    pub modes: Vec<(RenderMode, Composition)>,
    /// By difficulty; all three.
    pub difficulties: Vec<(Difficulty, Composition)>,
    /// By language; only those that occur.
    pub languages: Vec<(Language, Composition)>,
    /// By operation, in the order of `operations.toml`, with its title; those that do not occur have no tasks.
    pub operations: Vec<(String, Composition)>,
    /// Tasks by category, mode and difficulty; only what occurs.
    pub cells: Vec<(Category, RenderMode, Difficulty, u64)>,
}

/// One row of a composition table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Composition {
    /// Tasks.
    pub tasks: u64,
    /// Distinct source artifacts.
    pub sources: u64,
    /// Easy, medium and hard tasks.
    pub by_difficulty: [u64; 3],
    /// Direct, derived and invariant points.
    pub points: [PointTotals; 3],
    /// Tasks without derived points.
    pub without_derived: u64,
}

/// Scoring points of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PointTotals {
    /// All of them.
    pub total: u64,
    /// Per task; `None` if there are no tasks.
    pub mean: Option<f64>,
}

/// Counts `tasks`.
pub fn stats(tasks: &[Task]) -> Stats {
    let of = |keep: &dyn Fn(&Task) -> bool| composition(tasks.iter().filter(|task| keep(task)));
    let occurring = |row: &Composition| row.tasks > 0;
    let mut cells = BTreeMap::new();
    for task in tasks {
        *cells.entry((task.metadata.category, task.mode(), task.metadata.difficulty)).or_insert(0) += 1;
    }
    let languages = [Language::Html, Language::Dot, Language::Latex, Language::Python];
    Stats {
        total: of(&|_| true),
        categories: Category::ALL
            .map(|category| (category, of(&|task| task.metadata.category == category)))
            .into_iter()
            .filter(|(_, row)| occurring(row))
            .collect(),
        modes: RenderMode::ALL
            .map(|mode| (mode, of(&|task| task.mode() == mode)))
            .into_iter()
            .filter(|(_, row)| occurring(row))
            .collect(),
        difficulties: Difficulty::ALL
            .map(|difficulty| (difficulty, of(&|task| task.metadata.difficulty == difficulty)))
            .into_iter()
            .collect(),
        languages: languages
            .map(|language| (language, of(&|task| task.solver.language == language)))
            .into_iter()
            .filter(|(_, row)| occurring(row))
            .collect(),
        operations: operations()
            .into_iter()
            .map(|operation| (operation.title, of(&|task| task.metadata.operation == operation.name)))
            .collect(),
        cells: cells
            .into_iter()
            .map(|((category, mode, difficulty), n)| (category, mode, difficulty, n))
            .collect(),
    }
}

fn composition<'a>(tasks: impl Iterator<Item = &'a Task>) -> Composition {
    let mut row = Composition::default();
    let mut sources = BTreeSet::new();
    for task in tasks {
        row.tasks += 1;
        sources.insert(&task.metadata.source_artifact_id);
        row.by_difficulty[task.metadata.difficulty as usize] += 1;
        let annotations = &task.hidden.annotations;
        for (totals, kind) in row.points.iter_mut().zip(PointType::ALL) {
            totals.total += annotations.points(kind).count() as u64;
        }
        row.without_derived += u64::from(annotations.points(PointType::Derived).next().is_none());
    }
    row.sources = sources.len() as u64;
    for totals in &mut row.points {
        totals.mean = ratio(totals.total, row.tasks);
    }
    row
}

#[expect(clippy::cast_precision_loss, reason = "counts of tasks and points are far below 2^53")]
fn ratio(total: u64, tasks: u64) -> Option<f64> {
    (tasks > 0).then(|| total as f64 / tasks as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn everything_adds_up() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fixture::write(&root.path().join(name), name);
        }
        let edit = |name: &str, file: &str, from: &str, to: &str| {
            let path = root.path().join(name).join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(from));
            std::fs::write(path, text.replace(from, to)).unwrap();
        };
        edit("a", "task.toml", "\"hard\"", "\"easy\"");
        edit("a", "task.toml", "artifact-17a4", "artifact-other");
        edit("a", "hidden/annotations.toml", "type = \"derived\"", "type = \"direct\"");
        let stats = stats(&crate::discover(&[root.path().to_owned()]).unwrap());

        assert_eq!((stats.total.tasks, stats.total.sources, stats.total.without_derived), (3, 2, 1));
        assert_eq!(stats.total.by_difficulty, [1, 0, 2]);
        let [direct, derived, invariant] = stats.total.points;
        assert_eq!((direct.total, derived.total, invariant.total), (4, 2, 3));
        assert_eq!(direct.mean, Some(4.0 / 3.0));
        assert_eq!(stats.categories.len(), 1);
        assert_eq!(stats.operations.len(), 14);
        assert_eq!(stats.operations.iter().map(|(_, row)| row.tasks).sum::<u64>(), 3);
        assert_eq!(stats.cells.iter().map(|cell| cell.3).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn nothing_has_no_mean() {
        let stats = stats(&[]);
        assert_eq!(stats.total.points[0], PointTotals { total: 0, mean: None });
        assert_eq!(stats.difficulties.len(), 3);
    }
}
