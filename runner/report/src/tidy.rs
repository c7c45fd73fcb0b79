//! A report as CSV: one line per figure, per trial, and per step of a curve, for whatever computes further.

use std::io::{self, Write};
use std::path::Path;

use proctor_store::{StoreError, write_in_pieces};
use serde::Serialize;

use crate::accounting::Verdict;
use crate::curve::Curve;
use crate::figures::{Figures, Mean, Rate};
use crate::report::Report;
use crate::row::{Rows, float};

/// A figure in one line.
#[derive(Serialize)]
struct FigureLine<'a> {
    by: &'a str,
    group: &'a str,
    method: &'a str,
    control: bool,
    figure: &'a str,
    numerator: f64,
    denominator: Option<f64>,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

impl Report {
    /// Writes `figures.csv`, `curve.csv` and `trials.csv` into a folder.
    pub fn write_csv(&self, folder: &Path, rows: &Rows, verdicts: &[Verdict]) -> Result<(), StoreError> {
        std::fs::create_dir_all(folder).map_err(|source| StoreError::Io {
            action: "creating",
            path: folder.to_owned(),
            source,
        })?;
        write_in_pieces(&folder.join("figures.csv"), |to| self.write_figures(to))?;
        write_in_pieces(&folder.join("curve.csv"), |to| write_curves(&self.curves, to))?;
        write_in_pieces(&folder.join("trials.csv"), |to| {
            let mut writer = csv::Writer::from_writer(to);
            for (row, verdict) in rows.rows.iter().zip(verdicts) {
                writer.serialize(rows.fields(row, verdict))?;
            }
            writer.flush()
        })
    }

    fn write_figures(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        for it in &self.methods {
            lines(&mut writer, ["", "", &it.method], it.control.is_some(), &it.figures)?;
        }
        for it in &self.groups {
            let names = [it.by.as_str(), &it.group, &it.method];
            lines(&mut writer, names, it.control.is_some(), &it.figures)?;
        }
        writer.flush()
    }
}

/// The steps of curves.
pub fn write_curves(curves: &[Curve], to: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    writer.write_record(["method", "agent_s", "completed", "registered", "rate"])?;
    for curve in curves {
        let whole = curve.completed.denominator;
        let last = (curve.budget_s, curve.completed.numerator);
        for (time, count) in std::iter::once((0.0, 0)).chain(curve.steps.iter().copied()).chain([last]) {
            let rate = if whole > 0 { float(count) / float(whole) } else { 0.0 };
            writer.serialize((&curve.method, time, count, whole, rate))?;
        }
    }
    writer.flush()
}

fn lines(
    writer: &mut csv::Writer<&mut dyn Write>,
    [by, group, method]: [&str; 3],
    control: bool,
    it: &Figures,
) -> io::Result<()> {
    let mut line = |figure: &str, numerator, denominator, value, interval: Option<[f64; 2]>| {
        let [low, high] = interval.map_or([None, None], |it| it.map(Some));
        let line =
            FigureLine { by, group, method, control, figure, numerator, denominator, value, low, high };
        writer.serialize(line).map_err(io::Error::from)
    };
    let rates: [(&str, &Rate); 6] = [
        ("completed", &it.completed),
        ("completed_with_recovery", &it.completed_with_recovery),
        ("timeouts", &it.timeouts),
        ("failures", &it.failures),
        ("unresolved", &it.unresolved),
        ("completed_unthrottled", &it.completed_unthrottled),
    ];
    for (name, rate) in rates {
        line(name, float(rate.numerator), Some(float(rate.denominator)), rate.value, rate.interval)?;
    }
    let registered = Some(float(it.registered));
    let mut count = |name: &str, count: u64| line(name, float(count), registered, None, None);
    for (class, number) in &it.classes {
        count(&format!("class_{class:?}"), *number)?;
    }
    for (cause, number) in &it.failures_by_cause {
        count(&format!("failures_{}", format!("{cause:?}").to_lowercase()), *number)?;
    }
    for (why, number) in &it.unresolved_by_reason {
        count(&format!("unresolved_{}", format!("{why:?}").to_lowercase()), *number)?;
    }
    for (name, number) in [
        ("salvageable", it.salvageable),
        ("rendered", it.rendered),
        ("throttled", it.throttled),
        ("superseded", it.superseded),
    ] {
        count(name, number)?;
    }
    for (name, Mean { numerator, denominator, value, interval }) in &it.means {
        line(name, *numerator, Some(*denominator), *value, *interval)?;
    }
    Ok(())
}
