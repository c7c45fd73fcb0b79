//! Two methods on the same tasks, score by score: what makes a task hard falls on both.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use serde::Serialize;

use crate::accounting::{Basis, Class, Coverage, Rules, Verdict};
use crate::behaviour::NoComparison;
use crate::figures::{Accounts, Mean, source};
use crate::intervals::{ClusterSums, bootstrap};
use crate::paper::SCORES;
use crate::row::Rows;
use crate::sign_flip::{SignFlip, sign_flip};

/// What is drawn, and what has its sign turned, as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cluster {
    /// All tasks on one source artifact, which are not independent of each other.
    #[default]
    Source,
    /// Each task, with all its attempts.
    Task,
}

/// Which pairs count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// All but those with a trial in U; what is not scored is zero.
    AutoZero,
    /// Those of which both trials are scored.
    BothScored,
}

/// Two methods side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Contrast {
    /// Name of the run.
    pub run: String,
    /// The two.
    pub methods: [String; 2],
    /// Who marked.
    pub judges: Vec<String>,
    /// What is drawn.
    pub cluster: Cluster,
    /// Pairs: the same attempt at the same task by both.
    pub pairs: u64,
    /// Of these left out, since one of their trials is in U.
    pub left_out: u64,
    /// Tasks.
    pub tasks: u64,
    /// The scores.
    pub scores: Vec<ScoreContrast>,
    /// What is wrong with the files.
    pub problems: Vec<String>,
}

/// A score of both.
#[derive(Clone, Debug, Serialize)]
pub struct ScoreContrast {
    /// Its name in the data.
    pub name: &'static str,
    /// Its name for readers.
    pub title: &'static str,
    /// Over which pairs.
    pub pairs: Pairs,
    /// Of the first method.
    pub first: Option<f64>,
    /// Of the second.
    pub second: Option<f64>,
    /// First less second, with the 95 % interval of a bootstrap over clusters. Divided by points; for ratings, times and
    /// completion by pairs.
    pub difference: Mean,
    /// How likely such a difference is by chance.
    pub test: Option<SignFlip>,
    /// Clusters that have a part in it.
    pub clusters: u64,
    /// Tasks at which the first did better; of times: was faster.
    pub wins: u64,
    /// Tasks at which the second did.
    pub losses: u64,
    /// Tasks at which both did alike.
    pub ties: u64,
}

/// A value of both, and what they are divided by. All are whole numbers.
type Values = Option<([i64; 2], u32)>;

struct Score {
    name: &'static str,
    title: &'static str,
    pairs: Pairs,
    /// Whether less is better.
    less: bool,
    of: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Completed,
    Time,
    /// The position in [`SCORES`].
    Mark(usize),
}

fn scores(basis: Basis) -> Vec<Score> {
    let of = |pairs, less, kind, name, title| Score { name, title, pairs, less, of: kind };
    let mut all = vec![
        of(Pairs::AutoZero, false, Kind::Completed, "completed", "within budget"),
        of(Pairs::AutoZero, true, Kind::Time, "time_s", "time, s"),
    ];
    for pairs in [Pairs::AutoZero, Pairs::BothScored] {
        let marks = SCORES.iter().enumerate().filter(|_| basis == Basis::Judge);
        all.extend(marks.map(|(at, (name, title))| of(pairs, false, Kind::Mark(at), name, title)));
    }
    all
}

