//! What all figures are drawn with: text, axes, and colours that turn over where the reader's surroundings are dark.

use std::fmt::Write as _;

/// Fonts.
pub(crate) const FONT: &str =
    "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// Text.
pub(crate) const INK: &str = "#1d2430";
/// Text that is not read first.
pub(crate) const QUIET: &str = "#6b7480";
/// Lines of a grid.
pub(crate) const GRID: &str = "#e7eaee";
/// Axes.
pub(crate) const AXIS: &str = "#aab2bc";
/// What all lies on.
pub(crate) const PAPER: &str = "#ffffff";

/// Each colour on white, and what it is on black.
const DARK: [(&str, &str); 5] =
    [(INK, "#e8ebf0"), (QUIET, "#9ba5b3"), (GRID, "#262d37"), (AXIS, "#55606e"), (PAPER, "#11151b")];

/// The rules by which colours turn over in the dark: these, and those of the figure itself.
pub(crate) fn dark(svg: &mut String, more: &[(&str, &str)]) {
    svg.push_str("<style>@media (prefers-color-scheme: dark) {");
    for (light, dark) in DARK.iter().chain(more) {
        let _ = write!(svg, " [fill=\"{light}\"]{{fill:{dark}}} [stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    svg.push_str(" }</style>\n");
}

/// How a text looks.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// Height in pixels.
    pub(crate) size: f64,
    /// Weight of the font.
    pub(crate) weight: u32,
    /// Colour, as on white.
    pub(crate) fill: &'static str,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'static str,
}

/// Common text.
pub(crate) const INKED: Style = Style { size: 13.0, weight: 400, fill: INK, anchor: "start" };

/// Writes a line of text.
pub(crate) fn text(svg: &mut String, (x, y): (f64, f64), style: Style, content: &str) {
    let Style { size, weight, fill, anchor } = style;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"{fill}\" text-anchor=\"{anchor}\" style=\"font-variant-numeric: tabular-nums\">{}</text>",
        escaped(content)
    );
}

/// Unit of the axis with its seconds, and seconds from tick to tick: six or so.
pub(crate) fn ticks(span: f64) -> ((&'static str, f64), f64) {
    let unit = if span > 4.0 * 3600.0 {
        ("hours", 3600.0)
    } else if span > 240.0 {
        ("minutes", 60.0)
    } else {
        ("seconds", 1.0)
    };
    let steps = [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0];
    let step = steps.into_iter().find(|step| span / (unit.1 * step) <= 7.0).unwrap_or(240.0);
    (unit, step * unit.1)
}

/// A name cut to so many characters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// As text of XML, without what no XML may have.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}')) {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
