//! What a run came to, read from its results directory: tables for people, the same as data, and a curve.
//!
//! One pass reads the files into [`Rows`]; [`Rules`] say what each trial counts as; everything else is a view of these two.
//! Nothing is judged here. Where no judge has run, "scored" stands for "has a valid canonical rendering" (DESIGN §5).

mod accounting;
mod agreement;
mod behaviour;
mod contrast;
mod contrast_sheet;
mod curve;
mod figures;
mod filter;
mod ink;
mod intervals;
mod left_out;
mod paper;
mod paper_sheets;
mod policy;
mod read;
mod report;
mod row;
mod sheet;
mod sign_flip;
mod status;
mod subset;
mod summary;
mod svg;
mod table;
mod tables;
mod tidy;
mod words;

pub use accounting::{
    AccountingError, Basis, Cause, Class, Coverage, Open, Picture, ProviderErrors, Recover, Rules, Verdict,
    check,
};
pub use agreement::{JudgeAgreement, PointAgreement, RatingAgreement, agreement, judges};
pub use behaviour::{
    BehaviourReport, Behaviours, Choice, Comparison, Difference, MethodBehaviour, NoComparison, NoFigure,
    Reading, Strategies, comparison,
};
pub use contrast::{Cluster, Contrast, Pairs, ScoreContrast, contrast};
pub use curve::Curve;
pub use figures::{Figures, Mean, Rate};
pub use filter::{Fields, FilterError};
pub use intervals::{ClusterSums, Interval, REPLICATES, bootstrap, wilson};
pub use left_out::{LeftOut, left_out};
pub use paper::{NoTable, ScoreLine, ScoreTable, TableNumbers, TaskPoints};
pub use paper_sheets::write_score_tables;
pub use policy::{classification_table, policy_text, retry_table};
pub use read::Depth;
pub use report::{
    Control, GroupReport, Grouping, MethodReport, OpenTrial, Options, Report, ReportError, judge,
};
pub use row::{Ended, Judged, Marks, RenderState, Row, RowState, Rows};
pub use sheet::{Line, Sheet};
pub use sign_flip::{SignFlip, sign_flip};
pub use status::{MethodStatus, Recent, RunStatus, WorkerStatus};
pub use subset::{SubsetError, TaskNames};
pub use summary::{MethodSummary, RunSummary, TrialLine};
pub use svg::draw;
pub use table::headed_table;
pub use tables::percent;
pub use tidy::write_curves;
pub use words::{agreeing, counted, of_pixels};