/// Compares two methods, by their names, over the rows at `chosen`.
pub fn contrast(
    rows: &Rows,
    verdicts: &[Verdict],
    rules: &Rules,
    chosen: &[usize],
    methods: [&str; 2],
    cluster: Cluster,
) -> Result<Contrast, NoComparison> {
    let sides = NoComparison::places(rows, methods)?;
    let accounts = Accounts::new(rows, verdicts, rules.basis);
    let mut found: BTreeMap<(&str, &str, u32), [Option<usize>; 2]> = BTreeMap::new();
    for at in chosen.iter().copied() {
        let row = &rows.rows[at];
        let Some(side) = sides.iter().position(|it| *it == row.method) else { continue };
        let key = (row.trial.suite(), row.trial.task(), row.trial.attempt().number());
        found.entry(key).or_default()[side] = Some(at);
    }
    let pairs: Vec<[usize; 2]> =
        found.into_values().filter_map(|[first, second]| Some([first?, second?])).collect();
    let known = pairs.iter().filter(|pair| pair.iter().all(|at| verdicts[*at].class != Class::U)).count();
    let task = |pair: &[usize; 2]| {
        let row = &rows.rows[pair[0]];
        (row.task.suite.as_str(), row.task.id.as_str())
    };
    let tasks: BTreeSet<(&str, &str)> = pairs.iter().map(task).collect();
    // Numbered by name, so that no order of files matters.
    let name = |pair: &[usize; 2]| match cluster {
        Cluster::Source => ("", source(&rows.rows[pair[0]])),
        Cluster::Task => task(pair),
    };
    let names: BTreeSet<(&str, &str)> = pairs.iter().map(name).collect();
    let numbers: HashMap<(&str, &str), usize> =
        names.into_iter().enumerate().map(|(at, it)| (it, at)).collect();
    let judges: BTreeSet<&str> =
        rows.rows.iter().filter_map(|row| Some(&*row.ended()?.score.as_ref()?.judge)).collect();
    let sums: Vec<(Score, Sums<'_>)> = scores(rules.basis)
        .into_iter()
        .map(|score| {
            let mut sums = Sums::new(numbers.len());
            for pair in &pairs {
                if let Some((values, divisor)) = accounts.values(&score, *pair) {
                    sums.add(numbers[&name(pair)], task(pair), values, divisor);
                }
            }
            (score, sums)
        })
        .collect();
    let drawn: Vec<ClusterSums> = sums.iter().map(|(_, it)| it.difference()).collect();
    let bounds = bootstrap(&drawn);
    Ok(Contrast {
        run: rows.record.name.clone(),
        methods: methods.map(str::to_owned),
        judges: judges.into_iter().map(str::to_owned).collect(),
        cluster,
        pairs: pairs.len() as u64,
        left_out: (pairs.len() - known) as u64,
        tasks: tasks.len() as u64,
        scores: sums.into_iter().zip(bounds).map(|((score, sums), it)| sums.finish(&score, it)).collect(),
        problems: rows.problems.clone(),
    })
}

impl Accounts<'_> {
    /// What a pair has of a score; none if it has no part in it.
    fn values(&self, score: &Score, pair: [usize; 2]) -> Values {
        let verdicts = pair.map(|at| self.verdicts[at]);
        let is_scored = |it: &Verdict| matches!(it.class, Class::J | Class::R);
        let counts = match score.pairs {
            Pairs::AutoZero => verdicts.iter().all(|it| it.class != Class::U),
            Pairs::BothScored => verdicts.iter().all(is_scored),
        };
        if !counts {
            return None;
        }
        match score.of {
            Kind::Completed => Some((verdicts.map(|it| i64::from(it.coverage == Coverage::Completed)), 1)),
            Kind::Time => {
                let time = |at: usize| {
                    let ms = crate::figures::executed(&self.rows.rows[at], self.verdicts[at])?.time_ms()?;
                    i64::try_from(ms.0).ok()
                };
                Some(([time(pair[0])?, time(pair[1])?], 1))
            }
            Kind::Mark(mark) => {
                let row = &self.rows.rows[pair[0]];
                let task = self.tasks.get(&(row.task.suite.as_str(), row.task.id.as_str()))?;
                let marks = |side: usize| {
                    let ended = self.rows.rows[pair[side]].ended().filter(|_| is_scored(&verdicts[side]));
                    ended.and_then(|it| it.score.as_ref())
                };
                let divisor = if mark < 3 { task.points[mark] } else { u32::from(task.rated) };
                let value = |side: usize| {
                    let marks = marks(side)?;
                    let rating = |it: Option<proctor_store::Rating>| it.map_or(0, proctor_store::Rating::get);
                    Some(match mark {
                        0..3 => i64::from(marks.satisfied[mark]),
                        3 => i64::from(rating(marks.visual_quality)),
                        _ => i64::from(rating(marks.domain_quality)),
                    })
                };
                // A task without such points has no part in this score, not even as a tie.
                (divisor > 0).then(|| ([0, 1].map(|side| value(side).unwrap_or(0)), divisor))
            }
        }
    }
}

