//! Means over many pictures: which ones count in which (VAO-Bench, C.2 and Table 13).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Metrics;
use crate::float;

/// Means of per-picture values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Means {
    /// Pictures that there should be.
    pub registered: usize,
    /// Pictures that there are.
    pub rendered: usize,
    /// Mean SSIM of what was rendered.
    pub ssim: Option<f64>,
    /// Mean SSIM of all, where a failure is 0.
    pub ssim_0: Option<f64>,
    /// Mean PSNR in dB of what was rendered and is not equal to its reference.
    pub psnr: Option<f64>,
    /// Rendered pictures that equal their reference: their PSNR is infinite, and in no mean.
    pub equal: usize,
    /// Mean MAE of what was rendered.
    pub mae: Option<f64>,
    /// Mean MSE of what was rendered.
    pub mse: Option<f64>,
}

/// The means over `pictures`, of which a failure is none. What is not known yet must be left out: here it would count as
/// a failure. A mean over nothing is none.
pub fn means(pictures: impl IntoIterator<Item = Option<Metrics>>) -> Means {
    let mut registered = 0;
    let mut rendered: Vec<Metrics> = Vec::new();
    for picture in pictures {
        registered += 1;
        rendered.extend(picture);
    }
    let psnr: Vec<f64> = rendered.iter().filter_map(|it| it.psnr).collect();
    let of = |value: fn(&Metrics) -> f64| -> Vec<f64> { rendered.iter().map(value).collect() };
    Means {
        registered,
        rendered: rendered.len(),
        ssim: mean(&of(|it| it.ssim), rendered.len()),
        ssim_0: mean(&of(|it| it.ssim), registered),
        psnr: mean(&psnr, psnr.len()),
        equal: rendered.len() - psnr.len(),
        mae: mean(&of(|it| it.mae), rendered.len()),
        mse: mean(&of(|it| it.mse), rendered.len()),
    }
}

fn mean(values: &[f64], count: usize) -> Option<f64> {
    // The sum of nothing is -0.0 in the standard library, and would be printed so.
    (count > 0).then(|| values.iter().fold(0.0, |sum, it| sum + it) / float(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(ssim: f64, psnr: Option<f64>) -> Metrics {
        Metrics { ssim, psnr, mae: ssim / 2.0, mse: ssim / 4.0 }
    }

    /// C.2: 291 of 316 outputs were rendered; "mean SSIM 0.7958"; "an all-task SSIM of 0.7328".
    #[test]
    fn the_papers_own_numbers_agree() {
        let all = (0..316).map(|at| (at < 291).then(|| picture(0.7958, Some(16.37))));
        let means = means(all);
        assert_eq!((means.registered, means.rendered, means.equal), (316, 291, 0));
        assert!((means.ssim.unwrap() - 0.7958).abs() < 1e-12);
        assert_eq!(format!("{:.4}", means.ssim_0.unwrap()), "0.7328");
        assert!((means.psnr.unwrap() - 16.37).abs() < 1e-12);
    }

    #[test]
    fn equal_pictures_are_in_every_mean_but_that_of_psnr() {
        let means = means([Some(picture(1.0, None)), Some(picture(0.5, Some(20.0))), None]);
        assert_eq!(
            (means.equal, means.psnr, means.ssim, means.ssim_0),
            (1, Some(20.0), Some(0.75), Some(0.5))
        );
        assert_eq!((means.mae, means.mse), (Some(0.375), Some(0.1875)));
    }

    #[test]
    fn a_mean_over_nothing_is_none() {
        let nothing = means([]);
        assert_eq!((nothing.registered, nothing.ssim, nothing.ssim_0, nothing.psnr), (0, None, None, None));
        let failed = means([None, None]);
        assert_eq!((failed.ssim, failed.ssim_0, failed.mae), (None, Some(0.0), None));
        assert_eq!(format!("{:.4}", failed.ssim_0.unwrap()), "0.0000");
    }
}
