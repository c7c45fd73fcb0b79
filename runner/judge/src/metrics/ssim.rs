//! Structural similarity with an 11×11 Gaussian window (VAO-Bench, C.2), row by row.
//!
//! This is `structural_similarity(…, channel_axis=-1, gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
//! data_range=1)` of scikit-image 0.25.2. That crops from its result exactly the radius of the window, so that no value
//! which counts has seen a border: filtering only where the window fits in gives the same. Values stay between 0 and 255
//! here, and the two constants are scaled instead; what is filtered are then exact integers.

use std::ops::Range;
use std::thread;

use super::MetricError;
use super::SHORTEST_SIDE;
use crate::{Picture, Size, float, index};

/// The window reaches so far from its centre: `int(3.5 · 1.5 + 0.5)`.
const RADIUS: usize = 5;
const TAPS: usize = 2 * RADIUS + 1;
const SIGMA: f64 = 1.5;
/// `(0.01 · 255)²`.
const C1: f64 = 6.5025;
/// `(0.03 · 255)²`.
const C2: f64 = 58.5225;
/// What is filtered: both values, the sum of their squares, and their product. The variances are needed only as a sum.
const MAPS: usize = 4;
/// Values of a row that are worked on at a time, so that all rows of the window stay in the processor's cache.
const BLOCK: usize = 768;

/// More threads than this are not used for one pair of pictures.
const MOST_THREADS: usize = 4;
/// Rows that are worth a thread.
const SHORTEST_BAND: usize = 64;

/// Structural similarity of two pictures of one size: the mean over channels and over the pixels where the window fits in.
pub fn ssim(one: &Picture, other: &Picture) -> Result<f64, MetricError> {
    let size = one.size();
    if size != other.size() {
        return Err(MetricError::Sizes(size, other.size()));
    }
    if size.width.min(size.height) < SHORTEST_SIDE {
        return Err(MetricError::TooSmall(size));
    }
    let pictures = Rows::of(one, other);
    let mut sums = vec![0.0; pictures.height - (TAPS - 1)];
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let band = sums.len().div_ceil(threads).max(SHORTEST_BAND);
    thread::scope(|scope| {
        let mut bands: Vec<(usize, &mut [f64])> = (0..).step_by(band).zip(sums.chunks_mut(band)).collect();
        // The last band is this thread's own.
        let own = bands.pop();
        for (first, sums) in bands {
            let pictures = &pictures;
            scope.spawn(move || add_up(pictures, first, sums));
        }
        if let Some((first, sums)) = own {
            add_up(&pictures, first, sums);
        }
    });
    // Row by row, so that the result does not depend on the number of threads.
    let values = sums.len() * (pictures.length - 3 * (TAPS - 1));
    Ok(sums.iter().sum::<f64>() / float(values))
}

/// The sums of the similarities in some rows.
fn add_up(pictures: &Rows<'_>, first: usize, sums: &mut [f64]) {
    similarities(pictures, first..first + sums.len(), |row, _, found| {
        sums[row - first] += found.iter().sum::<f64>();
    });
}

/// Structural similarity at every pixel, the mean of its channels; at the borders the pictures are thought to be mirrored
/// (the last pixel twice, as scikit-image does before it crops).
pub(crate) struct SsimMap {
    size: Size,
    values: Vec<f64>,
}

impl SsimMap {
    /// The map of two pictures of one size.
    pub(crate) fn of(one: &Picture, other: &Picture) -> Result<Self, MetricError> {
        let size = one.size();
        if size != other.size() {
            return Err(MetricError::Sizes(size, other.size()));
        }
        let (one, other) = (mirrored(one), mirrored(other));
        let width = index(size.width);
        let mut values = vec![0.0; size.pixels()];
        similarities(&Rows::of(&one, &other), 0..index(size.height), |row, from, found| {
            for (at, value) in (from..).zip(found) {
                values[row * width + at / 3] += value / 3.0;
            }
        });
        Ok(Self { size, values })
    }

    /// Its size, that of the pictures.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Its values, row by row from the top.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }
}

