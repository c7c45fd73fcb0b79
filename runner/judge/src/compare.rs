//! Two pictures for a person: the numbers, where they differ, and a picture of that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canvas::{Placement, canvas_of, fit};
use crate::metrics::{MetricError, Metrics, measure};
use crate::pixel::Mask;
use crate::{Picture, Size};

/// What a comparison says in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The canvas on which both were compared.
    pub canvas: Size,
    /// Where the reference lies on it.
    pub reference: Placement,
    /// Where the candidate lies on it.
    pub candidate: Placement,
    /// The measures.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// Pixels of the canvas that differ at all.
    pub differing_pixels: usize,
}

/// A comparison with the pictures that it was made of.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The numbers.
    pub comparison: Comparison,
    reference: Picture,
    candidate: Picture,
    mask: Mask,
}

/// Compares a candidate with a reference on the canvas of the reference.
pub fn compare(reference: &Picture, candidate: &Picture) -> Result<Compared, MetricError> {
    let canvas = canvas_of(reference.size());
    let (reference, lies) = fit(reference, canvas);
    let (candidate, fitted) = fit(candidate, canvas);
    let metrics = measure(&reference, &candidate)?;
    let mask = Mask::of_differences(&reference, &candidate, 0);
    let comparison =
        Comparison { canvas, reference: lies, candidate: fitted, metrics, differing_pixels: mask.count() };
    Ok(Compared { comparison, reference, candidate, mask })
}

impl Compared {
    /// The candidate in pale grey; what differs is red, the darker the more.
    pub fn differences(&self) -> Picture {
        let mut picture = self.candidate.clone();
        let pixels = picture.pixels_mut().iter_mut();
        for (pixel, reference) in pixels.zip(self.reference.pixels()) {
            let most =
                pixel.iter().zip(reference).map(|(one, other)| one.abs_diff(*other)).max().unwrap_or(0);
            *pixel = if most > 0 {
                // Even the slightest difference is to be seen.
                let rest = 160 - most / 8 * 5;
                [255 - most / 4, rest, rest]
            } else {
                let [red, green, blue] = pixel.map(u16::from);
                let [grey, _] = (192 + (3 * red + 6 * green + blue) / 40).min(255).to_le_bytes();
                [grey; 3]
            };
        }
        picture
    }

    /// Where they differ: white; everything else black.
    pub fn footprint(&self) -> Picture {
        let mut picture = Picture::filled(self.comparison.canvas, [0; 3]);
        for (pixel, differs) in picture.pixels_mut().iter_mut().zip(self.mask.bits()) {
            if *differs {
                *pixel = [255; 3];
            }
        }
        picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_show_what_the_numbers_say() {
        let size = Size { width: 20, height: 12 };
        let reference = Picture::filled(size, [250; 3]);
        let mut candidate = reference.clone();
        candidate.pixels_mut()[3] = [251, 250, 250];
        candidate.pixels_mut()[47] = [0, 0, 0];
        let compared = compare(&reference, &candidate).unwrap();
        assert_eq!(compared.comparison.differing_pixels, 2);
        let mask = compared.footprint();
        let white: Vec<usize> = (0..240).filter(|at| mask.pixels()[*at] == [255; 3]).collect();
        assert_eq!(white, [3, 47]);
        let differences = compared.differences();
        for (at, [red, green, blue]) in differences.pixels().iter().enumerate() {
            assert_eq!(red > green && green == blue, white.contains(&at), "{at}");
        }
    }

    #[test]
    fn a_smaller_candidate_is_fitted_and_both_sizes_are_told() {
        let compared = compare(
            &Picture::filled(Size { width: 40, height: 20 }, [255; 3]),
            &Picture::filled(Size { width: 10, height: 10 }, [255; 3]),
        )
        .unwrap();
        let it = compared.comparison;
        assert_eq!((it.candidate.original, it.candidate.scale), (Size { width: 10, height: 10 }, 2.0));
        assert_eq!((it.candidate.x, it.metrics.psnr, it.differing_pixels), (10, None, 0));
    }
}
