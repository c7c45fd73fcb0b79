//! A trace in the forms of others.

mod atif;
mod otlp;
mod perfetto;
mod steps;
mod table;

pub use table::{COLUMNS, Cell, Column, ColumnKind, harmless, row, to_csv};

use serde_json::Value;

use crate::{Timestamp, Trace};

impl Trace {
    /// As a trajectory of ATIF v1.8. `name` stands for the agent where the sources do not tell its name.
    pub fn to_atif(&self, name: &str) -> Value {
        atif::trajectory(self, name)
    }

    /// As OTLP JSON: spans by the semantic conventions of OpenTelemetry for generative AI. `label` names the trace.
    pub fn to_otlp(&self, label: &str) -> Value {
        otlp::export(self, label)
    }

    /// As trace events of Chrome, which Perfetto shows. `label` names the process.
    pub fn to_perfetto(&self, label: &str) -> Value {
        perfetto::export(self, label)
    }

    /// Wall time of a millisecond of the trace.
    fn wall(&self, ms: i64) -> Option<Timestamp> {
        self.zero.map(|zero| Timestamp::from_millis(zero.as_millis().saturating_add(ms)))
    }
}
