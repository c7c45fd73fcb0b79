//! What a run came to, read from its results directory: a table for people, the same as data.
//!
//! Nothing is judged here. "Rendered" means that the artifact has a valid canonical picture (DESIGN §5: where no judge
//! has run, that is what "scored" stands for).

mod summary;
mod table;

pub use summary::{MethodSummary, RenderState, RunSummary, TrialLine};
pub use table::headed_table;
