//! Which trial is started next: pure, so that its rules can be tested without running anything.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

/// Place of a trial in the plan.
pub(super) type Place = usize;

/// What a trial takes part in.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Its method, by number.
    pub(super) method: usize,
    /// Its provider, by number, if it asks one.
    pub(super) provider: Option<usize>,
    /// Whether it takes one of the rooms.
    pub(super) room: bool,
}

/// Most trials at a time.
#[derive(Clone, Debug)]
pub(super) struct Caps {
    /// Rooms.
    pub(super) rooms: usize,
    /// By number of the method.
    pub(super) methods: BTreeMap<usize, usize>,
    /// By number of the provider.
    pub(super) providers: BTreeMap<usize, usize>,
    /// Least time between two starts.
    pub(super) interval: Duration,
    /// The same between two starts of one method, by its number.
    pub(super) intervals: BTreeMap<usize, Duration>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Start this trial.
    Start(Place),
    /// Nothing before this moment, unless a trial ends.
    Until(Instant),
    /// Nothing before a trial ends.
    AnEnd,
    /// Nothing is left, and nothing runs.
    Nothing,
}

/// Trials that wait, and how many run.
pub(super) struct Queue {
    shares: Vec<Share>,
    caps: Caps,
    /// Trials that may start, by method and in the order of the plan.
    ready: BTreeMap<usize, BTreeSet<Place>>,
    /// Trials that are looked at again later.
    later: BinaryHeap<Reverse<(Instant, Place)>>,
    running: usize,
    rooms: usize,
    by_method: BTreeMap<usize, usize>,
    by_provider: BTreeMap<usize, usize>,
    /// Nothing starts before.
    next_start: Option<Instant>,
    /// The same, by method.
    next_starts: BTreeMap<usize, Instant>,
    /// Methods that no more trials are started of.
    given_up: BTreeSet<usize>,
}

impl Queue {
    /// Another trial waits; returns its place, which is the next one. None if its method is given up.
    pub(super) fn add(&mut self, share: Share) -> Option<Place> {
        if self.given_up.contains(&share.method) {
            return None;
        }
        let place = self.shares.len();
        self.ready.entry(share.method).or_default().insert(place);
        self.shares.push(share);
        Some(place)
    }

    /// All trials wait.
    pub(super) fn new(shares: Vec<Share>, caps: Caps) -> Self {
        let mut ready: BTreeMap<usize, BTreeSet<Place>> = BTreeMap::new();
        for (place, share) in shares.iter().enumerate() {
            ready.entry(share.method).or_default().insert(place);
        }
        Self {
            shares,
            caps,
            ready,
            later: BinaryHeap::new(),
            running: 0,
            rooms: 0,
            by_method: BTreeMap::new(),
            by_provider: BTreeMap::new(),
            next_start: None,
            next_starts: BTreeMap::new(),
            given_up: BTreeSet::new(),
        }
    }

