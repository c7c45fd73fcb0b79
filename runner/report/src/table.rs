//! A run in short, as tables in a terminal.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{ColumnConstraint, ContentArrangement, Table};
use proctor_traces::Millis;

use crate::sheet::{Line, Sheet};
use crate::{RenderState, RunSummary, TrialLine};

/// Runs with at most so many trials show each of them.
const TRIALS_SHOWN: usize = 60;

impl RunSummary {
    /// The tables: trials if they are few, and methods.
    pub fn table(&self) -> String {
        let mut parts = Vec::new();
        if self.trials.len() <= TRIALS_SHOWN && !self.trials.is_empty() {
            parts.push(self.trial_table().text());
        }
        parts.push(self.method_table().text());
        parts.join("\n\n")
    }

    fn trial_table(&self) -> Sheet {
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
        let mut table = Sheet { words: 2, whole_names: true, ..Sheet::new("", &head) };
        for it in &self.trials {
            let cells = vec![
                ending(it),
                picture(&it.render).to_owned(),
                seconds(it.agent_ms),
                it.overrun_ms.map_or_else(dash, |ms| ms.to_string()),
                it.tool_calls.to_string(),
                it.exchanges.to_string(),
                it.tokens.to_string(),
                it.versions.to_string(),
            ];
            table.lines.push(Line::Cells(it.trial.to_string(), cells));
        }
        table
    }

    fn method_table(&self) -> Sheet {
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
        let mut table = Sheet { whole_names: true, ..Sheet::new("", &head) };
        for it in &self.methods {
            let counts = [
                it.registered,
                it.completed,
                it.timed_out,
                it.recovered,
                it.other_failures,
                it.unresolved,
                it.rendered,
            ];
            let mut cells: Vec<String> = counts.iter().map(ToString::to_string).collect();
            cells.push(it.mean_agent_ms.map_or_else(dash, seconds));
            table.lines.push(Line::Cells(it.method.to_string(), cells));
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
    // The first column has names, which are what one looks for: what stands beside them makes room.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
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
