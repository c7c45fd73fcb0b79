//! Which ending holds: the first that applies, in the order of DESIGN §4.

use std::time::Instant;

use proctor_harnesses::{AgentVerdict, ExitStatus, judge_exit};
use proctor_sandbox::{PostMortem, ProcessEnd};
use proctor_store::Exit;
use proctor_traces::{ArtifactState, Ending, Limit, ModelCause};

/// Why the agent no longer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Its process ended.
    Exited(ProcessEnd),
    /// The room ended under it.
    RoomGone,
    /// The budget ran out.
    Deadline,
    /// It passed a limit.
    Limit(Limit),
    /// A replay had no answer to it.
    Diverged,
    /// The user stopped the run.
    Cancelled,
}

impl Stopped {
    /// How the process ended, if it ended by itself and in time.
    pub(super) fn exit(self) -> Option<Exit> {
        match self {
            Self::Exited(end) => Some(match end.status {
                proctor_sandbox::ExitStatus::Code(code) => Exit::Code(code),
                proctor_sandbox::ExitStatus::Signal(signal) => Exit::Signal(signal),
            }),
            _ => None,
        }
    }
}

const SIGKILL: i32 = 9;

/// The ending of a try that came as far as running its agent. `diverged` is what a replay had no answer to: whatever the
/// agent made of that, its work is not that of the recorded one.
pub(super) fn decide(
    stopped: Stopped,
    deadline: Instant,
    post_mortem: Option<PostMortem>,
    verdict: &AgentVerdict,
    diverged: Option<&str>,
    artifact: &ArtifactState,
) -> Ending {
    let of_replay =
        |message: &str| Ending::ModelError { cause: ModelCause::Replay, message: message.to_owned() };
    let end = match stopped {
        Stopped::Cancelled => return Ending::Cancelled,
        Stopped::Deadline => return Ending::TimedOut,
        Stopped::Diverged => return of_replay(diverged.unwrap_or_default()),
        Stopped::Limit(limit) => return Ending::LimitExceeded { limit },
        Stopped::RoomGone if post_mortem.is_some_and(|it| it.oom_killed) => return Ending::OutOfMemory,
        Stopped::RoomGone => {
            let message = "the container ended while the agent was working".to_owned();
            return Ending::InfraError { stage: "running the agent".to_owned(), message };
        }
        // An exit that was only noticed in time, but happened after the deadline, is a timeout like any other.
        Stopped::Exited(end) if end.at > deadline => return Ending::TimedOut,
        Stopped::Exited(end) => end,
    };
    let exit = match end.status {
        proctor_sandbox::ExitStatus::Code(code) => ExitStatus::Code(code),
        proctor_sandbox::ExitStatus::Signal(signal) => ExitStatus::Signal(signal),
    };
    // We send no SIGKILL while the agent runs, so one that comes with an out-of-memory event is the kernel's.
    if exit == ExitStatus::Signal(SIGKILL) && end.oom_kills.is_some_and(|kills| kills > 0) {
        return Ending::OutOfMemory;
    }
    if let Some(message) = diverged {
        return of_replay(message);
    }
    match judge_exit(verdict, exit) {
        Err(ending) => ending,
        Ok(()) if matches!(artifact, ArtifactState::Present { .. }) => Ending::Completed,
        Ok(()) => Ending::NoArtifact,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proctor_sandbox::ExitStatus as Status;
    use proctor_traces::{Digest, ModelCause};

    use super::*;

    fn artifact() -> ArtifactState {
        ArtifactState::Present { digest: Digest::of(b"x"), bytes: 1 }
    }

    fn exited(status: Status, oom_kills: u64) -> Stopped {
        Stopped::Exited(ProcessEnd { status, at: Instant::now(), oom_kills: Some(oom_kills) })
    }

    fn decided(stopped: Stopped, verdict: &AgentVerdict, artifact: &ArtifactState) -> &'static str {
        let deadline = Instant::now() + Duration::from_secs(10);
        decide(stopped, deadline, None, verdict, None, artifact).name()
    }

    #[test]
    fn the_first_that_applies_holds() {
        let done = AgentVerdict::Finished;
        let outage = AgentVerdict::ModelFailed { cause: ModelCause::Provider, message: String::new() };
        let silent = AgentVerdict::Silent;
        let missing = ArtifactState::Missing;
        let ok = Status::Code(0);
        for (stopped, verdict, artifact, expected) in [
            (Stopped::Cancelled, &done, artifact(), "cancelled"),
            (Stopped::Deadline, &done, artifact(), "timed_out"),
            (Stopped::Limit(Limit::DiskBytes), &done, artifact(), "limit_exceeded"),
            (Stopped::RoomGone, &done, artifact(), "infra_error"),
            (exited(Status::Signal(9), 1), &silent, artifact(), "out_of_memory"),
            (exited(Status::Signal(9), 0), &silent, artifact(), "agent_error"),
            (exited(ok, 3), &done, artifact(), "completed"),
            (exited(ok, 0), &outage, artifact(), "model_error"),
            (exited(ok, 0), &silent, artifact(), "agent_error"),
            (exited(Status::Code(1), 0), &done, artifact(), "agent_error"),
            (exited(ok, 0), &done, missing, "no_artifact"),
            (exited(ok, 0), &done, artifact(), "completed"),
        ] {
            assert_eq!(
                decided(stopped, verdict, &artifact),
                expected,
                "{stopped:?} {verdict:?} {artifact:?}"
            );
        }
    }

    #[test]
    fn an_exit_after_the_deadline_is_a_timeout() {
        let stopped = exited(Status::Code(0), 0);
        let deadline = Instant::now() - Duration::from_millis(5);
        assert_eq!(
            decide(stopped, deadline, None, &AgentVerdict::Finished, None, &artifact()),
            Ending::TimedOut
        );
    }

    #[test]
    fn a_room_that_died_for_memory_is_out_of_memory() {
        let post_mortem = PostMortem { running: false, oom_killed: true, exit_code: Some(137) };
        let ending = decide(
            Stopped::RoomGone,
            Instant::now(),
            Some(post_mortem),
            &AgentVerdict::Silent,
            None,
            &artifact(),
        );
        assert_eq!(ending, Ending::OutOfMemory);
    }

    #[test]
    fn a_replay_without_an_answer_is_one_whatever_the_agent_says() {
        let deadline = Instant::now() + Duration::from_secs(10);
        let ending = Ending::ModelError { cause: ModelCause::Replay, message: "$.a".to_owned() };
        let outage = AgentVerdict::ModelFailed { cause: ModelCause::Provider, message: String::new() };
        for (stopped, verdict) in [
            (Stopped::Diverged, &AgentVerdict::Silent),
            (exited(Status::Code(0), 0), &AgentVerdict::Finished),
            (exited(Status::Code(1), 0), &outage),
        ] {
            assert_eq!(decide(stopped, deadline, None, verdict, Some("$.a"), &artifact()), ending);
        }
        let late = decide(Stopped::Deadline, deadline, None, &outage, Some("$.a"), &artifact());
        assert_eq!(late, Ending::TimedOut);
    }
}
