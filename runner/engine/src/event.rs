//! What the dispatcher tells whoever shows it: one event type, from which progress, tables and later stages follow.

use std::time::Duration;

use proctor_store::{MethodId, Outcome, TrialId};
use proctor_traces::{Ending, Limit};

/// Something that happened in a run.
#[derive(Clone, Debug)]
pub enum EngineEvent {
    /// The trial had an outcome already.
    Skipped {
        /// The trial.
        trial: TrialId,
    },
    /// Another process is running the trial.
    Busy {
        /// The trial.
        trial: TrialId,
        /// Who.
        owner: String,
    },
    /// The trial was asked for while the run went on: it is made again, as this one.
    Requested {
        /// The trial.
        trial: TrialId,
    },
    /// The trial was left out: what it needs was not left by another, and will not be.
    Missing {
        /// The trial.
        trial: TrialId,
        /// The other.
        source: TrialId,
    },
    /// A method, or the whole run if none is named, has used what it may.
    CeilingReached {
        /// Which.
        method: Option<MethodId>,
        /// By which measure.
        limit: Limit,
        /// Trials that are not started for it.
        left: usize,
    },
    /// The trial entered a phase.
    Entered {
        /// The trial.
        trial: TrialId,
        /// Which.
        phase: Phase,
    },
    /// The agent did something.
    Progress {
        /// The trial.
        trial: TrialId,
        /// Tool calls so far.
        tool_calls: u64,
        /// Input and output tokens so far.
        tokens: u64,
    },
    /// A try failed on our side or the provider's, and another will be made.
    Retrying {
        /// The trial.
        trial: TrialId,
        /// How the try ended.
        ending: Ending,
        /// The try that failed, from 1.
        failed_try: u32,
        /// When the next one begins.
        after: Duration,
    },
    /// The trial has its outcome.
    Finished(Box<Outcome>),
    /// The trial was cancelled: it has no outcome and can be resumed.
    Cancelled {
        /// The trial.
        trial: TrialId,
    },
    /// The trial's outcome could not even be written.
    Failed {
        /// The trial.
        trial: TrialId,
        /// The error and its causes.
        message: String,
    },
}

/// A phase of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The room is made ready.
    Prepare,
    /// The agent works against its budget.
    Agent {
        /// The budget.
        budget: Duration,
    },
    /// The room is frozen and what it holds is collected.
    Collect,
    /// The room is taken down.
    Teardown,
}
