//! Two methods side by side, as a table.

use crate::contrast::{Cluster, Contrast, Pairs, ScoreContrast};
use crate::sheet::{Line, Sheet};
use crate::tables::dash;
use crate::words::{counted, of_pixels};

impl Contrast {
    /// The table.
    pub fn sheet(&self) -> Sheet {
        let [first, second] = &self.methods;
        let title = format!("{first} (first) and {second} (second) on {}", counted(self.tasks, "task"));
        let head = ["score", "first", "second", "difference\n95 %", "p", "wins", "losses", "ties"];
        let mut sheet = Sheet::new(&title, &head);
        for (pairs, section) in [
            (Pairs::AutoZero, "auto-zero: what is not scored is zero"),
            (Pairs::BothScored, "where both are scored"),
        ] {
            let lines: Vec<&ScoreContrast> = self.scores.iter().filter(|it| it.pairs == pairs).collect();
            if !lines.is_empty() {
                sheet.lines.push(Line::Section(section.to_owned()));
            }
            sheet.lines.extend(lines.into_iter().map(ScoreContrast::line));
        }
        let clusters = match self.cluster {
            Cluster::Source => "source artifacts",
            Cluster::Task => "tasks",
        };
        let left_out = match self.left_out {
            0 => String::new(),
            some => {
                format!(" {some} of {} left out: one of the two is unresolved.", counted(self.pairs, "pair"))
            }
        };
        let judges = match self.judges.as_slice() {
            [] => "Nobody has judged this run.".to_owned(),
            judges => {
                let remark = of_pixels(judges.iter().map(String::as_str));
                format!("Marked by {}.{remark}", judges.join(" and "))
            }
        };
        sheet.notes.push(format!("{judges}{left_out}"));
        sheet.notes.push(format!(
            "Difference: first less second. Its interval is that of a bootstrap that draws {clusters}; p is that of a two-sided paired test that turns the signs of the differences of {clusters} (~: by {} draws, else all are counted), not corrected for how many scores are looked at. Wins, losses: tasks at which the first did better, or worse (of times: was faster, slower).",
            crate::sign_flip::DRAWS
        ));
        sheet
    }
}

impl ScoreContrast {
    fn line(&self) -> Line {
        let digits = if self.name == "time_s" { 1 } else { 3 };
        let number = |it: Option<f64>| it.map_or_else(dash, |it| format!("{it:.digits$}"));
        let difference = self.difference.value.map_or_else(dash, |it| format!("{it:+.digits$}"));
        let interval = self
            .difference
            .interval
            .map_or_else(String::new, |[low, high]| format!("\n[{low:+.digits$}, {high:+.digits$}]"));
        let p = self.test.map_or_else(dash, |it| {
            let about = if it.exact { "" } else { "~" };
            if it.p < 0.000_05 { "<0.0001".to_owned() } else { format!("{about}{:.4}", it.p) }
        });
        let mut cells = vec![number(self.first), number(self.second), format!("{difference}{interval}"), p];
        cells.extend([self.wins, self.losses, self.ties].map(|it| it.to_string()));
        Line::Cells(format!("  {}", self.title), cells)
    }
}
