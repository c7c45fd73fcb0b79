//! The vocabulary of what happened in a trial: events with their time, tool calls, model exchanges, endings and
//! timings; the append-only journal they are written to, and its tolerant reader.
//!
//! Nothing in this crate runs anything. It holds the words that every other crate uses, so it depends on none of them.

pub mod actions;
mod asked;
mod behaviour;
mod call;
mod check;
mod digest;
mod ending;
mod event;
mod exchange;
pub mod export;
mod image;
mod journal;
pub mod sources;
mod time;
mod trace;
mod words;

pub use asked::{AskedCall, asked_in_chat};
pub use behaviour::{Behaviour, PhaseTimes, TimeUse};
pub use call::{Call, Moment, Nesting, ToolKind, ViewedImage, Witness};
pub use check::{Finding, Severity};
pub use digest::{Digest, DigestError};
pub use ending::{Ending, FreezeKind, Limit, ModelCause};
pub use event::{
    ArtifactState, EventKind, Source, ToolCall, ToolCallId, ToolDetail, ToolResult, ToolStatus, TraceEvent,
    Usage,
};
pub use exchange::{Exchange, ExchangeEnd, WireFormat};
pub use image::ImageIdentity;
pub use journal::{JournalError, JournalReader, JournalStats, JournalWriter};
pub use sources::{
    AgentUsage, Arrivals, ArtifactVersion, Counts, Format, Meta, ModelSpan, Records, Said, SaidKind,
    SourceClock, SourceError,
};
pub use time::{Clock, Millis, OffsetMs, Timestamp};
pub use trace::{
    ClockEstimate, Parties, Party, SourceFile, SourceReport, Tally, Trace, TraceError, UsageDifference,
    UsageReport,
};
