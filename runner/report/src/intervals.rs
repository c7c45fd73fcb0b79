//! How sure a figure is: Wilson's interval for rates; the bootstrap, clustered by source artifact, for means.

use std::thread;

/// Two-sided 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Replicates of the bootstrap.
pub const REPLICATES: usize = 10_000;

/// The draws of replicate `n` begin here: the same run gives the same interval, on any machine, with any number of threads.
const SEED: u64 = 0x5eed_0f7e_0a11_ca7e;

/// Replicates that a thread takes at a time.
const BLOCK: usize = 250;

/// Columns that are added up at once.
const LANES: usize = 8;

/// Bounds of a 95 % interval.
pub type Interval = [f64; 2];

/// Wilson's score interval for `successes` of `trials`; none without trials. Both may be fractions: attempts at one task
/// are not independent of each other, so that each weighs 1/attempts.
pub fn wilson(successes: f64, trials: f64) -> Option<Interval> {
    if trials <= 0.0 {
        return None;
    }
    let rate = successes / trials;
    let spread = Z * (rate * (1.0 - rate) / trials + Z * Z / (4.0 * trials * trials)).sqrt();
    let (centre, scale) = (rate + Z * Z / (2.0 * trials), 1.0 + Z * Z / trials);
    // Where all or none succeeded, one bound is the rate itself: the difference of two equal numbers is not always zero.
    let low = if successes <= 0.0 { 0.0 } else { ((centre - spread) / scale).max(0.0) };
    let high = if successes >= trials { 1.0 } else { ((centre + spread) / scale).min(1.0) };
    Some([low, high])
}

/// A mean as the sums of its numerator and denominator within each cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterSums {
    /// Sum of the values, per cluster.
    pub numerators: Vec<f64>,
    /// Sum of what they are divided by, per cluster.
    pub denominators: Vec<f64>,
}

/// Percentile intervals of means whose clusters are drawn together, with replacement, as often as there are clusters.
/// Every mean must have the same clusters in the same order. None for a mean that has no value, and for a single cluster,
/// which says nothing about others.
pub fn bootstrap(means: &[ClusterSums]) -> Vec<Option<Interval>> {
    let clusters = means.first().map_or(0, |it| it.numerators.len());
    if clusters < 2 {
        return vec![None; means.len()];
    }
    // Many means share a denominator, and some a numerator: each column is added up once.
    let mut columns: Vec<&[f64]> = Vec::new();
    let places: Vec<[usize; 2]> =
        means.iter().map(|it| [&it.numerators, &it.denominators].map(|it| place(&mut columns, it))).collect();
    let width = columns.len().div_ceil(LANES);
    // Row by row, so that what one draw needs lies together.
    let mut table = vec![[0.0; LANES]; clusters * width];
    for (column, values) in columns.iter().enumerate() {
        for (row, value) in table.chunks_exact_mut(width).zip(*values) {
            row[column / LANES][column % LANES] = *value;
        }
    }
    let mut sums = vec![[0.0; LANES]; REPLICATES * width];
    let threads = thread::available_parallelism().map_or(1, usize::from).min(8);
    let share = REPLICATES.div_ceil(threads).next_multiple_of(BLOCK) * width;
    thread::scope(|scope| {
        for (at, part) in sums.chunks_mut(share).enumerate() {
            let (table, first) = (&table, at * share / width);
            scope.spawn(move || {
                for (at, sum) in part.chunks_exact_mut(width).enumerate() {
                    replicate(first + at, table, sum);
                }
            });
        }
    });
    let mut intervals = vec![None; places.len()];
    let share = places.len().div_ceil(threads);
    thread::scope(|scope| {
        for (intervals, places) in intervals.chunks_mut(share).zip(places.chunks(share)) {
            let sums = &sums;
            scope.spawn(move || {
                for (interval, place) in intervals.iter_mut().zip(places) {
                    *interval = percentiles(sums, width, *place);
                }
            });
        }
    });
    intervals
}

fn place<'a>(columns: &mut Vec<&'a [f64]>, values: &'a [f64]) -> usize {
    let same = |known: &&[f64]| known.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits());
    columns.iter().position(same).unwrap_or_else(|| {
        columns.push(values);
        columns.len() - 1
    })
}

