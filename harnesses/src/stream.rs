//! What an agent prints while it works, as events; and what its last words were.

use proctor_traces::{EventKind, Usage};

use crate::launch::SessionId;
use crate::verdict::AgentVerdict;

/// Reads an agent's stdout line by line, as it arrives. It never panics, whatever the lines hold: they are an agent's,
/// so they may be of any length, torn, or no text at all.
pub trait StreamReader: Send {
    /// The events that one line tells of; `line` may end in `\n` or `\r\n`, or not.
    fn line(&mut self, line: &[u8]) -> Vec<EventKind>;

    /// Ends the turn: calls in flight become unfinished, and the counts of this turn are handed over. The reader is
    /// then ready for the next turn of the same trial.
    fn end(&mut self) -> StreamEnd;
}

/// What is known of a turn when its stream has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEnd {
    /// An unfinished [`EventKind::ToolFinished`] for each call in flight, in the order of their start.
    pub events: Vec<EventKind>,
    /// How the agent says that it went.
    pub verdict: AgentVerdict,
    /// Lines that a rule knows.
    pub recognised: u64,
    /// Records that no rule knows; kept as [`EventKind::Raw`].
    pub unknown: u64,
    /// Lines that are no records at all; kept as [`EventKind::Raw`].
    pub malformed: u64,
    /// The session to resume.
    pub session_id: Option<SessionId>,
    /// Tokens of this turn alone, as the agent counted them. After a kill, a lower bound: the agent then said only
    /// what it knew at the start of its last response.
    pub usage: Option<Usage>,
}
