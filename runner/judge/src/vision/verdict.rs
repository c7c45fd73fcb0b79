//! `verdict.json` of a vision judge: everything that went in, every reply that came, and the marks that follow.

use std::collections::BTreeMap;

use proctor_store::{PointKind, PointScore, Score};
use proctor_tasks::{PointType, ScoringPoint};
use proctor_traces::{Digest, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reading, SentPicture, Unscored};
use crate::Failure;

/// The content of `verdict.json` by a vision judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of this format.
    pub schema: u32,
    /// Who judged: [`Settings::signature`].
    pub judge: String,
    /// What it judged by.
    pub settings: Settings,
    /// What it judged.
    pub inputs: VisionInputs,
    /// Why there is no picture to judge, if there is none: no point holds then, and nothing was asked.
    pub failure: Option<Failure>,
    /// The pictures, as they were sent.
    pub pictures: Vec<SentPicture>,
    /// The replies. The marks are those of the first; the others show how steady the judge is.
    pub answers: Vec<Answered>,
}

/// What a vision judge judges by. Two that differ in any of it are two judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// `PROVIDER/NAME`.
    pub model: String,
    /// Level of reasoning that is asked for; none asks for none.
    pub reasoning: Option<String>,
    /// Most tokens of a reply.
    pub max_output_tokens: u32,
    /// More fields of each request; none are sent that nobody configured.
    pub extra: BTreeMap<String, serde_json::Value>,
    /// Digest of the prompts.
    pub prompts: Digest,
}

impl Settings {
    /// The judge's name, as marks carry it.
    pub fn signature(&self) -> String {
        let reasoning = self.reasoning.as_deref().map(|it| format!("@{it}")).unwrap_or_default();
        // What is not told by the name has a part in it all the same.
        let rest = serde_json::json!([self.max_output_tokens, self.extra, self.prompts]);
        format!("{}{reasoning}#{}", self.model, Digest::of(rest.to_string().as_bytes()).short())
    }
}

/// Digests of what was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VisionInputs {
    /// The canonical rendering; none if there is none.
    pub candidate: Option<Digest>,
    /// The source picture.
    pub source: Digest,
    /// The reference target.
    pub reference: Digest,
    /// The instruction, as the task has it.
    pub instruction: Digest,
    /// The scoring points, as JSON.
    pub points: Digest,
}

/// A reply, and what it came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    /// Whether the candidate was shown before the reference.
    pub swapped: bool,
    /// The marks; none if it gave none.
    pub reading: Option<Reading>,
    /// Why it gave none.
    pub unscored: Option<Unscored>,
    /// The reply, as it came.
    pub reply: String,
    /// The model that answered, by its own words.
    pub served_model: Option<String>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Milliseconds from the first request to the reply.
    pub took_ms: u64,
    /// What went wrong on the way: requests that failed, replies that could not be read.
    pub failures: Vec<String>,
}

impl Verdict {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;

    /// The marks. Where the reply gave none, no point has one: the trial is unscored.
    pub fn score(&self, points: &[ScoringPoint]) -> Score {
        let reading = self.answers.first().and_then(|it| it.reading.as_ref());
        let satisfied = |point: &ScoringPoint| match (&self.failure, reading) {
            (Some(_), _) => Some(false),
            (None, reading) => reading?.points.iter().find(|it| it.id == point.id).map(|it| it.satisfied),
        };
        let marks = points.iter().map(|point| PointScore {
            id: point.id.clone(),
            kind: match point.kind {
                PointType::Direct => PointKind::Direct,
                PointType::Derived => PointKind::Derived,
                PointType::Invariant => PointKind::Invariant,
            },
            satisfied: satisfied(point),
        });
        Score {
            schema: Score::SCHEMA,
            judge: self.judge.clone(),
            candidate: Some(self.inputs.candidate.into()),
            points: marks.collect(),
            visual_quality: reading.map(|it| it.visual_quality.rating),
            domain_quality: reading.map(|it| it.domain_quality.rating),
        }
    }

    /// Whether the judge came to marks, or needed none.
    pub fn is_scored(&self) -> bool {
        self.failure.is_some() || self.answers.first().is_some_and(|it| it.reading.is_some())
    }
}
