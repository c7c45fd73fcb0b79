//! The tables of scores as VAO-Bench prints them (its Tables 1 and 14 to 31), with both populations side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::Serialize;

use crate::accounting::Class;
use crate::figures::{Figures, Mean, Rate};
use crate::report::{Control, Grouping, Report};

/// The five scores, as they are named in the data and in the head of a table.
pub(crate) const SCORES: [(&str, &str); 5] = [
    ("direct", "Direct"),
    ("derived", "Derived"),
    ("invariant", "Invariant"),
    ("visual_quality", "VQ"),
    ("domain_quality", "DQ"),
];

/// Groups in the paper's order: each as the data name it, and as the paper does.
type Groups = &'static [(&'static str, &'static str)];

/// Tables 14 to 22.
const CATEGORIES: Groups = &[
    ("business_webpage", "Business webpages"),
    ("scientific_document", "Scientific documents"),
    ("dashboard", "Interactive dashboards"),
    ("flowchart", "Flowcharts and workflows"),
    ("architecture", "Systems and architecture diagrams"),
    ("circuit", "Circuits and logic diagrams"),
    ("statistical_chart", "Scientific statistical charts"),
    ("mathematical_figure", "Mathematics and geometry"),
    ("chemical_diagram", "Chemical diagrams"),
];

/// Tables 24 to 26.
const DIFFICULTIES: Groups = &[("easy", "Easy tasks"), ("medium", "Medium tasks"), ("hard", "Hard tasks")];

/// Tables 27 to 31.
const MODES: Groups = &[
    ("html", "HTML rendering"),
    ("dot", "DOT rendering"),
    ("tikz", "TikZ rendering"),
    ("circuitikz", "CircuitikZ rendering"),
    ("python", "Python rendering"),
];

/// The number of the table of denominators.
const DENOMINATORS: u8 = 23;

/// Which tables are wanted, by the paper's numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNumbers {
    numbers: BTreeSet<u8>,
    operations: bool,
}

/// Words that name no table.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no table of scores: they are 1, 14 to 31 (as in `1,14-22`), and `operations`")]
pub struct NoTable {
    text: String,
}

impl TableNumbers {
    /// All that there are.
    pub fn all() -> Self {
        Self { numbers: std::iter::once(1).chain(14..=31).collect(), operations: true }
    }

    /// What the tables are made by.
    pub fn groupings(&self) -> Vec<Grouping> {
        let any = |range: std::ops::RangeInclusive<u8>| self.numbers.range(range).next().is_some();
        let wanted = [
            (Grouping::Category, any(14..=22)),
            (Grouping::Difficulty, any(24..=26)),
            (Grouping::Mode, any(27..=31)),
            (Grouping::Operation, self.operations),
        ];
        wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(by, _)| by).collect()
    }
}

impl FromStr for TableNumbers {
    type Err = NoTable;

