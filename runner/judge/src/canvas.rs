//! How pictures of different sizes come to one size (VAO-Bench, C.2): "source images are resized to at most 1,568 px on the
//! longest side; candidates are fitted proportionally to the same canvas and centered with white padding, without
//! stretching, cropping, or registration".
//!
//! The paper does not say how a length is rounded (ours: to the nearest pixel, halves up), where an odd pixel of padding
//! goes (right and bottom), or how it resamples (Lanczos, to the byte as Pillow).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resample::lanczos;
use crate::{Picture, Size, index};

/// Longest side of a canvas.
pub const LONGEST_SIDE: u32 = 1568;

/// Where a picture came to lie on a canvas.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Its own size.
    pub original: Size,
    /// What it was scaled by: the smaller of the two ratios. 1 where it lies pixel by pixel.
    pub scale: f64,
    /// Its size on the canvas.
    pub size: Size,
    /// Columns of padding to the left of it.
    pub x: u32,
    /// Rows of padding above it.
    pub y: u32,
}

impl Placement {
    /// Whether it lies on the canvas pixel by pixel and fills it.
    pub fn is_exact(&self, canvas: Size) -> bool {
        self.original == canvas
    }
}

/// The canvas of a reference: its size, scaled down to [`LONGEST_SIDE`] if it is larger.
pub fn canvas_of(reference: Size) -> Size {
    let longest = reference.width.max(reference.height);
    if longest <= LONGEST_SIDE {
        return reference;
    }
    let bound = Size { width: LONGEST_SIDE, height: LONGEST_SIDE };
    placement(reference, bound).size
}

/// Where a picture of this size comes to lie: scaled up or down until it touches, and centred.
pub fn placement(original: Size, canvas: Size) -> Placement {
    let ratios = [canvas.width, canvas.height].map(f64::from);
    let [across, down] = [ratios[0] / f64::from(original.width), ratios[1] / f64::from(original.height)];
    // Whole numbers decide, so that a picture of the canvas' proportions fills it.
    let along = |side: u32, by: u32, to: u32| {
        let (side, by, to) = (u64::from(side), u64::from(by), u64::from(to));
        u32::try_from((2 * side * to + by) / (2 * by)).unwrap_or(u32::MAX).max(1)
    };
    let wide = u64::from(canvas.width) * u64::from(original.height);
    let high = u64::from(canvas.height) * u64::from(original.width);
    let size = if wide <= high {
        let height = along(original.height, original.width, canvas.width).min(canvas.height);
        Size { width: canvas.width, height }
    } else {
        let width = along(original.width, original.height, canvas.height).min(canvas.width);
        Size { width, height: canvas.height }
    };
    Placement {
        original,
        scale: across.min(down),
        size,
        x: (canvas.width - size.width) / 2,
        y: (canvas.height - size.height) / 2,
    }
}

/// The picture on the canvas, the rest of it white.
pub fn fit(picture: &Picture, canvas: Size) -> (Picture, Placement) {
    let placement = placement(picture.size(), canvas);
    if placement.is_exact(canvas) {
        return (picture.clone(), placement);
    }
    let scaled = lanczos(picture, placement.size);
    if placement.size == canvas {
        return (scaled, placement);
    }
    let mut whole = Picture::filled(canvas, [255; 3]);
    let (left, top) = (index(placement.x), index(placement.y));
    let rows = whole.pixels_mut().chunks_exact_mut(index(canvas.width)).skip(top);
    for (row, from) in rows.zip(scaled.rows()) {
        row[left..left + from.len()].copy_from_slice(from);
    }
    (whole, placement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn a_reference_is_only_scaled_down() {
        assert_eq!(canvas_of(size(1568, 20)), size(1568, 20));
        assert_eq!(canvas_of(size(3136, 2000)), size(1568, 1000));
        assert_eq!(canvas_of(size(20, 1569)), size(20, 1568));
        assert_eq!(canvas_of(size(60_000, 1)), size(1568, 1));
    }

    #[test]
    fn a_candidate_is_scaled_up_or_down_and_centred() {
        let place = |original, canvas| {
            let it = placement(original, canvas);
            (it.size, it.x, it.y, it.scale)
        };
        assert_eq!(place(size(50, 50), size(200, 100)), (size(100, 100), 50, 0, 2.0));
        assert_eq!(place(size(400, 100), size(200, 101)), (size(200, 50), 0, 25, 0.5));
        assert_eq!(place(size(3, 1), size(100, 100)).0, size(100, 33));
        assert_eq!(place(size(8, 1), size(100, 100)).0, size(100, 13), "halves go up");
        assert_eq!(place(size(65_536, 1), size(100, 40)), (size(100, 1), 0, 19, 100.0 / 65_536.0));
        // Padding that is odd has its extra pixel at the right.
        assert_eq!(place(size(1, 2), size(5, 4)), (size(2, 4), 1, 0, 2.0));
    }

    #[test]
    fn nothing_is_stretched_or_cut() {
        for (width, height) in [(1, 1), (7, 1000), (1440, 900), (333, 127), (9999, 3)] {
            for canvas in [size(1568, 980), size(11, 400), size(300, 300)] {
                let it = placement(size(width, height), canvas);
                assert!(it.size.width == canvas.width || it.size.height == canvas.height);
                assert!(it.x + it.size.width <= canvas.width && it.y + it.size.height <= canvas.height);
                let exact = [f64::from(width) * it.scale, f64::from(height) * it.scale];
                for (found, exact) in [it.size.width, it.size.height].into_iter().zip(exact) {
                    assert!((f64::from(found) - exact.max(1.0)).abs() <= 0.5 + 1e-9, "{it:?}");
                }
            }
        }
    }

    #[test]
    fn padding_is_white_and_an_exact_fit_changes_nothing() {
        let picture = Picture::filled(size(2, 4), [9, 9, 9]);
        let (fitted, _) = fit(&picture, size(5, 4));
        for row in fitted.rows() {
            assert_eq!(row, [[255; 3], [9; 3], [9; 3], [255; 3], [255; 3]]);
        }
        assert_eq!(fit(&picture, size(2, 4)).0, picture);
    }
}
