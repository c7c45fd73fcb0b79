//! Measurements, their medians, and the table that they make.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::{Bench, Outcome};

/// Single measurements of one kind, in one unit.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push_ms(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1000.0);
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p90(&self) -> f64 {
        self.quantile(0.9)
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    /// Interpolated between the two nearest; not a number if there is nothing.
    fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
        #[expect(clippy::cast_precision_loss, reason = "there are few measurements")]
        let place = q * last as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index, rounded down")]
        let below = place as usize;
        let above = (below + 1).min(last);
        sorted[below] + (sorted[above] - sorted[below]) * place.fract()
    }
}

/// A comparison, or a figure that stands alone.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// Unit of the measurements.
    pub(crate) unit: &'static str,
    /// The yardstick, if there is one.
    pub(crate) bare: Option<Samples>,
    /// Ours.
    pub(crate) ours: Samples,
    /// What is aimed at.
    pub(crate) aim: Option<Aim>,
    /// What should be known beside it.
    pub(crate) remark: String,
}

/// The most that a figure should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    /// Ratio of the medians.
    Ratio(f64),
    /// Median and 90th percentile.
    Spread {
        /// Of the median.
        median: f64,
        /// Of the 90th percentile.
        p90: f64,
    },
    /// The largest measurement.
    Max(f64),
}

impl Row {
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.bare.as_ref().map(|bare| self.ours.median() / bare.median())
    }

    fn is_met(&self) -> Option<bool> {
        Some(match self.aim? {
            Aim::Ratio(most) => self.ratio()? <= most,
            Aim::Spread { median, p90 } => self.ours.median() <= median && self.ours.p90() <= p90,
            Aim::Max(most) => self.ours.max() <= most,
        })
    }

    fn cells(&self) -> [String; 7] {
        let spread = |it: &Samples| format!("{:.0} / {:.0}", it.median(), it.p90());
        let aim = match self.aim {
            None => String::new(),
            Some(Aim::Ratio(most)) => format!("ratio ≤ {most}"),
            Some(Aim::Spread { median, p90 }) => format!("≤ {median} / {p90}"),
            Some(Aim::Max(most)) => format!("each ≤ {most}"),
        };
        let verdict = match self.is_met() {
            None => String::new(),
            Some(true) => format!("{aim}: met"),
            Some(false) => format!("{aim}: MISSED"),
        };
        [
            format!("{} [{}]", self.what, self.unit),
            self.bare.as_ref().map(spread).unwrap_or_default(),
            spread(&self.ours),
            self.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            verdict,
            self.ours.count().to_string(),
            self.remark.clone(),
        ]
    }
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Version of the engine.
    engine: String,
    /// Processors.
    processors: i64,
    /// The image.
    image: String,
    /// Bytes of the program.
    program_bytes: u64,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) async fn new(bench: &Bench) -> Outcome<Self> {
        let facts = bench.sandbox.facts().await?;
        Ok(Self {
            engine: facts.version,
            processors: facts.processors,
            image: bench.image.reference.clone(),
            program_bytes: std::fs::metadata(&bench.proctor)?.len(),
            rows: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub(crate) fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED);
        table.set_header(["what", "bare: median / p90", "proctor", "ratio", "aim", "n", "remark"]);
        for row in &self.rows {
            table.add_row(row.cells());
        }
        let mut text = table.to_string();
        let megabytes = self.program_bytes >> 20;
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nengine {}, {} processors, image {}, program {megabytes} MiB",
            self.engine, self.processors, self.image
        );
        text
    }
}
