//! A report as tables.

use crate::accounting::{Basis, Cause, Class, Open, ProviderErrors, Recover};
use crate::figures::{Figures, Mean, Rate};
use crate::paper::SCORES;
use crate::report::{Control, GroupReport, MethodReport, Report};
use crate::sheet::{Line, Sheet, escaped, wrapped};
use crate::words::{agreeing, counted, of_pixels};

/// The three populations of scores.
const POPULATIONS: [(&str, &str); 3] = [
    ("auto_zero", "Auto-zero: all of E, what is unresolved counts as zero"),
    ("auto_zero_resolved", "Auto-zero, unresolved trials left out"),
    ("completed_only", "Completed-only: J and R"),
];

type Row<'a> = (String, &'a Figures);

impl Report {
    /// For a terminal.
    pub fn text(&self) -> String {
        self.text_of(&self.sheets())
    }

    /// These tables for a terminal, with what must be known of the run.
    pub fn text_of(&self, sheets: &[Sheet]) -> String {
        let mut parts: Vec<String> = Vec::new();
        let alarms = self.alarms.iter().map(|it| wrapped(&format!("CONTROL FAILED  {it}"), "!! "));
        parts.extend(alarms);
        parts.push(self.head().iter().map(|it| wrapped(it, "")).collect::<Vec<_>>().join("\n"));
        parts.extend(self.remarks().iter().map(|it| wrapped(it, "")));
        parts.extend(sheets.iter().map(Sheet::text));
        parts.join("\n\n")
    }

    /// As a Markdown document.
    pub fn markdown(&self) -> String {
        self.markdown_of(&self.sheets())
    }

    /// These tables as a Markdown document, with what must be known of the run.
    pub fn markdown_of(&self, sheets: &[Sheet]) -> String {
        let mut parts: Vec<String> = vec![format!("## Run {}\n", escaped(&self.run))];
        parts.extend(self.alarms.iter().map(|it| format!("> **Control failed.** {}\n", escaped(it))));
        parts.extend(self.head().iter().map(|it| format!("{}\n", escaped(it))));
        parts.extend(self.remarks().iter().map(|it| format!("- {}\n", escaped(it))));
        parts.extend(sheets.iter().map(Sheet::markdown));
        parts.join("\n")
    }

    /// What the figures are of, and how the rules are read.
    fn head(&self) -> Vec<String> {
        let attempts = match self.attempts {
            1 => "1 attempt".to_owned(),
            many => format!("{many} attempts, each of which weighs 1/{many}"),
        };
        let (tasks, sources) = (counted(self.tasks, "task"), counted(self.sources, "source artifact"));
        let methods = counted(self.methods.len(), "method");
        let mut head = vec![format!(
            "Run {}: {tasks} from {sources} × {methods} × {attempts}. Image {}, proctor {}.",
            self.run,
            self.image.chars().take(19).collect::<String>(),
            self.version
        )];
        if let Some(filter) = &self.filter {
            head.push(format!("Only trials for which {filter} holds: E is those, not the plan."));
        }
        head.push(match self.rules.basis {
            Basis::Judge => self.marked_by(),
            Basis::Rendering => {
                "No judge has run: \"scored\" means here that the artifact has a valid canonical rendering."
                    .to_owned()
            }
        });
        let provider = match self.rules.provider_errors {
            ProviderErrors::Unresolved => "outages of the provider are unresolved",
            ProviderErrors::Fail => "outages of the provider are failures (--provider-errors fail)",
        };
        let recover = match self.rules.recover {
            Recover::Timeouts => "only timeouts are recovered",
            Recover::Any => "any failure that left a good artifact is recovered (--recover any)",
        };
        head.push(format!(
            "Rules: VAO-Bench B.4 as in docs/accounting.md; {provider}; {recover}. Readings of ours: docs/vao-decisions.md, 9 to 14 and 26. Brackets: 95 % intervals."
        ));
        head
    }

    /// Who marked; and of a judge that knows one picture only, that its marks are no vision model's.
    fn marked_by(&self) -> String {
        let judges = self.judges.join(" and ");
        format!("Scored means: marked by {judges}.{}", of_pixels(self.judges.iter().map(String::as_str)))
    }

    fn remarks(&self) -> Vec<String> {
        let unresolved = self.unresolved();
        let open = (unresolved > 0).then(|| {
            format!(
                "UNRESOLVED  {} {} in U: no figure of the methods marked † is final",
                counted(unresolved, "trial"),
                agreeing(unresolved, "is", "are")
            )
        });
        let problems = self.problems.iter().map(|it| format!("PROBLEM  {it}"));
        problems.chain(open).chain(self.notes.iter().map(|it| format!("note  {it}"))).collect()
    }