/// The sums of a score, by cluster and by task.
struct Sums<'a> {
    clusters: Vec<[i64; 2]>,
    divisors: Vec<u64>,
    tasks: BTreeMap<(&'a str, &'a str), i64>,
}

impl<'a> Sums<'a> {
    fn new(clusters: usize) -> Self {
        Self { clusters: vec![[0; 2]; clusters], divisors: vec![0; clusters], tasks: BTreeMap::new() }
    }

    fn add(&mut self, cluster: usize, task: (&'a str, &'a str), [first, second]: [i64; 2], divisor: u32) {
        let [ones, others] = &mut self.clusters[cluster];
        *ones = ones.saturating_add(first);
        *others = others.saturating_add(second);
        self.divisors[cluster] += u64::from(divisor);
        *self.tasks.entry(task).or_default() += first - second;
    }

    fn column(&self, of: impl Fn(&[i64; 2]) -> i64) -> ClusterSums {
        ClusterSums {
            numerators: self.clusters.iter().map(|it| signed(of(it))).collect(),
            denominators: self.divisors.iter().map(|it| crate::row::float(*it)).collect(),
        }
    }

    fn difference(&self) -> ClusterSums {
        self.column(|[first, second]| first - second)
    }

    fn finish(self, score: &Score, interval: Option<[f64; 2]>) -> ScoreContrast {
        let taking_part: Vec<i64> = self
            .clusters
            .iter()
            .zip(&self.divisors)
            .filter(|(_, divisor)| **divisor > 0)
            .map(|([first, second], _)| first - second)
            .collect();
        let mean = |of: &ClusterSums| Mean::of(score.name, of, None).value;
        // A single cluster says nothing about others.
        let interval = interval.filter(|_| taking_part.len() > 1);
        let better = |it: &i64| if score.less { -*it } else { *it }.signum();
        let count = |sign: i64| self.tasks.values().filter(|it| better(it) == sign).count() as u64;
        ScoreContrast {
            name: score.name,
            title: score.title,
            pairs: score.pairs,
            first: mean(&self.column(|it| it[0])),
            second: mean(&self.column(|it| it[1])),
            difference: Mean::of(score.name, &self.difference(), interval),
            test: sign_flip(&taking_part),
            clusters: taking_part.len() as u64,
            wins: count(1),
            losses: count(-1),
            ties: count(0),
        }
    }
}

/// A sum as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "points, ratings and milliseconds of a run are far below 2^53"
)]
fn signed(sum: i64) -> f64 {
    sum as f64
}

impl Contrast {
    /// A line per score.
    pub fn write_csv(&self, to: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record([
            "first",
            "second",
            "score",
            "pairs",
            "divisor",
            "first_value",
            "second_value",
            "difference",
            "low",
            "high",
            "p",
            "exact",
            "clusters",
            "wins",
            "losses",
            "ties",
        ])?;
        let [first, second] = &self.methods;
        for it in &self.scores {
            let Mean { denominator, value, interval, .. } = it.difference;
            let [low, high] = interval.map_or([None; 2], |it| it.map(Some));
            let pairs = if it.pairs == Pairs::AutoZero { "auto_zero" } else { "both_scored" };
            let counts = (it.clusters, it.wins, it.losses, it.ties);
            let test = (it.test.map(|it| it.p), it.test.map(|it| it.exact));
            writer.serialize((
                (first, second, it.name, pairs, denominator),
                (it.first, it.second, value, low, high),
                test,
                counts,
            ))?;
        }
        writer.flush()
    }
}
