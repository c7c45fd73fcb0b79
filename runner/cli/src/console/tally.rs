//! How far a run has come, by method, and how long the rest will take.

use std::collections::BTreeMap;
use std::time::Duration;

use proctor_store::{MethodId, Outcome};
use proctor_traces::Ending;

/// Counts of all methods.
#[derive(Debug, Default)]
pub(super) struct Tally {
    methods: BTreeMap<MethodId, Counts>,
    order: Vec<MethodId>,
    jobs: usize,
}

/// Counts of one method.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    planned: usize,
    /// Ended, before this process began or by others.
    elsewhere: usize,
    running: usize,
    ended: usize,
    failed: usize,
    timed_out: usize,
    recovered: usize,
    /// What the trials that ended here took, from the start of the room to its end.
    took: Duration,
}

impl Tally {
    /// For these trials of each method, `jobs` at a time.
    pub(super) fn new(planned: &[(MethodId, usize)], jobs: usize) -> Self {
        let counts = planned
            .iter()
            .map(|(method, planned)| (method.clone(), Counts { planned: *planned, ..Counts::default() }));
        Self {
            methods: counts.collect(),
            order: planned.iter().map(|(method, _)| method.clone()).collect(),
            jobs: jobs.max(1),
        }
    }

    fn of(&mut self, method: &MethodId) -> &mut Counts {
        self.methods.entry(method.clone()).or_default()
    }

    pub(super) fn done_elsewhere(&mut self, method: &MethodId) {
        self.of(method).elsewhere += 1;
    }

    /// One more was asked for: another that was done does not count.
    pub(super) fn requested(&mut self, method: &MethodId) {
        self.of(method).planned += 1;
    }

    pub(super) fn began(&mut self, method: &MethodId) {
        self.of(method).running += 1;
    }

    /// A trial that was running is not any more.
    pub(super) fn stopped(&mut self, method: &MethodId) {
        let counts = self.of(method);
        counts.running = counts.running.saturating_sub(1);
    }

    pub(super) fn ended(&mut self, outcome: &Outcome) {
        let counts = self.of(outcome.trial.method());
        counts.ended += 1;
        match outcome.ending {
            Ending::Completed => {}
            Ending::TimedOut => counts.timed_out += 1,
            _ => counts.failed += 1,
        }
        let timing = outcome.timing;
        let parts =
            [timing.prepare_ms, timing.agent_ms, timing.collect_ms, timing.teardown_ms, timing.backoff_ms];
        counts.took += Duration::from_millis(parts.iter().map(|part| part.0).sum());
    }

    pub(super) fn recovered(&mut self, method: &MethodId) {
        self.of(method).recovered += 1;
    }

    /// Trials that have ended, wherever.
    pub(super) fn done(&self) -> usize {
        self.methods.values().map(|it| it.elsewhere + it.ended).sum()
    }

    /// All trials.
    pub(super) fn planned(&self) -> usize {
        self.methods.values().map(|it| it.planned).sum()
    }

    /// All methods in one line, `elapsed` after the start.
    pub(super) fn line(&self, elapsed: Duration) -> String {
        let sum = |of: fn(&Counts) -> usize| self.methods.values().map(of).sum::<usize>();
        let mut parts = vec![format!("{} of {} done", self.done(), self.planned())];
        parts.extend(counted(sum(|it| it.running), "running"));
        parts.extend(counted(sum(|it| it.timed_out), "timed out"));
        parts.extend(counted(sum(|it| it.recovered), "recovered"));
        parts.extend(counted(sum(|it| it.failed), "failed"));
        let ended = sum(|it| it.ended);
        if ended > 0 && elapsed >= Duration::from_secs(1) {
            #[expect(clippy::cast_precision_loss, reason = "a rate to read")]
            let an_hour = ended as f64 * 3600.0 / elapsed.as_secs_f64();
            parts.push(format!("{an_hour:.0} an hour"));
        }
        parts.extend(self.left().map(|left| format!("about {} left", spoken(left))));
        parts.join(" · ")
    }

    /// A line for each method, in the order of the plan.
    pub(super) fn lines(&self) -> Vec<String> {
        let width = self.order.iter().map(|it| it.as_str().len()).max().unwrap_or(0).min(40);
        let line = |method: &MethodId| {
            let it = self.methods.get(method).copied().unwrap_or_default();
            let mut parts = vec![format!("{}/{} done", it.elsewhere + it.ended, it.planned)];
            parts.extend(counted(it.running, "running"));
            parts.extend(counted(it.timed_out, "timed out"));
            parts.extend(counted(it.recovered, "recovered"));
            parts.extend(counted(it.failed, "failed"));
            let name: String = method.as_str().chars().take(40).collect();
            format!("{name:width$}  {}", parts.join(", "))
        };
        self.order.iter().map(line).collect()
    }

    /// How long the rest will take: what is left of each method by what its trials took so far, or all trials did.
    fn left(&self) -> Option<Duration> {
        let (ended, took) = self
            .methods
            .values()
            .fold((0, Duration::ZERO), |(ended, took), it| (ended + it.ended, took + it.took));
        let mean = |took: Duration, ended: usize| took / u32::try_from(ended).unwrap_or(u32::MAX).max(1);
        let rest = |it: &Counts| {
            let each = if it.ended > 0 { mean(it.took, it.ended) } else { mean(took, ended) };
            let left = it.planned.saturating_sub(it.elsewhere + it.ended);
            each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX))
        };
        let all: Duration = self.methods.values().map(rest).sum();
        (ended > 0 && !all.is_zero()).then(|| all / u32::try_from(self.jobs).unwrap_or(u32::MAX))
    }
}

fn counted(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {what}"))
}

/// `40 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{} s", seconds.max(1)),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        3600..172_800 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(name: &str) -> MethodId {
        name.to_owned().try_into().unwrap()
    }

    fn ended(tally: &mut Tally, name: &str, failed: bool, seconds: u64) {
        let method = method(name);
        tally.began(&method);
        tally.stopped(&method);
        let counts = tally.of(&method);
        counts.ended += 1;
        counts.failed += usize::from(failed);
        counts.took += Duration::from_secs(seconds);
    }

    #[test]
    fn what_is_left_takes_as_long_as_what_was_of_its_kind() {
        let mut tally = Tally::new(&[(method("fast"), 10), (method("slow"), 10)], 2);
        assert_eq!(tally.line(Duration::from_secs(5)), "0 of 20 done");
        ended(&mut tally, "fast", false, 10);
        // Of the slow one nothing is known: 9 × 10 s and 10 × 10 s, two at a time.
        assert_eq!(tally.left(), Some(Duration::from_secs(95)));
        ended(&mut tally, "slow", true, 1000);
        // 9 × 10 s and 9 × 1000 s, two at a time.
        assert_eq!(tally.left(), Some(Duration::from_secs(4545)));
        tally.done_elsewhere(&method("slow"));
        tally.began(&method("slow"));
        let line = tally.line(Duration::from_secs(720));
        assert_eq!(line, "3 of 20 done · 1 running · 1 failed · 10 an hour · about 1 h 7 min left");
        assert_eq!(tally.lines(), ["fast  1/10 done", "slow  2/10 done, 1 running, 1 failed"]);
    }

    #[test]
    fn times_are_told_in_few_words() {
        let told =
            [0, 59, 61, 3599, 3600, 90_000, 200_000].map(|seconds| spoken(Duration::from_secs(seconds)));
        assert_eq!(told, ["1 s", "59 s", "2 min", "60 min", "1 h 0 min", "25 h 0 min", "2 d 7 h"]);
    }
}
