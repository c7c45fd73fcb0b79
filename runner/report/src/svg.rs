//! Draws completion curves as one SVG picture that stands alone: light or dark, with each line named at its end.

use std::fmt::Write as _;

use crate::curve::Curve;
use crate::ink::{AXIS, FONT, GRID, INK, INKED, PAPER, QUIET, Style, dark, escaped, shortened, text, ticks};
use crate::row::float;
use crate::tables::{grouped_digits, percent};

const LEFT: f64 = 68.0;
const TOP: f64 = 92.0;
const PLOT: f64 = 600.0;
/// From the plot to the names.
const GAP: f64 = 38.0;
const NAMES: f64 = 268.0;
const BELOW: f64 = 66.0;
/// Two lines of text and some air.
const NAME_STEP: f64 = 36.0;

/// Characters of a name that there is room for.
const NAME: usize = 28;
/// Characters of a filter that there is room for.
const FILTER: usize = 100;

/// Colours that are told apart on white, also by most who see fewer of them.
const COLOURS: [&str; 10] = [
    "#2563c9", "#d9541e", "#0f9d76", "#8b4bb8", "#c78a00", "#0b93b8", "#c2256b", "#5a6472", "#6f9a1f",
    "#7a5240",
];

/// The same on black.
const IN_THE_DARK: [&str; 10] = [
    "#6ea0ff", "#ff8a5c", "#3fd0a4", "#c08cf0", "#ecb93c", "#45c3e6", "#f26ba3", "#a3aebb", "#a8d44f",
    "#c49a83",
];

/// The picture.
///
/// `filter` is what its trials were chosen by, if they are not all; the picture says so.
pub fn draw(run: &str, filter: Option<&str>, curves: &[Curve]) -> String {
    let shown: Vec<&Curve> = curves.iter().filter(|it| it.completed.denominator > 0).collect();
    let names = float(shown.len() as u64) * NAME_STEP;
    let plot =
        Plot { span: shown.iter().map(|it| it.budget_s).fold(1.0, f64::max), height: names.max(380.0) };
    let (width, height) = (LEFT + PLOT + GAP + NAMES, TOP + plot.height + BELOW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"{FONT}\" role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">Completions over time, run {}</title>\n",
        escaped(run)
    );
    dark(&mut svg, &COLOURS.iter().copied().zip(IN_THE_DARK).collect::<Vec<_>>());
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>");
    text(&mut svg, (LEFT, 38.0), Style { size: 20.0, weight: 650, ..INKED }, "Completions over time");
    let of = if filter.is_some() { "those chosen" } else { "all registered ones" };
    let subtitle = format!("Trials that completed normally by then, of {of} · run {run}");
    text(&mut svg, (LEFT, 60.0), Style { fill: QUIET, ..INKED }, &subtitle);
    if let Some(filter) = filter {
        let chosen = format!("Only trials for which {} holds", shortened(filter, FILTER));
        text(&mut svg, (LEFT, 79.0), Style { fill: QUIET, ..INKED }, &chosen);
    }
    plot.axes(&mut svg);
    // The first method lies on top.
    let coloured: Vec<(&Curve, &'static str)> = colours(&shown);
    for (curve, colour) in coloured.iter().rev() {
        plot.line(&mut svg, curve, colour);
    }
    plot.names(&mut svg, &coloured);
    svg.push_str("</svg>\n");
    svg
}

fn colours<'a>(curves: &[&'a Curve]) -> Vec<(&'a Curve, &'static str)> {
    let mut next = COLOURS.iter().cycle();
    curves.iter().map(|it| (*it, if it.control { "#9aa2ac" } else { next.next().unwrap_or(&INK) })).collect()
}

struct Plot {
    /// Seconds from left to right.
    span: f64,
    height: f64,
}

impl Plot {
    fn x(&self, seconds: f64) -> f64 {
        LEFT + PLOT * seconds / self.span
    }

    fn y(&self, rate: f64) -> f64 {
        TOP + self.height * (1.0 - rate)
    }

