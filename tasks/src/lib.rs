//! What is asked of a solver: task packages, their turns and artifact kinds, and everything that can be said about a
//! package without rendering it.
//!
//! A package is a folder with three places for three visibilities: what the solver sees (`[solver]` of `task.toml`,
//! `source.png`, `public/`), what describes the task and is never shown (`[metadata]`), and what marks it (`hidden/`).
//! `script.toml`, where there is one, is what a scripted model plays; it is hidden too.
//!
//! This crate reads packages as hostile data: no link is followed, sizes are capped, nothing panics.

mod annotations;
mod check;
mod discover;
mod error;
mod explicit;
mod files;
#[cfg(test)]
mod fixture;
mod id;
mod operations;
mod package;
mod pictures;
mod question;
mod render_mode;
mod stats;
mod task;
pub mod toml_text;
mod turn;
mod wording;

pub use annotations::{
    Annotations, Origin, PixelBox, PointType, Region, RegionPicture, ReviewRecord, ReviewStage, ScoringPoint,
    ScreeningDecision, ScreeningRecord, Unit, Verdict,
};
pub use check::{Finding, Severity, check, has_errors};
pub use discover::{discover, discover_unrendered};
pub use error::TaskError;
pub use explicit::explicit_instruction;
pub use files::{MAX_FILE_BYTES, MAX_FILES, MAX_PACKAGE_BYTES};
pub use id::{TaskId, TaskIdError};
pub use operations::{Operation, operations};
pub use package::{Category, Difficulty, Language, Metadata, Solver, SuiteId, TaskFile};
pub use pictures::{PictureImage, PictureRecord, PictureState, Pictures};
pub use question::{Ablation, GivenSource, direct_question, native_question, questions_digest};
pub use render_mode::{
    DotSettings, HtmlSettings, PythonSettings, RenderMode, RenderSettings, TexSettings, preview_name,
    render_command,
};
pub use stats::{Composition, PointTotals, Stats, stats};
pub use task::{Hidden, SOURCE_PICTURE, Task};
pub use turn::{Artifact, Content, Input, PromptSource, Turn, WorkspaceOperation};
pub use wording::{Facts, ImageDelivery, TASK_SHEET, prompt, task_md, templates_digest};
