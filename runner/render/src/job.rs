//! What is to be rendered, and what came of it.

use std::path::PathBuf;

use proctor_tasks::{RenderMode, RenderSettings};

use crate::{RenderRecord, RenderStatus};

/// One artifact to render.
#[derive(Clone, Debug)]
pub struct RenderJob {
    /// The artifact on the host. Its content is hostile; it must be a regular file.
    pub source: PathBuf,
    /// How it becomes a picture.
    pub mode: RenderMode,
    /// With which settings.
    pub settings: RenderSettings,
    /// Trial id or file name: goes into the label of the room.
    pub label: String,
    /// Files that lie beside the artifact: the public assets of its task.
    pub assets: Vec<Asset>,
}

impl RenderJob {
    /// A job without assets.
    pub fn new(
        source: impl Into<PathBuf>,
        mode: RenderMode,
        settings: RenderSettings,
        label: impl Into<String>,
    ) -> Self {
        Self { source: source.into(), mode, settings, label: label.into(), assets: Vec::new() }
    }
}

/// A file that the artifact may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its path as the artifact knows it, relative to the artifact: `public/logo.png`.
    pub name: String,
    /// Where it lies on the host. Trusted: it comes from a task package.
    pub source: PathBuf,
}

/// What came of a job.
#[derive(Clone, Debug)]
pub struct Rendering {
    /// How it went; the same as in the record.
    pub status: RenderStatus,
    /// The picture, when and only when the status is [`RenderStatus::Rendered`].
    pub png: Option<Vec<u8>>,
    /// What goes to `render.json`.
    pub record: RenderRecord,
}