    fn from_str(text: &str) -> Result<Self, NoTable> {
        let mut wanted = Self { numbers: BTreeSet::new(), operations: false };
        for part in text.split(',').map(str::trim) {
            let none = || NoTable { text: part.chars().take(40).collect() };
            if part == "operations" {
                wanted.operations = true;
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u8>().map_err(|_| none());
            let range = number(first)?..=number(last)?;
            let all = Self::all().numbers;
            if range.is_empty() || !range.clone().all(|it| all.contains(&it)) {
                return Err(none());
            }
            wanted.numbers.extend(range);
        }
        Ok(wanted)
    }
}

/// A table of scores: one line for each method.
#[derive(Clone, Debug, Serialize)]
pub struct ScoreTable {
    /// The paper's number; none for what the paper does not break down.
    pub number: Option<u8>,
    /// Its title.
    pub title: String,
    /// What the tasks are grouped by; none for all of them.
    pub by: Option<Grouping>,
    /// Which of the groups.
    pub group: Option<String>,
    /// The methods; controls are last.
    pub lines: Vec<ScoreLine>,
}

/// A method in a table of scores.
#[derive(Clone, Debug, Serialize)]
pub struct ScoreLine {
    /// The method.
    pub method: String,
    /// Whether it is a control.
    pub control: Option<Control>,
    /// |E|.
    pub registered: u64,
    /// |J ∪ R|: scored, what was recovered after its deadline included.
    pub scored: u64,
    /// |R|.
    pub recovered: u64,
    /// |U|: while there is any, no figure of this line is final.
    pub unresolved: u64,
    /// Normally completed, of E; what was recovered is not in it.
    pub completed: Rate,
    /// Mean time in seconds.
    pub time_s: Mean,
    /// Over E, where what is not scored is zero; by score.
    pub auto_zero: BTreeMap<&'static str, Mean>,
    /// The same without U.
    pub auto_zero_resolved: BTreeMap<&'static str, Mean>,
    /// Over J ∪ R. Never ranked: methods are scored on different tasks.
    pub completed_only: BTreeMap<&'static str, Mean>,
    /// Scores in which no other method of the table has a higher auto-zero; controls are not ranked.
    pub best: Vec<&'static str>,
}

/// What the tasks of a run are marked on, as far as marks tell (the paper's Table 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskPoints {
    /// Tasks whose points are known.
    pub tasks: u64,
    /// Their Direct, Derived and Invariant points.
    pub points: [u64; 3],
    /// Tasks without Derived points: they do not count in Derived.
    pub without_derived: u64,
}

impl Report {
    /// The tables that are wanted. The report must have been made by what they are grouped by
    /// ([`TableNumbers::groupings`]). The table of denominators is that of all tasks.
    pub fn score_tables(&self, wanted: &TableNumbers) -> Vec<ScoreTable> {
        let mut tables = Vec::new();
        let overall = |number, title: &str| ScoreTable {
            number: Some(number),
            title: title.to_owned(),
            by: None,
            group: None,
            lines: lines(self.methods.iter().map(|it| (it.method.as_str(), it.control, &it.figures))),
        };
        if wanted.numbers.contains(&1) {
            tables.push(overall(1, "All tasks"));
        }
        let by_paper: [(Grouping, u8, Groups); 3] = [
            (Grouping::Category, 14, CATEGORIES),
            (Grouping::Difficulty, 24, DIFFICULTIES),
            (Grouping::Mode, 27, MODES),
        ];
        for (by, first, known) in by_paper {
            if by == Grouping::Difficulty && wanted.numbers.contains(&DENOMINATORS) {
                tables.push(overall(DENOMINATORS, "Overall scoring-point denominators"));
            }
            if wanted.groupings().contains(&by) {
                for (number, (group, title)) in (first..).zip(known) {
                    if wanted.numbers.contains(&number) {
                        tables.extend(self.group_table(by, group, Some(number), title));
                    }
                }
                // What the paper does not have is shown all the same, so that the tables hold all tasks.
                let others = self.groups_by(by).into_iter().filter(|it| known.iter().all(|(id, _)| id != it));
                tables.extend(others.filter_map(|it| self.group_table(by, it, None, it)));
            }
        }
        if wanted.operations {
            let all = self.groups_by(Grouping::Operation).into_iter();
            tables.extend(all.filter_map(|it| self.group_table(Grouping::Operation, it, None, it)));
        }
        tables
    }

    fn groups_by(&self, by: Grouping) -> BTreeSet<&str> {
        self.groups.iter().filter(|it| it.by == by).map(|it| it.group.as_str()).collect()
    }

    /// None if no task of the report is in the group.
    fn group_table(&self, by: Grouping, group: &str, number: Option<u8>, title: &str) -> Option<ScoreTable> {
        let mine = self.groups.iter().filter(|it| it.by == by && it.group == group);
        let lines = lines(mine.map(|it| (it.method.as_str(), it.control, &it.figures)));
        let title = match (number, title) {
            (Some(_), title) => title.to_owned(),
            (None, "") => format!("No {}", by.as_str()),
            (None, title) => format!("{} `{title}`", capital(by.as_str())),
        };
        (!lines.is_empty()).then(|| ScoreTable {
            number,
            title,
            by: Some(by),
            group: Some(group.to_owned()),
            lines,
        })
    }
}

