//! A seeded sample that represents its strata in proportion (VAO-Bench, appendix C: 316 tasks by source batch, category
//! and difficulty).
//!
//! Each stratum gets its share of the size, rounded down; what is left goes to the largest remainders, one each (Hare's
//! quota). Within a stratum, tasks are taken in the order of `SHA-256(seed, name)`: no generator whose numbers could
//! change with a version of it, and nothing that depends on the order in which tasks were found.
//!
//! So samples are nested within each stratum: with the same seed and tasks, a stratum that gets more has all that it had
//! with fewer. Over all strata a larger sample holds the smaller one except where rounding takes a task from a stratum
//! (as the method of largest remainders may, by one).

use std::collections::BTreeMap;

use proctor_traces::Digest;

use crate::experiment::{Sample, Stratum};
use crate::select::Facts;

/// The tasks that are drawn from `tasks`, which are at least as many; in the order of `tasks`.
pub(crate) fn draw<'a>(sample: &Sample, tasks: &[Facts<'a>]) -> Vec<Facts<'a>> {
    let mut strata: BTreeMap<Vec<&str>, Vec<(Digest, usize)>> = BTreeMap::new();
    for (index, task) in tasks.iter().enumerate() {
        let stratum = sample.by.iter().map(|by| property(task, *by)).collect();
        strata.entry(stratum).or_default().push((lot(sample.seed, &[task.id]), index));
    }
    let sizes: Vec<usize> = strata.values().map(Vec::len).collect();
    let lots: Vec<Digest> = strata.keys().map(|stratum| lot(sample.seed, stratum)).collect();
    let shares = shares(sample.size.as_usize(), &sizes, &lots);

    let mut drawn: Vec<usize> = Vec::new();
    for (mut members, share) in strata.into_values().zip(shares) {
        members.sort_unstable();
        drawn.extend(members.into_iter().take(share).map(|(_, index)| index));
    }
    drawn.sort_unstable();
    drawn.into_iter().filter_map(|index| tasks.get(index).copied()).collect()
}

fn property<'a>(task: &Facts<'a>, by: Stratum) -> &'a str {
    match by {
        Stratum::Batch => task.batch,
        Stratum::Category => task.category.as_str(),
        Stratum::Difficulty => task.difficulty.as_str(),
        Stratum::Mode => task.mode.as_str(),
        Stratum::Operation => task.operation,
    }
}

/// A number drawn for a name. Lengths are hashed too: no two lists of parts are the same bytes.
fn lot(seed: u64, parts: &[&str]) -> Digest {
    let seed = seed.to_string();
    let seed = std::iter::once(("seed", seed.as_bytes()));
    Digest::of_parts(seed.chain(parts.iter().map(|part| ("part", part.as_bytes()))))
}

/// How many of each stratum; equal remainders are decided by lot.
fn shares(size: usize, strata: &[usize], lots: &[Digest]) -> Vec<usize> {
    let total: u128 = strata.iter().map(|members| *members as u128).sum();
    if total == 0 {
        return vec![0; strata.len()];
    }
    let quotas = strata.iter().map(|members| *members as u128 * size as u128);
    let mut remainders: Vec<(std::cmp::Reverse<u128>, Digest, usize)> = Vec::new();
    let mut shares: Vec<usize> = Vec::new();
    for (index, quota) in quotas.enumerate() {
        shares.push(usize::try_from(quota / total).unwrap_or(usize::MAX));
        let Some(lot) = lots.get(index) else { continue };
        remainders.push((std::cmp::Reverse(quota % total), *lot, index));
    }
    remainders.sort_unstable();
    // A remainder is part of one more member: no stratum gets more than it has.
    let left = size.saturating_sub(shares.iter().sum());
    for (_, _, index) in remainders.into_iter().take(left) {
        if let Some(share) = shares.get_mut(index) {
            *share += 1;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proctor_tasks::{Category, Difficulty, RenderMode};
    use proptest::prelude::*;

    use super::*;
    use crate::value::TaskCount;

    /// As many tasks as are said for each (batch, category, difficulty).
    fn names(counts: &[usize]) -> Vec<(String, usize)> {
        let each = counts.iter().enumerate();
        each.flat_map(|(cell, n)| (0..*n).map(move |i| (format!("task-{cell}-{i}"), cell))).collect()
    }

    fn facts(names: &[(String, usize)]) -> Vec<Facts<'_>> {
        let batches = ["b1", "b2", "b3"];
        names
            .iter()
            .map(|(id, cell)| Facts {
                id,
                category: Category::ALL[cell % 9],
                mode: RenderMode::Html,
                difficulty: Difficulty::ALL[cell / 9 % 3],
                operation: "text_edit",
                batch: batches[cell / 27 % 3],
            })
            .collect()
    }

    fn sample(size: usize, seed: u64) -> Sample {
        Sample { size: TaskCount::clamped(size as u64), seed, by: Stratum::of_the_paper() }
    }

    fn ids<'a>(drawn: &[Facts<'a>]) -> BTreeSet<&'a str> {
        drawn.iter().map(|task| task.id).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_tasks_for_ever() {
        let names = names(&[5, 4, 3]);
        let drawn = draw(&sample(4, 1), &facts(&names));
        let drawn: Vec<&str> = drawn.iter().map(|task| task.id).collect();
        assert_eq!(drawn, ["task-0-2", "task-0-3", "task-1-2", "task-2-0"]);
    }

    proptest! {
        #[test]
        fn samples_are_exact_proportional_and_the_same_in_any_order(
            counts in prop::collection::vec(0usize..12, 1..81),
            seed in 0u64..1000,
            part in 1usize..=100,
        ) {
            let names = names(&counts);
            let total = names.len();
            prop_assume!(total > 0);
            let size = (total * part).div_ceil(100);
            let tasks = facts(&names);
            let drawn = draw(&sample(size, seed), &tasks);
            prop_assert_eq!(drawn.len(), size);
            prop_assert_eq!(ids(&drawn).len(), size);
            for (cell, n) in counts.iter().enumerate() {
                let got = ids(&drawn).iter().filter(|id| id.starts_with(&format!("task-{cell}-"))).count();
                // Within one of the exact share, in whole numbers.
                prop_assert!((got * total).abs_diff(n * size) < total, "cell {cell}: {got} of {n}");
            }
            let mut turned: Vec<Facts<'_>> = tasks.iter().rev().copied().collect();
            turned.rotate_left(part % total);
            prop_assert_eq!(ids(&draw(&sample(size, seed), &turned)), ids(&drawn));
        }

        #[test]
        fn within_a_stratum_a_larger_sample_holds_the_smaller(n in 2usize..60, seed in 0u64..50) {
            let names = names(&[n]);
            let tasks = facts(&names);
            let small = draw(&sample(n / 2, seed), &tasks);
            let large = draw(&sample(n / 2 + 1, seed), &tasks);
            prop_assert!(ids(&small).is_subset(&ids(&large)));
        }
    }

    #[test]
    fn another_seed_draws_others() {
        let names = names(&[40, 40]);
        let tasks = facts(&names);
        let drawn: BTreeSet<BTreeSet<&str>> =
            (0..20).map(|seed| ids(&draw(&sample(20, seed), &tasks))).collect();
        assert_eq!(drawn.len(), 20);
    }
}
