//! Draws Figure 6 as one SVG picture that stands alone, light or dark: a panel per method, a row per task, a bar per call.

use std::fmt::Write as _;

use proctor_traces::actions::{Action, Phase};

use super::strategies::{End, Panel, Shown, Strategies};
use crate::ink::{AXIS, FONT, GRID, INKED, PAPER, QUIET, Style, dark, escaped, shortened, text, ticks};
use crate::row::float;
use crate::words::counted;

/// Room for the names of categories.
const GUTTER: f64 = 150.0;
const MARGIN: f64 = 28.0;
const TOP: f64 = 88.0;
/// Between panels: room for what stands behind the deadline.
const GAP: f64 = 34.0;
/// Name of the method and how its trials came out.
const HEAD: f64 = 44.0;
/// Ticks and their labels.
const FOOT: f64 = 40.0;
/// All panels of a line together.
const WIDE: f64 = 1500.0;
/// Panels of a line.
const MOST_BESIDE: usize = 5;
const WIDEST: f64 = 640.0;
/// Least width of a mark.
const LEAST: f64 = 2.0;

/// The colours of the actions on white: a family of hues per phase.
const COLOURS: [(&str, &str); 15] = [
    // Task understanding: blues.
    ("#173f9e", "#5e8bff"),
    ("#3f7ff0", "#2f62d9"),
    ("#8ebcfa", "#b3d1ff"),
    // Visual reverse engineering: greens.
    ("#0a4f38", "#17805c"),
    ("#17946a", "#2fc48f"),
    ("#62c08a", "#8fe3b0"),
    ("#b2d64a", "#d3f06a"),
    // Reconstruction and tuning: browns and yellow.
    ("#7a4410", "#a8662a"),
    ("#c9861a", "#e09a34"),
    ("#f2c531", "#ffdf5c"),
    // Rendering and comparison: reds.
    ("#a30d35", "#e0325c"),
    ("#f0555a", "#ff8078"),
    ("#f7a8bd", "#ffc2d4"),
    // Answer review and editing: violets.
    ("#b08be8", "#cdb5f7"),
    ("#5a1fb0", "#8d5cf2"),
];
const OTHER: (&str, &str) = ("#c3c8cf", "#4d5663");
const LIFE: (&str, &str) = ("#e3e6ea", "#2a313b");
const GOOD: (&str, &str) = ("#138a4e", "#39d98a");
const LATE: (&str, &str) = ("#c4262e", "#ff6b70");
const FAILED: (&str, &str) = ("#b35c00", "#ffa34d");

