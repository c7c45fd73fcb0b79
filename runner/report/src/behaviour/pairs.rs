//! Two methods on the same tasks: differences within pairs, so that what makes a task hard falls on both.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use proctor_traces::Behaviour;
use serde::Serialize;

use super::means::{Term, means};
use super::read::Behaviours;
use crate::accounting::{Coverage, Verdict};
use crate::figures::{Mean, executed, source};
use crate::row::{Ended, Row, Rows, float};

/// Two methods side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the run.
    pub run: String,
    /// The two.
    pub methods: [String; 2],
    /// Pairs: the same attempt at the same task by both, once both have ended, whatever became of them.
    pub pairs: u64,
    /// Tasks of those.
    pub tasks: u64,
    /// Source artifacts of those.
    pub sources: u64,
    /// The differences, in the order of the table.
    pub differences: Vec<Difference>,
    /// Why the figures are not final, of a run that goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_final: Option<String>,
    /// What is wrong with the files.
    pub problems: Vec<String>,
}

/// A figure of both, over the pairs that have it on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// Its name in the data.
    pub name: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// Mean of the first method.
    pub first: Option<f64>,
    /// Mean of the second.
    pub second: Option<f64>,
    /// First less second; its denominator is the number of pairs.
    pub difference: Mean,
}

/// Why two methods cannot be compared.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoComparison {
    /// The run has no such method.
    #[error("the run has no method `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A method with itself.
    #[error("`{name}` is both of the methods")]
    Same {
        /// The method.
        name: String,
    },
}

impl NoComparison {
    /// The positions of two methods in the plan.
    pub(crate) fn places(rows: &Rows, methods: [&str; 2]) -> Result<[usize; 2], Self> {
        let known: Vec<String> = rows.record.methods.iter().map(|it| it.id.to_string()).collect();
        if methods[0] == methods[1] {
            return Err(Self::Same { name: methods[0].to_owned() });
        }
        let place = |name: &str| {
            let unknown = || Self::Unknown { name: name.to_owned(), known: known.clone() };
            known.iter().position(|it| it == name).ok_or_else(unknown)
        };
        Ok([place(methods[0])?, place(methods[1])?])
    }
}

/// One side of a pair.
struct Side<'a> {
    row: &'a Row,
    verdict: Verdict,
    behaviour: Option<&'a Behaviour>,
}

struct Figure {
    name: &'static str,
    title: &'static str,
    of: fn(&Side<'_>) -> Option<f64>,
}

const FIGURES: &[Figure] = &[
    Figure { name: "completed", title: "completed", of: |it| it.completed() },
    Figure { name: "time_s", title: "time, s", of: |it| Some(float(it.executed()?.time_ms()?.0)) },
    Figure { name: "calls", title: "tool calls", of: |it| it.count(|it| Some(it.calls)) },
    Figure { name: "writes", title: "writes", of: |it| it.count(|it| Some(it.writes)) },
    Figure { name: "renders", title: "renders", of: |it| it.count(|it| Some(it.renders)) },
    Figure { name: "previews", title: "previews", of: |it| it.count(|it| Some(it.previews)) },
    Figure { name: "cycles", title: "render-compare-edit cycles", of: |it| it.count(|it| Some(it.cycles)) },
    Figure {
        name: "calibrations",
        title: "calibration tests",
        of: |it| it.count(|it| Some(it.calibrations)),
    },
    Figure {
        name: "unfinished_calls",
        title: "unfinished calls",
        of: |it| it.count(|it| Some(it.unfinished)),
    },
    Figure { name: "first_write_s", title: "first write, s", of: |it| it.count(|it| it.first_write_ms) },
    Figure { name: "first_render_s", title: "first render, s", of: |it| it.count(|it| it.first_render_ms) },
];

impl Side<'_> {
    fn executed(&self) -> Option<&Ended> {
        executed(self.row, self.verdict)
    }

