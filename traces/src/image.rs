//! Which toolchain image something was made with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Digest;

/// Identity of a toolchain image. Equal inputs and equal packages give equal pictures; the id names the very bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageIdentity {
    /// Name by which the engine knows it.
    pub reference: String,
    /// Id that the engine gave it.
    pub id: String,
    /// Digest of what it was built from: Dockerfile, package lists, locked requirements.
    pub inputs: Digest,
    /// Digest of the list of packages and versions that ended up in it.
    pub packages: Digest,
}
