//! How a trial ended. Exactly one ending holds, the first that applies in the order of [`Ending`]'s variants; what was
//! left of the artifact is a field of its own ([`crate::ArtifactState`]), never part of the ending.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ending of a trial (DESIGN §4), in order of precedence.
///
/// Serialised as `"ending": "<name>"` with an optional `"detail": {…}` beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "ending", content = "detail", rename_all = "snake_case")]
pub enum Ending {
    /// The user stopped the run. Never final: the trial can be resumed.
    Cancelled,
    /// Our side failed: image, engine, gateway or disk. Retried; final only when the tries are used up.
    InfraError {
        /// What was being done, as in "creating the container".
        stage: String,
        /// The error and its causes.
        message: String,
    },
    /// The budget ran out and the room was frozen with the agent still in it.
    TimedOut,
    /// The agent left the bounds of its room, and was stopped for it.
    LimitExceeded {
        /// Which bound.
        limit: Limit,
    },
    /// The agent process itself was killed by the kernel for memory. A killed child alone does not count.
    OutOfMemory,
    /// The agent gave up because of the model server.
    ModelError {
        /// Whose failure that was.
        cause: ModelCause,
        /// What the agent or the server said.
        message: String,
    },
    /// The agent ended by itself with a failure.
    AgentError {
        /// What it said, or how it died.
        message: String,
    },
    /// The agent ended well but its artifact is missing, empty, a link, or too large.
    NoArtifact,
    /// The agent ended well and left an artifact.
    Completed,
}

impl Ending {
    /// The name used in `outcome.json`, tables and filters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::InfraError { .. } => "infra_error",
            Self::TimedOut => "timed_out",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::OutOfMemory => "out_of_memory",
            Self::ModelError { .. } => "model_error",
            Self::AgentError { .. } => "agent_error",
            Self::NoArtifact => "no_artifact",
            Self::Completed => "completed",
        }
    }

    /// What was said about it, where something was: an agent's or a server's own words, so hostile.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::InfraError { message, .. }
            | Self::ModelError { message, .. }
            | Self::AgentError { message } => Some(message),
            _ => None,
        }
    }

    /// Whether another try may be made (DESIGN §3.7): only for failures that are not the agent's and not the model's.
    pub fn is_retried(&self) -> bool {
        matches!(self, Self::InfraError { .. } | Self::ModelError { cause: ModelCause::Provider, .. })
    }
}

/// The stages of a freeze that held (DESIGN §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreezeKind {
    /// The engine paused the container.
    Paused,
    /// The engine could not, but every process had been sent SIGSTOP.
    Stopped,
    /// Neither held: the room was killed first.
    None,
    /// No process was left that could run: the guest found itself alone, so the engine need not pause anything.
    Empty,
    /// The room had ended before it could be frozen.
    Gone,
}

/// A bound of the room that is watched from outside, since a bind mount cannot be capped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Bytes in workspace and HOME together.
    DiskBytes,
    /// Files and folders in workspace and HOME together.
    DiskInodes,
    /// Bytes of stdout and stderr together.
    StreamBytes,
    /// Tokens that a trial may use.
    Tokens,
    /// What a trial may cost.
    Cost,
}

/// Whose failure a model error was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelCause {
    /// Outage or rate limit of the provider that the agent gave up on (HTTP 429, 5xx, or no connection).
    Provider,
    /// The provider refused the request itself (HTTP 400, 401, 403, 404, 413, 422 …).
    Request,
    /// None: a recording was replayed, and it has no response to what the agent asked.
    Replay,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_with_its_name_and_detail() {
        let ending = Ending::LimitExceeded { limit: Limit::DiskBytes };
        let json = serde_json::to_value(&ending).unwrap();
        assert_eq!(json, serde_json::json!({"ending": "limit_exceeded", "detail": {"limit": "disk_bytes"}}));
        assert_eq!(serde_json::from_value::<Ending>(json).unwrap(), ending);
        assert_eq!(
            serde_json::to_value(Ending::Completed).unwrap(),
            serde_json::json!({"ending": "completed"})
        );
    }

    #[test]
    fn only_failures_of_ours_and_the_providers_are_retried() {
        let model = |cause| Ending::ModelError { cause, message: String::new() };
        assert!(Ending::InfraError { stage: String::new(), message: String::new() }.is_retried());
        assert!(model(ModelCause::Provider).is_retried());
        assert!(!model(ModelCause::Request).is_retried());
        assert!(!model(ModelCause::Replay).is_retried());
        assert!(!Ending::TimedOut.is_retried());
        assert!(!Ending::Cancelled.is_retried());
    }
}
