//! The figures of a group of trials: each with its numerator and denominator.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_traces::{Millis, OffsetMs};
use serde::Serialize;

use crate::accounting::{Basis, Cause, Class, Coverage, Open, Verdict};
use crate::intervals::{ClusterSums, Interval, bootstrap, wilson};
use crate::paper::TaskPoints;
use crate::row::{Ended, Row, Rows, float};

/// A part of a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rate {
    /// The part, in trials.
    pub numerator: u64,
    /// The whole, in trials.
    pub denominator: u64,
    /// Their quotient; none of nothing.
    pub value: Option<f64>,
    /// Wilson's 95 % interval, in which each attempt weighs 1/attempts.
    pub interval: Option<Interval>,
}

impl Rate {
    /// `numerator` of `denominator`, with `attempts` trials per task.
    pub fn of(numerator: u64, denominator: u64, attempts: u32) -> Self {
        let (part, whole) = (float(numerator), float(denominator));
        let attempts = f64::from(attempts.max(1));
        Self {
            numerator,
            denominator,
            value: (denominator > 0).then(|| part / whole),
            interval: wilson(part / attempts, whole / attempts),
        }
    }
}

/// A mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Mean {
    /// What is divided.
    pub numerator: f64,
    /// By what: trials, or scoring points.
    pub denominator: f64,
    /// The quotient; none of nothing.
    pub value: Option<f64>,
    /// 95 % interval by the bootstrap over source artifacts, where it was asked for.
    pub interval: Option<Interval>,
}

/// All that is said of a group of trials of one method.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// |E|.
    pub registered: u64,
    /// |J|, |R|, |F|, |U|.
    pub classes: BTreeMap<Class, u64>,
    /// Normally completed, of E.
    pub completed: Rate,
    /// Those and R, of E.
    pub completed_with_recovery: Rate,
    /// Stopped at the deadline, of E.
    pub timeouts: Rate,
    /// Other failures, of E.
    pub failures: Rate,
    /// They are neither completed nor timed out nor failed, of E.
    pub unresolved: Rate,
    /// Other failures by cause.
    pub failures_by_cause: BTreeMap<Cause, u64>,
    /// U by reason; more than `unresolved` by what completed or timed out and is not judged or rendered yet.
    pub unresolved_by_reason: BTreeMap<Open, u64>,
    /// Failures that left an artifact which renders.
    pub salvageable: u64,
    /// Artifacts with a valid canonical rendering.
    pub rendered: u64,
    /// Trials that waited for a failing provider for more than a tenth of their time.
    pub throttled: u64,
    /// Normally completed without those, of E without those.
    pub completed_unthrottled: Rate,
    /// Trials during which the machine slept or its clock jumped, by a second or more.
    pub disturbed: u64,
    /// Trials that a rerun has taken the place of.
    pub superseded: u64,
    /// Means by name: see [`MEANS`].
    pub means: BTreeMap<&'static str, Mean>,
    /// USD, over all trials with an outcome; none without prices.
    pub total_cost: Option<f64>,
    /// Tokens in and out, over all trials with an outcome.
    pub total_tokens: [u64; 2],
}

/// What a mean takes from a trial: what is divided, and by what.
type Term = Option<(f64, f64)>;

/// A mean: its name, what it takes from each trial, and whether its interval is of interest.
pub(crate) struct MeanOf {
    /// Name in the data.
    pub(crate) name: &'static str,
    term: fn(&Trial<'_>) -> Term,
    with_interval: bool,
}

/// A trial with all that a mean may depend on.
struct Trial<'a> {
    row: &'a Row,
    verdict: Verdict,
    cost: Option<f64>,
    /// Points that the task has, by kind, and whether it is rated; none if nobody was judged on it.
    task: Option<&'a TaskMarks>,
}

/// What is known of a task from the marks of whoever was judged on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskMarks {
    /// Points by kind.
    pub(crate) points: [u32; 3],
    /// Whether the suite has ratings.
    pub(crate) rated: bool,
}