    /// All tables.
    pub fn sheets(&self) -> Vec<Sheet> {
        // Controls come last: they are no contestants.
        let (controls, contestants): (Vec<_>, Vec<_>) =
            self.methods.iter().partition(|it: &&MethodReport| it.control.is_some());
        let rows: Vec<Row<'_>> = contestants
            .into_iter()
            .chain(controls)
            .map(|it| (label(&it.method, it.control, &it.figures), &it.figures))
            .collect();
        let mut sheets = vec![
            filled(
                coverage("Coverage: within budget + timeouts + failed + unresolved = E"),
                &rows,
                coverage_cells,
            ),
            filled(classes(), &rows, classes_cells),
        ];
        if self.unresolved() > 0 {
            sheets.push(filled(open(), &rows, open_cells));
        }
        sheets.push(filled(times(), &rows, times_cells));
        sheets.push(filled(usage(), &rows, usage_cells));
        if rows.iter().any(|(_, figures)| figures.throttled > 0) {
            sheets.push(filled(provider(), &rows, provider_cells));
        }
        let judged = self.rules.basis == Basis::Judge;
        for (population, title) in POPULATIONS.iter().filter(|_| judged) {
            sheets.push(filled(scores(title), &rows, |it| score_cells(population, it)));
        }
        let mut by: Vec<_> = self.groups.iter().map(|it| it.by).collect();
        by.dedup();
        for by in by {
            let groups: Vec<&GroupReport> = self.groups.iter().filter(|it| it.by == by).collect();
            let mut sheet = coverage(&format!("By {}", by.as_str()));
            sheet.head.push("mean s".into());
            sheets.push(grouped(sheet, &groups, |it| {
                let mut cells = coverage_cells(it);
                cells.push(mean(it, "time_s", 0));
                cells
            }));
            for (population, title) in POPULATIONS.iter().filter(|_| judged) {
                let title = format!("By {}. {title}", by.as_str());
                sheets.push(grouped(scores(&title), &groups, |it| score_cells(population, it)));
            }
        }
        sheets
    }
}

fn label(method: &str, control: Option<Control>, figures: &Figures) -> String {
    let control = if control.is_some() { " (control)" } else { "" };
    let open = if figures.classes[&Class::U] > 0 { " †" } else { "" };
    format!("{method}{control}{open}")
}

