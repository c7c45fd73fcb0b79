//! `verdict.json`: what a judge found, with its evidence; and the marks that follow from it.

use proctor_store::{PointKind, PointScore, Score};
use proctor_tasks::PointType;
use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Findings, PointVerdict, Settings};
use crate::candidate::Failure;

/// The name of this judge.
pub const JUDGE: &str = "pixel";

/// The content of `verdict.json` by the pixel judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of this format.
    pub schema: u32,
    /// Who judged.
    pub judge: String,
    /// Version of its rules: of two versions the marks are not comparable.
    pub version: u32,
    /// What it judged by.
    pub settings: Settings,
    /// What it judged.
    pub inputs: Inputs,
    /// Why there is no picture to judge, if there is none: every point that can be decided fails.
    pub failure: Option<Failure>,
    /// What was measured; none without a picture.
    pub findings: Option<Findings>,
    /// Its word on each scoring point of the task.
    pub points: Vec<PointVerdict>,
    /// What should be known beside it.
    pub flags: Vec<Flag>,
}

/// Digests of what was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inputs {
    /// The canonical rendering; none if there is none.
    pub candidate: Option<Digest>,
    /// The source picture.
    pub source: Digest,
    /// The reference target.
    pub target: Digest,
    /// The scoring points, as JSON.
    pub points: Digest,
}

/// What should be known beside a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// There is next to nothing on the candidate.
    Blank,
    /// The candidate has another size than the canvas: it was scaled or padded.
    CandidateFitted,
    /// Source and target have different sizes: the footprint holds what is only shifted, too.
    SizesDiffer,
    /// Source and target look the same: there is no edit to measure.
    NoEdit,
    /// The package is not as it was when the trial was run.
    TaskChanged,
}

impl Verdict {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;
    /// The version of the rules in this crate.
    pub const VERSION: u32 = 1;

    /// The judge's name in `score.json`.
    pub fn signature() -> String {
        format!("{JUDGE}/{}", Self::VERSION)
    }

    /// Whether it is what judging again would come to.
    pub(super) fn is_current(&self, inputs: &Inputs, failure: Option<&Failure>, settings: &Settings) -> bool {
        (self.schema, self.version) == (Self::SCHEMA, Self::VERSION)
            && self.inputs == *inputs
            && self.failure.as_ref() == failure
            && self.settings == *settings
    }

    /// The marks. Points that this judge cannot decide are not among them: that depends on the task alone, so that every
    /// trial of a task is marked on the same points.
    pub fn score(&self) -> Score {
        let mark = |point: &PointVerdict| {
            let kind = match point.kind {
                PointType::Direct => PointKind::Direct,
                PointType::Derived => PointKind::Derived,
                PointType::Invariant => PointKind::Invariant,
            };
            let satisfied = Some(point.satisfied?);
            Some(PointScore { id: point.id.clone(), kind, satisfied })
        };
        Score {
            schema: Score::SCHEMA,
            judge: Self::signature(),
            candidate: Some(self.inputs.candidate.into()),
            points: self.points.iter().filter_map(mark).collect(),
            visual_quality: None,
            domain_quality: None,
        }
    }
}
