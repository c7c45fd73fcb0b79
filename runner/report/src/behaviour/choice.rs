//! Which tasks Figure 6 shows: a seeded sample, stratified by category and difficulty, of those traced in every method.

use std::collections::BTreeMap;

/// What is to be shown.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Tasks.
    pub tasks: usize,
    /// Seed of the sample.
    pub seed: u64,
    /// Methods by name, in this order; all that are no controls and left traces, if empty.
    pub methods: Vec<String>,
}

impl Choice {
    /// The paper's number of tasks.
    pub const TASKS: usize = 108;
}

impl Default for Choice {
    fn default() -> Self {
        Self { tasks: Self::TASKS, seed: 0, methods: Vec::new() }
    }
}

/// Takes `wanted` of the candidates, each with its stratum and a name of its own: from each stratum in proportion to its
/// size (largest remainders), within it by a draw that depends on nothing but seed and name. In the order of strata and names.
pub(super) fn stratified<S: Ord + Clone>(candidates: &[(S, String)], wanted: usize, seed: u64) -> Vec<usize> {
    let mut strata: BTreeMap<&S, Vec<usize>> = BTreeMap::new();
    for (at, (stratum, _)) in candidates.iter().enumerate() {
        strata.entry(stratum).or_default().push(at);
    }
    let (all, wanted) = (candidates.len(), wanted.min(candidates.len()));
    if all == 0 {
        return Vec::new();
    }
    // Whole parts first, then the largest remainders; of equal ones the first stratum's.
    let shares: Vec<(usize, usize)> =
        strata.values().map(|it| (it.len() * wanted / all, it.len() * wanted % all)).collect();
    let mut counts: Vec<usize> = shares.iter().map(|it| it.0).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(shares[*at].1));
    let left = wanted - counts.iter().sum::<usize>();
    for at in order.into_iter().take(left) {
        counts[at] += 1;
    }
    let mut chosen = Vec::with_capacity(wanted);
    for (mut members, count) in strata.into_values().zip(counts) {
        members.sort_by_cached_key(|at| (drawn(seed, &candidates[*at].1), &candidates[*at].1));
        members.truncate(count);
        members.sort_by(|a, b| candidates[*a].1.cmp(&candidates[*b].1));
        chosen.extend(members);
    }
    chosen
}

/// A number that looks like chance, of a seed and a name: FNV-1a, stirred as in `SplitMix64`.
fn drawn(seed: u64, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sum = name.bytes().fold(start, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<(&'static str, String)> {
        let strata = [("a", 50), ("b", 30), ("c", 19), ("d", 1)];
        strata.into_iter().flat_map(|(it, n)| (0..n).map(move |at| (it, format!("{it}-{at:02}")))).collect()
    }

    #[test]
    fn strata_have_their_share_and_nobody_is_taken_twice() {
        let all = candidates();
        let chosen = stratified(&all, 10, 1);
        let count = |name| chosen.iter().filter(|at| all[**at].0 == name).count();
        // 5.0, 3.0, 1.9, 0.1.
        assert_eq!(["a", "b", "c", "d"].map(count), [5, 3, 2, 0]);
        assert!(chosen.windows(2).all(|it| all[it[0]] < all[it[1]]), "{chosen:?}");
        assert_eq!(stratified(&all, 1000, 1).len(), 100);
        assert_eq!(stratified(&all, 0, 1), Vec::<usize>::new());
        assert_eq!(stratified::<&str>(&[], 5, 1), Vec::<usize>::new());
    }

    #[test]
    fn the_seed_decides_and_the_order_of_the_candidates_does_not() {
        let all = candidates();
        let names = |all: &[(&str, String)], seed| -> Vec<String> {
            stratified(all, 20, seed).into_iter().map(|at| all[at].1.clone()).collect()
        };
        let mut turned = all.clone();
        turned.reverse();
        assert_eq!(names(&all, 1), names(&turned, 1));
        assert_ne!(names(&all, 1), names(&all, 2));
    }
}