/// The picture with a mirrored border of the window's radius.
fn mirrored(picture: &Picture) -> Picture {
    let Size { width, height } = picture.size();
    let (columns, rows) = (around(index(width)), around(index(height)));
    let mut rgb = Vec::with_capacity(columns.len() * rows.len() * 3);
    for row in rows {
        let row = &picture.pixels()[row * index(width)..][..index(width)];
        rgb.extend(columns.iter().flat_map(|at| row[*at]));
    }
    let border = 2 * (SHORTEST_SIDE / 2);
    let size = Size { width: width + border, height: height + border };
    // The number of bytes fits by construction.
    Picture::from_rgb(size, rgb).unwrap_or_else(|| Picture::filled(size, [0; 3]))
}

/// Places `-RADIUS .. length + RADIUS` of a line that is continued by its mirror image, again and again if it is short.
fn around(length: usize) -> Vec<usize> {
    let period = 2 * length;
    let start = period * RADIUS - RADIUS;
    (start..start + length + 2 * RADIUS)
        .map(|at| at % period)
        .map(|at| if at < length { at } else { period - 1 - at })
        .collect()
}

/// Two pictures of one size, at least as large as the window.
struct Rows<'a> {
    one: &'a [u8],
    other: &'a [u8],
    /// Values of a row: three a pixel.
    length: usize,
    height: usize,
}

impl<'a> Rows<'a> {
    fn of(one: &'a Picture, other: &'a Picture) -> Self {
        let Size { width, height } = one.size();
        Self { one: one.rgb(), other: other.rgb(), length: 3 * index(width), height: index(height) }
    }
}

/// Calls `sink` with the similarities of some rows wherever the window fits in: the row (that of the window's upper edge),
/// the place in it of the first (in values, three a pixel), and as many as belong together.
fn similarities(pictures: &Rows<'_>, rows: Range<usize>, mut sink: impl FnMut(usize, usize, &[f64])) {
    let border = 3 * (TAPS - 1);
    let whole = pictures.length - border;
    let mut strip = Strip::new(BLOCK.min(whole), border);
    let mut from = 0;
    while from < whole {
        let length = BLOCK.min(whole - from);
        strip.run(pictures, rows.clone(), from..from + length, &mut sink);
        from += length;
    }
}

/// The working memory for a strip of columns.
struct Strip {
    weights: [f64; RADIUS + 1],
    /// The last rows under the window, in turn; in each the maps one after the other.
    ring: Vec<Vec<f64>>,
    /// A row of each map, filtered down the columns.
    down: [Vec<f64>; MAPS],
    /// And along the row too.
    along: [Vec<f64>; MAPS],
    found: Vec<f64>,
}

impl Strip {
    fn new(length: usize, border: usize) -> Self {
        let maps = |length| [(); MAPS].map(|()| vec![0.0; length]);
        Self {
            weights: weights(),
            ring: vec![vec![0.0; MAPS * (length + border)]; TAPS],
            down: maps(length + border),
            along: maps(length),
            found: vec![0.0; length],
        }
    }

    fn run(
        &mut self,
        pictures: &Rows<'_>,
        rows: Range<usize>,
        columns: Range<usize>,
        sink: &mut impl FnMut(usize, usize, &[f64]),
    ) {
        let (from, length) = (columns.start, columns.len());
        let wide = length + 3 * (TAPS - 1);
        for row in rows.start..rows.end + TAPS - 1 {
            let start = row * pictures.length + from;
            let (one, other) = (&pictures.one[start..start + wide], &pictures.other[start..start + wide]);
            prepare(one, other, &mut self.ring[row % TAPS]);
            let Some(top) = (row + 1).checked_sub(TAPS).filter(|top| rows.contains(top)) else { continue };
            for map in 0..MAPS {
                let taps = |k: usize| &self.ring[(top + k) % TAPS][map * wide..][..wide];
                blend(std::array::from_fn(taps), &self.weights, &mut self.down[map][..wide]);
                let taps = |k: usize| &self.down[map][3 * k..3 * k + length];
                blend(std::array::from_fn(taps), &self.weights, &mut self.along[map][..length]);
            }
            let maps = self.along.each_ref().map(|map| &map[..length]);
            combine(maps, &mut self.found[..length]);
            sink(top, from, &self.found[..length]);
        }
    }
}

