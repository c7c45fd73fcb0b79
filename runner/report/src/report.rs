//! A run accounted for: what is printed, in whatever form.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::accounting::{
    AccountingError, Basis, Class, Open, ProviderErrors, Recover, Rules, Verdict, check,
};
use crate::curve::Curve;
use crate::figures::{Accounts, Figures};
use crate::filter::FilterError;
use crate::paper::TaskPoints;
use crate::row::{Rows, float};
use crate::words::{agreeing, counted};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where outages of the provider go.
    pub provider_errors: ProviderErrors,
    /// What may be recovered.
    pub recover: Recover,
    /// Only trials for which this holds.
    pub filter: Option<String>,
    /// Tables by these.
    pub by: Vec<Grouping>,
}

/// What methods are compared within.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grouping {
    /// Artifact category.
    Category,
    /// Difficulty.
    Difficulty,
    /// Rendering mode.
    Mode,
    /// Operation.
    Operation,
}

impl Grouping {
    /// All.
    pub const ALL: [Self; 4] = [Self::Category, Self::Difficulty, Self::Mode, Self::Operation];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Category => "category",
            Self::Difficulty => "difficulty",
            Self::Mode => "mode",
            Self::Operation => "operation",
        }
    }
}

/// Whether a method is there to check the run itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Hands in the reference: must get full marks.
    Oracle,
    /// Does nothing: must get none.
    Nop,
}

/// A method with its figures.
#[derive(Clone, Debug, Serialize)]
pub struct MethodReport {
    /// Its name.
    pub method: String,
    /// Who answers.
    pub track: String,
    /// The harness, with its version.
    pub harness: String,
    /// The model.
    pub model: Option<String>,
    /// Whether it is a control.
    pub control: Option<Control>,
    /// Budget in seconds.
    pub budget_s: f64,
    /// The figures.
    pub figures: Figures,
}

/// A method within a group of tasks.
#[derive(Clone, Debug, Serialize)]
pub struct GroupReport {
    /// What the tasks are grouped by.
    pub by: Grouping,
    /// Which of the groups.
    pub group: String,
    /// The method.
    pub method: String,
    /// Whether it is a control.
    pub control: Option<Control>,
    /// The figures.
    pub figures: Figures,
}

/// A trial in U.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenTrial {
    /// Its name.
    pub trial: String,
    /// The method, by its name in this report.
    pub method: String,
    /// Why it is there.
    pub why: Open,
}

/// A run accounted for.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Name of the run.
    pub run: String,
    /// Version of proctor that made it.
    pub version: String,
    /// Id of the toolchain image.
    pub image: String,
    /// How the rules are read.
    pub rules: Rules,
    /// Who marked, by name; none where no judge has run.
    pub judges: Vec<String>,
    /// Only trials for which this holds are in it.
    pub filter: Option<String>,
    /// Tasks of the plan.
    pub tasks: usize,
    /// Source artifacts of those.
    pub sources: usize,
    /// Attempts at each task by each method.
    pub attempts: u32,
    /// A control that shows that no figure can be trusted.
    pub alarms: Vec<String>,
    /// What is wrong with the files, or must not be compared.
    pub problems: Vec<String>,
    /// What should be known beside the figures.
    pub notes: Vec<String>,
    /// What the tasks are marked on.
    pub points: TaskPoints,
    /// The trials in U, by name.
    pub unresolved_trials: Vec<OpenTrial>,
    /// The methods, in the order of the plan.
    pub methods: Vec<MethodReport>,
    /// The same by groups of tasks.
    pub groups: Vec<GroupReport>,
    /// How completions add up.
    pub curves: Vec<Curve>,
}

