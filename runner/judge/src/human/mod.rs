//! People as judges, who do not know whose work they see: items go out under numbers, a sheet comes back.
//!
//! [`export`] writes a folder that can be handed on: pictures, a page that shows them, a sheet to fill in. Whose work each item
//! is stands in a [`Key`], which stays in the run. [`Sheet::read`] reads what came back, as strictly as a model's reply: what is
//! not filled in is unscored, and whatever is wrong is an error with its place. [`take`] makes marks of it, by the judge
//! `human-NAME`, beside those of other judges.

mod export;
mod import;
mod page;
mod sheet;

use std::fmt;
use std::str::FromStr;

use proctor_store::{PointKind, Rating, TrialId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::vision::VisionInputs;

pub use export::{BlindError, Exported, Subject, export};
pub use import::{Taken, key_of, take};
pub use sheet::{Sheet, SheetError};

/// The file that says of which export a folder is.
pub(crate) const LABEL: &str = "blind.json";
/// The file that is filled in.
pub(crate) const SHEET: &str = "sheet.csv";

/// `blind.json`: what the raters' folder says of itself. It does not say whose work it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    pub(crate) schema: u32,
    /// Name of the export.
    pub(crate) export: String,
    pub(crate) items: usize,
}

/// Whose work the items are: `blind/<export>.json` of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    /// Version of this format.
    pub schema: u32,
    /// Name of the export.
    pub export: String,
    /// What the items were shuffled by.
    pub seed: u64,
    /// The items, in the order in which they are shown.
    pub items: Vec<KeyItem>,
    /// Trials without a picture: nobody need look at them, and no point of theirs holds.
    pub without_picture: Vec<KeyFailure>,
}

/// An item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyItem {
    /// Its name, as the raters see it.
    pub item: String,
    /// Whose work it is.
    pub trial: TrialId,
    /// What was shown.
    pub inputs: VisionInputs,
    /// The points that were asked for.
    pub points: Vec<AskedPoint>,
}

/// A trial that is not shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyFailure {
    /// The trial.
    pub trial: TrialId,
    /// Why there is no picture.
    pub failure: Failure,
    /// What there was to judge by.
    pub inputs: VisionInputs,
    /// The points of its task.
    pub points: Vec<AskedPoint>,
}

/// A point that a rater is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedPoint {
    /// Its name within the task.
    pub id: String,
    /// What it is about.
    pub kind: PointKind,
}

/// `verdict.json` of a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Version of this format.
    pub schema: u32,
    /// Who judged: `human-NAME`.
    pub judge: String,
    /// The export that was looked at.
    pub export: String,
    /// The item; none if there was no picture to look at.
    pub item: Option<String>,
    /// What was judged.
    pub inputs: VisionInputs,
    /// Why there is no picture, if there is none.
    pub failure: Option<Failure>,
    /// The marks of the points.
    pub points: Vec<PointVerdict>,
    /// Visual quality.
    pub visual_quality: RatingVerdict,
    /// Domain validity.
    pub domain_quality: RatingVerdict,
}

/// A person's mark of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointVerdict {
    /// The point.
    pub id: String,
    /// What it is about.
    pub kind: PointKind,
    /// Whether it holds; none if the rater did not say.
    pub satisfied: Option<bool>,
    /// What the rater wrote beside it.
    pub note: String,
}

/// A person's rating.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RatingVerdict {
    /// From 1 to 5; none if the rater gave none.
    pub rating: Option<Rating>,
    /// What the rater wrote beside it.
    pub note: String,
}

impl Key {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;
}

impl Verdict {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;
}

/// The name of a rater: small letters, digits and `-`, so that it is the same wherever it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rater(String);

impl Rater {
    /// The judge's name in `score.json`.
    pub fn judge(&self) -> String {
        format!("human-{}", self.0)
    }
}

impl FromStr for Rater {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ordinary = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if (1..=40).contains(&text.len()) && text.chars().all(ordinary) && !text.starts_with('-') {
            Ok(Self(text.to_owned()))
        } else {
            Err("a rater's name has small letters, digits and `-`, at most 40".to_owned())
        }
    }
}

impl fmt::Display for Rater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The word for a kind of point in a sheet.
pub(crate) const fn word(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Direct => "direct",
        PointKind::Derived => "derived",
        PointKind::Invariant => "invariant",
    }
}
