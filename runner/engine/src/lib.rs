//! Runs trials: plan → dispatch → one trial after another against its deadline, with everything recorded.
//!
//! Map: [`Method`] and [`Plan`] what is to be done, [`Schedule`] how much of it at a time · [`run`] the dispatcher ·
//! `dispatch::queue` which trial is next · `trial` the tries of one trial and their endings · [`Executor`] who carries out
//! a try: `trial::sitting` from an empty room to a removed one, `trial::alone` without a room, of a model that is asked once ·
//! `record` the trace · `watch` what is seen from outside · `collect` what an agent left.
//!
//! Architecture invariants: the engine knows turns, inputs, artifacts and budgets, and no suite; it prints nothing and
//! reads no environment; every try has evidence on disk, whatever ends it.

mod ceiling;
mod clock;
mod collect;
mod disk;
mod dispatch;
mod error;
mod event;
mod executor;
mod method;
mod need;
mod plan;
mod record;
mod schedule;
mod trial;
mod watch;

pub use ceiling::Ceiling;
pub use clock::RunClock;
pub use dispatch::{RunEnd, Site, Stop, run};
pub use error::EngineError;
pub use event::{EngineEvent, Phase};
pub use executor::{Executor, Input, Setting, Step, Steps};
pub use method::{Agent, Direct, Method, MethodSettings, Model, ModelSource, Native, Track};
pub use need::{Given, Need, OnMissing};
pub use plan::{Host, Plan, RetryPolicy, TrialSpec};
pub use schedule::{Schedule, rooms_that_fit};
pub use watch::DiskLimits;