fn filled(mut sheet: Sheet, rows: &[Row<'_>], cells: impl Fn(&Figures) -> Vec<String>) -> Sheet {
    sheet.lines = rows.iter().map(|(name, figures)| Line::Cells(name.clone(), cells(figures))).collect();
    sheet
}

fn grouped(mut sheet: Sheet, groups: &[&GroupReport], cells: impl Fn(&Figures) -> Vec<String>) -> Sheet {
    let mut last = None;
    for it in groups {
        if last != Some(&it.group) {
            let name = if it.group.is_empty() { "(none)" } else { &it.group };
            sheet.lines.push(Line::Section(name.to_owned()));
            last = Some(&it.group);
        }
        let name = format!("  {}", label(&it.method, it.control, &it.figures));
        sheet.lines.push(Line::Cells(name, cells(&it.figures)));
    }
    sheet
}

fn coverage(title: &str) -> Sheet {
    Sheet::new(title, &["method", "within budget", "with recovery", "timeouts", "failed", "unresolved"])
}

fn coverage_cells(it: &Figures) -> Vec<String> {
    let mut within = rate(&it.completed);
    if let Some([low, high]) = it.completed.interval {
        let (first, second) = within.split_once('\n').unwrap_or((&within, ""));
        within = format!("{first} [{}–{}]\n{second}", percent(low), percent(high));
    }
    vec![
        within,
        rate(&it.completed_with_recovery),
        rate(&it.timeouts),
        rate(&it.failures),
        rate(&it.unresolved),
    ]
}

fn classes() -> Sheet {
    let head = ["method", "E", "J", "R", "F", "U", "model", "code", "render", "limit", "salvage-\nable"];
    let mut sheet = Sheet::new("Sets of B.4 (E = J + R + F + U), and failures by cause", &head);
    sheet.notes.push("Failures by cause leave timeouts out. Salvageable: failures that left an artifact which renders (--recover any counts them in R).".into());
    sheet
}

fn classes_cells(it: &Figures) -> Vec<String> {
    let sets = [Class::J, Class::R, Class::F, Class::U].map(|class| it.classes[&class]);
    let causes = Cause::ALL.map(|cause| it.failures_by_cause[&cause]);
    let all = std::iter::once(it.registered).chain(sets).chain(causes).chain([it.salvageable]);
    all.map(|count| count.to_string()).collect()
}

fn open() -> Sheet {
    let head = [
        "method",
        "E",
        "U",
        "pending",
        "cancelled",
        "infra",
        "provider",
        "not\nrendered",
        "not\njudged",
        "not\nreadable",
    ];
    Sheet::new("Unresolved, by reason", &head)
}

fn open_cells(it: &Figures) -> Vec<String> {
    let reasons = Open::ALL.map(|why| it.unresolved_by_reason[&why]);
    [it.registered, it.classes[&Class::U]].into_iter().chain(reasons).map(|count| count.to_string()).collect()
}

fn times() -> Sheet {
    let head = ["method", "mean s", "with recovery", "agent s", "model s", "render s"];
    let mut sheet = Sheet::new("Time", &head);
    sheet.notes.push("Means over executed trials with a timing record, failures and timeouts included (n). Mean s: from the start of the agent to its end or its deadline; rendering comes after that and is not in it. With recovery: the same, but a trial that was recovered after its deadline counts with its budget and the time of its rendering (reading 2 of 3; the others are in the data).".into());
    sheet
}

fn times_cells(it: &Figures) -> Vec<String> {
    let names = ["time_s", "time_with_recovery_s", "agent_s", "model_s", "render_s"];
    names.iter().map(|name| mean(it, name, 1)).collect()
}

fn usage() -> Sheet {
    let head = ["method", "tool calls", "requests", "tokens in", "cached", "tokens out", "USD", "USD, all"];
    let mut sheet = Sheet::new("Use, per executed trial (n)", &head);
    sheet.notes.push("Of the try that counts; earlier tries and superseded attempts are not in it. USD: where run.json has prices.".into());
    sheet
}

fn usage_cells(it: &Figures) -> Vec<String> {
    let names = [
        ("tool_calls", 1),
        ("exchanges", 1),
        ("input_tokens", 0),
        ("cached_input_tokens", 0),
        ("output_tokens", 0),
        ("cost_usd", 3),
    ];
    let cells = names.iter().map(|(name, digits)| mean(it, name, *digits));
    cells.chain([it.total_cost.map_or_else(dash, |usd| format!("{usd:.2}"))]).collect()
}

fn provider() -> Sheet {
    let mut sheet = Sheet::new(
        "Waits for a failing provider",
        &["method", "over 10 % of the time", "within budget without those"],
    );
    sheet.notes.push("Their time is counted like any other in all other tables.".into());
    sheet
}

fn provider_cells(it: &Figures) -> Vec<String> {
    vec![format!("{}/{}", it.throttled, it.registered), rate(&it.completed_unthrottled)]
}

fn scores(title: &str) -> Sheet {
    let mut head = vec!["method"];
    head.extend(SCORES.iter().map(|(_, name)| *name));
    Sheet::new(title, &head)
}

fn score_cells(population: &str, it: &Figures) -> Vec<String> {
    SCORES
        .iter()
        .enumerate()
        .map(|(at, (name, _))| {
            let Some(Mean { value: Some(value), denominator, interval, numerator }) =
                it.means.get(format!("{population}_{name}").as_str())
            else {
                return dash();
            };
            let interval = interval.map_or_else(String::new, |[low, high]| format!("\n[{low:.3}–{high:.3}]"));
            // Of points, both counts are of interest; of ratings, over how many tasks.
            let part = if at < 3 {
                format!("{numerator:.0}/{denominator:.0}")
            } else {
                format!("n {denominator:.0}")
            };
            format!("{value:.3}\n{part}{interval}")
        })
        .collect()
}

/// A rate with its counts below.
fn rate(it: &Rate) -> String {
    let value = it.value.map_or_else(dash, |value| format!("{} %", percent(value)));
    format!("{value}\n{}/{}", it.numerator, it.denominator)
}

/// Three digits that count, as the paper has them: 96.9, 4.58.
pub fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let digits = if percent >= 99.95 {
        0
    } else if percent >= 9.995 {
        1
    } else {
        2
    };
    format!("{percent:.digits$}")
}

/// A mean with its interval, and its denominator below.
fn mean(it: &Figures, name: &str, digits: usize) -> String {
    it.means.get(name).map_or_else(dash, |it| mean_cell(it, digits))
}

/// The same for any mean.
pub(crate) fn mean_cell(it: &Mean, digits: usize) -> String {
    let Mean { value: Some(value), denominator, interval, .. } = it else { return dash() };
    // Where there are hundreds, tenths say nothing.
    let digits = if digits == 1 && *value >= 99.95 { 0 } else { digits };
    let interval =
        interval.map_or_else(String::new, |[low, high]| format!(" [{low:.digits$}–{high:.digits$}]"));
    format!("{value:.digits$}{interval}\nn {denominator:.0}")
}

pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// Counts as text, thousands apart.
pub(crate) fn grouped_digits(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::float;

    #[test]
    fn rates_read_as_in_the_paper() {
        let of = |count: u64| percent(float(count) / 1573.0);
        assert_eq!((of(1525), of(1032), of(72)), ("96.9".into(), "65.6".into(), "4.58".into()));
        assert_eq!((of(1529), of(793)), ("97.2".into(), "50.4".into()));
        assert_eq!(
            (percent(1.0), percent(0.0), percent(0.9999)),
            ("100".into(), "0.00".into(), "100".into())
        );
        assert_eq!((percent(0.09999), percent(0.9994)), ("10.0".into(), "99.9".into()));
        assert_eq!(
            (grouped_digits(1), grouped_digits(1573), grouped_digits(10_345_678)),
            ("1".into(), "1,573".into(), "10,345,678".into())
        );
    }
}
