//! How far judges agree: point by point, rating by rating, and in the order of the methods that follows.

use std::collections::{BTreeMap, BTreeSet};

use proctor_store::{PointKind, Rating, RunDir, Score, StoreError};
use serde::Serialize;

use crate::read::shown;
use crate::row::float;

/// Two judges, over the trials that both have marked and that have a picture: of one without, no judge has an opinion, and
/// all would agree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeAgreement {
    /// One.
    pub one: String,
    /// The other.
    pub other: String,
    /// Trials that both have marked.
    pub trials: u64,
    /// Trials without a picture that both have marked: left out.
    pub without_picture: u64,
    /// Points that both have marked.
    pub points: u64,
    /// Share of those with the same mark; none without any.
    pub same: Option<f64>,
    /// Cohen's kappa (1960) of these marks; none if chance alone makes full agreement.
    pub kappa: Option<f64>,
    /// The same by kind of point.
    pub by_kind: BTreeMap<PointKind, PointAgreement>,
    /// Of visual quality.
    pub visual_quality: RatingAgreement,
    /// Of domain validity.
    pub domain_quality: RatingAgreement,
    /// Ratings that both have given, visual and domain together.
    pub ratings: u64,
    /// Mean distance of those, in steps of the scale.
    pub rating_distance: Option<f64>,
    /// Methods with points that both have marked.
    pub methods: u64,
    /// Spearman's correlation of the methods' shares of points that hold; none for fewer than two methods, or without any
    /// difference between them.
    pub spearman: Option<f64>,
    /// Kendall's tau-b of the same.
    pub kendall: Option<f64>,
}

/// Two judges on one kind of point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PointAgreement {
    /// Points that both have marked.
    pub points: u64,
    /// Share of those with the same mark; none without any.
    pub same: Option<f64>,
    /// Cohen's kappa (1960) of these marks; none if chance alone makes full agreement.
    pub kappa: Option<f64>,
}

/// Two judges on one rating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RatingAgreement {
    /// Trials that both have rated.
    pub ratings: u64,
    /// Share of those with the same rating; none without any.
    pub same: Option<f64>,
    /// Cohen's weighted kappa (1968) with squared distances, so that 4 and 5 differ less than 1 and 5; none if either gave
    /// the same rating each time, and the other too.
    pub weighted_kappa: Option<f64>,
    /// Mean distance, in steps of the scale.
    pub distance: Option<f64>,
}

/// Marks of one trial by two judges.
#[derive(Default)]
struct Counts {
    trials: u64,
    without_picture: u64,
    /// By kind: both yes, only the one, only the other, neither.
    points: BTreeMap<PointKind, [u64; 4]>,
    /// Visual and domain quality: how often the one gave this and the other that.
    ratings: [[[u64; 5]; 5]; 2],
    /// By method: points that both have marked, and how many hold for the one and for the other.
    by_method: BTreeMap<String, [u64; 3]>,
}

/// The agreement of every two judges of a run.
pub fn agreement(run: &RunDir) -> Result<Vec<JudgeAgreement>, StoreError> {
    let mut pairs: BTreeMap<(String, String), Counts> = BTreeMap::new();
    for trial in run.trials_on_disk()? {
        let picture = shown(&trial.render());
        let mut scores = trial.scores()?;
        // Marks of what was shown before say nothing about what another judge makes of this.
        scores.retain(|it| it.is_of(picture));
        for (at, one) in scores.iter().enumerate() {
            for other in &scores[at + 1..] {
                // By name, so that a pair is one pair whoever judged a trial first.
                let (one, other) = if one.judge <= other.judge { (one, other) } else { (other, one) };
                let pair = pairs.entry((one.judge.clone(), other.judge.clone())).or_default();
                if picture.is_some() {
                    pair.count(trial.id().method().as_str(), one, other);
                } else {
                    pair.without_picture += 1;
                }
            }
        }
    }
    Ok(pairs.into_iter().map(|((one, other), counts)| counts.finish(one, other)).collect())
}

impl Counts {
    fn count(&mut self, method: &str, one: &Score, other: &Score) {
        let mut both = false;
        let theirs: BTreeMap<&str, Option<bool>> =
            other.points.iter().map(|it| (it.id.as_str(), it.satisfied)).collect();
        let by_method = self.by_method.entry(method.to_owned()).or_default();
        for point in &one.points {
            let (Some(a), Some(Some(b))) = (point.satisfied, theirs.get(point.id.as_str())) else { continue };
            both = true;
            let at = usize::from(!a) * 2 + usize::from(!b);
            self.points.entry(point.kind).or_default()[at] += 1;
            *by_method = [by_method[0] + 1, by_method[1] + u64::from(a), by_method[2] + u64::from(*b)];
        }
        let ratings =
            [(one.visual_quality, other.visual_quality), (one.domain_quality, other.domain_quality)];
        for (table, (a, b)) in self.ratings.iter_mut().zip(ratings) {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let place = |it: Rating| usize::from(it.get().saturating_sub(1)).min(4);
            table[place(a)][place(b)] += 1;
            both = true;
        }
        self.trials += u64::from(both);
    }

