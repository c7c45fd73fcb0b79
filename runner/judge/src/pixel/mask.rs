//! A set of pixels.

use crate::{Picture, Size, index};

/// A set of pixels of a canvas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    size: Size,
    bits: Vec<bool>,
}

impl Mask {
    /// Where a channel of two pictures of one size differs by more than `tolerance`.
    pub fn of_differences(one: &Picture, other: &Picture, tolerance: u8) -> Self {
        let differs = |(one, other): (&[u8; 3], &[u8; 3])| {
            one.iter().zip(other).any(|(one, other)| one.abs_diff(*other) > tolerance)
        };
        Self { size: one.size(), bits: one.pixels().iter().zip(other.pixels()).map(differs).collect() }
    }

    /// The set widened by `radius` pixels in all eight directions.
    #[must_use]
    pub fn dilated(&self, radius: u32) -> Self {
        let (width, height, radius) = (index(self.size.width), index(self.size.height), index(radius));
        let mut along = vec![false; self.bits.len()];
        for (out, row) in along.chunks_exact_mut(width).zip(self.bits.chunks_exact(width)) {
            for (at, _) in row.iter().enumerate().filter(|(_, is_in)| **is_in) {
                out[at.saturating_sub(radius)..(at + radius + 1).min(width)].fill(true);
            }
        }
        let mut bits = vec![false; self.bits.len()];
        for (y, row) in along.chunks_exact(width).enumerate() {
            for near in y.saturating_sub(radius)..(y + radius + 1).min(height) {
                for (out, is_in) in bits[near * width..][..width].iter_mut().zip(row) {
                    *out |= is_in;
                }
            }
        }
        Self { size: self.size, bits }
    }

    /// Pixels in it.
    pub fn count(&self) -> usize {
        self.bits.iter().filter(|is_in| **is_in).count()
    }

    /// For each pixel of the canvas, row by row from the top, whether it is in it.
    pub fn bits(&self) -> &[bool] {
        &self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_grows_into_all_directions_and_stops_at_the_border() {
        let size = Size { width: 5, height: 4 };
        let white = Picture::filled(size, [255; 3]);
        let mut other = white.clone();
        other.pixels_mut()[6] = [255, 246, 255];
        let mask = Mask::of_differences(&white, &other, 8);
        assert_eq!(mask.count(), 1);
        assert_eq!(Mask::of_differences(&white, &other, 9).count(), 0);
        let wide = mask.dilated(1);
        let expected: Vec<bool> = (0..20).map(|at| at % 5 <= 2 && at / 5 <= 2).collect();
        assert_eq!(wide.bits(), expected);
        assert_eq!(mask.dilated(9).count(), 20);
        assert_eq!(mask.dilated(0), mask);
    }
}