    /// One or zero; none while it is not known.
    fn completed(&self) -> Option<f64> {
        match self.verdict.coverage {
            Coverage::Completed => Some(1.0),
            Coverage::TimedOut | Coverage::Failed(_) => Some(0.0),
            Coverage::Unresolved(_) => None,
        }
    }

    fn count(&self, of: impl Fn(&Behaviour) -> Option<u64>) -> Option<f64> {
        self.executed()?;
        Some(float(of(self.behaviour?)?))
    }
}

/// Compares two methods of a run, by their names.
pub fn comparison(
    rows: &Rows,
    verdicts: &[Verdict],
    behaviours: &Behaviours,
    methods: [&str; 2],
) -> Result<Comparison, NoComparison> {
    let places = NoComparison::places(rows, methods)?;
    let mut sides: BTreeMap<(&str, &str, u32), [Option<Side<'_>>; 2]> = BTreeMap::new();
    for ((row, verdict), behaviour) in rows.rows.iter().zip(verdicts).zip(&behaviours.of) {
        let Some(side) = places.iter().position(|it| *it == row.method) else { continue };
        let key = (row.trial.suite(), row.trial.task(), row.trial.attempt().number());
        let behaviour = behaviour.as_ref();
        sides.entry(key).or_default()[side] = Some(Side { row, verdict: *verdict, behaviour });
    }
    let pairs: Vec<(&str, [Side<'_>; 2])> = sides
        .into_values()
        .filter_map(|[first, second]| Some([first?, second?]))
        .filter(|pair| pair.iter().all(|side| side.row.ended().is_some()))
        .map(|pair| (source(pair[0].row), pair))
        .collect();
    let names: Vec<&'static str> = FIGURES.iter().map(|it| it.name).collect();
    let both = |pair: &[Side<'_>; 2]| -> Vec<Option<[f64; 2]>> {
        FIGURES.iter().map(|it| Some([(it.of)(&pair[0])?, (it.of)(&pair[1])?])).collect()
    };
    let over = |of: fn([f64; 2]) -> f64| {
        means(&pairs, &names, |pair| {
            both(pair).into_iter().map(|it| -> Term { Some((of(it?), 1.0)) }).collect()
        })
    };
    let (first, second) = (over(|it| it[0]), over(|it| it[1]));
    let mut difference = over(|it| it[0] - it[1]);
    let differences = FIGURES.iter().map(|it| Difference {
        name: it.name,
        title: it.title,
        first: first.get(it.name).and_then(|it| it.value),
        second: second.get(it.name).and_then(|it| it.value),
        difference: difference.remove(it.name).unwrap_or_default(),
    });
    let tasks: BTreeSet<(&str, &str)> =
        pairs.iter().map(|it| (it.1[0].row.trial.suite(), it.1[0].row.trial.task())).collect();
    let sources: BTreeSet<&str> = pairs.iter().map(|it| it.0).collect();
    Ok(Comparison {
        run: rows.record.name.clone(),
        methods: methods.map(str::to_owned),
        pairs: pairs.len() as u64,
        tasks: tasks.len() as u64,
        sources: sources.len() as u64,
        differences: differences.collect(),
        not_final: rows.not_final(),
        problems: rows.problems.iter().chain(&behaviours.problems).cloned().collect(),
    })
}

impl Comparison {
    /// A line per figure.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record([
            "first",
            "second",
            "figure",
            "pairs",
            "first_mean",
            "second_mean",
            "difference",
            "low",
            "high",
        ])?;
        let [first, second] = &self.methods;
        for it in &self.differences {
            let [low, high] = it.difference.interval.map_or([None; 2], |it| it.map(Some));
            let (pairs, difference) = (it.difference.denominator, it.difference.value);
            writer.serialize((first, second, it.name, pairs, it.first, it.second, difference, low, high))?;
        }
        writer.flush()
    }
}
