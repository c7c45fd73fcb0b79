//! The replayed model: what a recorded trial's server answered, given again to whoever asks the same.
//!
//! A [`Cassette`] is the record of a trial's exchanges (`model/` in docs/files.md), read whole before the trial starts.
//! A request is answered by the first recorded exchange on its route that was not given yet and asked the same, where
//! *the same* leaves out what no two runs share (`normal.rs`). The requests of agent CLIs carry the whole conversation,
//! so order follows from their content, and those that ran side by side may come in either order. A request that asks
//! something else is an error under [`ReplayMode::Strict`], and is given the next recorded response, and counted, under
//! [`ReplayMode::Lenient`].
//!
//! Statuses, bodies and the headers that were kept are those of the recording; its timing is not reproduced.

mod cassette;
mod difference;
mod names;
mod normal;
mod player;

pub use cassette::{Cassette, CassetteError};
pub(crate) use player::Replayer;
pub use player::{Replay, ReplayMode, ReplayTally};
