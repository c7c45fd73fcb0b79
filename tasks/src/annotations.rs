//! `hidden/annotations.toml`: what a correct edit must do, and how it is marked (VAO-Bench, appendices A.3 and A.4).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole of `hidden/annotations.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Annotations {
    /// The objects that the edit is about.
    pub target_objects: Vec<String>,
    /// The changes that the instruction asks for.
    pub expected_delta: Vec<String>,
    /// The changes that follow from them.
    #[serde(default)]
    pub required_synchronized_updates: Vec<String>,
    /// What must stay as it is.
    pub stable_invariants: Vec<String>,
    /// What is marked, point by point.
    pub scoring_points: Vec<ScoringPoint>,
    /// The dependent changes that the target program really makes (the paper's target metadata; its explicit
    /// instructions are built from it).
    #[serde(default)]
    pub synchronized_updates_applied: Vec<String>,
    /// What the source artifact was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specification: Option<String>,
    /// What in the source picture an instruction can refer to.
    #[serde(default)]
    pub visible_anchors: Vec<String>,
    /// The steps from the source program to the target program.
    #[serde(default)]
    pub operation_plan: Vec<String>,
    /// The template that the source was made from, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Reviews of source, instruction and target.
    #[serde(default)]
    pub verification: Vec<ReviewRecord>,
    /// Decisions of people.
    #[serde(default)]
    pub screening: Vec<ScreeningRecord>,
}

impl Annotations {
    /// The points of one type.
    pub fn points(&self, kind: PointType) -> impl Iterator<Item = &ScoringPoint> {
        self.scoring_points.iter().filter(move |point| point.kind == kind)
    }
}

/// One thing that is true of a correct result, or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoringPoint {
    /// Its name within the task.
    pub id: String,
    /// What it measures.
    #[serde(rename = "type")]
    pub kind: PointType,
    /// What must be true.
    pub description: String,
    /// Where to look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<Region>,
    /// What is to be seen there.
    pub evidence: String,
}

/// The three things that points measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PointType {
    /// A change that the instruction asks for.
    Direct,
    /// A change that follows from it.
    Derived,
    /// Something that must stay.
    Invariant,
}

impl PointType {
    /// All three, in the order of the paper's tables.
    pub const ALL: [Self; 3] = [Self::Direct, Self::Derived, Self::Invariant];

    /// The word for it in files and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Derived => "derived",
            Self::Invariant => "invariant",
        }
    }
}

impl fmt::Display for PointType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A rectangle of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// The picture that it is about.
    #[serde(default)]
    pub picture: RegionPicture,
    /// The unit of the four numbers.
    pub unit: Unit,
    /// The corner of the picture that they count from.
    #[serde(default)]
    pub origin: Origin,
    /// Distance of the rectangle's left side from the picture's.
    pub x: f64,
    /// Distance of the rectangle's nearer horizontal side from the origin's.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// Which picture a region is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RegionPicture {
    /// The picture that the solver sees.
    Source,
    /// The reference target.
    #[default]
    Target,
}

/// The unit of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Pixels of the picture.
    Px,
    /// Fractions of its width and height.
    Fraction,
}

/// Where a region's coordinates begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The top left corner, `y` downwards.
    #[default]
    TopLeft,
    /// The bottom left corner, `y` upwards (as in plots).
    BottomLeft,
}

/// A rectangle in whole pixels from the top left corner, inside its picture and not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelBox {
    /// The left column.
    pub x: u32,
    /// The top row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Region {
    /// The region in pixels of a picture of this size; `None` if it is empty, not finite, or not inside the picture.
    pub fn in_pixels(&self, width: u32, height: u32) -> Option<PixelBox> {
        let (picture_w, picture_h) = (f64::from(width), f64::from(height));
        let (unit_w, unit_h) = match self.unit {
            Unit::Px => (1.0, 1.0),
            Unit::Fraction => (picture_w, picture_h),
        };
        let (x, y, w, h) = (self.x * unit_w, self.y * unit_h, self.w * unit_w, self.h * unit_h);
        if ![x, y, w, h].iter().all(|value| value.is_finite() && *value >= 0.0) {
            return None;
        }
        let top = match self.origin {
            Origin::TopLeft => y,
            Origin::BottomLeft => picture_h - y - h,
        };
        let tolerance = 0.5;
        if top < -tolerance || x + w > picture_w + tolerance || top + h > picture_h + tolerance {
            return None;
        }
        let left = whole(x).min(width);
        let top = whole(top).min(height);
        let pixels = PixelBox {
            x: left,
            y: top,
            width: whole(w).min(width - left),
            height: whole(h).min(height - top),
        };
        (pixels.width > 0 && pixels.height > 0).then_some(pixels)
    }
}

/// The nearest whole number of a value that was checked to be of a picture's size.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and that is what is wanted"
)]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

/// One review by a model or a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRecord {
    /// What was reviewed.
    pub stage: ReviewStage,
    /// Who reviewed it.
    pub by: String,
    /// The round of repair, from 0; at most three follow.
    #[serde(default)]
    pub round: u32,
    /// What came of it.
    pub verdict: Verdict,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a review looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReviewStage {
    /// The source picture against its specification.
    Source,
    /// The instruction and the annotations against the source picture.
    Instruction,
    /// Source and target pictures against both.
    Target,
}

/// What comes of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Good.
    Accepted,
    /// To be repaired.
    Repair,
    /// Dropped.
    Rejected,
}

/// One person's decision on the whole package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreeningRecord {
    /// Who.
    pub reviewer: String,
    /// What.
    pub decision: ScreeningDecision,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScreeningDecision {
    /// The task stays.
    Keep,
    /// The task goes.
    Discard,
    /// To be discussed by all.
    Disputed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(unit: Unit, origin: Origin, [x, y, w, h]: [f64; 4]) -> Region {
        Region { picture: RegionPicture::Target, unit, origin, x, y, w, h }
    }

    #[test]
    fn units_and_origins_agree() {
        let expected = PixelBox { x: 20, y: 10, width: 50, height: 30 };
        for region in [
            region(Unit::Px, Origin::TopLeft, [20.0, 10.0, 50.0, 30.0]),
            region(Unit::Px, Origin::BottomLeft, [20.0, 60.0, 50.0, 30.0]),
            region(Unit::Fraction, Origin::TopLeft, [0.1, 0.1, 0.25, 0.3]),
            region(Unit::Fraction, Origin::BottomLeft, [0.1, 0.6, 0.25, 0.3]),
        ] {
            assert_eq!(region.in_pixels(200, 100), Some(expected), "{region:?}");
        }
    }

    #[test]
    fn what_is_outside_or_empty_is_nothing() {
        for values in [
            [0.0, 0.0, 201.0, 10.0],
            [0.0, 95.0, 10.0, 10.0],
            [-5.0, 0.0, 10.0, 10.0],
            [0.0, 0.0, 0.0, 10.0],
            [f64::NAN, 0.0, 10.0, 10.0],
            [0.0, 0.0, f64::INFINITY, 10.0],
        ] {
            assert_eq!(region(Unit::Px, Origin::TopLeft, values).in_pixels(200, 100), None, "{values:?}");
        }
        assert_eq!(region(Unit::Px, Origin::BottomLeft, [0.0, 95.0, 10.0, 10.0]).in_pixels(200, 100), None);
    }

    #[test]
    fn the_whole_picture_fits() {
        let whole = region(Unit::Fraction, Origin::TopLeft, [0.0, 0.0, 1.0, 1.0]).in_pixels(333, 77).unwrap();
        assert_eq!((whole.width, whole.height), (333, 77));
    }
}
