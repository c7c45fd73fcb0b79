//! Whether a sum of paired differences may be chance: were the two methods alike, each cluster's difference could as well
//! have had the other sign (Fisher's randomisation test of matched pairs).

use serde::Serialize;

use crate::intervals::SplitMix;
use crate::row::float;

/// Sums up to this are counted through: one number is kept for each sum that is possible.
const MOST_EXACT: u64 = 100_000;

/// Else so many choices of signs are drawn.
pub(crate) const DRAWS: u32 = 20_000;

/// The draws begin here.
const SEED: u64 = 0x51f1_1b5e_ed0f_7e57;

/// How likely such a difference is by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SignFlip {
    /// Two-sided: the share of all choices of signs whose sum is as far from zero or farther.
    pub p: f64,
    /// Whether all choices were counted; else 20,000 were drawn, and the one that was observed is among them.
    pub exact: bool,
}

/// The test over the differences of clusters; none without any cluster.
pub fn sign_flip(differences: &[i64]) -> Option<SignFlip> {
    if differences.is_empty() {
        return None;
    }
    let sizes: Vec<u64> = differences.iter().map(|it| it.unsigned_abs()).filter(|it| *it > 0).collect();
    let observed = differences.iter().sum::<i64>().unsigned_abs();
    let total: u64 = sizes.iter().sum();
    let exact = total <= MOST_EXACT;
    let p = if exact { counted(&sizes, total, observed) } else { drawn(&sizes, total, observed) };
    Some(SignFlip { p, exact })
}

/// The sum is `total` less twice what has the minus sign: the likelihood of each such part, added size by size.
fn counted(sizes: &[u64], total: u64, observed: u64) -> f64 {
    let index = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    let mut likely = vec![0.0; index(total) + 1];
    likely[0] = 1.0;
    let mut reached = 0;
    for size in sizes.iter().map(|it| index(*it)) {
        reached += size;
        for at in (0..=reached).rev() {
            let without = if at >= size { likely[at - size] } else { 0.0 };
            likely[at] = f64::midpoint(likely[at], without);
        }
    }
    let far = |minus: u64| total.abs_diff(2 * minus) >= observed;
    let p: f64 = (0..=total).filter(|it| far(*it)).map(|it| likely[index(it)]).sum();
    p.min(1.0)
}

fn drawn(sizes: &[u64], total: u64, observed: u64) -> f64 {
    let mut random = SplitMix(SEED);
    let mut far = 1_u64;
    for _ in 0..DRAWS {
        let (mut minus, mut bits) = (0, 0);
        for (at, size) in sizes.iter().enumerate() {
            if at % 64 == 0 {
                bits = random.next();
            }
            minus += size * (bits & 1);
            bits >>= 1;
        }
        far += u64::from(total.abs_diff(2 * minus) >= observed);
    }
    float(far) / (f64::from(DRAWS) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(differences: &[i64]) -> f64 {
        sign_flip(differences).unwrap().p
    }

    #[test]
    fn all_choices_of_signs_are_counted() {
        // One of 2^5 choices on either side.
        assert!((p(&[1; 5]) - 2.0 / 32.0).abs() < 1e-15);
        // Of 2^3 sums ±3±2±1: 6, 4, 2, 0, 0, -2, -4, -6; observed 4.
        assert!((p(&[3, 2, -1]) - 0.5).abs() < 1e-15);
        // Clusters without a difference change nothing, nor does their order or the sign of all.
        assert_eq!(p(&[0, -3, 0, 1, -2]).to_bits(), p(&[3, 2, -1]).to_bits());
        // The two signs cancel out: every choice is as far.
        assert_eq!((p(&[7, -7]), p(&[0, 0])), (1.0, 1.0));
        assert_eq!(sign_flip(&[]), None);
        // Fourteen wins of twenty, as the sign test has it (0.1153).
        let games: Vec<i64> = (0..20).map(|at| if at < 14 { 1 } else { -1 }).collect();
        assert!((p(&games) - 0.115_318_298_339_843_75).abs() < 1e-12);
    }

    #[test]
    fn what_is_too_much_to_count_is_drawn_and_comes_near() {
        let (small, large): (Vec<i64>, Vec<i64>) =
            (1..=30).map(|at| if at % 3 == 0 { (-at, -at * 100_000) } else { (at, at * 100_000) }).unzip();
        let (exact, near) = (sign_flip(&small).unwrap(), sign_flip(&large).unwrap());
        assert!(exact.exact && !near.exact);
        assert!((exact.p - near.p).abs() < 0.01, "{} {}", exact.p, near.p);
        assert_eq!(sign_flip(&large), Some(near), "the same data, the same number");
    }
}
