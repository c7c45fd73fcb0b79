//! Means over trials with the intervals of a bootstrap that draws source artifacts: several figures at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::figures::Mean;
use crate::intervals::{ClusterSums, bootstrap};

/// What a mean takes from a trial: what is divided, and by what; none if it has no part in it.
pub(super) type Term = Option<(f64, f64)>;

/// Means over `items`, each with the source artifact that it belongs to. `terms` gives what each of the means called
/// `names` takes from an item, in that order.
pub(super) fn means<'a, T>(
    items: &[(&str, T)],
    names: &[&'a str],
    terms: impl Fn(&T) -> Vec<Term>,
) -> BTreeMap<&'a str, Mean> {
    // Numbered by name, so that no order of files matters.
    let sources: BTreeSet<&str> = items.iter().map(|it| it.0).collect();
    let places: HashMap<&str, usize> = sources.into_iter().enumerate().map(|(at, it)| (it, at)).collect();
    let empty = ClusterSums { numerators: vec![0.0; places.len()], denominators: vec![0.0; places.len()] };
    let mut sums = vec![empty; names.len()];
    for (source, item) in items {
        let Some(at) = places.get(source) else { continue };
        for (sums, term) in sums.iter_mut().zip(terms(item)) {
            if let Some((numerator, denominator)) = term {
                sums.numerators[*at] += numerator;
                sums.denominators[*at] += denominator;
            }
        }
    }
    let bounds = bootstrap(&sums);
    let each = names.iter().zip(&sums).zip(bounds);
    each.map(|((name, sums), bounds)| {
        // A single source says nothing about others, also if it is the only one of several that has the figure.
        let several = sums.denominators.iter().filter(|it| **it > 0.0).count() > 1;
        (*name, Mean::of(name, sums, bounds.filter(|_| several)))
    })
    .collect()
}
