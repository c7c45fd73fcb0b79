//! SSIM, PSNR, MAE and MSE of two pictures of one size, as scikit-image 0.25.2 gives them with the paper's settings
//! (VAO-Bench, C.2), and their means over many pictures.

mod mean;
mod ssim;

pub use mean::{Means, means};
pub(crate) use ssim::SsimMap;
pub use ssim::ssim;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Picture, Size, float};

/// Shortest side that SSIM is defined for: that of its window.
pub const SHORTEST_SIDE: u32 = 11;

/// The paper's measures of two pictures, over all pixels and channels, values between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Structural similarity, at most 1.
    pub ssim: f64,
    /// Peak signal-to-noise ratio in dB; none for equal pictures, where it is infinite.
    pub psnr: Option<f64>,
    /// Mean absolute error.
    pub mae: f64,
    /// Mean squared error.
    pub mse: f64,
}

/// Why two pictures cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// One has to be fitted to the other first.
    #[error("the pictures have different sizes: {0} and {1}")]
    Sizes(Size, Size),
    /// The window does not fit in.
    #[error("a picture of {0} is too small for SSIM: both sides must be at least {SHORTEST_SIDE} pixels")]
    TooSmall(Size),
}

/// Measures two pictures of one size, neither side below [`SHORTEST_SIDE`].
pub fn measure(one: &Picture, other: &Picture) -> Result<Metrics, MetricError> {
    let ssim = ssim(one, other)?;
    let (mae, mse) = errors(one, other);
    let psnr = (mse > 0.0).then(|| -10.0 * mse.log10());
    Ok(Metrics { ssim, psnr, mae, mse })
}

/// Mean absolute and mean squared error; the sums are exact.
fn errors(one: &Picture, other: &Picture) -> (f64, f64) {
    let (mut absolute, mut squared) = (0_u64, 0_u64);
    for (one, other) in one.rgb().chunks(4096).zip(other.rgb().chunks(4096)) {
        let (mut sum, mut sum_of_squares) = (0_u32, 0_u32);
        for (one, other) in one.iter().zip(other) {
            let difference = u32::from(one.abs_diff(*other));
            sum += difference;
            sum_of_squares += difference * difference;
        }
        absolute += u64::from(sum);
        squared += u64::from(sum_of_squares);
    }
    let values = float(one.rgb().len());
    (whole(absolute) / 255.0 / values, whole(squared) / (255.0 * 255.0) / values)
}

#[expect(clippy::cast_precision_loss, reason = "sums over at most 80 million pixels stay below 2^53")]
fn whole(sum: u64) -> f64 {
    sum as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_must_be_equal_and_not_too_small() {
        let picture = |width, height| Picture::filled(Size { width, height }, [1, 2, 3]);
        assert!(matches!(measure(&picture(11, 12), &picture(12, 11)), Err(MetricError::Sizes(..))));
        assert!(matches!(measure(&picture(10, 50), &picture(10, 50)), Err(MetricError::TooSmall(_))));
        let equal = measure(&picture(11, 11), &picture(11, 11)).unwrap();
        assert_eq!(equal, Metrics { ssim: 1.0, psnr: None, mae: 0.0, mse: 0.0 });
    }
}