/// Adds up the clusters that replicate `number` draws.
fn replicate(number: usize, table: &[[f64; LANES]], sum: &mut [[f64; LANES]]) {
    let width = sum.len();
    let clusters = table.len() / width;
    let mut random = SplitMix(SEED ^ (number as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
    for _ in 0..clusters {
        let row = &table[random.below(clusters) * width..][..width];
        for (sum, values) in sum.iter_mut().zip(row) {
            for lane in 0..LANES {
                sum[lane] += values[lane];
            }
        }
    }
}

fn percentiles(sums: &[[f64; LANES]], width: usize, columns: [usize; 2]) -> Option<Interval> {
    let pairs = sums.chunks_exact(width).map(|row| columns.map(|it| row[it / LANES][it % LANES]));
    let ratios = pairs.filter(|[_, denominator]| *denominator > 0.0);
    let mut ratios: Vec<f64> = ratios.map(|[numerator, denominator]| numerator / denominator).collect();
    let last = ratios.len().checked_sub(1)?;
    let mut at = |part: usize| *ratios.select_nth_unstable_by(last * part / 1000, f64::total_cmp).1;
    Some([at(25), at(975)])
}

/// Steele, Lea and Flood's generator: small, and good enough to draw clusters with.
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index below `bound`; its bias is less than `bound` / 2^64.
    #[expect(clippy::cast_possible_truncation, reason = "the product's upper half is below `bound`")]
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_as_in_the_literature() {
        // Newcombe 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29.
        for (successes, trials, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let [l, h] = wilson(successes, trials).unwrap();
            assert!((l - low).abs() < 5e-5 && (h - high).abs() < 5e-5, "{successes}/{trials}: {l} {h}");
        }
        assert_eq!(wilson(0.0, 0.0), None);
        // To the last bit, whatever the number of trials.
        for trials in (1..2000).map(f64::from) {
            let (none, all) = (wilson(0.0, trials).unwrap(), wilson(trials, trials).unwrap());
            assert_eq!(
                (none[0].to_bits(), all[1].to_bits()),
                (0.0_f64.to_bits(), 1.0_f64.to_bits()),
                "{trials}"
            );
        }
    }

    fn sums(values: &[f64]) -> ClusterSums {
        ClusterSums { numerators: values.to_vec(), denominators: vec![1.0; values.len()] }
    }

    #[test]
    fn the_bootstrap_of_a_mean_is_as_wide_as_theory_says() {
        // A sample whose mean is 50 and whose standard error is that of a uniform distribution.
        let values: Vec<f64> = (0..400).map(|n| f64::from(n) / 3.99).collect();
        let mean = values.iter().sum::<f64>() / 400.0;
        let variance = values.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 400.0;
        let half = Z * (variance / 400.0).sqrt();
        let [low, high] = bootstrap(&[sums(&values)])[0].unwrap();
        assert!(
            (low - (mean - half)).abs() < 0.2 && (high - (mean + half)).abs() < 0.2,
            "{low} {high} {half}"
        );
    }

    #[test]
    fn clusters_are_drawn_whole_and_weigh_by_their_size() {
        // All within a cluster are alike: only the number of clusters counts.
        let few = ClusterSums { numerators: vec![0.0, 100.0], denominators: vec![100.0, 100.0] };
        assert_eq!(bootstrap(&[few])[0], Some([0.0, 1.0]));
        let constant = ClusterSums { numerators: vec![2.0, 8.0, 14.0], denominators: vec![1.0, 4.0, 7.0] };
        assert_eq!(bootstrap(&[constant])[0], Some([2.0, 2.0]));
    }

    #[test]
    fn the_same_data_give_the_same_interval_whatever_stands_beside_them() {
        let (a, b) = (sums(&[1.0, 2.0, 4.0, 8.0]), sums(&[3.0, 1.0, 4.0, 1.0]));
        let both = bootstrap(&[a.clone(), b.clone()]);
        let turned = bootstrap(&[b.clone(), a.clone()]);
        assert_eq!((both[0], both[1]), (turned[1], turned[0]));
        assert_eq!((bootstrap(&[a])[0], bootstrap(&[b])[0]), (both[0], both[1]));
    }

    #[test]
    fn what_has_no_denominator_has_no_interval() {
        let empty = ClusterSums { numerators: vec![0.0; 3], denominators: vec![0.0; 3] };
        assert_eq!(bootstrap(&[empty, sums(&[5.0, 5.0, 5.0])]), [None, Some([5.0, 5.0])]);
        assert_eq!(bootstrap(&[sums(&[5.0])]), [None]);
        assert_eq!(bootstrap(&[]), []);
    }
}