    /// What is to be done at `now`. A trial that is to be started counts as running.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        while self.later.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            if let Some(Reverse((_, place))) = self.later.pop() {
                self.ready.entry(self.shares[place].method).or_default().insert(place);
            }
        }
        let place = match self.first_that_may_run(now) {
            Ok(place) => place,
            Err(paused) => {
                // There is no use in waking up for what would find no room.
                let has_place = |place: Place| !self.shares[place].room || self.rooms < self.caps.rooms;
                let later = self.later.iter().filter(|Reverse((_, place))| has_place(*place));
                return match later.map(|Reverse((at, _))| *at).chain(paused).min() {
                    Some(at) => Next::Until(at),
                    None if self.running > 0 => Next::AnEnd,
                    None => Next::Nothing,
                };
            }
        };
        if let Some(at) = self.next_start.filter(|at| *at > now) {
            return Next::Until(at);
        }
        self.next_start = Some(now + self.caps.interval);
        let Share { method, provider, room } = self.shares[place];
        if let Some(interval) = self.caps.intervals.get(&method) {
            self.next_starts.insert(method, now + *interval);
        }
        self.rooms += usize::from(room);
        if let Some(ready) = self.ready.get_mut(&method) {
            ready.remove(&place);
        }
        self.running += 1;
        *self.by_method.entry(method).or_default() += 1;
        if let Some(provider) = provider {
            *self.by_provider.entry(provider).or_default() += 1;
        }
        Next::Start(place)
    }

    /// A trial that was started has ended, or was not to be had.
    pub(super) fn ended(&mut self, place: Place) {
        let Share { method, provider, room } = self.shares[place];
        self.running -= 1;
        self.rooms -= usize::from(room);
        let providers = provider.map(|provider| self.by_provider.entry(provider).or_default());
        for count in [Some(self.by_method.entry(method).or_default()), providers].into_iter().flatten() {
            *count = count.saturating_sub(1);
        }
    }

    /// A start that came to nothing is none that the intervals count from.
    pub(super) fn was_no_start(&mut self, place: Place) {
        self.next_start = None;
        self.next_starts.remove(&self.shares[place].method);
    }

    /// A trial is looked at again at `at`.
    pub(super) fn again(&mut self, place: Place, at: Instant) {
        self.later.push(Reverse((at, place)));
    }

    /// No more trials of this method are started; returns those that were left.
    pub(super) fn give_up(&mut self, method: usize) -> Vec<Place> {
        self.given_up.insert(method);
        let mut left: Vec<Place> = self.ready.remove(&method).into_iter().flatten().collect();
        self.later.retain(|Reverse((_, place))| {
            let keep = self.shares[*place].method != method;
            if !keep {
                left.push(*place);
            }
            keep
        });
        left
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.later.len() + self.ready.values().map(BTreeSet::len).sum::<usize>()
    }

    /// The first trial in the order of the plan that may start at `now`; else the next moment at which one may, if it is
    /// known.
    fn first_that_may_run(&self, now: Instant) -> Result<Place, Option<Instant>> {
        let free = |counts: &BTreeMap<usize, usize>, caps: &BTreeMap<usize, usize>, key: usize| {
            caps.get(&key).is_none_or(|cap| counts.get(&key).copied().unwrap_or(0) < *cap)
        };
        let (mut first, mut paused) = (None::<Place>, None::<Instant>);
        for (method, places) in &self.ready {
            let Some(place) = places.first().copied() else { continue };
            let share = &self.shares[place];
            // All trials of a method ask the same provider, and all of them take rooms or none.
            let may = free(&self.by_method, &self.caps.methods, *method)
                && share.provider.is_none_or(|it| free(&self.by_provider, &self.caps.providers, it))
                && (!share.room || self.rooms < self.caps.rooms);
            if !may {
                continue;
            }
            match self.next_starts.get(method).filter(|at| **at > now) {
                Some(at) => paused = Some(paused.map_or(*at, |it| it.min(*at))),
                None => first = Some(first.map_or(place, |it| it.min(place))),
            }
        }
        first.ok_or(paused)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NO_PAUSE: Duration = Duration::ZERO;

    fn share(method: usize, provider: Option<usize>) -> Share {
        Share { method, provider, room: true }
    }

    fn caps(rooms: usize) -> Caps {
        Caps {
            rooms,
            methods: BTreeMap::new(),
            providers: BTreeMap::new(),
            interval: NO_PAUSE,
            intervals: BTreeMap::new(),
        }
    }

    #[test]
    fn the_order_of_the_plan_holds_and_a_full_method_does_not_hold_up_the_next() {
        let now = Instant::now();
        let shares = vec![share(0, None), share(0, None), share(1, None), share(0, None)];
        let mut queue = Queue::new(shares, Caps { methods: BTreeMap::from([(0, 1)]), ..caps(3) });
        let started: Vec<Next> = (0..3).map(|_| queue.next(now)).collect();
        assert_eq!(started, [Next::Start(0), Next::Start(2), Next::AnEnd]);
        queue.ended(0);
        assert_eq!([queue.next(now), queue.next(now)], [Next::Start(1), Next::AnEnd]);
        queue.ended(2);
        queue.ended(1);
        assert_eq!(queue.next(now), Next::Start(3));
        queue.ended(3);
        assert_eq!(queue.next(now), Next::Nothing);
    }

    #[test]
    fn starts_are_apart_by_the_interval() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let mut queue = Queue::new(vec![share(0, None); 3], Caps { interval: ms(250), ..caps(10) });
        assert_eq!(queue.next(now), Next::Start(0));
        assert_eq!(queue.next(now + ms(100)), Next::Until(now + ms(250)));
        assert_eq!(queue.next(now + ms(260)), Next::Start(1));
        assert_eq!(queue.next(now + ms(500)), Next::Until(now + ms(510)));
    }

    #[test]
    fn what_takes_no_room_waits_for_none_and_keeps_its_own_interval() {
        let (now, ms) = (Instant::now(), Duration::from_millis);
        let alone = Share { room: false, ..share(1, None) };
        let shares = vec![share(0, None), share(0, None), alone.clone(), alone.clone(), alone];
        let mut queue = Queue::new(
            shares,
            Caps { methods: BTreeMap::from([(1, 2)]), intervals: BTreeMap::from([(1, ms(250))]), ..caps(1) },
        );
        assert_eq!([queue.next(now), queue.next(now)], [Next::Start(0), Next::Start(2)]);
        assert_eq!(
            queue.next(now),
            Next::Until(now + ms(250)),
            "its method waits, and there is no other room"
        );
        assert_eq!(queue.next(now + ms(250)), Next::Start(3));
        assert_eq!(queue.next(now + ms(500)), Next::AnEnd, "two of it run");
        queue.ended(2);
        queue.ended(0);
        assert_eq!(queue.next(now + ms(300)), Next::Start(1), "an interval of one method holds up no other");
        queue.was_no_start(3);
        assert_eq!(queue.next(now + ms(300)), Next::Start(4));
    }

    #[test]
    fn what_was_not_to_be_had_is_looked_at_again_later_and_holds_up_nobody() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut queue = Queue::new(vec![share(0, None), share(0, None)], caps(1));
        assert_eq!(queue.next(now), Next::Start(0));
        queue.ended(0);
        queue.again(0, now + second);
        assert_eq!(queue.next(now), Next::Start(1));
        // The one slot is taken: there is no use in waking up earlier.
        assert_eq!(queue.next(now), Next::AnEnd);
        queue.ended(1);
        assert_eq!(queue.next(now), Next::Until(now + second));
        assert_eq!(queue.next(now + second), Next::Start(0));
    }

    #[test]
    fn a_method_that_is_given_up_starts_no_more() {
        let now = Instant::now();
        let mut queue =
            Queue::new(vec![share(0, None), share(0, None), share(1, None), share(0, None)], caps(1));
        assert_eq!(queue.next(now), Next::Start(0));
        queue.again(1, now);
        assert_eq!(queue.give_up(0), [1, 3, 1], "one of them twice");
        assert_eq!((queue.add(share(0, None)), queue.add(share(1, None))), (None, Some(4)));
        queue.ended(0);
        assert_eq!((queue.next(now), queue.waiting()), (Next::Start(2), 1));
    }

    proptest! {
        #[test]
        fn caps_are_kept_and_every_trial_runs_once(
            shares in prop::collection::vec((0..4usize, prop::option::of(0..3usize)), 1..60),
            all in 1..8usize,
            method_caps in prop::collection::btree_map(0..4usize, 1..3usize, 0..4),
            provider_caps in prop::collection::btree_map(0..3usize, 1..3usize, 0..3),
            mut seed in any::<u64>(),
        ) {
            // A method has one provider.
            let provider_of: BTreeMap<usize, Option<usize>> = shares.iter().rev().copied().collect();
            let shares: Vec<Share> = shares.iter().map(|(method, _)| share(*method, provider_of[method])).collect();
            let caps = Caps { methods: method_caps.clone(), providers: provider_caps.clone(), ..caps(all) };
            let mut queue = Queue::new(shares.clone(), caps);
            let (mut now, mut running, mut done) = (Instant::now(), Vec::new(), BTreeSet::new());
            loop {
                match queue.next(now) {
                    Next::Start(place) => running.push(place),
                    Next::Nothing => break,
                    Next::Until(at) => { prop_assert!(at > now); now = at; continue }
                    Next::AnEnd => {
                        prop_assert!(!running.is_empty());
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let place = running.swap_remove(usize::try_from(seed >> 33).unwrap() % running.len());
                        queue.ended(place);
                        // Now and then it was not to be had.
                        if seed >> 61 == 0 { queue.again(place, now + Duration::from_millis(1)); } else { prop_assert!(done.insert(place)); }
                    }
                }
                prop_assert!(running.len() <= all);
                for (method, cap) in &method_caps {
                    prop_assert!(running.iter().filter(|place| shares[**place].method == *method).count() <= *cap);
                }
                for (provider, cap) in &provider_caps {
                    prop_assert!(running.iter().filter(|place| shares[**place].provider == Some(*provider)).count() <= *cap);
                }
            }
            prop_assert_eq!(done.len(), shares.len());
        }
    }
}