/// The means, in the order of the tables.
pub(crate) const MEANS: &[MeanOf] = &[
    // Time of the run in seconds, over the executed trials with a timing record.
    mean("time_s", |it| it.time().map(|ms| (millis(ms), 1.0)), true),
    // The three readings of "recovery durations replace the original ones" (docs/vao-decisions.md).
    mean("time_with_recovery_work_s", |it| it.recovered_time(|ended| ended.render_ms), false),
    mean("time_with_recovery_s", |it| it.recovered_time(deadline_and_work), true),
    mean("time_with_recovery_last_write_s", |it| it.recovered_time(last_write), false),
    mean(
        "agent_s",
        |it| it.executed().filter(|it| it.started_at.is_some()).map(|it| (millis(it.agent_ms), 1.0)),
        false,
    ),
    mean("model_s", |it| it.executed().map(|it| (millis(it.model_ms), 1.0)), false),
    mean("render_s", |it| it.row.ended()?.render_ms.map(|ms| (millis(ms), 1.0)), false),
    mean("tool_calls", |it| it.executed().map(|it| (float(it.tool_calls), 1.0)), false),
    mean("exchanges", |it| it.executed().map(|it| (float(it.exchanges), 1.0)), false),
    mean("input_tokens", |it| it.executed().map(|it| (float(it.tokens.input_tokens), 1.0)), false),
    mean(
        "cached_input_tokens",
        |it| it.executed().map(|it| (float(it.tokens.cached_input_tokens), 1.0)),
        false,
    ),
    mean("output_tokens", |it| it.executed().map(|it| (float(it.tokens.output_tokens), 1.0)), false),
    mean("cost_usd", |it| it.executed().and(it.cost).map(|cost| (cost, 1.0)), false),
    mean("auto_zero_direct", |it| it.points(0, Population::All), true),
    mean("auto_zero_derived", |it| it.points(1, Population::All), true),
    mean("auto_zero_invariant", |it| it.points(2, Population::All), true),
    mean("auto_zero_visual_quality", |it| it.rating(visual, Population::All), true),
    mean("auto_zero_domain_quality", |it| it.rating(domain, Population::All), true),
    mean("auto_zero_resolved_direct", |it| it.points(0, Population::Resolved), true),
    mean("auto_zero_resolved_derived", |it| it.points(1, Population::Resolved), true),
    mean("auto_zero_resolved_invariant", |it| it.points(2, Population::Resolved), true),
    mean("auto_zero_resolved_visual_quality", |it| it.rating(visual, Population::Resolved), true),
    mean("auto_zero_resolved_domain_quality", |it| it.rating(domain, Population::Resolved), true),
    mean("completed_only_direct", |it| it.points(0, Population::Scored), true),
    mean("completed_only_derived", |it| it.points(1, Population::Scored), true),
    mean("completed_only_invariant", |it| it.points(2, Population::Scored), true),
    mean("completed_only_visual_quality", |it| it.rating(visual, Population::Scored), true),
    mean("completed_only_domain_quality", |it| it.rating(domain, Population::Scored), true),
];

const fn mean(name: &'static str, term: fn(&Trial<'_>) -> Term, with_interval: bool) -> MeanOf {
    MeanOf { name, term, with_interval }
}

/// Over which trials a score is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Population {
    /// E: what is not scored counts as zero.
    All,
    /// E without U.
    Resolved,
    /// J ∪ R.
    Scored,
}

fn visual(ended: &Ended) -> Option<u8> {
    ended.score.as_ref()?.visual_quality.map(proctor_store::Rating::get)
}

fn domain(ended: &Ended) -> Option<u8> {
    ended.score.as_ref()?.domain_quality.map(proctor_store::Rating::get)
}

/// The second reading, ours by default: the deadline, and then the work of recovery, which is the rendering.
fn deadline_and_work(ended: &Ended) -> Option<Millis> {
    ended.render_ms.map(|work| Millis(ended.budget_ms.0.saturating_add(work.0)))
}

fn last_write(ended: &Ended) -> Option<Millis> {
    ended.last_write_ms.map(|OffsetMs(ms)| Millis(u64::try_from(ms).unwrap_or(0)))
}

/// Milliseconds; [`MeanOf::finish`] makes seconds of their sum.
fn millis(time: Millis) -> f64 {
    float(time.0)
}

/// The outcome, if the trial was executed to an end of the method's own: what our side, the provider or the user broke
/// off says nothing about how long it takes, and U never silently enters a mean.
pub(crate) fn executed(row: &Row, verdict: Verdict) -> Option<&Ended> {
    match verdict.open {
        None | Some(Open::Unrendered | Open::Unjudged) => row.ended(),
        Some(_) => None,
    }
}

impl<'a> Trial<'a> {
    fn executed(&self) -> Option<&'a Ended> {
        executed(self.row, self.verdict)
    }

    fn time(&self) -> Option<Millis> {
        self.executed()?.time_ms()
    }

    /// The time of a trial, replaced by its recovery time if it was recovered and that is known.
    fn recovered_time(&self, recovery: fn(&Ended) -> Option<Millis>) -> Term {
        let time = self.time()?;
        let recovered = (self.verdict.class == Class::R).then(|| recovery(self.row.ended()?)).flatten();
        Some((millis(recovered.unwrap_or(time)), 1.0))
    }

    fn counts(&self, population: Population) -> bool {
        match population {
            Population::All => true,
            Population::Resolved => self.verdict.class != Class::U,
            Population::Scored => self.is_scored(),
        }
    }

    fn is_scored(&self) -> bool {
        matches!(self.verdict.class, Class::J | Class::R)
    }

    /// Points are micro-averaged over points.
    fn points(&self, kind: usize, population: Population) -> Term {
        let task = self.task.filter(|_| self.counts(population))?;
        let marks = self.row.ended().and_then(|it| it.score.as_ref()).filter(|_| self.is_scored());
        let satisfied = marks.map_or(0, |it| it.satisfied[kind]);
        Some((f64::from(satisfied), f64::from(marks.map_or(task.points[kind], |it| it.points[kind]))))
    }

    /// Ratings are averaged over tasks.
    fn rating(&self, of: fn(&Ended) -> Option<u8>, population: Population) -> Term {
        self.task.filter(|it| it.rated && self.counts(population))?;
        let rating = self.row.ended().filter(|_| self.is_scored()).and_then(of).unwrap_or(0);
        Some((f64::from(rating), 1.0))
    }
}

