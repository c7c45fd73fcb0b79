//! `score.json`: how a judge marked the rendered artifact of a trial. Judges write it, reports read it.

use std::path::PathBuf;

use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::check_schema;
use crate::{StoreError, TrialDir, read_json};

/// The marks of one trial. For a trial that failed there may be one too, with no point satisfied: it says which points
/// the task has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Version of this format.
    pub schema: u32,
    /// Who judged: model and rubric, as one name. Marks of different judges are not compared.
    pub judge: String,
    /// What the judge had before it; none in marks of somebody who does not say, which are taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// The scoring points of the task, each with its mark.
    pub points: Vec<PointScore>,
    /// Visual quality; none if the suite has no such rating, or the judge gave none.
    pub visual_quality: Option<Rating>,
    /// Domain validity, likewise.
    pub domain_quality: Option<Rating>,
}

/// What was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Candidate {
    /// The picture with this digest.
    Picture(Digest),
    /// That there is none.
    NoPicture,
}

impl From<Option<Digest>> for Candidate {
    fn from(picture: Option<Digest>) -> Self {
        picture.map_or(Self::NoPicture, Self::Picture)
    }
}

/// The mark of one scoring point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointScore {
    /// Its name within the task.
    pub id: String,
    /// What it is about.
    pub kind: PointKind,
    /// Whether it is fully satisfied; none if the judge came to no verdict. What cannot be seen in the picture is not
    /// satisfied (B.3), and no lack of a verdict.
    pub satisfied: Option<bool>,
}

/// What a scoring point is about (B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PointKind {
    /// What the instruction asks for.
    Direct,
    /// What follows from it.
    Derived,
    /// What must stay.
    Invariant,
}

impl PointKind {
    /// All, in the order of the paper's tables.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Derived, Self::Invariant];
}

/// A rating from 1, largely unusable, to 5, clean and complete (B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Rating(u8);

/// A number that is no rating.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no rating from 1 to 5")]
pub struct RatingError(u8);

impl Rating {
    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Rating {
    type Error = RatingError;

    fn try_from(number: u8) -> Result<Self, RatingError> {
        if (1..=5).contains(&number) { Ok(Self(number)) } else { Err(RatingError(number)) }
    }
}

impl From<Rating> for u8 {
    fn from(rating: Rating) -> Self {
        rating.0
    }
}

impl JsonSchema for Rating {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rating".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 1, "maximum": 5 })
    }
}

impl Score {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;

    /// Whether these are marks of this picture, or of there being none, as far as they say.
    pub fn is_of(&self, picture: Option<Digest>) -> bool {
        self.candidate.is_none_or(|it| it == Candidate::from(picture))
    }

    /// Whether the judge came to a verdict on all of it: on every point, and on both ratings or on neither.
    pub fn is_complete(&self) -> bool {
        let ratings = (self.visual_quality.is_some(), self.domain_quality.is_some());
        let marked = self.points.iter().all(|it| it.satisfied.is_some());
        marked && ratings.0 == ratings.1 && (ratings.0 || !self.points.is_empty())
    }
}

/// Where the marks of one judge of a trial are kept, and the evidence for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarksPlace {
    folder: PathBuf,
}

impl MarksPlace {
    /// `verdict.json`.
    pub fn verdict(&self) -> PathBuf {
        self.folder.join("verdict.json")
    }

    /// `score.json`.
    pub fn score(&self) -> PathBuf {
        self.folder.join("score.json")
    }

    /// Makes the folder, if it is not there.
    pub fn make(&self) -> Result<(), StoreError> {
        std::fs::create_dir_all(&self.folder).map_err(StoreError::io("creating", &self.folder))
    }

    fn read(&self) -> Result<Option<Score>, StoreError> {
        let path = self.score();
        let score: Score = match read_json(&path, "score") {
            Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            read => read?,
        };
        check_schema(&path, "score", score.schema, Score::SCHEMA)?;
        Ok(Some(score))
    }
}

impl TrialDir {
    /// Its marks by whoever judged it first; none while it is not judged.
    pub fn score(&self) -> Result<Option<Score>, StoreError> {
        self.first_marks().read()
    }

