//! Whether anybody is at work on a trial, for those who only look on.

use std::time::{Duration, SystemTime};

use crate::owner::Life;
use crate::{Holder, TrialDir};

/// The holder of a lease, as seen from outside.
#[derive(Clone, Debug)]
pub struct Presence {
    /// Who it is.
    pub holder: Holder,
    /// Time since its last sign of life, by our clock of day: only as good as the clocks of the two machines agree.
    pub silence: Duration,
    /// Whether it runs.
    pub state: PresenceState,
}

/// Whether the holder of a lease runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceState {
    /// It runs on this machine, or has given a sign of life elsewhere of late.
    Alive,
    /// It is gone from this machine; whoever starts next takes the trial over.
    Gone,
    /// It runs elsewhere, if at all: it has been silent for longer than a lease lasts.
    Silent,
}

impl TrialDir {
    /// Who is at work on it, if anybody has a lease; `expiry` is the silence after which one elsewhere is doubted.
    pub fn presence(&self, expiry: Duration) -> Option<Presence> {
        let (holder, beat) = self.holder()?;
        let silence = SystemTime::now().duration_since(beat).unwrap_or_default();
        let state = match holder.life() {
            Life::Alive => PresenceState::Alive,
            Life::Dead => PresenceState::Gone,
            Life::Unknown if silence < expiry => PresenceState::Alive,
            Life::Unknown => PresenceState::Silent,
        };
        Some(Presence { holder, silence, state })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_this_machine_is_asked_for_and_another_is_judged_by_its_silence() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialDir::new(dir.path().to_owned(), "vao/a/m/1".parse().unwrap());
        let hour = Duration::from_secs(3600);
        assert!(trial.presence(hour).is_none());
        let us = Holder::this_process(Some("7_1".into())).unwrap();
        let here = |holder: &Holder, expiry| {
            std::fs::write(dir.path().join("lease"), serde_json::to_vec(holder).unwrap()).unwrap();
            trial.presence(expiry).unwrap().state
        };
        assert_eq!(here(&us, Duration::ZERO), PresenceState::Alive);
        assert_eq!(here(&Holder { start: us.start + 1, ..us.clone() }, hour), PresenceState::Gone);
        let elsewhere = Holder { boot: "another".into(), ..us };
        assert_eq!(here(&elsewhere, hour), PresenceState::Alive);
        assert_eq!(here(&elsewhere, Duration::ZERO), PresenceState::Silent);
    }
}
