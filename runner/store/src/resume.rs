//! What is left to do, as a pure function of the plan and of what is on disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Attempt, TrialId};

/// What is on disk of one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// It has an outcome.
    pub done: bool,
    /// It was asked for as the rerun of another.
    pub rerun: bool,
    /// Its number of tries.
    pub tries: u32,
}

/// Everything that is on disk, by trial.
pub type Survey = BTreeMap<TrialId, Standing>;

/// The trial that stands for `planned` now: the last of its reruns that was asked for, or itself.
pub fn current(planned: &TrialId, survey: &Survey) -> TrialId {
    let mut current = planned.clone();
    loop {
        let again = current.at(current.attempt().again());
        if !survey.get(&again).is_some_and(|it| it.rerun) {
            return current;
        }
        current = again;
    }
}

/// The trials that are still to be run, in the order of the plan: of each planned one the one that stands for it now,
/// unless that has an outcome (DESIGN §3.8).
pub fn resume(plan: &[TrialId], survey: &Survey) -> Vec<TrialId> {
    let mut seen = BTreeSet::new();
    let open =
        plan.iter().map(|planned| current(&planned.at(Attempt::nth(planned.attempt().number())), survey));
    open.filter(|trial| !survey.get(trial).is_some_and(|it| it.done) && seen.insert(trial.clone())).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trial(task: u8, attempt: u8) -> TrialId {
        format!("vao/t{task}/m/{}", attempt + 1).parse().unwrap()
    }

    /// What can happen to a planned trial, in any order, between two starts.
    #[derive(Clone, Copy, Debug)]
    enum Event {
        /// A runner was killed in the middle of a try.
        Died,
        /// It got its outcome.
        Ended,
        /// It was asked for again.
        Rerun,
        /// A folder was made for a rerun that was not asked for in the end.
        Stray,
    }

    fn events() -> impl Strategy<Value = Vec<(u8, u8, Event)>> {
        let event =
            prop_oneof![Just(Event::Died), Just(Event::Ended), Just(Event::Rerun), Just(Event::Stray)];
        prop::collection::vec((0..4u8, 0..3u8, event), 0..60)
    }

    proptest! {
        #[test]
        fn every_planned_trial_is_either_done_or_to_be_run_and_never_both(events in events(), tasks in 1..4u8, attempts in 1..3u8) {
            let plan: Vec<TrialId> =
                (0..attempts).flat_map(|attempt| (0..tasks).map(move |task| trial(task, attempt))).collect();
            let mut survey = Survey::new();
            // The model: for each planned trial, how many reruns were asked for, and whether the last one ended.
            let mut model: BTreeMap<TrialId, (u32, bool)> = BTreeMap::new();
            for (task, attempt, event) in events {
                let planned = trial(task, attempt);
                let now = current(&planned, &survey);
                let known = model.entry(planned.clone()).or_default();
                let standing = survey.entry(now.clone()).or_default();
                match event {
                    Event::Died => standing.tries += 1,
                    Event::Ended => (standing.done, known.1) = (true, true),
                    // Only what ended is run again.
                    Event::Rerun if standing.done => {
                        survey.entry(now.at(now.attempt().again())).or_default().rerun = true;
                        *known = (known.0 + 1, false);
                    }
                    Event::Rerun => {}
                    Event::Stray => drop(survey.entry(now.at(now.attempt().again())).or_default()),
                }
            }
            let left = resume(&plan, &survey);
            for planned in &plan {
                let (reruns, ended) = model.get(planned).copied().unwrap_or_default();
                let now = current(planned, &survey);
                prop_assert_eq!((now.attempt().number(), now.attempt().rerun()), (planned.attempt().number(), reruns));
                prop_assert_eq!(left.iter().filter(|it| **it == now).count(), usize::from(!ended));
            }
            prop_assert_eq!(left.len(), plan.iter().filter(|it| !model.get(it).is_some_and(|it| it.1)).count());
            let order: Vec<usize> = left.iter().map(|it| plan.iter().position(|p| p.at(it.attempt()) == *it && p.attempt().number() == it.attempt().number()).unwrap()).collect();
            prop_assert!(order.is_sorted(), "the order of the plan is kept");
            // Nothing is left when all of it has ended, whatever else lies there.
            for trial in &left {
                survey.entry(trial.clone()).or_default().done = true;
            }
            prop_assert_eq!(resume(&plan, &survey), Vec::new());
        }
    }
}
