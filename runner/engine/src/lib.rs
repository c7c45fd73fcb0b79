//! Runs trials: plan → dispatch → one trial after another against its deadline, with everything recorded.
//!
//! Map: [`Method`] and [`Plan`] what is to be done · [`run`] the dispatcher, with `-j` trials at a time · `trial` the
//! tries of one trial and their endings · `trial::sitting` one try from an empty room to a removed one · `record` the
//! trace · `watch` what is seen from outside · `collect` what an agent left.
//!
//! Architecture invariants: the engine knows turns, inputs, artifacts and budgets, and no suite; it prints nothing and
//! reads no environment; every try has evidence on disk, whatever ends it.

mod clock;
mod collect;
mod dispatch;
mod error;
mod event;
mod method;
mod plan;
mod record;
mod trial;
mod watch;

pub use clock::RunClock;
pub use dispatch::{Stop, run};
pub use error::EngineError;
pub use event::{EngineEvent, Phase};
pub use method::{Method, MethodSettings, Model, ModelSource};
pub use plan::{Host, Plan, RetryPolicy, TrialSpec};
pub use watch::DiskLimits;
