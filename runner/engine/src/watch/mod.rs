//! What is seen of a room from outside while the agent works: versions of the artifact, and how full it is.

mod artifact;
mod disk;

pub(crate) use artifact::ArtifactWatch;
pub use disk::DiskLimits;
pub(crate) use disk::watch_disk;