    fn axes(&self, svg: &mut String) {
        for tenth in [0, 2, 4, 6, 8, 10] {
            let y = self.y(f64::from(tenth) / 10.0);
            let (colour, right) = (if tenth == 0 { AXIS } else { GRID }, LEFT + PLOT);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"{colour}\"/>");
            let label = if tenth == 10 { "100 %".to_owned() } else { format!("{}", tenth * 10) };
            text(svg, (LEFT - 10.0, y + 4.5), Style { anchor: "end", fill: QUIET, ..INKED }, &label);
        }
        let (unit, step) = ticks(self.span);
        let mut at = 0.0;
        while at <= self.span * 1.0001 {
            let x = self.x(at);
            let (top, foot) = (TOP + self.height, TOP + self.height + 5.0);
            let _ = writeln!(svg, "<path d=\"M{x:.1} {top:.1}V{foot:.1}\" stroke=\"{AXIS}\"/>");
            let place = (x, TOP + self.height + 22.0);
            text(
                svg,
                place,
                Style { anchor: "middle", fill: QUIET, ..INKED },
                &format!("{:.0}", at / unit.1),
            );
            at += step;
        }
        let place = (LEFT + PLOT / 2.0, TOP + self.height + 46.0);
        let label = format!("Time of the agent in {}", unit.0);
        text(svg, place, Style { anchor: "middle", fill: QUIET, ..INKED }, &label);
    }

    fn line(&self, svg: &mut String, curve: &Curve, colour: &str) {
        let whole = float(curve.completed.denominator);
        let mut path = format!("M{:.1} {:.1}", self.x(0.0), self.y(0.0));
        let mut last = (self.x(0.0), self.y(0.0));
        for (time, count) in &curve.steps {
            let (x, y) = (self.x(*time), self.y(float(*count) / whole));
            // Steps that no eye can tell apart are one.
            if x - last.0 >= 0.2 || last.1 - y >= 0.2 {
                let _ = write!(path, "H{x:.1}V{y:.1}");
                last = (x, y);
            }
        }
        let (end, height) = (self.x(curve.budget_s), self.y(curve.completed.value.unwrap_or(0.0)));
        let _ = write!(path, "V{height:.1}H{end:.1}");
        let dashes = if curve.control { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"{dashes}><title>{}</title></path>\n<circle cx=\"{end:.1}\" cy=\"{height:.1}\" r=\"3.6\" fill=\"{colour}\" stroke=\"{PAPER}\" stroke-width=\"1.4\"/>",
            escaped(&curve.method)
        );
    }

    /// The names beside the ends of their lines, moved apart where they would overlap.
    fn names(&self, svg: &mut String, curves: &[(&Curve, &'static str)]) {
        let mut order: Vec<usize> = (0..curves.len()).collect();
        let end = |at: usize| self.y(curves[at].0.completed.value.unwrap_or(0.0));
        order.sort_by(|a, b| end(*a).total_cmp(&end(*b)));
        let wanted: Vec<f64> = order.iter().map(|at| end(*at)).collect();
        let places = apart(&wanted, TOP + 4.0, TOP + self.height - 8.0);
        for (at, y) in order.into_iter().zip(places) {
            let (curve, colour) = curves[at];
            let (from, bend, to) =
                (self.x(curve.budget_s) + 5.0, LEFT + PLOT + 10.0, LEFT + PLOT + GAP - 8.0);
            let height = end(at);
            let _ = writeln!(
                svg,
                "<path d=\"M{from:.1} {height:.1}H{bend:.1}L{to:.1} {y:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-opacity=\"0.45\"/>"
            );
            let control = if curve.control { " (control)" } else { "" };
            let x = LEFT + PLOT + GAP;
            let style = Style { fill: colour, weight: 600, ..INKED };
            text(svg, (x, y - 1.0), style, &format!("{}{control}", shortened(&curve.method, NAME)));
            let rate = curve.completed;
            let figure = format!(
                "{} %  ({} of {})",
                rate.value.map_or_else(|| "–".to_owned(), percent),
                grouped_digits(rate.numerator),
                grouped_digits(rate.denominator)
            );
            text(svg, (x, y + 14.0), Style { fill: QUIET, size: 12.0, ..INKED }, &figure);
        }
    }
}

/// The wanted heights, in ascending order, moved as little as it takes for neighbours to keep their distance, and all to stay
/// within bounds: those that crowd form a block around their middle.
fn apart(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    // Of each block how many, and where its first would like to be, on the whole.
    let mut blocks: Vec<(usize, f64)> = Vec::new();
    let length = |count: usize| float(count as u64) * NAME_STEP;
    let inside = |(count, first): (usize, f64)| (count, first.min(bottom - length(count - 1)).max(top));
    for want in wanted {
        let mut last = inside((1, *want));
        while let Some((count, first)) = blocks.last().copied().filter(|it| it.1 + length(it.0) > last.1) {
            blocks.pop();
            let (one, other) = (float(count as u64), float(last.0 as u64));
            let middle = (one * first + other * (last.1 - length(count))) / (one + other);
            last = inside((count + last.0, middle));
        }
        blocks.push(last);
    }
    let places = blocks.into_iter().flat_map(|(count, first)| (0..count).map(move |at| first + length(at)));
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;

    fn curve(method: &str, steps: &[(f64, u64)], of: u64) -> Curve {
        let last = steps.last().map_or(0, |it| it.1);
        Curve {
            method: method.into(),
            control: false,
            budget_s: 1800.0,
            completed: Rate::of(last, of, 1),
            steps: steps.to_vec(),
        }
    }

    #[test]
    fn a_line_ends_at_the_budget_at_the_height_of_its_rate() {
        let svg = draw("r", None, &[curve("m", &[(450.0, 1), (900.0, 3)], 4)]);
        // From the origin, a quarter at 450 s, three quarters at 900 s, level to 1800 s.
        assert!(svg.contains("M68.0 472.0H218.0V377.0H368.0V187.0V187.0H668.0"), "{svg}");
        assert!(svg.contains("75.0 %  (3 of 4)"));
        assert!(svg.contains("of all registered ones") && !svg.contains("Only trials"), "nothing was chosen");
    }

    #[test]
    fn names_are_text_and_nothing_else() {
        let svg = draw("<b>&\u{1b}", Some("a < \"b\""), &[curve("\"><script>", &[], 1)]);
        assert!(
            svg.contains("Only trials for which a &lt; &quot;b&quot; holds") && svg.contains("those chosen"),
            "{svg}"
        );
        assert!(!svg.contains("<script") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    }

    #[test]
    fn names_keep_their_distance_and_stay_inside() {
        let places = apart(&[10.0, 12.0, 14.0, 396.0, 399.0], 0.0, 400.0);
        assert!(places.windows(2).all(|two| two[1] - two[0] >= NAME_STEP), "{places:?}");
        assert!(places[0] >= 0.0 && places[4] <= 400.0, "{places:?}");
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(1800.0), (("minutes", 60.0), 300.0));
        assert_eq!(ticks(60.0), (("seconds", 1.0), 10.0));
        assert_eq!(ticks(86_400.0), (("hours", 3600.0), 18_000.0));
    }
}
