//! Calls as rows of a table, for CSV and Parquet alike.

use std::borrow::Cow;

use crate::{Call, Moment, Trace};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text.
    Text,
    /// Whole numbers.
    Int,
    /// True or false.
    Bool,
}

/// A column: its name and what it holds. Any cell may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Of a text column.
    Text(Option<Cow<'a, str>>),
    /// Of a column of whole numbers.
    Int(Option<i64>),
    /// Of a column of true and false.
    Bool(bool),
}

const fn column(name: &'static str, kind: ColumnKind) -> Column {
    Column { name, kind }
}

/// The columns, in order.
pub const COLUMNS: [Column; 23] = [
    column("trace", ColumnKind::Text),
    column("id", ColumnKind::Text),
    column("seq", ColumnKind::Int),
    column("turn", ColumnKind::Int),
    column("agent", ColumnKind::Text),
    column("parent", ColumnKind::Text),
    column("nesting", ColumnKind::Text),
    column("polls", ColumnKind::Text),
    column("tool", ColumnKind::Text),
    column("kind", ColumnKind::Text),
    column("command", ColumnKind::Text),
    column("path", ColumnKind::Text),
    column("status", ColumnKind::Text),
    column("exit_code", ColumnKind::Int),
    column("issued_ms", ColumnKind::Int),
    column("start_ms", ColumnKind::Int),
    column("start_by", ColumnKind::Text),
    column("end_ms", ColumnKind::Int),
    column("end_by", ColumnKind::Text),
    column("duration_ms", ColumnKind::Int),
    column("output_bytes", ColumnKind::Int),
    column("truncated", ColumnKind::Bool),
    column("images", ColumnKind::Int),
];

/// The row of a call; `label` names its trace.
pub fn row<'a>(label: &'a str, call: &'a Call) -> [Cell<'a>; COLUMNS.len()] {
    let text = |text: &'a str| Cell::Text(Some(Cow::Borrowed(text)));
    let maybe = |text: Option<&'a str>| Cell::Text(text.map(Cow::Borrowed));
    let ms = |at: Option<Moment>| Cell::Int(at.map(|it| it.ms));
    let by = |at: Option<Moment>| Cell::Text(at.map(|it| word(&it.by)));
    let int = |number: u64| Cell::Int(Some(i64::try_from(number).unwrap_or(i64::MAX)));
    [
        text(label),
        text(&call.id.0),
        int(u64::from(call.seq)),
        int(u64::from(call.turn)),
        maybe(call.agent.as_deref()),
        maybe(call.parent.as_ref().map(|it| it.0.as_str())),
        Cell::Text(Some(word(&call.nesting))),
        maybe(call.polls.as_ref().map(|it| it.0.as_str())),
        text(&call.name),
        Cell::Text(Some(word(&call.kind()))),
        Cell::Text(call.command().map(Cow::Owned)),
        maybe(call.path()),
        Cell::Text(Some(word(&call.status))),
        Cell::Int(call.exit_code.map(i64::from)),
        ms(call.issued),
        ms(call.start),
        by(call.start),
        ms(call.end),
        by(call.end),
        Cell::Int(call.duration_ms().map(|it| i64::try_from(it).unwrap_or(i64::MAX))),
        int(call.output_bytes),
        Cell::Bool(call.truncated),
        int(call.images.len() as u64),
    ]
}

/// The word by which an enum is written.
fn word<'a>(value: &impl serde::Serialize) -> Cow<'a, str> {
    let written = value.serialize(serde_json::value::Serializer).unwrap_or_default();
    Cow::Owned(written.as_str().unwrap_or_default().to_owned())
}

/// A text as a cell of CSV: an apostrophe before what a spreadsheet would take for a formula. Agents choose these texts.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// All calls of some traces, each with its label, as CSV with a head.
pub fn to_csv<'a>(traces: impl IntoIterator<Item = (&'a str, &'a Trace)>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.map(|column| column.name))?;
    for (label, trace) in traces {
        for call in &trace.calls {
            writer.write_record(row(label, call).map(|cell| match cell {
                Cell::Text(text) => harmless(&text.unwrap_or_default()).into_owned(),
                Cell::Int(number) => number.map(|it| it.to_string()).unwrap_or_default(),
                Cell::Bool(is) => is.to_string(),
            }))?;
        }
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for text in ["=1+1", "+1", "-2", "@x", "\t=1", "\r=1"] {
            assert_eq!(harmless(text), format!("'{text}"));
        }
        for text in ["", "a=1", "1-2", "'x"] {
            assert!(matches!(harmless(text), Cow::Borrowed(same) if same == text));
        }
    }
}