impl Strategies {
    /// The picture.
    pub fn svg(&self) -> String {
        let layout = Layout::of(self);
        let (width, height) = layout.size(self.panels.len());
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"{FONT}\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">Strategy actions over time, run {}</title>\n<desc id=\"desc\">{}</desc>\n",
            escaped(&self.run),
            escaped(&self.description()),
        );
        let mut colours: Vec<(&str, &str)> = COLOURS.to_vec();
        colours.extend([OTHER, LIFE, GOOD, LATE, FAILED]);
        dark(&mut svg, &colours);
        let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>");
        let title = Style { size: 20.0, weight: 650, ..INKED };
        text(&mut svg, (MARGIN, 38.0), title, "What the agents were doing");
        let lines = [self.subtitle(), "A bar is a tool call from its start to its end, two pixels wide at least, in the colours of its actions; the line behind it is the time of the agent.".to_owned()];
        for (at, line) in (0..).zip(lines) {
            let y = 58.0 + 17.0 * f64::from(at);
            text(&mut svg, (MARGIN, y), Style { fill: QUIET, size: 12.5, ..INKED }, &line);
        }
        for (at, panel) in self.panels.iter().enumerate() {
            let origin = layout.origin(at);
            if at % layout.beside == 0 {
                self.gutter(&mut svg, &layout, origin.1);
            }
            self.panel(&mut svg, &layout, origin, panel);
        }
        legend(&mut svg, &layout, layout.bottom(self.panels.len()));
        svg.push_str("</svg>\n");
        svg
    }

    fn subtitle(&self) -> String {
        let of = if self.candidates == self.tasks.len() {
            format!("all {} that every method left a trace of", counted(self.tasks.len(), "task"))
        } else {
            format!(
                "{} of the {} tasks that every method left a trace of, drawn by category and difficulty (seed {})",
                self.tasks.len(),
                self.candidates,
                self.seed
            )
        };
        let not_final = self.not_final.as_ref().map(|it| format!(" · {it}")).unwrap_or_default();
        format!("A row is a task, the same one in each panel: {of} · run {}{not_final}", self.run)
    }

    fn description(&self) -> String {
        let panels: Vec<String> =
            self.panels.iter().map(|it| format!("{}: {}", it.method, outcome(it))).collect();
        format!("{}. {}.", self.subtitle(), panels.join("; "))
    }

    /// Names of the categories, beside the rows that are theirs.
    fn gutter(&self, svg: &mut String, layout: &Layout, top: f64) {
        let mut from = 0;
        for rows in self.tasks.chunk_by(|a, b| a.category == b.category) {
            let (y, height) = (top + layout.pitch * float(from), layout.pitch * float(rows.len() as u64));
            let x = MARGIN + GUTTER - 8.0;
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {:.1}V{:.1}\" stroke=\"{AXIS}\"/>",
                y + 1.0,
                y + height - 1.0
            );
            if height >= 11.0 {
                let name = rows[0].category.replace(['_', '-'], " ");
                let style = Style { anchor: "end", size: 11.5, fill: QUIET, ..INKED };
                text(svg, (x - 7.0, y + height / 2.0 + 4.0), style, &shortened(&name, 23));
            }
            from += rows.len() as u64;
        }
    }

    fn panel(&self, svg: &mut String, layout: &Layout, (x, y): (f64, f64), panel: &Panel) {
        let height = layout.height;
        let letters = {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a few hundred pixels"
            )]
            let letters = (layout.width / 7.6) as usize;
            letters
        };
        let name = Style { weight: 600, size: 13.5, ..INKED };
        text(svg, (x, y - 24.0), name, &shortened(&panel.method, letters));
        text(svg, (x, y - 8.0), Style { fill: QUIET, size: 12.0, ..INKED }, &outcome(panel));
        let mut from = 0;
        for rows in self.tasks.chunk_by(|a, b| a.category == b.category) {
            let at = y + layout.pitch * float(from);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {at:.1}h{:.1}\" stroke=\"{GRID}\"/>", layout.width);
            from += rows.len() as u64;
        }
        layout.axis(svg, (x, y));
        let deadline = x + layout.at(panel.budget_ms);
        let _ = writeln!(
            svg,
            "<path d=\"M{deadline:.1} {y:.1}v{height:.1}\" stroke=\"{}\" stroke-dasharray=\"3 3\"/>",
            LATE.0
        );
        for (number, (task, row)) in self.tasks.iter().zip(&panel.rows).enumerate() {
            let top = y + layout.pitch * float(number as u64);
            let _ = writeln!(
                svg,
                "<g><title>{}: {}, {}, {:.1} min, {}</title>",
                escaped(&task.task),
                escaped(&task.difficulty),
                row.end.as_str().replace('_', " "),
                float(row.agent_ms) / 60_000.0,
                counted(row.marks.len(), "call")
            );
            layout.row(svg, (x, top), row);
            svg.push_str("</g>\n");
        }
    }
}

fn outcome(panel: &Panel) -> String {
    let count = |end| panel.rows.iter().filter(|it| it.end == end).count();
    let all = panel.rows.len();
    let mut parts = vec![format!("{} of {all} completed", count(End::Completed))];
    for (end, words) in
        [(End::TimedOut, "timed out"), (End::Failed, "failed"), (End::Unresolved, "unresolved")]
    {
        if count(end) > 0 {
            parts.push(format!("{} {words}", count(end)));
        }
    }
    parts.join(", ")
}

