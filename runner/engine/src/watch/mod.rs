//! What is seen of a room from outside while the agent works: versions of the artifact, and how full it is.

mod artifact;
mod disk;

pub(crate) use artifact::ArtifactWatch;
pub(crate) use disk::{DiskLimits, watch_disk};