impl ScoreTable {
    /// Whether it is the table of denominators.
    pub(crate) fn is_of_denominators(&self) -> bool {
        self.number == Some(DENOMINATORS)
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn lines<'a>(methods: impl Iterator<Item = (&'a str, Option<Control>, &'a Figures)>) -> Vec<ScoreLine> {
    rank(methods.map(|(name, control, it)| line(name, control, it)).collect())
}

/// Puts controls last, and marks the best.
fn rank(mut lines: Vec<ScoreLine>) -> Vec<ScoreLine> {
    lines.sort_by_key(|it| it.control.is_some());
    for (score, _) in SCORES {
        let value =
            |it: &ScoreLine| it.auto_zero.get(score).and_then(|it| it.value).filter(|_| it.control.is_none());
        let Some(best) = lines.iter().filter_map(value).max_by(f64::total_cmp) else { continue };
        for line in &mut lines {
            if value(line).is_some_and(|it| it.total_cmp(&best).is_eq()) {
                line.best.push(score);
            }
        }
    }
    lines
}

fn line(method: &str, control: Option<Control>, it: &Figures) -> ScoreLine {
    let mean = |name: &str| it.means.get(name).copied().unwrap_or_default();
    let population =
        |of: &str| SCORES.iter().map(|(name, _)| (*name, mean(&format!("{of}_{name}")))).collect();
    let class = |class| it.classes.get(&class).copied().unwrap_or_default();
    ScoreLine {
        method: method.to_owned(),
        control,
        registered: it.registered,
        scored: class(Class::J) + class(Class::R),
        recovered: class(Class::R),
        unresolved: class(Class::U),
        completed: it.completed,
        time_s: mean("time_s"),
        auto_zero: population("auto_zero"),
        auto_zero_resolved: population("auto_zero_resolved"),
        completed_only: population("completed_only"),
        best: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_by_the_papers_numbers() {
        let of = |text: &str| text.parse::<TableNumbers>();
        let some = of("1, 14-16,operations").unwrap();
        assert_eq!((some.numbers, some.operations), (BTreeSet::from([1, 14, 15, 16]), true));
        assert_eq!(of("1,14-31,operations"), Ok(TableNumbers::all()));
        assert_eq!(of("23").unwrap().groupings(), []);
        assert_eq!(of("22-24").unwrap().groupings(), [Grouping::Category, Grouping::Difficulty]);
        for none in ["", "2", "13-14", "31-14", "14-", "1-14", "999", "x"] {
            assert!(of(none).is_err(), "{none}");
        }
    }

    fn scored(name: &str, direct: [f64; 2], control: Option<Control>) -> ScoreLine {
        let mean = |[numerator, denominator]: [f64; 2]| Mean {
            numerator,
            denominator,
            value: (denominator > 0.0).then(|| numerator / denominator),
            interval: None,
        };
        let mut line = line(name, control, &Figures::default());
        line.auto_zero.insert("direct", mean(direct));
        line
    }

    #[test]
    fn the_best_are_marked_and_controls_are_none_of_them() {
        let of = |lines: Vec<ScoreLine>| {
            let marked = rank(lines);
            marked.into_iter().filter(|it| it.best == ["direct"]).map(|it| it.method).collect::<Vec<_>>()
        };
        let oracle = || scored("oracle", [9.0, 9.0], Some(Control::Oracle));
        assert_eq!(
            of(vec![oracle(), scored("a", [2.0, 6.0], None), scored("b", [3.0, 9.0], None)]),
            ["a", "b"]
        );
        assert_eq!(of(vec![scored("a", [2.0, 6.0], None), scored("b", [0.0, 0.0], None)]), ["a"]);
        assert_eq!(of(vec![oracle()]), [""; 0]);
    }
}
