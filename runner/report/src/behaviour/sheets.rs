//! How agents work, as tables for people.

use proctor_traces::actions::{Action, Phase};

use super::pairs::Comparison;
use super::table::{BehaviourReport, MethodBehaviour, action_name, phase_names};
use crate::figures::{Mean, Rate};
use crate::report::Control;
use crate::sheet::{Line, Sheet, escaped, wrapped};
use crate::tables::{dash, mean_cell, percent};
use crate::words::{agreeing, counted};

/// Methods that stand side by side in a table of actions; more do not fit on a line.
const SIDE_BY_SIDE: usize = 5;

impl BehaviourReport {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> =
            vec![self.head().iter().map(|it| wrapped(it, "")).collect::<Vec<_>>().join("\n")];
        parts.extend(self.problems.iter().map(|it| wrapped(it, "! ")));
        parts.extend(self.sheets().iter().map(Sheet::text));
        parts.join("\n\n")
    }

    /// As a Markdown document.
    pub fn markdown(&self) -> String {
        let mut parts = vec![format!("## Run {}: how the agents work\n", escaped(&self.run))];
        parts.extend(self.head().iter().map(|it| format!("{}\n", escaped(it))));
        parts.extend(self.problems.iter().map(|it| format!("- {}\n", escaped(it))));
        parts.extend(self.sheets().iter().map(Sheet::markdown));
        parts.join("\n")
    }

    fn head(&self) -> Vec<String> {
        let episodes: u64 = self.methods.iter().map(|it| it.episodes).sum();
        let untraced: u64 = self.methods.iter().map(|it| it.untraced).sum();
        let mut head = vec![format!(
            "Run {}: {}; an episode is a trial executed to an end of the method's own that left a trace. Definitions: docs/behaviour.md, docs/strategy-actions.md. Brackets: 95 % intervals.",
            self.run,
            counted(episodes, "episode")
        )];
        head.extend(self.not_final.iter().map(|it| format!("{it}.")));
        if untraced > 0 {
            head.push(format!(
                "{} left no trace and {} no part in any of this.",
                counted(untraced, "executed trial"),
                agreeing(untraced, "has", "have")
            ));
        }
        head
    }

    /// The tables.
    pub fn sheets(&self) -> Vec<Sheet> {
        let shown: Vec<&MethodBehaviour> = self.methods.iter().filter(|it| it.episodes > 0).collect();
        let rows = |mut sheet: Sheet, cells: &dyn Fn(&MethodBehaviour) -> Vec<String>| {
            sheet.lines.extend(shown.iter().map(|it| Line::Cells(label(it), cells(it))));
            sheet
        };
        let means = |it: &MethodBehaviour, names: &[&str]| names.iter().map(|name| mean(it, name)).collect();
        let mut sheets = vec![
            rows(
                Sheet::new(
                    "Tool calls per episode (Table 4)",
                    &["method", "completed", "calls", "in programs", "failed", "unfinished"],
                ),
                &|it| {
                    let mut cells = vec![rate(&it.completed)];
                    cells.extend::<Vec<_>>(means(
                        it,
                        &["calls", "inner_calls", "failed_calls", "unfinished_calls"],
                    ));
                    cells
                },
            ),
            rows(
                Sheet::new(
                    "Of the designated artifact, per episode (Table 4)",
                    &["method", "writes", "renders", "previews", "cycles", "calibration"],
                ),
                &|it| means(it, &["writes", "renders", "previews", "cycles", "calibrations"]),
            ),
            rows(
                Sheet::new(
                    "First times in seconds, of the episodes that have them",
                    &["method", "first write", "first render", "agent", "compared at end", "cut off"],
                ),
                &|it| {
                    let mut cells: Vec<String> = means(it, &["first_write_s", "first_render_s", "agent_s"]);
                    cells.extend([rate(&it.compared_at_end), rate(&it.cut_off)]);
                    cells
                },
            ),
        ];
        let head = ["method", "underst.", "rev. eng.", "reconstr.", "compar.", "editing", "other"];
        let mut at_work = rows(
            Sheet::new(
                "Share of the agents' time in % (calls at work)",
                &[&head[..], &["model", "idle"]].concat(),
            ),
            &|it| {
                let mut cells: Vec<String> =
                    phase_names().iter().map(|name| share(it, &format!("share_{name}"))).collect();
                cells.extend([share(it, "share_model"), share(it, "share_idle")]);
                cells
            },
        );
        at_work.notes.push(
            "model: no call at work and a model request under way; idle: neither. Where model requests are not known both are –."
                .to_owned(),
        );
        let mut led = rows(
            Sheet::new(
                "The same with the time that led up to each call",
                &[&head[..], &["closing"]].concat(),
            ),
            &|it| {
                let names = phase_names();
                let names = names.iter().chain(&["closing"]);
                names.map(|name| share(it, &format!("led_{name}"))).collect()
            },
        );
        led.notes.push("closing: after the last call.".to_owned());
        sheets.extend([at_work, led]);
        sheets.extend(shown.chunks(SIDE_BY_SIDE).map(actions));
        sheets
    }
}

