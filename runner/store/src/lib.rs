//! The results directory: the only place that knows its paths, and the only state there is.
//!
//! A trial is done if and only if its `outcome.json` exists (DESIGN §3.8). Everything else here serves that sentence:
//! atomic and write-once files, leases that name their owner, and resume as a pure function of what is on disk.

mod atomic;
mod differences;
mod error;
mod folder;
mod id;
mod labels;
mod lease;
mod merge;
mod outcome;
mod owner;
mod presence;
mod remove;
mod resume;
mod run;
mod score;
mod testimony;
mod trial;

pub use atomic::{append_line, read_json, write_atomic, write_evidence, write_in_pieces, write_json};
pub use differences::Differences;
pub use error::{StoreError, is_disk_full};
pub use folder::{owned_folder, remove_orphans};
pub use id::{Attempt, IdError, MethodId, TrialId};
pub use labels::{LabelSource, LabelledCall, Labelling, Labels, LabelsAsked, LabelsHead};
pub use lease::{Lease, LeaseHolder, LeaseTerms, Sightings};
pub use merge::{Merged, merge};
pub use outcome::{
    ArtifactRecord, Consumed, Digests, Exit, Outcome, RerunRecord, Resources, Runner, StreamCounts,
    TaskFacts, Timing, TryRecord,
};
pub use owner::{Holder, Owner};
pub use presence::{Presence, PresenceState};
pub use remove::remove_tree;
pub use resume::{Standing, Survey, current, resume};
pub use run::{Extension, MethodRecord, Price, RunDir, RunRecord, TaskRecord};
pub use score::{Candidate, MarksPlace, PointKind, PointScore, Rating, RatingError, Score};
pub use testimony::Testimony;
pub use trial::{TrialDir, TryDir};
