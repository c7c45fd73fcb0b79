//! Who carries out one try. The engine has one executor ([`crate::Host`]), which opens rooms for agents and asks models alone;
//! tests and benchmarks of everything around it have others.

use std::sync::Arc;

use async_trait::async_trait;
use proctor_store::{Outcome, TrialId, TryDir};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{EngineEvent, Given, RetryPolicy, RunClock, TrialSpec};

/// Carries out one try.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Runs a try of `spec` and leaves its evidence. Whatever happens is in the outcome, a failure of ours included.
    async fn execute(&self, spec: &TrialSpec, evidence: &TryDir, setting: &Setting<'_>) -> Outcome;
}

/// What a try has to know of the run that it is part of.
pub struct Setting<'a> {
    /// When the run began.
    pub clock: RunClock,
    /// What is done when our side fails.
    pub retry: RetryPolicy,
    /// The run is being cancelled.
    pub cancel: CancellationToken,
    /// Who is told.
    pub events: &'a mpsc::UnboundedSender<EngineEvent>,
    /// The artifact of another trial that this one needs, if it needs one.
    pub input: Option<Input>,
    /// Who is told at each step.
    pub steps: &'a Steps,
}

/// What another trial left for this one.
#[derive(Clone, Debug)]
pub enum Input {
    /// This is given.
    Given(Box<Given>),
    /// That trial left nothing, and so this one has failed before it began.
    Missing(TrialId),
}

/// A point in the life of a trial at which a process may be killed: whatever is on disk then is a legal state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The trial is ours.
    Leased,
    /// The folder of the try is there.
    TryBegun,
    /// The workspace is prepared.
    Prepared,
    /// The room is open.
    RoomOpened,
    /// The agent has been exec'd.
    AgentStarted,
    /// The room is frozen.
    Frozen,
    /// Its files are collected.
    Collected,
    /// The room is gone.
    RoomClosed,
    /// The outcome is there.
    OutcomeWritten,
    /// The evidence is in its place.
    Settled,
}

impl Step {
    /// All steps, in order.
    pub const ALL: [Self; 10] = [
        Self::Leased,
        Self::TryBegun,
        Self::Prepared,
        Self::RoomOpened,
        Self::AgentStarted,
        Self::Frozen,
        Self::Collected,
        Self::RoomClosed,
        Self::OutcomeWritten,
        Self::Settled,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leased => "leased",
            Self::TryBegun => "try-begun",
            Self::Prepared => "prepared",
            Self::RoomOpened => "room-opened",
            Self::AgentStarted => "agent-started",
            Self::Frozen => "frozen",
            Self::Collected => "collected",
            Self::RoomClosed => "room-closed",
            Self::OutcomeWritten => "outcome-written",
            Self::Settled => "settled",
        }
    }
}

/// Told at each step of each trial, before the next thing is done. Only tests listen.
#[derive(Clone, Default)]
pub struct Steps(Option<Arc<dyn Fn(Step) + Send + Sync>>);

impl Steps {
    /// Tells `listener`.
    pub fn told_to(listener: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub(crate) fn reached(&self, step: Step) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}
