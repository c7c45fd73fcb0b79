//! What is to be run, before anything runs: `experiment.toml`, what the command line lays over it, the choice of tasks,
//! and what it will cost.
//!
//! [`ExperimentFile`] is what a person wrote, [`Flags`] what was typed; [`resolve`] makes an [`Experiment`] of them, in
//! which nothing is left open, and remembers for each setting where it came from. The experiment is stored with the run
//! (`plan` in `run.json`) and a process that joins the run starts from it.
//!
//! **Invariant:** nothing here knows the environment, the engine or a provider. Two machines with the same files make
//! the same experiment of them, whatever is installed on them.

mod check;
mod error;
mod estimate;
mod experiment;
mod file;
mod flags;
mod method;
mod origin;
mod resolve;
mod sample;
mod select;
mod value;

pub use error::ExperimentError;
pub use estimate::{Estimate, MethodEstimate, Pilot, PilotFigures, TrialCounts, estimate};
pub use experiment::{
    Ceilings, Endpoint, Experiment, Judge, Limits, Method, ModelId, Needs, OnMissing, OperationName, Price,
    Recording, Retry, Same, Sample, Schedule, Stratum, TaskSelection, Track,
};
pub use file::ExperimentFile;
pub use flags::Flags;
pub use origin::{Origin, Resolved, Setting};
pub use resolve::{join, resolve};
pub use select::{Facts, choose, parse_ids, read_ids, select};
pub use value::{
    AtATime, Attempts, Bounded, Cpus, Inodes, Pids, Retries, Size, Span, TaskCount, Tokens, Usd, ValueError,
};
