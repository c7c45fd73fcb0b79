//! A question whose answer is a picture.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The route by which a picture is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureEndpoint {
    /// `POST /v1/images/edits`: a form with the picture as a file, as `OpenAI` has it.
    #[default]
    Edits,
    /// `POST /v1/images/generations`: an object with the picture in it, as others have it.
    Generations,
}

impl fmt::Display for PictureEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edits => "edits",
            Self::Generations => "generations",
        })
    }
}
