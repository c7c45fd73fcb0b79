//! Lanczos resampling, to the byte as Pillow's `Image.resize(size, Image.Resampling.LANCZOS)` does it for RGB.
//!
//! Two passes, along the rows and then down the columns, each rounding to bytes; weights in fixed point of 22 bits, each
//! window cut at the border and normalised. Made anew here because others differ: they keep fractions between the passes,
//! go down the columns first, or weigh a cut window otherwise (`docs/judging.md` has the numbers).

use std::f64::consts::PI;

use crate::{Picture, Size, float, index};

/// Lobes of the kernel on each side.
const LOBES: f64 = 3.0;
/// Bits after the point of a weight.
const BITS: u32 = 22;

/// The picture at another size.
pub(crate) fn lanczos(picture: &Picture, size: Size) -> Picture {
    let (from, pixels) = (picture.size(), picture.pixels());
    let along = (from.width != size.width).then(|| rows(pixels, from, size.width));
    let pixels = along.as_deref().unwrap_or(pixels);
    let down =
        (from.height != size.height).then(|| columns(pixels, index(size.width), from.height, size.height));
    let pixels = down.as_deref().unwrap_or(pixels);
    // The number of bytes fits by construction.
    Picture::from_rgb(size, pixels.as_flattened().to_vec()).unwrap_or_else(|| Picture::filled(size, [0; 3]))
}

fn rows(pixels: &[[u8; 3]], from: Size, width: u32) -> Vec<[u8; 3]> {
    let windows = windows(from.width, width);
    let mut out = Vec::with_capacity(windows.len() * index(from.height));
    for row in pixels.chunks_exact(index(from.width)) {
        out.extend(windows.iter().map(|window| {
            let mut sums = [1 << (BITS - 1); 3];
            for (pixel, weight) in row[window.first..].iter().zip(&window.weights) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*value) * weight;
                }
            }
            sums.map(byte)
        }));
    }
    out
}

fn columns(pixels: &[[u8; 3]], width: usize, from: u32, height: u32) -> Vec<[u8; 3]> {
    let windows = windows(from, height);
    let mut out = Vec::with_capacity(width * windows.len());
    let mut sums = vec![[0; 3]; width];
    for window in windows {
        sums.fill([1 << (BITS - 1); 3]);
        for (row, weight) in pixels[window.first * width..].chunks_exact(width).zip(&window.weights) {
            for (sums, pixel) in sums.iter_mut().zip(row) {
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(*value) * weight;
                }
            }
        }
        out.extend(sums.iter().map(|sums| sums.map(byte)));
    }
    out
}

fn byte(sum: i32) -> u8 {
    let [byte, ..] = (sum >> BITS).clamp(0, 255).to_le_bytes();
    byte
}

/// What one value of the result is made of.
struct Window {
    first: usize,
    weights: Vec<i32>,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places within a line, and weights of at most 2^23; cut towards zero as Pillow does"
)]
fn windows(from: u32, to: u32) -> Vec<Window> {
    let scale = f64::from(from) / f64::from(to);
    let stretch = scale.max(1.0);
    let support = LOBES * stretch;
    let window = |at: u32| {
        let centre = (f64::from(at) + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(index(from));
        let plain: Vec<f64> =
            (first..end).map(|place| kernel((float(place) - centre + 0.5) * (1.0 / stretch))).collect();
        let sum: f64 = plain.iter().sum();
        let fixed = |weight: &f64| {
            let scaled = weight / sum * f64::from(1 << BITS);
            (scaled + 0.5_f64.copysign(scaled)) as i32
        };
        Window { first, weights: plain.iter().map(fixed).collect() }
    };
    (0..to).map(window).collect()
}

fn kernel(x: f64) -> f64 {
    if (-LOBES..LOBES).contains(&x) { sinc(x) * sinc(x / LOBES) } else { 0.0 }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_colour_stays_that_colour_at_any_size() {
        for (from, to) in [((1, 1), (40, 7)), ((300, 2), (3, 50)), ((13, 13), (12, 14))] {
            let size = |(width, height)| Size { width, height };
            let picture = Picture::filled(size(from), [0, 200, 255]);
            assert_eq!(
                lanczos(&picture, size(to)),
                Picture::filled(size(to), [0, 200, 255]),
                "{from:?} {to:?}"
            );
        }
    }

    #[test]
    fn the_same_size_is_the_same_picture() {
        let size = Size { width: 2, height: 2 };
        let picture = Picture::from_rgb(size, (0..12).collect()).unwrap();
        assert_eq!(lanczos(&picture, size), picture);
    }
}
