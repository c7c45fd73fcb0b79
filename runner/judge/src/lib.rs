//! How far a picture is from another, and the judges.
//!
//! From the bottom up: [`Picture`] (pixels as every measure sees them), [`metrics`] (SSIM, PSNR, MAE, MSE of two pictures of
//! one size), [`canvas`] (how pictures of other sizes come to one size), [`compare`] (two pictures for a person), [`pixel`]
//! (a candidate against the hidden reference, point by point). Beside it [`vision`]: what a vision model is asked, and how its
//! reply is read; and [`human`]: what people are given to judge, and how their sheets are read. `docs/judging.md` has the formulas and rules.
//!
//! Nothing here asks a model, starts anything or prints.

mod candidate;
pub mod canvas;
mod colour;
pub mod compare;
pub mod human;
pub mod metrics;
mod picture;
pub mod pixel;
mod resample;
pub mod vision;

pub use candidate::{Failure, JudgeError, is_the_solvers};
pub use picture::{MAX_PICTURE_BYTES, Picture, PictureError, Size};

/// A count or a length as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "pixels of a picture are far below 2^53")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

/// A length as an index.
pub(crate) fn index(length: u32) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