/// Calls per episode that carry each action, methods side by side.
fn actions(methods: &[&MethodBehaviour]) -> Sheet {
    let names: Vec<&str> = methods.iter().map(|it| it.method.as_str()).collect();
    let mut sheet = Sheet::new("Calls per episode by strategy action", &[&["action"], &names[..]].concat());
    for head in sheet.head.iter_mut().skip(1) {
        *head = in_lines(head);
    }
    let cells = |name: &str| {
        methods
            .iter()
            .map(|it| it.means.get(name).and_then(|it| it.value).map_or_else(dash, |it| format!("{it:.2}")))
            .collect()
    };
    for phase in Phase::ALL {
        sheet.lines.push(Line::Section(phase.title().to_owned()));
        for action in Action::ALL.into_iter().filter(|it| it.phase() == phase) {
            sheet.lines.push(Line::Cells(format!("  {}", action.title()), cells(action_name(action))));
        }
    }
    sheet.lines.push(Line::Section("No action".to_owned()));
    sheet.lines.push(Line::Cells("  Other".to_owned(), cells("other_calls")));
    sheet
}

/// A name in lines that leave room for the columns beside it.
fn in_lines(name: &str) -> String {
    const MOST: usize = 14;
    let mut lines: Vec<String> = vec![String::new()];
    for part in name.split_inclusive(['-', '/', '_']) {
        for c in part.chars() {
            let full = lines.last().is_some_and(|it| it.chars().count() >= MOST);
            let breaks = lines.last().is_some_and(|it| {
                part.starts_with(c) && !it.is_empty() && it.chars().count() + part.chars().count() > MOST
            });
            if full || (breaks && lines.last().is_some_and(|it| it.ends_with(['-', '/', '_']))) {
                lines.push(String::new());
            }
            if let Some(last) = lines.last_mut() {
                last.push(c);
            }
        }
    }
    lines.join("\n")
}

fn label(it: &MethodBehaviour) -> String {
    match it.control {
        Some(Control::Oracle | Control::Nop) => format!("{} (control)", it.method),
        None => it.method.clone(),
    }
}

fn mean(it: &MethodBehaviour, name: &str) -> String {
    it.means.get(name).map_or_else(dash, |it| two_lines(&mean_cell(it, 1)))
}

/// Value, interval and denominator below each other.
fn two_lines(cell: &str) -> String {
    cell.replacen(" [", "\n[", 1)
}

fn share(it: &MethodBehaviour, name: &str) -> String {
    match it.means.get(name) {
        Some(Mean { value: Some(value), interval, .. }) => {
            let interval = interval
                .map_or_else(String::new, |[low, high]| format!("\n{:.1}–{:.1}", low * 100.0, high * 100.0));
            format!("{:.1}{interval}", value * 100.0)
        }
        _ => dash(),
    }
}

fn rate(it: &Rate) -> String {
    let value = it.value.map_or_else(dash, |value| format!("{} %", percent(value)));
    format!("{value}\n{}/{}", it.numerator, it.denominator)
}

impl Comparison {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut parts = vec![wrapped(&self.head(), "")];
        parts.extend(self.not_final.iter().map(|it| wrapped(&format!("{it}."), "")));
        parts.extend(self.problems.iter().map(|it| wrapped(it, "! ")));
        parts.push(self.sheet().text());
        parts.join("\n\n")
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let mut parts = vec![escaped(&self.head())];
        parts.extend(self.not_final.iter().map(|it| escaped(&format!("{it}."))));
        parts.extend((!self.problems.is_empty()).then(|| {
            let problems: Vec<String> = self.problems.iter().map(|it| format!("- {}", escaped(it))).collect();
            problems.join("\n")
        }));
        parts.push(self.sheet().markdown());
        parts.join("\n\n")
    }

    fn head(&self) -> String {
        format!(
            "{} (A) and {} (B) on the same tasks: {} of trials that have ended, {}, {}. A − B with 95 % intervals of the paired bootstrap, which draws source artifacts.",
            self.methods[0],
            self.methods[1],
            counted(self.pairs, "pair"),
            counted(self.tasks, "task"),
            counted(self.sources, "source artifact")
        )
    }

    fn sheet(&self) -> Sheet {
        let mut sheet =
            Sheet::new("Differences", &["per episode", "pairs", "A", "B", "A − B", "95 % interval"]);
        for it in &self.differences {
            let digits = if it.name == "completed" { 3 } else { 2 };
            let number = |it: Option<f64>| it.map_or_else(dash, |it| format!("{it:.digits$}"));
            let signed = |it: f64| format!("{it:+.digits$}");
            let mut interval = it
                .difference
                .interval
                .map_or_else(dash, |[low, high]| format!("{} … {}", signed(low), signed(high)));
            if it.difference.interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0) {
                interval.push_str(" *");
            }
            sheet.lines.push(Line::Cells(
                it.title.to_owned(),
                vec![
                    format!("{:.0}", it.difference.denominator),
                    number(it.first),
                    number(it.second),
                    it.difference.value.map_or_else(dash, signed),
                    interval,
                ],
            ));
        }
        sheet.notes.push(
            "* the interval does not hold zero. A pair counts where both trials have the figure.".to_owned(),
        );
        sheet
    }
}