/// Rows with their verdicts and what their tasks are known to have.
pub(crate) struct Accounts<'a> {
    /// The rows.
    pub(crate) rows: &'a Rows,
    /// The verdict on each.
    pub(crate) verdicts: &'a [Verdict],
    /// Marks by suite and task.
    pub(crate) tasks: HashMap<(&'a str, &'a str), TaskMarks>,
    /// Tasks whose marks disagree on which points they have.
    pub(crate) contradictions: BTreeSet<String>,
}

impl<'a> Accounts<'a> {
    /// Gathers what the marks say about the tasks.
    pub(crate) fn new(rows: &'a Rows, verdicts: &'a [Verdict], basis: Basis) -> Self {
        let mut tasks: HashMap<(&str, &str), TaskMarks> = HashMap::new();
        let mut contradictions = BTreeSet::new();
        let judged = rows.rows.iter().filter(|_| basis == Basis::Judge);
        for (row, marks) in judged.filter_map(|row| Some((row, row.ended()?.score.as_ref()?))) {
            let rated = marks.visual_quality.is_some() || marks.domain_quality.is_some();
            let key = (row.task.suite.as_str(), row.task.id.as_str());
            let known = tasks.entry(key).or_insert_with(|| TaskMarks { points: marks.points, rated });
            known.rated |= rated;
            if known.points != marks.points {
                contradictions.insert(row.task.id.clone());
            }
        }
        Self { rows, verdicts, tasks, contradictions }
    }

    /// Tasks of the plan whose points nobody's marks tell.
    pub(crate) fn unknown_tasks(&self) -> usize {
        let record = &self.rows.record;
        record
            .tasks
            .iter()
            .filter(|it| !self.tasks.contains_key(&(it.suite.as_str(), it.id.as_str())))
            .count()
    }

    /// What the tasks of the rows at `places` are marked on.
    pub(crate) fn task_points(&self, places: &[usize]) -> TaskPoints {
        let key = |at: &usize| {
            let task = &self.rows.rows[*at].task;
            (task.suite.as_str(), task.id.as_str())
        };
        let tasks: BTreeSet<(&str, &str)> = places.iter().map(key).collect();
        let mut sum = TaskPoints::default();
        for marks in tasks.iter().filter_map(|it| self.tasks.get(it)) {
            sum.tasks += 1;
            sum.without_derived += u64::from(marks.points[1] == 0);
            for (sum, points) in sum.points.iter_mut().zip(marks.points) {
                *sum += u64::from(points);
            }
        }
        sum
    }