    fn finish(self, one: String, other: String) -> JudgeAgreement {
        let all = self.points.values().fold([0; 4], |sum, it| [0, 1, 2, 3].map(|at| sum[at] + it[at]));
        let PointAgreement { points, same, kappa } = of_points(all);
        let [visual_quality, domain_quality] = self.ratings.map(|table| of_ratings(&table));
        let ratings = visual_quality.ratings + domain_quality.ratings;
        let distance = |it: RatingAgreement| it.distance.unwrap_or(0.0) * float(it.ratings);
        let distances = distance(visual_quality) + distance(domain_quality);
        let share = |it: &[u64; 3], judge: usize| float(it[judge]) / float(it[0]);
        let methods: Vec<[f64; 2]> =
            self.by_method.values().filter(|it| it[0] > 0).map(|it| [share(it, 1), share(it, 2)]).collect();
        let [ones, others] = [0, 1].map(|judge| methods.iter().map(|it| it[judge]).collect::<Vec<f64>>());
        JudgeAgreement {
            one,
            other,
            trials: self.trials,
            without_picture: self.without_picture,
            points,
            same,
            kappa,
            by_kind: self.points.into_iter().map(|(kind, it)| (kind, of_points(it))).collect(),
            visual_quality,
            domain_quality,
            ratings,
            rating_distance: (ratings > 0).then(|| distances / float(ratings)),
            methods: methods.len() as u64,
            spearman: pearson(&ranks(&ones), &ranks(&others)),
            kendall: kendall(&ones, &others),
        }
    }
}

fn of_points(counts: [u64; 4]) -> PointAgreement {
    let points: u64 = counts.iter().sum();
    let [both, first, second, neither] = counts.map(float);
    let all = float(points);
    let same = (points > 0).then(|| (both + neither) / all);
    let chance = ((both + first) * (both + second) + (neither + second) * (neither + first)) / (all * all);
    let kappa = same.filter(|_| chance < 1.0).map(|same| (same - chance) / (1.0 - chance));
    PointAgreement { points, same, kappa }
}

/// `table[a][b]`: how often the one rated `a` + 1 and the other `b` + 1.
fn of_ratings(table: &[[u64; 5]; 5]) -> RatingAgreement {
    let ratings: u64 = table.iter().flatten().sum();
    if ratings == 0 {
        return RatingAgreement::default();
    }
    let all = float(ratings);
    let rows = table.map(|row| float(row.iter().sum()));
    let columns = [0, 1, 2, 3, 4].map(|at| float(table.iter().map(|row| row[at]).sum()));
    let (mut same, mut distance, mut seen, mut by_chance) = (0, 0.0, 0.0, 0.0);
    for (a, row) in table.iter().enumerate() {
        for (b, count) in row.iter().enumerate() {
            let apart = float(a.abs_diff(b) as u64);
            same += if a == b { *count } else { 0 };
            distance += apart * float(*count);
            seen += apart * apart * float(*count);
            by_chance += apart * apart * rows[a] * columns[b] / all;
        }
    }
    RatingAgreement {
        ratings,
        same: Some(float(same) / all),
        weighted_kappa: (by_chance > 0.0).then(|| 1.0 - seen / by_chance),
        distance: Some(distance / all),
    }
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|it| *it < value).count();
        let equal = values.iter().filter(|it| it.total_cmp(value).is_eq()).count();
        float(below as u64) + f64::midpoint(float(equal as u64), 1.0)
    };
    values.iter().map(rank).collect()
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let count = float(a.len() as u64);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(a, b)| term(a - mean_a, b - mean_b)).sum()
    };
    let spread = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (spread > 0.0).then(|| sum(&|a, b| a * b) / spread)
}

/// Kendall's tau-b: pairs in the same order less those in the other, with ties taken out of the whole.
fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mut same, mut other, mut tied_a, mut tied_b) = (0_u64, 0_u64, 0_u64, 0_u64);
    for i in 0..a.len() {
        for j in i + 1..a.len() {
            match (a[i].total_cmp(&a[j]), b[i].total_cmp(&b[j])) {
                (x, y) if x.is_eq() && y.is_eq() => {}
                (x, _) if x.is_eq() => tied_a += 1,
                (_, y) if y.is_eq() => tied_b += 1,
                (x, y) if x == y => same += 1,
                _ => other += 1,
            }
        }
    }
    let whole = (float(same + other + tied_a) * float(same + other + tied_b)).sqrt();
    (whole > 0.0).then(|| (float(same) - float(other)) / whole)
}