/// No report can be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The accounts do not add up.
    #[error("the accounts do not add up, which is a defect of proctor: {0}")]
    Accounting(#[from] AccountingError),
    /// The filter cannot be used.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

/// The rules for a run, and the verdict on each of its rows.
pub fn judge(rows: &Rows, provider_errors: ProviderErrors, recover: Recover) -> (Rules, Vec<Verdict>) {
    let basis = if rows.is_judged() { Basis::Judge } else { Basis::Rendering };
    let rules = Rules { provider_errors, recover, basis };
    (rules, rows.rows.iter().map(|row| rules.of(row)).collect())
}

impl Report {
    /// Accounts for a run.
    pub fn new(rows: &Rows, options: &Options) -> Result<Self, ReportError> {
        let (rules, verdicts) = judge(rows, options.provider_errors, options.recover);
        check(rows, &verdicts, &rules)?;
        let places = match &options.filter {
            Some(filter) => rows.select(&verdicts, filter)?,
            None => (0..rows.rows.len()).collect(),
        };
        let accounts = Accounts::new(rows, &verdicts, rules.basis);
        let mut report = Self::empty(rows, rules, options.filter.clone());
        report.points = accounts.task_points(&places);
        report.unresolved_trials = places.iter().filter_map(|at| open(rows, &verdicts, *at)).collect();
        let by_method = split(&places, |at| rows.rows[at].method);
        for (at, method) in rows.record.methods.iter().enumerate() {
            let places = by_method.get(&at).map_or(&[][..], Vec::as_slice);
            let control = control(&method.harness);
            report.curves.push(accounts.curve(at, control.is_some(), places));
            report.methods.push(MethodReport {
                method: method.id.to_string(),
                track: method.track.clone(),
                harness: method.harness.clone(),
                model: method.model.clone(),
                control,
                budget_s: float(method.budget_ms.0) / 1000.0,
                figures: accounts.figures(places, true),
            });
        }
        for by in &options.by {
            report.group(*by, &accounts, &places);
        }
        report.say_what_should_be_known(&accounts);
        Ok(report)
    }

    /// Trials in U: while there are any, no figure is final.
    pub fn unresolved(&self) -> u64 {
        self.methods.iter().map(|it| it.figures.classes[&Class::U]).sum()
    }

    fn empty(rows: &Rows, rules: Rules, filter: Option<String>) -> Self {
        let record = &rows.record;
        let sources: std::collections::BTreeSet<&str> = record
            .tasks
            .iter()
            .map(|it| if it.facts.source.is_empty() { &*it.id } else { &*it.facts.source })
            .collect();
        let judges: std::collections::BTreeSet<&str> =
            rows.rows.iter().filter_map(|row| Some(&*row.ended()?.score.as_ref()?.judge)).collect();
        Self {
            run: record.name.clone(),
            version: record.version.clone(),
            image: record.image.id.clone(),
            judges: judges.into_iter().map(str::to_owned).collect(),
            rules,
            filter,
            tasks: record.tasks.len(),
            sources: sources.len(),
            attempts: record.attempts,
            alarms: Vec::new(),
            problems: rows.problems.clone(),
            notes: Vec::new(),
            points: TaskPoints::default(),
            unresolved_trials: Vec::new(),
            methods: Vec::new(),
            groups: Vec::new(),
            curves: Vec::new(),
        }
    }

    fn group(&mut self, by: Grouping, accounts: &Accounts<'_>, places: &[usize]) {
        let rows = accounts.rows;
        let groups = split(places, |at| {
            let row = &rows.rows[at];
            let facts = &row.task.facts;
            let group = match by {
                Grouping::Category => &facts.category,
                Grouping::Difficulty => &facts.difficulty,
                Grouping::Mode => &facts.mode,
                Grouping::Operation => &facts.operation,
            };
            (rank(by, group), group.as_str(), row.method)
        });
        for ((_, group, method), places) in groups {
            let method = &rows.record.methods[method];
            self.groups.push(GroupReport {
                by,
                group: group.to_owned(),
                method: method.id.to_string(),
                control: control(&method.harness),
                figures: accounts.figures(&places, false),
            });
        }
    }

    fn say_what_should_be_known(&mut self, accounts: &Accounts<'_>) {
        for it in &self.methods {
            self.alarms.extend(it.alarm(self.rules.basis));
            if it.figures.disturbed > 0 {
                self.notes.push(format!(
                    "{}: the machine slept, or its clock jumped, during {}: the time of the sleep is left out",
                    it.method,
                    counted(it.figures.disturbed, "trial")
                ));
            }
            if it.figures.superseded > 0 {
                let (attempts, were) =
                    (it.figures.superseded, agreeing(it.figures.superseded, "was", "were"));
                self.notes.push(format!(
                    "{}: {} {were} made again (proctor rerun), and {were} not counted; the reasons are in the run",
                    it.method,
                    counted(attempts, "attempt")
                ));
            }
        }
        if self.rules.basis == Basis::Judge {
            let (unknown, all) = (accounts.unknown_tasks(), self.tasks);
            if unknown > 0 {
                self.problems.push(format!(
                    "nobody was judged on {unknown} of {}, so that their points are unknown: auto-zero leaves them out",
                    counted(all, "task")
                ));
            }
            if !accounts.contradictions.is_empty() {
                let names: Vec<&str> = accounts.contradictions.iter().take(5).map(String::as_str).collect();
                self.problems.push(format!(
                    "the marks of {} disagree about the points: {}",
                    counted(accounts.contradictions.len(), "task"),
                    names.join(", ")
                ));
            }
        }
    }
}

impl MethodReport {
    /// What a control says about the run, if it says that something is wrong.
    fn alarm(&self, basis: Basis) -> Option<String> {
        let figures = &self.figures;
        let (done, all) = (figures.completed.numerator, figures.registered);
        let short = |name: &str, full: f64| {
            figures.means.get(name).and_then(|it| it.value).is_some_and(|value| value < full)
        };
        match self.control? {
            Control::Oracle => {
                let marks = basis == Basis::Judge
                    // Ratings are matters of taste; whether a point holds is not.
                    && ["direct", "derived", "invariant"]
                        .iter()
                        .any(|it| short(&format!("completed_only_{it}"), 1.0));
                let missed = figures.timeouts.numerator + figures.failures.numerator;
                if missed > 0 {
                    Some(format!(
                        "{}: the reference itself completed only {done} of {all} ({missed} failed): packages, image or renderer are at fault, and no figure here can be trusted",
                        self.method
                    ))
                } else if marks {
                    Some(format!(
                        "{}: the reference itself did not satisfy every point: the judge or the rubric is at fault, and no score here can be trusted",
                        self.method
                    ))
                } else {
                    None
                }
            }
            Control::Nop if done > 0 => Some(format!(
                "{}: {done} of {all} completed though nothing was done: completion is given away, and no figure here can be trusted",
                self.method
            )),
            Control::Nop => None,
        }
    }
}

fn open(rows: &Rows, verdicts: &[Verdict], at: usize) -> Option<OpenTrial> {
    let row = &rows.rows[at];
    let why = verdicts[at].open?;
    Some(OpenTrial { trial: row.trial.to_string(), method: rows.method(row).to_string(), why })
}

/// Whether a harness is a control.
pub(crate) fn control(harness: &str) -> Option<Control> {
    match harness.split('@').next() {
        Some("oracle") => Some(Control::Oracle),
        Some("nop") => Some(Control::Nop),
        _ => None,
    }
}

/// Difficulties go from easy to hard; everything else goes by name.
fn rank(by: Grouping, group: &str) -> usize {
    let known = ["easy", "medium", "hard"];
    match by {
        Grouping::Difficulty => known.iter().position(|it| *it == group).unwrap_or(known.len()),
        _ => 0,
    }
}

fn split<K: Ord>(places: &[usize], key: impl Fn(usize) -> K) -> BTreeMap<K, Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for at in places {
        groups.entry(key(*at)).or_default().push(*at);
    }
    groups
}
