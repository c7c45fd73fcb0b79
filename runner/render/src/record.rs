//! `render.json`: everything about one rendering but the picture itself.

use proctor_tasks::{RenderMode, RenderSettings};
use proctor_traces::{Digest, ImageIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a rendering went. The first that holds, in this order: `timeout`; a good picture (`rendered`, `blank`,
/// `too_large`); then the failures as listed. An exit status alone proves nothing: tools exit with 0 beside an empty
/// file, and a killed child leaves its parent's 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RenderStatus {
    /// There is a picture, and it shows something.
    Rendered,
    /// The wall-clock limit passed: an endless loop, or simply too much to do.
    Timeout,
    /// Every pixel of the picture has the same colour. It is not given out.
    Blank,
    /// The picture, or the artifact itself, is larger than is accepted.
    TooLarge,
    /// The kernel killed a process of the artifact for memory.
    OutOfMemory,
    /// The limit on processes and threads was hit.
    PidsLimit,
    /// The limit on file space, or on the size of one file, was hit.
    DiskLimit,
    /// The tool, or the page's process, died by a signal.
    Crash,
    /// The tool refused the artifact: its message and, where it names one, the line are in the record.
    ArtifactError,
    /// The tool was content, but left no picture: no file, no byte, or no decodable PNG.
    NoOutput,
}

impl RenderStatus {
    /// Whether there is a picture.
    pub fn is_rendered(self) -> bool {
        self == Self::Rendered
    }
}

/// The content of `render.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RenderRecord {
    /// How it went.
    pub status: RenderStatus,
    /// Width of the picture in pixels; also of one that was blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height of the picture in pixels; also of one that was blank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Digest of the PNG file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Size of the PNG file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Digest of the artifact.
    pub source: Digest,
    /// How it was rendered.
    pub mode: RenderMode,
    /// With which settings.
    pub settings: RenderSettings,
    /// In which image.
    pub image: ImageIdentity,
    /// Wall time in milliseconds from the start of the work (a wait for a free slot is not in it) to the picture.
    pub duration_ms: u64,
    /// What went wrong, or what should be known beside the picture; for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Line of the artifact that the tool complained about, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Addresses that a page asked for and was refused, in order of the first request, at most 100, each cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external_requests: Vec<String>,
    /// Dialogs that a page opened (alert, confirm, prompt); each was dismissed at once.
    #[serde(default)]
    pub dialogs: u32,
    /// End of what the tool printed, at most 8 KiB; of a page, what its scripts complained about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let digest = Digest::of(b"");
        let record = RenderRecord {
            status: RenderStatus::OutOfMemory,
            width: None,
            height: None,
            digest: None,
            bytes: None,
            source: digest,
            mode: RenderMode::Html,
            settings: RenderSettings::default(),
            image: ImageIdentity { reference: "r".into(), id: "i".into(), inputs: digest, packages: digest },
            duration_ms: 3,
            message: None,
            line: None,
            external_requests: Vec::new(),
            dialogs: 0,
            log: String::new(),
        };
        let text = serde_json::to_value(&record).unwrap();
        assert_eq!(text["status"], "out_of_memory");
        assert!(text.get("width").is_none() && text.get("log").is_none());
        assert_eq!(serde_json::from_value::<RenderRecord>(text).unwrap(), record);
    }
}
