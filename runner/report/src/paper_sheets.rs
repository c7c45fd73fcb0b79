//! Tables of scores for people, and as lines of CSV.

use std::io::{self, Write};

use serde::Serialize;

use crate::figures::Mean;
use crate::paper::{SCORES, ScoreLine, ScoreTable};
use crate::report::Report;
use crate::sheet::{Line, Sheet};
use crate::tables::{dash, percent};
use crate::words::counted;

/// So many unscored trials are named in a table; the data name all.
const NAMED: usize = 40;

impl ScoreTable {
    fn heading(&self) -> String {
        match self.number {
            Some(number) => format!("Table {number}. {}", self.title),
            None => self.title.clone(),
        }
    }

    fn sheet(&self) -> Sheet {
        if self.is_of_denominators() {
            return self.denominators();
        }
        let mut head = vec!["method", "comp.\nmean s"];
        head.extend(SCORES.iter().map(|(_, name)| *name));
        let mut sheet = Sheet::new(&self.heading(), &head);
        for line in &self.lines {
            let within = line.completed.value.map_or_else(dash, |it| format!("{} %", percent(it)));
            let time = line.time_s.value.map_or_else(dash, |it| format!("{it:.0}"));
            let cells = SCORES.iter().map(|(score, _)| line.cell(score));
            let all = std::iter::once(format!("{within}\n{time}")).chain(cells).collect();
            sheet.lines.push(Line::Cells(line.label(), all));
            if line.unresolved > 0 {
                let cells = SCORES.iter().map(|(score, _)| mean(&line.auto_zero_resolved[score]));
                let all = std::iter::once(String::new()).chain(cells).collect();
                sheet.lines.push(Line::Cells("  without U".to_owned(), all));
            }
        }
        sheet
    }

    fn denominators(&self) -> Sheet {
        let mut head = vec!["method", "E", "J + R", "of it R"];
        head.extend(SCORES.iter().map(|(_, name)| *name));
        let mut sheet = Sheet::new(&self.heading(), &head);
        for line in &self.lines {
            let counts = [line.registered, line.scored, line.recovered].map(|it| it.to_string());
            let both = SCORES.iter().map(|(score, _)| {
                format!(
                    "{:.0}/{:.0}",
                    line.auto_zero[score].denominator, line.completed_only[score].denominator
                )
            });
            sheet.lines.push(Line::Cells(line.label(), counts.into_iter().chain(both).collect()));
        }
        sheet.notes.push("Scoring points (VQ, DQ: trials) that the scores are divided by: auto-zero, with execution failures, before the stroke; completed-only, the scored ones, behind it. Both have what was recovered after its deadline.".into());
        sheet
    }
}

impl ScoreLine {
    fn label(&self) -> String {
        let control = if self.control.is_some() { " (control)" } else { "" };
        let open = if self.unresolved > 0 { " †" } else { "" };
        format!("{}{control}{open}", self.method)
    }

    /// Both populations, the values above and what they are divided by below.
    fn cell(&self, score: &str) -> String {
        let (all, scored) = (&self.auto_zero[score], &self.completed_only[score]);
        if all.value.is_none() && scored.value.is_none() {
            return dash();
        }
        let best = if self.best.contains(&score) { "*" } else { "" };
        format!("{}{best}/{}\n{:.0}/{:.0}", value(all), value(scored), all.denominator, scored.denominator)
    }
}

fn value(it: &Mean) -> String {
    it.value.map_or_else(dash, |it| format!("{it:.3}"))
}

fn mean(it: &Mean) -> String {
    if it.value.is_none() { dash() } else { format!("{}\n{:.0}", value(it), it.denominator) }
}

impl Report {
    /// The tables as sheets, with one of what is unscored.
    pub fn score_sheets(&self, tables: &[ScoreTable]) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = tables.iter().map(ScoreTable::sheet).collect();
        if let Some(last) = sheets.last_mut() {
            last.notes.extend(self.how_to_read());
        }
        if !self.unresolved_trials.is_empty() {
            sheets.push(self.unscored());
        }
        sheets
    }

    fn how_to_read(&self) -> [String; 2] {
        let points = &self.points;
        [
            "Scores: auto-zero (all of E, what is not scored is zero)/completed-only (J and R), above what each is divided by: points, for VQ and DQ trials. * is the best auto-zero of its column; completed-only is not ranked, since methods are scored on different tasks. comp.: completed within the budget; recovered outputs are in both scores, and not in it. † has unresolved trials, which are zero in auto-zero; the line below leaves them out.".to_owned(),
            format!(
                "The marks tell the points of {}: {} Direct, {} Derived, {} Invariant. {} without Derived points, not counted in Derived.",
                counted(points.tasks, "task"),
                points.points[0],
                points.points[1],
                points.points[2],
                counted(points.without_derived, "task"),
            ),
        ]
    }

    fn unscored(&self) -> Sheet {
        let mut sheet = Sheet {
            words: 1,
            whole_names: true,
            ..Sheet::new(
                &format!("Unscored: {}", counted(self.unresolved_trials.len(), "trial")),
                &["trial", "why"],
            )
        };
        for it in self.unresolved_trials.iter().take(NAMED) {
            let why = format!("{:?}", it.why).to_lowercase();
            sheet.lines.push(Line::Cells(it.trial.clone(), vec![why]));
        }
        let more = self.unresolved_trials.len().saturating_sub(NAMED);
        if more > 0 {
            sheet.notes.push(format!("And {more} more; --json names all."));
        }
        sheet
    }
}

/// A score in one line.
#[derive(Serialize)]
struct CsvLine<'a> {
    table: Option<u8>,
    by: &'a str,
    group: &'a str,
    method: &'a str,
    control: bool,
    population: &'a str,
    score: &'a str,
    numerator: f64,
    denominator: f64,
    value: Option<f64>,
    best: bool,
}

/// Writes tables of scores: one line for each method, population and score.
pub fn write_score_tables(tables: &[ScoreTable], to: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for table in tables {
        for line in &table.lines {
            let populations = [
                ("auto_zero", &line.auto_zero),
                ("auto_zero_resolved", &line.auto_zero_resolved),
                ("completed_only", &line.completed_only),
            ];
            for (population, scores) in populations {
                for (score, _) in SCORES {
                    let it = &scores[score];
                    writer.serialize(CsvLine {
                        table: table.number,
                        by: table.by.map_or("", crate::Grouping::as_str),
                        group: table.group.as_deref().unwrap_or_default(),
                        method: &line.method,
                        control: line.control.is_some(),
                        population,
                        score,
                        numerator: it.numerator,
                        denominator: it.denominator,
                        value: it.value,
                        best: population == "auto_zero" && line.best.contains(&score),
                    })?;
                }
            }
        }
    }
    writer.flush()
}
