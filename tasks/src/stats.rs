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
