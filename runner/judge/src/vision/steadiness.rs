//! How steady a judge is: its further answers about the same pictures, against its first.

use std::collections::BTreeMap;

use proctor_store::{RunDir, StoreError, read_json};
use serde::Serialize;

use super::{Answered, Reading, Verdict};
use crate::float;

/// How steady a judge was over a run. Without `--repeat` and `--order-swap` there is nothing to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// The judge.
    pub judge: String,
    /// Its answers to the same question again.
    pub again: Spread,
    /// Its answers with candidate and reference in the other order.
    pub swapped: Spread,
}

/// How far further answers are from the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Further answers that could be read.
    pub answers: usize,
    /// Their marks of points.
    pub points: usize,
    /// Share of those that are as in the first answer; none without any.
    pub same: Option<f64>,
    /// Share of those that hold in the further answers less the same in the first: whether one order is favoured.
    pub shift: Option<f64>,
    /// Their ratings.
    pub ratings: usize,
    /// Mean distance from the first, in steps of the scale.
    pub rating_distance: Option<f64>,
}

#[derive(Default)]
struct Sums {
    answers: usize,
    points: usize,
    same: usize,
    gained: usize,
    lost: usize,
    ratings: usize,
    distance: usize,
}

/// The steadiness of every vision judge of a run that was asked more than once.
pub fn steadiness(run: &RunDir) -> Result<Vec<Steadiness>, StoreError> {
    let mut judges: BTreeMap<String, [Sums; 2]> = BTreeMap::new();
    for trial in run.trials_on_disk()? {
        for score in trial.scores()? {
            let place = trial.marks_of(&score.judge)?;
            // Verdicts of other judges have another form.
            let Ok(verdict) = read_json::<Verdict>(&place.verdict(), "verdict") else { continue };
            let mut answers = verdict.answers.iter();
            let Some(first) = answers.next().and_then(|it| it.reading.as_ref()) else { continue };
            for Answered { swapped, reading, .. } in answers {
                let Some(reading) = reading else { continue };
                let sums = judges.entry(score.judge.clone()).or_default();
                sums[usize::from(*swapped)].add(first, reading);
            }
        }
    }
    let of = |(judge, [again, swapped]): (String, [Sums; 2])| Steadiness {
        judge,
        again: again.finish(),
        swapped: swapped.finish(),
    };
    Ok(judges.into_iter().map(of).collect())
}

impl Sums {
    fn add(&mut self, first: &Reading, other: &Reading) {
        self.answers += 1;
        for (first, other) in first.points.iter().zip(&other.points) {
            self.points += 1;
            self.same += usize::from(first.satisfied == other.satisfied);
            self.gained += usize::from(!first.satisfied && other.satisfied);
            self.lost += usize::from(first.satisfied && !other.satisfied);
        }
        for (first, other) in
            [(&first.visual_quality, &other.visual_quality), (&first.domain_quality, &other.domain_quality)]
        {
            self.ratings += 1;
            self.distance += usize::from(first.rating.get().abs_diff(other.rating.get()));
        }
    }

    fn finish(self) -> Spread {
        let of = |part: f64, whole: usize| (whole > 0).then(|| part / float(whole));
        Spread {
            answers: self.answers,
            points: self.points,
            same: of(float(self.same), self.points),
            shift: of(float(self.gained) - float(self.lost), self.points),
            ratings: self.ratings,
            rating_distance: of(float(self.distance), self.ratings),
        }
    }
}
