//! The judge that needs no model: a candidate against the hidden reference, pixel by pixel (`--judge pixel`).
//!
//! Follows the micro level of MT-Web2Code: what the edit is to change (the *footprint*: where source and target differ) and
//! what it must leave alone are scored apart. Beside it each scoring point whose region is known is decided by how far
//! the candidate looks like the target there. Ratings of quality it has none. Its marks are not comparable with those of a
//! vision model, which sees other right solutions than the reference.

mod blank;
mod judge;
mod mask;
mod point;
mod trial;
mod verdict;

pub use judge::{Findings, InBox, OutOfBox, Reference};
pub use mask::Mask;
pub use point::{PointVerdict, Reason};
pub use trial::{Standing, Work, judge, look, pictures};
pub use verdict::{Flag, Inputs, JUDGE, Verdict};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the judge goes by. Every verdict records it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Source and target differ at a pixel where a channel differs by more than this, of 255.
    pub tolerance: u8,
    /// The footprint is widened by so many pixels on all sides.
    pub dilation: u32,
    /// Outside the footprint, a pixel has another colour if it differs from the target by more than this ΔE2000.
    pub colour_difference: f64,
    /// What the share of such pixels is weighed with when it is taken off.
    pub colour_weight: f64,
    /// SSIM from which on a region looks like the target.
    pub similar: f64,
    /// A candidate with less than this share of the target's visible steps, across or down, is blank.
    pub blank: f64,
}

impl Default for Settings {
    /// Ours: the paper prints no constants.
    fn default() -> Self {
        Self {
            tolerance: 0,
            dilation: 2,
            colour_difference: 5.0,
            colour_weight: 0.5,
            similar: 0.9,
            blank: 0.05,
        }
    }
}