/// Where everything is.
struct Layout {
    /// Panels of a line.
    beside: usize,
    /// Width of a panel.
    width: f64,
    /// Height of its rows.
    height: f64,
    /// Height of a row.
    pitch: f64,
    /// Milliseconds from left to right.
    span: f64,
}

impl Layout {
    fn of(it: &Strategies) -> Self {
        let beside = it.panels.len().clamp(1, MOST_BESIDE);
        let columns = float(beside as u64);
        let width = ((WIDE - GAP * columns) / columns).min(WIDEST);
        let rows = float(it.tasks.len() as u64).max(1.0);
        let pitch = (800.0 / rows).clamp(6.0, 18.0);
        let span = it.panels.iter().map(|it| it.budget_ms).max().unwrap_or(0);
        Self { beside, width, pitch, height: pitch * rows, span: float(span.max(1)) }
    }

    fn line(&self) -> f64 {
        HEAD + self.height + FOOT
    }

    fn origin(&self, panel: usize) -> (f64, f64) {
        let (column, line) = (float((panel % self.beside) as u64), float((panel / self.beside) as u64));
        (MARGIN + GUTTER + column * (self.width + GAP), TOP + HEAD + line * self.line())
    }

    fn bottom(&self, panels: usize) -> f64 {
        TOP + float(panels.div_ceil(self.beside) as u64) * self.line() + 8.0
    }

    fn size(&self, panels: usize) -> (f64, f64) {
        let width = MARGIN * 2.0 + GUTTER + float(self.beside as u64) * (self.width + GAP);
        (width.max(LEGEND_WIDTH + 2.0 * MARGIN), self.bottom(panels) + LEGEND_HEIGHT)
    }

    fn at(&self, ms: u64) -> f64 {
        self.width * (float(ms) / self.span).min(1.0)
    }

    fn axis(&self, svg: &mut String, (x, y): (f64, f64)) {
        let ((unit, size), mut step) = ticks(self.span / 1000.0);
        while step * self.width / (self.span / 1000.0) < 34.0 {
            step *= 2.0;
        }
        let foot = y + self.height;
        let _ = writeln!(svg, "<path d=\"M{x:.1} {foot:.1}h{:.1}\" stroke=\"{AXIS}\"/>", self.width);
        let mut at = 0.0;
        while at <= self.span / 1000.0 * 1.0001 {
            let place = x + self.width * at * 1000.0 / self.span;
            let _ = writeln!(svg, "<path d=\"M{place:.1} {foot:.1}v4\" stroke=\"{AXIS}\"/>");
            let label = format!("{:.0}", at / size);
            let style = Style { anchor: "middle", size: 11.5, fill: QUIET, ..INKED };
            text(svg, (place, foot + 17.0), style, &label);
            at += step;
        }
        let style = Style { anchor: "middle", size: 11.5, fill: QUIET, ..INKED };
        text(svg, (x + self.width / 2.0, foot + 32.0), style, unit);
    }

