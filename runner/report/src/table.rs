//! A run in short, as tables in a terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use proctor_traces::Millis;

use crate::{RenderState, RunSummary, TrialLine};

/// Runs with at most so many trials show each of them.
const TRIALS_SHOWN: usize = 60;

impl RunSummary {
    /// The tables: trials if they are few, and methods.
    pub fn table(&self) -> String {
        let mut parts = Vec::new();
        if self.trials.len() <= TRIALS_SHOWN && !self.trials.is_empty() {
            parts.push(self.trial_table().to_string());
        }
        parts.push(self.method_table().to_string());
        parts.join("\n\n")
    }

    fn trial_table(&self) -> Table {
        let head = [
            "trial",
            "ending",
            "picture",
            "agent s",
            "overrun ms",
            "calls",
            "requests",
            "tokens",
            "versions",
        ];
        let mut table = headed_table(&head);
        for it in &self.trials {
            let numbers = [
                seconds(it.agent_ms),
                it.overrun_ms.map_or_else(dash, |ms| ms.to_string()),
                it.tool_calls.to_string(),
                it.exchanges.to_string(),
                it.tokens.to_string(),
                it.versions.to_string(),
            ];
            let mut row = vec![Cell::new(&it.trial), Cell::new(ending(it)), Cell::new(picture(&it.render))];
            row.extend(numbers.map(right));
            table.add_row(row);
        }
        table
    }

    fn method_table(&self) -> Table {
        let head = [
            "method",
            "trials",
            "completed",
            "timed out",
            "recovered",
            "failed",
            "unresolved",
            "rendered",
            "mean s",
        ];
        let mut table = headed_table(&head);
        for it in &self.methods {
            let mut row = vec![Cell::new(&it.method)];
            let counts = [
                it.registered,
                it.completed,
                it.timed_out,
                it.recovered,
                it.other_failures,
                it.unresolved,
                it.rendered,
            ];
            row.extend(counts.map(|count| right(count.to_string())));
            row.push(right(it.mean_agent_ms.map_or_else(dash, seconds)));
            table.add_row(row);
        }
        table
    }
}

/// An empty table with this head, in the style of all of proctor's tables.
pub fn headed_table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(head);
    // Some terminals say that they have no width, and all have more than this.
    if table.width().is_some_and(|width| width < 40) {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn seconds(time: Millis) -> String {
    format!("{:.1}", time.as_secs_f64())
}

fn dash() -> String {
    "–".to_owned()
}

fn ending(line: &TrialLine) -> String {
    match line.tries {
        1 => line.ending.name().to_owned(),
        tries => format!("{} (try {tries})", line.ending.name()),
    }
}

fn picture(state: &RenderState) -> &str {
    match state {
        RenderState::NoArtifact => "–",
        RenderState::NotTried => "not tried",
        RenderState::Rendered => "rendered",
        RenderState::Failed(why) => why,
    }
}