/// The weights of the window along one axis, from its centre outwards; all eleven add up to 1.
fn weights() -> [f64; RADIUS + 1] {
    let plain: [f64; RADIUS + 1] = std::array::from_fn(|k| (-0.5 / (SIGMA * SIGMA) * float(k * k)).exp());
    let sum = plain[0] + 2.0 * plain[1..].iter().sum::<f64>();
    plain.map(|weight| weight / sum)
}

/// A row of the maps.
fn prepare(one: &[u8], other: &[u8], maps: &mut [f64]) {
    let wide = one.len();
    let (first, rest) = maps.split_at_mut(wide);
    let (second, rest) = rest.split_at_mut(wide);
    let (squares, product) = rest.split_at_mut(wide);
    let (product, other) = (&mut product[..wide], &other[..wide]);
    for at in 0..wide {
        let (x, y) = (f64::from(one[at]), f64::from(other[at]));
        first[at] = x;
        second[at] = y;
        squares[at] = x * x + y * y;
        product[at] = x * y;
    }
}

/// The weighted sum of eleven lines, value by value.
fn blend(taps: [&[f64]; TAPS], weights: &[f64; RADIUS + 1], out: &mut [f64]) {
    let length = out.len();
    let taps = taps.map(|tap| &tap[..length]);
    let [w0, w1, w2, w3, w4, w5] = *weights;
    for at in 0..length {
        let pair = |k: usize| taps[RADIUS - k][at] + taps[RADIUS + k][at];
        out[at] =
            w0 * taps[RADIUS][at] + w5 * pair(5) + w4 * pair(4) + w3 * pair(3) + w2 * pair(2) + w1 * pair(1);
    }
}

/// The similarity from the filtered maps.
fn combine(maps: [&[f64]; MAPS], out: &mut [f64]) {
    let length = out.len();
    let [first, second, squares, product] = maps.map(|map| &map[..length]);
    for at in 0..length {
        let (x, y) = (first[at], second[at]);
        let (means, both) = (x * y, x * x + y * y);
        let covariance = product[at] - means;
        let variances = squares[at] - both;
        out[at] = (2.0 * means + C1) * (2.0 * covariance + C2) / ((both + C1) * (variances + C2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(size: Size, seed: u32) -> Picture {
        let value = |at: u32| (at.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0];
        let count = u32::try_from(size.pixels() * 3).unwrap();
        Picture::from_rgb(size, (0..count).map(value).collect()).unwrap()
    }

    #[test]
    fn lines_are_continued_by_their_mirror_image() {
        assert_eq!(around(3), [1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]);
        assert_eq!(around(1), [0; 11]);
        assert_eq!(around(6), [4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_map_away_from_the_border_is_what_the_mean_is_taken_of() {
        // Wider than a block, so that the seams are seen.
        for size in
            [Size { width: 560, height: 21 }, Size { width: 11, height: 11 }, Size { width: 17, height: 30 }]
        {
            let (one, other) = (noise(size, 1), noise(size, 999));
            let map = SsimMap::of(&one, &other).unwrap();
            let (width, height) = (index(size.width), index(size.height));
            let mut inner = Vec::new();
            for row in RADIUS..height - RADIUS {
                inner.extend(&map.values()[row * width + RADIUS..(row + 1) * width - RADIUS]);
            }
            let mean = inner.iter().sum::<f64>() / float(inner.len());
            assert!((mean - ssim(&one, &other).unwrap()).abs() < 1e-12, "{size}");
        }
    }

    #[test]
    fn a_map_of_equal_pictures_is_one_everywhere_however_small_they_are() {
        for size in
            [Size { width: 1, height: 1 }, Size { width: 4, height: 2 }, Size { width: 300, height: 13 }]
        {
            let picture = noise(size, 3);
            let map = SsimMap::of(&picture, &picture).unwrap();
            assert_eq!(map.size(), size);
            assert!(map.values().iter().all(|value| (value - 1.0).abs() < 1e-12), "{size}");
        }
    }

    #[test]
    fn similarity_does_not_depend_on_the_order() {
        let size = Size { width: 40, height: 30 };
        let (one, other) = (noise(size, 7), noise(size, 70));
        assert!((ssim(&one, &other).unwrap() - ssim(&other, &one).unwrap()).abs() < 1e-15);
    }
}
