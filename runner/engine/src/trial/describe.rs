//! What the runner remarks on in the trace of a try.

use std::time::Instant;

use proctor_gateway::{GatewayClosed, ReplayTally};
use proctor_sandbox::Freeze;
use proctor_traces::FreezeKind;

use super::ending::Stopped;

/// What ended the agent's work.
pub(super) fn stop(stopped: Stopped) -> String {
    match stopped {
        Stopped::Exited(end) => format!("the agent ended with {}", end.status),
        Stopped::RoomGone => "the container ended".to_owned(),
        Stopped::Deadline => "the budget ran out".to_owned(),
        Stopped::Diverged => "the replay had no answer".to_owned(),
        Stopped::Limit(limit) => format!("a limit was exceeded: {limit:?}"),
        Stopped::Cancelled => "the run was cancelled".to_owned(),
    }
}

/// What there is to say of a gateway that was closed.
pub(super) fn closed(gateway: &GatewayClosed) -> Vec<String> {
    let mut said = Vec::new();
    if gateway.exchanges_cut > 0 || gateway.late_bytes > 0 {
        said.push(format!(
            "{} model exchanges cut, {} bytes dropped",
            gateway.exchanges_cut, gateway.late_bytes
        ));
    }
    if let Some(ReplayTally { answered, different, first_difference, left }) = &gateway.replay {
        let first = first_difference.as_ref().map(|it| format!("; the first: {it}")).unwrap_or_default();
        said.push(format!(
            "{answered} model requests answered from the recording, {different} of them other than recorded; {left} recorded \
             responses not asked for{first}"
        ));
    }
    said
}

/// How the room was frozen.
pub(super) fn freeze(freeze: Freeze, deadline: Instant) -> String {
    let kind = match freeze.kind {
        FreezeKind::Paused => "frozen (paused)",
        FreezeKind::Stopped => "frozen (stopped)",
        FreezeKind::None => "could not be frozen",
        FreezeKind::Empty => "nothing was left running",
        FreezeKind::Gone => "the container was gone before it could be frozen",
    };
    match freeze.at.checked_duration_since(deadline) {
        Some(after) => format!("{kind} {} ms after the deadline", after.as_millis()),
        None => kind.to_owned(),
    }
}
