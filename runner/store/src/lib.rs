//! The results directory: the only place that knows its paths, and the only state there is.
//!
//! A trial is done if and only if its `outcome.json` exists (DESIGN §3.8). Everything else here serves that sentence:
//! atomic and write-once files, leases that name their owner, and resume as a pure function of what is on disk.

mod atomic;
mod error;
mod folder;
mod id;
mod lease;
mod outcome;
mod owner;
mod remove;
mod run;
mod trial;

pub use atomic::{append_line, read_json, write_atomic, write_evidence, write_json};
pub use error::StoreError;
pub use folder::{owned_folder, remove_orphans};
pub use id::{Attempt, IdError, MethodId, TrialId};
pub use lease::{Lease, LeaseHolder};
pub use outcome::{
    ArtifactRecord, Digests, Exit, Outcome, Resources, StreamCounts, TaskFacts, Timing, TryRecord,
};
pub use owner::Owner;
pub use remove::remove_tree;
pub use run::{MethodRecord, RunDir, RunRecord};
pub use trial::{TrialDir, TrialState, TryDir, state_of};