    /// The figures of the rows at `places`; with bootstrap intervals if so asked for, which take their time.
    pub(crate) fn figures(&self, places: &[usize], intervals: bool) -> Figures {
        let attempts = self.rows.record.attempts;
        let (mut classes, mut failures_by_cause, mut unresolved_by_reason) = (
            BTreeMap::from([Class::J, Class::R, Class::F, Class::U].map(|it| (it, 0))),
            BTreeMap::from(Cause::ALL.map(|it| (it, 0))),
            BTreeMap::from(Open::ALL.map(|it| (it, 0))),
        );
        let (mut completed, mut timeouts, mut failures, mut unresolved) = (0, 0, 0, 0);
        let (mut salvageable, mut throttled, mut completed_throttled) = (0, 0, 0);
        let (mut disturbed, mut superseded, mut rendered, mut total_tokens) = (0, 0, 0, [0_u64; 2]);
        let mut total_cost = None;
        for trial in places.iter().map(|at| self.trial(*at)) {
            let Verdict { class, coverage, open, salvageable: good } = trial.verdict;
            *classes.entry(class).or_default() += 1;
            match coverage {
                Coverage::Completed => completed += 1,
                Coverage::TimedOut => timeouts += 1,
                Coverage::Failed(cause) => {
                    failures += 1;
                    *failures_by_cause.entry(cause).or_default() += 1;
                }
                Coverage::Unresolved(_) => unresolved += 1,
            }
            if let Some(why) = open {
                *unresolved_by_reason.entry(why).or_default() += 1;
            }
            salvageable += u64::from(good);
            superseded += u64::from(trial.row.superseded);
            let Some(ended) = trial.row.ended() else { continue };
            rendered += u64::from(ended.render == crate::RenderState::Rendered);
            disturbed += u64::from(ended.asleep_ms >= 1000);
            throttled += u64::from(ended.is_throttled());
            completed_throttled += u64::from(ended.is_throttled() && coverage == Coverage::Completed);
            total_tokens[0] = total_tokens[0].saturating_add(ended.tokens.input_tokens);
            total_tokens[1] = total_tokens[1].saturating_add(ended.tokens.output_tokens);
            total_cost = trial.cost.map(|cost| total_cost.unwrap_or(0.0) + cost).or(total_cost);
        }
        let registered = places.len() as u64;
        let of_all = |count| Rate::of(count, registered, attempts);
        Figures {
            registered,
            completed: of_all(completed),
            completed_with_recovery: of_all(completed + classes[&Class::R]),
            timeouts: of_all(timeouts),
            failures: of_all(failures),
            unresolved: of_all(unresolved),
            classes,
            failures_by_cause,
            unresolved_by_reason,
            salvageable,
            rendered,
            throttled,
            completed_unthrottled: Rate::of(
                completed - completed_throttled,
                registered - throttled,
                attempts,
            ),
            disturbed,
            superseded,
            means: self.means(places, intervals),
            total_cost,
            total_tokens,
        }
    }

    fn trial(&self, at: usize) -> Trial<'_> {
        let row = &self.rows.rows[at];
        let cost = row.ended().and_then(|it| Some(it.cost(self.rows.price(row.method)?)));
        let task = self.tasks.get(&(row.task.suite.as_str(), row.task.id.as_str()));
        Trial { row, verdict: self.verdicts[at], cost, task }
    }

    fn means(&self, places: &[usize], intervals: bool) -> BTreeMap<&'static str, Mean> {
        let clusters = self.clusters(places);
        let number = clusters.values().max().map_or(0, |last| last + 1);
        let empty = ClusterSums { numerators: vec![0.0; number], denominators: vec![0.0; number] };
        let mut sums = vec![empty; MEANS.len()];
        for at in places {
            let trial = self.trial(*at);
            let cluster = clusters[source(trial.row)];
            for (mean, sums) in MEANS.iter().zip(&mut sums) {
                if let Some((numerator, denominator)) = (mean.term)(&trial) {
                    sums.numerators[cluster] += numerator;
                    sums.denominators[cluster] += denominator;
                }
            }
        }
        let of_interest = |at: &usize| {
            intervals && MEANS[*at].with_interval && sums[*at].denominators.iter().any(|it| *it > 0.0)
        };
        let wanted: Vec<usize> = (0..MEANS.len()).filter(of_interest).collect();
        let drawn: Vec<ClusterSums> = wanted.iter().map(|at| sums[*at].clone()).collect();
        let bounds: HashMap<usize, Interval> =
            wanted.into_iter().zip(bootstrap(&drawn)).filter_map(|(at, it)| Some((at, it?))).collect();
        let each = MEANS.iter().zip(&sums).enumerate();
        each.map(|(at, (mean, sums))| (mean.name, mean.finish(sums, bounds.get(&at).copied()))).collect()
    }

    /// The source artifacts of the rows, numbered in the order of their names, so that no order of files matters.
    fn clusters(&self, places: &[usize]) -> HashMap<&str, usize> {
        let names: BTreeSet<&str> = places.iter().map(|at| source(&self.rows.rows[*at])).collect();
        names.into_iter().enumerate().map(|(at, name)| (name, at)).collect()
    }
}

/// Tasks on the same source artifact are not independent of each other. One that names none stands for itself.
pub(crate) fn source(row: &Row) -> &str {
    if row.task.facts.source.is_empty() { &row.task.id } else { &row.task.facts.source }
}

impl MeanOf {
    fn finish(&self, sums: &ClusterSums, interval: Option<Interval>) -> Mean {
        Mean::of(self.name, sums, interval)
    }
}

impl Mean {
    /// Times are added up in milliseconds, which are whole numbers and so add up to the same in any order; where the name
    /// says so (`_s`), they become seconds.
    pub(crate) fn of(name: &str, sums: &ClusterSums, interval: Option<Interval>) -> Self {
        let scale = if name.ends_with("_s") { 1000.0 } else { 1.0 };
        let numerator = sums.numerators.iter().sum::<f64>() / scale;
        let denominator = sums.denominators.iter().sum::<f64>();
        let value = (denominator > 0.0).then(|| numerator / denominator);
        Self { numerator, denominator, value, interval: interval.map(|it| it.map(|bound| bound / scale)) }
    }
}