/// The judges that have marked a run, with the trials that each has marked.
pub fn judges(run: &RunDir) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut judges = BTreeMap::new();
    for trial in run.trials_on_disk()? {
        let names: BTreeSet<String> = trial.scores()?.into_iter().map(|it| it.judge).collect();
        for name in names {
            *judges.entry(name).or_default() += 1;
        }
    }
    Ok(judges)
}

#[cfg(test)]
mod tests {
    use proctor_store::{PointKind, PointScore, Rating};

    use super::*;

    fn score(judge: &str, marks: &[Option<bool>], rating: Option<u8>) -> Score {
        let point = |(at, satisfied): (usize, &Option<bool>)| PointScore {
            id: format!("p{at}"),
            kind: PointKind::Direct,
            satisfied: *satisfied,
        };
        let rating = rating.map(|it| Rating::try_from(it).unwrap());
        Score {
            schema: Score::SCHEMA,
            judge: judge.into(),
            candidate: None,
            points: marks.iter().enumerate().map(point).collect(),
            visual_quality: rating,
            domain_quality: None,
        }
    }

    #[test]
    fn agreement_is_counted_over_what_both_have_marked() {
        let yes = Some(true);
        let no = Some(false);
        let mut counts = Counts::default();
        // Both yes 2, only one 1, only the other 1, neither 1; one point only one has marked.
        counts.count(
            "m",
            &score("a", &[yes, yes, yes, no, no, yes], Some(4)),
            &score("b", &[yes, yes, no, yes, no, None], Some(2)),
        );
        let came = counts.finish("a".into(), "b".into());
        assert_eq!((came.trials, came.points, came.ratings), (1, 5, 1));
        assert_eq!((came.same, came.rating_distance), (Some(0.6), Some(2.0)));
        // Chance: (3·3 + 2·2) / 25 = 0.52; kappa = 0.08 / 0.48.
        assert!((came.kappa.unwrap() - 0.08 / 0.48).abs() < 1e-12);
        assert_eq!((came.spearman, came.kendall), (None, None), "one method has no order");
    }

    #[test]
    fn kinds_are_apart_and_ratings_weigh_by_their_distance() {
        // Squared distances: 6 over 8 pairs; by chance 224 over the 64 pairs of any with any. 1 - (6/8) / (224/64).
        let mut counts = Counts::default();
        for (a, b) in [(1, 1), (2, 3), (3, 3), (4, 4), (5, 4), (5, 5), (4, 2), (2, 2)] {
            counts.count("m", &score("a", &[], Some(a)), &score("b", &[], Some(b)));
        }
        let visual = counts.finish("a".into(), "b".into()).visual_quality;
        assert_eq!((visual.ratings, visual.same, visual.distance), (8, Some(0.625), Some(0.5)));
        assert!((visual.weighted_kappa.unwrap() - 11.0 / 14.0).abs() < 1e-12, "{visual:?}");
        let mut counts = Counts::default();
        let kinds = |judge, marks: [bool; 4]| {
            let mut score = score(judge, &marks.map(Some), None);
            score.points[2].kind = PointKind::Derived;
            score.points[3].kind = PointKind::Derived;
            score
        };
        counts.count("m", &kinds("a", [true, false, true, true]), &kinds("b", [true, false, true, false]));
        let came = counts.finish("a".into(), "b".into());
        assert_eq!(came.by_kind[&PointKind::Direct].kappa, Some(1.0));
        // Chance: (2·1 + 0·1) / 4 = 0.5, and as many agree.
        let derived = came.by_kind[&PointKind::Derived];
        assert_eq!((derived.points, derived.same, derived.kappa), (2, Some(0.5), Some(0.0)));
        assert_eq!((came.points, came.same, came.visual_quality.weighted_kappa), (4, Some(0.75), None));
    }

    #[test]
    fn orders_are_compared_as_scipy_does() {
        // Values of scipy.stats.spearmanr and kendalltau (1.15), the second with ties.
        for (a, b, spearman, tau) in [
            ([0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.1, 0.5, 0.3, 0.4], 0.6, 0.4),
            ([1.0, 2.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 2.0, 5.0], 0.763_157_894_736_842_1, 2.0 / 3.0),
        ] {
            assert!((pearson(&ranks(&a), &ranks(&b)).unwrap() - spearman).abs() < 1e-12);
            assert!((kendall(&a, &b).unwrap() - tau).abs() < 1e-12);
        }
        assert_eq!(kendall(&[0.5, 0.5], &[0.1, 0.2]), None);
    }
}