    /// Its marks by `judge`; none if that judge has not judged it.
    pub fn score_by(&self, judge: &str) -> Result<Option<Score>, StoreError> {
        let marks = self.marks_of(judge)?.read()?;
        Ok(marks.filter(|it| it.judge == judge))
    }

    /// Where `judge` keeps its marks: who judges a trial first has `verdict.json` and `score.json` of the trial itself, each
    /// other a folder below `judges/`.
    pub fn marks_of(&self, judge: &str) -> Result<MarksPlace, StoreError> {
        let first = self.first_marks();
        let taken = first.read()?.is_some_and(|it| it.judge != judge);
        Ok(if taken {
            MarksPlace { folder: self.path().join("judges").join(folder_name(judge)) }
        } else {
            first
        })
    }

    /// All marks that it has, one set for each judge.
    pub fn scores(&self) -> Result<Vec<Score>, StoreError> {
        let mut scores: Vec<Score> = self.score()?.into_iter().collect();
        let entries = std::fs::read_dir(self.path().join("judges")).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|it| it.path()).collect();
        folders.sort();
        for folder in folders {
            scores.extend(MarksPlace { folder }.read()?);
        }
        Ok(scores)
    }

    fn first_marks(&self) -> MarksPlace {
        MarksPlace { folder: self.path().to_owned() }
    }

    /// Where the evidence for its marks is kept.
    pub fn verdict_path(&self) -> PathBuf {
        self.path().join("verdict.json")
    }

    /// Where its marks are kept.
    pub fn score_path(&self) -> PathBuf {
        self.path().join("score.json")
    }
}

/// The name of a judge as that of a folder: what is kept of it is readable, and its digest tells apart what is then alike.
fn folder_name(judge: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
    let readable: String = judge.chars().take(60).map(plain).collect();
    format!("{}-{}", readable.trim_start_matches('.'), Digest::of(judge.as_bytes()).short())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(satisfied: &[Option<bool>], ratings: [Option<u8>; 2]) -> Score {
        let point = |satisfied: &Option<bool>| PointScore {
            id: "p".into(),
            kind: PointKind::Derived,
            satisfied: *satisfied,
        };
        let [visual_quality, domain_quality] = ratings.map(|it| it.map(|n| Rating::try_from(n).unwrap()));
        Score {
            schema: 1,
            judge: "j".into(),
            candidate: None,
            points: satisfied.iter().map(point).collect(),
            visual_quality,
            domain_quality,
        }
    }

    #[test]
    fn complete_is_what_lacks_no_verdict() {
        let both = [Some(1), Some(5)];
        assert!(score(&[Some(true), Some(false)], both).is_complete());
        assert!(score(&[Some(true)], [None, None]).is_complete(), "a suite without ratings");
        assert!(score(&[], both).is_complete(), "a suite without points");
        assert!(!score(&[Some(true), None], both).is_complete());
        assert!(!score(&[Some(true)], [Some(1), None]).is_complete());
        assert!(!score(&[], [None, None]).is_complete());
    }

    #[test]
    fn a_rating_lies_between_one_and_five() {
        let read = |text: &str| serde_json::from_str::<Rating>(text).ok().map(Rating::get);
        assert_eq!(
            (read("1"), read("5"), read("0"), read("6"), read("4.5")),
            (Some(1), Some(5), None, None, None)
        );
    }

    #[test]
    fn a_trial_is_unjudged_until_there_is_a_score_that_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialDir::new(dir.path().to_owned(), "vao/a/m/1".parse().unwrap());
        assert_eq!(trial.score().unwrap(), None);
        let written = score(&[Some(true)], [Some(3), Some(4)]);
        crate::write_json(&trial.score_path(), &written).unwrap();
        assert_eq!(trial.score().unwrap(), Some(written.clone()));
        crate::write_json(&trial.score_path(), &Score { schema: 9, ..written }).unwrap();
        assert!(matches!(trial.score(), Err(StoreError::Malformed { .. })));
    }
}
