//! The stored pictures: that they are pictures, and that they are those of the record.

use std::io::Cursor;

use image::{ImageFormat, ImageReader, Limits};
use proctor_traces::Digest;

use super::{Report, Severity};
use crate::files::MAX_FILE_BYTES;
use crate::pictures::{PictureRecord, PictureState};
use crate::task::{HIDDEN_PICTURES, SOURCE_PICTURE, TARGET_PICTURE, Task, program_names};

/// The largest side of a stored picture, in pixels.
const MAX_SIDE: u32 = 16_384;
/// The most memory that decoding one may take, in bytes.
const MAX_DECODED: u64 = 512 << 20;

pub(super) fn check(report: &mut Report<'_>) {
    let task = report.task;
    for name in [SOURCE_PICTURE, TARGET_PICTURE] {
        if let Err(message) = decode(task, name) {
            let hint = format!("render it again: proctor tasks check --update {}", task.dir.display());
            report.in_file(Severity::Error, name, message, hint);
        }
    }
    let update = format!("proctor tasks check --update {}", task.dir.display());
    let Some(pictures) = &task.hidden.pictures else {
        let message = "no record says which image made the pictures";
        report.in_file(Severity::Warning, HIDDEN_PICTURES, message, format!("make it: {update}"));
        return;
    };
    let [source_program, target_program] = program_names(task.mode());
    record(report, &pictures.source, SOURCE_PICTURE, &source_program, &update);
    record(report, &pictures.target, TARGET_PICTURE, &target_program, &update);
}

fn record(report: &mut Report<'_>, record: &PictureRecord, picture: &str, program: &str, update: &str) {
    let digest = |name| report.task.files.bytes(name, MAX_FILE_BYTES).ok().map(|bytes| Digest::of(&bytes));
    let (Some(picture_digest), Some(program_digest)) = (digest(picture), digest(program)) else { return };
    match record.state(picture_digest, program_digest) {
        PictureState::Current => {}
        PictureState::ProgramChanged => {
            let message = format!("was rendered from another version of `{program}`");
            report.in_file(Severity::Error, picture, message, format!("render it again: {update}"));
        }
        PictureState::PictureChanged => {
            let message = "is not the picture of the record";
            report.in_file(Severity::Error, picture, message, format!("render it again: {update}"));
        }
    }
}

/// Width and height in pixels, read from the head of the file.
pub(super) fn size(task: &Task, name: &str) -> Option<(u32, u32)> {
    let bytes = task.files.bytes(name, MAX_FILE_BYTES).ok()?;
    ImageReader::with_format(Cursor::new(bytes), ImageFormat::Png).into_dimensions().ok()
}

/// Decodes the whole picture, within limits.
fn decode(task: &Task, name: &str) -> Result<(), String> {
    if task.files.size(name).is_none() {
        return Err("is missing".to_owned());
    }
    let bytes = task.files.bytes(name, MAX_FILE_BYTES).map_err(|error| error.to_string())?;
    let mut reader = ImageReader::with_format(Cursor::new(bytes), ImageFormat::Png);
    let mut limits = Limits::default();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    reader.decode().map(drop).map_err(|error| format!("is not a readable PNG: {error}"))
}
