//! The model gateway: one Unix socket for each trial, and behind it a scripted model, a recorded one,
//! or a real one.
//!
//! It is the room's only way out and the only place that sees a key. It answers on a short list of routes in the four
//! wire formats of today's agent CLIs, translates nothing, and hands a record of every exchange to an
//! [`ExchangeSink`]; it writes no file itself.
//!
//! - [`Backend::Script`] plays a [`Script`]: which step comes next follows from the request alone.
//! - [`Backend::Replay`] gives the responses of an earlier trial again, to requests that ask the same.
//! - [`Backend::Live`] passes requests on to an [`Upstream`], byte for byte and chunk by chunk, with the key put in.
//!
//! Architecture invariant: a key leaves this crate only in a header of a request to its own provider. It is blanked in
//! all that a sink is told, and in all that an agent is answered.

mod accounting;
mod answer;
mod body;
pub mod client;
mod conversation;
mod gateway;
mod listener;
mod multipart;
mod player;
mod provider;
mod record;
mod redact;
mod replay;
mod reply;
mod script;
mod sse;
mod tools;
mod upstream;
mod wire;

pub use gateway::{Backend, Gateway, GatewayClosed, GatewayConfig, GatewayError};
pub use provider::{Auth, Provider, Providers, ProvidersError, wire_name};
pub use record::{ExchangeRecord, ExchangeSink, ExchangeStarted};
pub use replay::{Cassette, CassetteError, Replay, ReplayMode, ReplayTally};
pub use script::{Call, Fault, FaultKind, PlainAnswer, Script, ScriptError, Step};
pub use upstream::{NetSettings, Upstream, UpstreamError};