    /// The time of the agent, its calls, and how it came out.
    fn row(&self, svg: &mut String, (x, top): (f64, f64), row: &Shown) {
        let bar = self.pitch - if self.pitch >= 9.0 { 2.0 } else { 1.0 };
        let end = self.at(row.agent_ms);
        let middle = top + self.pitch / 2.0;
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {middle:.1}h{end:.1}\" stroke=\"{}\" stroke-width=\"1\"/>",
            LIFE.0
        );
        let mut paths: [String; 16] = Default::default();
        for mark in &row.marks {
            let from = self.at(mark.start_ms);
            let width = (self.at(mark.end_ms) - from).max(LEAST);
            // One that ends at the deadline does not reach beyond it.
            let from = from.min(self.width - LEAST);
            let left = x + from;
            if mark.actions.is_empty() {
                let (y, height) = (middle - bar / 4.0, bar / 2.0);
                let _ = write!(paths[15], "M{left:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
                continue;
            }
            let height = bar / float(mark.actions.len() as u64);
            for (at, action) in mark.actions.iter().enumerate() {
                let y = top + (self.pitch - bar) / 2.0 + height * float(at as u64);
                let path = &mut paths[*action as usize];
                let _ = write!(path, "M{left:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
            }
        }
        let colours = COLOURS.iter().chain([&OTHER]);
        for (path, (colour, _)) in paths.iter().zip(colours).filter(|(path, _)| !path.is_empty()) {
            let _ = writeln!(svg, "<path fill=\"{colour}\" d=\"{path}\"/>");
        }
        let x = x + match row.end {
            End::TimedOut => self.width + 6.0,
            _ => end + 6.0,
        };
        ending(svg, (x, middle), (self.pitch / 2.0 - 0.6).min(4.0), row.end);
    }
}

/// The sign of how a trial came out.
fn ending(svg: &mut String, (x, y): (f64, f64), size: f64, end: End) {
    let _ = match end {
        End::Completed => {
            writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" fill=\"{}\"/>", GOOD.0)
        }
        End::TimedOut => writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}l{:.1} {size:.1}l-{:.1} {size:.1}z\" fill=\"{}\"/>",
            x - size,
            y - size,
            size * 2.0,
            size * 2.0,
            LATE.0
        ),
        End::Failed => writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}l{:.1} {:.1}m0 -{:.1}l-{:.1} {:.1}\" stroke=\"{}\" stroke-width=\"1.6\"/>",
            x - size,
            y - size,
            size * 2.0,
            size * 2.0,
            size * 2.0,
            size * 2.0,
            size * 2.0,
            FAILED.0
        ),
        End::Unresolved => writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"none\" stroke=\"{QUIET}\"/>",
            size - 0.4
        ),
    };
}

const LEGEND_WIDTH: f64 = 6.0 * LEGEND_STEP;
const LEGEND_STEP: f64 = 205.0;
const LEGEND_HEIGHT: f64 = 130.0;

fn legend(svg: &mut String, layout: &Layout, top: f64) {
    let _ = layout;
    let head = Style { weight: 600, size: 12.0, ..INKED };
    let entry = Style { size: 12.0, ..INKED };
    for (column, phase) in Phase::ALL.into_iter().enumerate() {
        let x = MARGIN + LEGEND_STEP * float(column as u64);
        text(svg, (x, top + 12.0), head, phase.title());
        let actions = Action::ALL.into_iter().filter(|it| it.phase() == phase);
        for (line, action) in actions.enumerate() {
            let y = top + 22.0 + 19.0 * float(line as u64);
            let colour = COLOURS[action as usize].0;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"16\" height=\"11\" rx=\"1.5\" fill=\"{colour}\"/>"
            );
            text(svg, (x + 23.0, y + 10.0), entry, action.title());
        }
    }
    let x = MARGIN + LEGEND_STEP * 5.0;
    text(svg, (x, top + 12.0), head, "Ends");
    let ends = [
        (End::Completed, "Completed in the budget"),
        (End::TimedOut, "Stopped at the deadline"),
        (End::Failed, "Failed"),
        (End::Unresolved, "Unresolved"),
    ];
    for (line, (end, words)) in ends.into_iter().enumerate() {
        let y = top + 22.0 + 19.0 * float(line as u64);
        ending(svg, (x + 8.0, y + 5.5), 4.0, end);
        text(svg, (x + 23.0, y + 10.0), entry, words);
    }
    let y = top + 22.0 + 19.0 * 3.0;
    let x = MARGIN + LEGEND_STEP * 4.0;
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"16\" height=\"6\" rx=\"1\" fill=\"{}\"/>",
        y + 2.5,
        OTHER.0
    );
    text(svg, (x + 23.0, y + 10.0), entry, "Other: a call with no action");
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
