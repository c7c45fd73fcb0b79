//! Values as people write them, on the command line and in files: the same text, the same bounds, the same messages.
//!
//! Each is read with `FromStr` and printed so that reading gives it back.

mod number;
mod span;
mod text;

pub use number::{Bounded, Cpus, Usd};
pub use span::{Size, Span};

/// Trials, or anything else, at a time.
pub type AtATime = Bounded<1, 512>;
/// Attempts per task and method.
pub type Attempts = Bounded<1, 1000>;
/// Tries after the first.
pub type Retries = Bounded<0, 20>;
/// Processes and threads in a room.
pub type Pids = Bounded<16, 100_000>;
/// Files and folders in a room.
pub type Inodes = Bounded<100, 10_000_000>;
/// Tokens.
pub type Tokens = Bounded<1, 1_000_000_000_000>;
/// Tasks.
pub type TaskCount = Bounded<1, 1_000_000>;

/// A text that is not the value it should be; the message says what it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub(crate) String);
