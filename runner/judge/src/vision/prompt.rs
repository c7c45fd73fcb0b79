//! The question: instruction, points and three pictures.

use proctor_tasks::{Category, PointType, ScoringPoint};
use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::canvas::canvas_of;
use crate::resample::lanczos;
use crate::{Picture, PictureError, Size};

/// What the judge is told. The files are under version; their digest is in every verdict.
const ORDERS: &str = include_str!("../../prompts/judge.md");

/// The rubric of domain validity for a kind of artifact.
pub(crate) fn rubric(category: Category) -> &'static str {
    match category {
        Category::BusinessWebpage => include_str!("../../prompts/domain/business_webpage.md"),
        Category::ScientificDocument => include_str!("../../prompts/domain/scientific_document.md"),
        Category::Dashboard => include_str!("../../prompts/domain/dashboard.md"),
        Category::Flowchart => include_str!("../../prompts/domain/flowchart.md"),
        Category::Architecture => include_str!("../../prompts/domain/architecture.md"),
        Category::Circuit => include_str!("../../prompts/domain/circuit.md"),
        Category::StatisticalChart => include_str!("../../prompts/domain/statistical_chart.md"),
        Category::MathematicalFigure => include_str!("../../prompts/domain/mathematical_figure.md"),
        Category::ChemicalDiagram => include_str!("../../prompts/domain/chemical_diagram.md"),
    }
}

/// Digest of all prompts: verdicts by other ones are not comparable.
pub fn prompt_digest() -> Digest {
    let all: Vec<&str> = std::iter::once(ORDERS).chain(Category::ALL.into_iter().map(rubric)).collect();
    Digest::of(all.join("\n").as_bytes())
}

/// A question to a vision model.
#[derive(Clone, Debug)]
pub struct Question {
    /// What it is told beforehand.
    pub system: String,
    /// Texts and pictures, in order.
    pub pieces: Vec<Piece>,
    /// The pictures, as they were sent.
    pub pictures: Vec<SentPicture>,
    /// Ids and kinds of the points.
    pub(super) points: Vec<(String, PointType)>,
}

/// A piece of a question.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A picture, as PNG.
    Png(Vec<u8>),
}

/// A picture of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentPicture {
    /// `source`, `reference` or `candidate`.
    pub name: String,
    /// Its size in the file.
    pub original: Size,
    /// Its size as sent: the longest side is at most 1,568 pixels (B.3).
    pub sent: Size,
    /// Sent width / original width.
    pub scale: f64,
}

/// What is judged.
pub(super) struct Subject<'a> {
    pub(super) instruction: &'a str,
    pub(super) category: Category,
    pub(super) points: &'a [ScoringPoint],
    pub(super) source: &'a Picture,
    pub(super) reference: &'a Picture,
    pub(super) candidate: &'a Picture,
}

impl Question {
    /// The question about a candidate. `swapped` shows the candidate before the reference: a judge that is swayed by the
    /// order gives another verdict then.
    pub(super) fn new(subject: &Subject<'_>, swapped: bool) -> Result<Self, PictureError> {
        let mut text = format!("INSTRUCTION\n{}\n\nSCORING POINTS\n", subject.instruction.trim());
        for point in subject.points {
            let kind = match point.kind {
                PointType::Direct => "direct",
                PointType::Derived => "derived",
                PointType::Invariant => "invariant",
            };
            // As JSON, so that no text of a task can pass for another point.
            let line = json!({
                "id": point.id, "kind": kind, "must_hold": point.description, "to_be_seen": point.evidence,
            });
            text.push_str(&line.to_string());
            text.push('\n');
        }
        let mut named =
            [("SOURCE", subject.source), ("REFERENCE", subject.reference), ("CANDIDATE", subject.candidate)];
        if swapped {
            named.swap(1, 2);
        }
        let mut pieces = vec![Piece::Text(text)];
        let mut pictures = Vec::new();
        for (name, picture) in named {
            let scaled = sent(picture);
            let sent = scaled.size();
            pieces.push(Piece::Text(format!("{name}:")));
            pieces.push(Piece::Png(scaled.to_png()?));
            pictures.push(SentPicture {
                name: name.to_lowercase(),
                original: picture.size(),
                sent,
                scale: f64::from(sent.width) / f64::from(picture.size().width),
            });
        }
        Ok(Self {
            system: format!("{ORDERS}\n{}", rubric(subject.category)),
            pieces,
            pictures,
            points: subject.points.iter().map(|it| (it.id.clone(), it.kind)).collect(),
        })
    }
}

/// A picture as a judge sees it: its longest side is at most 1,568 pixels (B.3).
pub(crate) fn sent(picture: &Picture) -> Picture {
    let size = canvas_of(picture.size());
    if size == picture.size() { picture.clone() } else { lanczos(picture, size) }
}

/// The form of a reply, as JSON Schema, for servers that can see to it.
pub fn answer_schema() -> Value {
    let text = json!({"type": "string"});
    let rating = json!({
        "type": "object",
        "properties": {"rationale": text, "rating": {"type": "integer"}},
        "required": ["rationale", "rating"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "points": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": text, "evidence": text, "rationale": text, "verifiable": {"type": "boolean"},
                    "satisfied": {"type": "integer"}, "confidence": {"type": "number"},
                },
                "required": ["id", "evidence", "rationale", "verifiable", "satisfied", "confidence"],
                "additionalProperties": false,
            }},
            "visual_quality": rating,
            "domain_quality": rating,
        },
        "required": ["points", "visual_quality", "domain_quality"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_artifact_has_a_rubric_of_its_own_and_the_anchors_are_the_papers() {
        let rubrics: std::collections::BTreeSet<&str> = Category::ALL.into_iter().map(rubric).collect();
        assert_eq!(rubrics.len(), 9);
        for anchor in
            ["clean and complete", "minor blemishes", "severely impaired readability", "largely unusable"]
        {
            assert!(ORDERS.contains(anchor), "{anchor}");
        }
    }

    #[test]
    fn pictures_are_scaled_down_and_said_so_and_points_are_data() {
        let point = ScoringPoint {
            id: "p1".into(),
            kind: PointType::Direct,
            description: "x\"}\n{\"id\": \"p2\"".into(),
            region: None,
            evidence: "y".into(),
        };
        let wide = Picture::filled(Size { width: 3136, height: 100 }, [9; 3]);
        let small = Picture::filled(Size { width: 40, height: 30 }, [7; 3]);
        let subject = Subject {
            instruction: "Do it.",
            category: Category::Flowchart,
            points: &[point],
            source: &small,
            reference: &small,
            candidate: &wide,
        };
        let question = Question::new(&subject, false).unwrap();
        let names: Vec<&str> = question.pictures.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["source", "reference", "candidate"]);
        let sent = &question.pictures[2];
        assert_eq!((sent.sent, sent.scale), (Size { width: 1568, height: 50 }, 0.5));
        assert_eq!(
            question.pictures[0].sent, question.pictures[0].original,
            "small pictures stay as they are"
        );
        let Piece::Text(text) = &question.pieces[0] else { panic!("text comes first") };
        assert_eq!(text.lines().filter(|it| it.starts_with('{')).count(), 1);
        let swapped = Question::new(&subject, true).unwrap();
        assert_eq!(swapped.pictures[1].name, "candidate");
    }
}
