//! The judge that is a vision model (VAO-Bench, B.3): what it is asked, how its reply is read, what is written down.
//!
//! Nothing here asks: [`Question`] is put to a model by whoever can, and its reply comes back to [`Question::read`]. A reply that
//! does not say everything that was asked, in a form that is unambiguous, is [`Unscored`] with its text kept: never a zero,
//! never a guess. Only the structured block of a reply counts.

mod block;
mod once;
mod prompt;
mod repair;
mod reply;
mod steadiness;
mod trial;
mod verdict;

pub use prompt::{Piece, Question, SentPicture, answer_schema, prompt_digest};
pub(crate) use prompt::{rubric, sent};
pub use reply::{Mark, PointMark, Reading, Unscored};
pub use steadiness::{Spread, Steadiness, steadiness};
pub(crate) use trial::inputs;
pub use trial::{Case, Standing, Work, case, look, write};
pub use verdict::{Answered, Settings, Verdict, VisionInputs};
