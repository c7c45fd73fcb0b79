//! The folder for raters, and the key to it.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use proctor_store::{PointKind, RunDir, StoreError, TrialDir, write_atomic, write_json};
use proctor_tasks::{PointType, ScoringPoint, Task};
use proctor_traces::Digest;

use super::page::{Shown, page};
use super::{AskedPoint, Key, KeyFailure, KeyItem, LABEL, Label, SHEET, sheet};
use crate::candidate::{JudgeError, not_the_solvers, read};
use crate::vision::{VisionInputs, inputs, sent};
use crate::{Picture, PictureError};

/// Why nothing was written, or taken over.
#[derive(Debug, thiserror::Error)]
pub enum BlindError {
    /// A file of the run.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A trial, or its task.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// A picture cannot be written.
    #[error("writing a picture")]
    Picture(#[from] PictureError),
    /// A file of the folder.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It would be mixed up with what is there.
    #[error("{path} is not empty", path = path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to look at.
    #[error("no trial of the run has a picture to look at")]
    Nothing,
    /// The folder is not one that was written for raters.
    #[error("{path} is no folder for raters: {why}", path = path.display())]
    NoLabel {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// It belongs to another run.
    #[error("the items of export {export} are not of this run")]
    Strange {
        /// Name of the export.
        export: String,
    },
}

/// What may be shown: a task with its trials.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its trials.
    pub trials: Vec<TrialDir>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Name of the export.
    pub export: String,
    /// Items.
    pub items: usize,
    /// Trials with a picture that the sample does not have.
    pub not_drawn: usize,
    /// Where the key is.
    pub key: PathBuf,
}

/// Writes a folder for raters, which must be empty or not be there, and the key to it into the run. `sample` draws so many
/// items. The same seed gives the same order and the same sample.
pub fn export(
    run: &RunDir,
    subjects: &[Subject<'_>],
    to: &Path,
    seed: u64,
    sample: Option<usize>,
) -> Result<Exported, BlindError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| BlindError::Io { path, source }
    };
    match fs::read_dir(to).map(Iterator::count) {
        Ok(0) => {}
        Ok(_) => return Err(BlindError::NotEmpty { path: to.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(io(to)(error)),
    }
    let (mut shown, without_picture) = found(subjects)?;
    if shown.is_empty() {
        return Err(BlindError::Nothing);
    }
    // In the order of their digests under the seed: shuffled, and the same on every machine.
    shown.sort_by_cached_key(|(_, it)| Digest::of(format!("{seed}/{}", it.trial).as_bytes()).to_string());
    let all = shown.len();
    shown.truncate(sample.unwrap_or(all));
    let digits = shown.len().to_string().len().max(3);
    for (at, (_, item)) in shown.iter_mut().enumerate() {
        item.item = format!("item-{:0digits$}", at + 1);
    }
    let pictures = to.join("pictures");
    fs::create_dir_all(&pictures).map_err(io(&pictures))?;
    let mut written = BTreeSet::new();
    let mut put = |path: PathBuf| -> Result<String, BlindError> {
        let (picture, _): (Picture, Digest) = read(path)?;
        // Encoded anew: nothing in a file but its pixels may say who made it.
        let png = sent(&picture).to_png()?;
        let name = format!("{}.png", Digest::of(&png).short());
        let path = pictures.join(&name);
        if written.insert(name.clone()) {
            fs::write(&path, &png).map_err(io(&path))?;
        }
        Ok(name)
    };
    let mut page_items = Vec::new();
    for (subject, item) in &shown {
        let task = subject.task;
        let candidate = run.trial(&item.trial).render().join("output.png");
        page_items.push(Shown {
            item: &item.item,
            task,
            source: put(task.source_picture())?,
            reference: put(task.hidden.target_picture.clone())?,
            candidate: put(candidate)?,
        });
    }
    let index = to.join("index.html");
    fs::write(&index, page(&page_items)).map_err(io(&index))?;
    let items: Vec<KeyItem> = shown.into_iter().map(|(_, item)| item).collect();
    let sheet_path = to.join(SHEET);
    fs::write(&sheet_path, sheet::empty(&items)).map_err(io(&sheet_path))?;
    let mut key = Key { schema: Key::SCHEMA, export: String::new(), seed, items, without_picture };
    key.export = Digest::of(&serde_json::to_vec(&key).unwrap_or_default()).short();
    let label = Label { schema: Key::SCHEMA, export: key.export.clone(), items: key.items.len() };
    // The key first: a folder that can be filled in can be taken over.
    let path = run.blind_key(&key.export);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(io(folder))?;
    }
    write_json(&path, &key)?;
    write_json(&to.join(LABEL), &label)?;
    Ok(Exported { export: key.export, items: label.items, not_drawn: all - label.items, key: path })
}

type Found<'a> = (Vec<(&'a Subject<'a>, KeyItem)>, Vec<KeyFailure>);

/// Everything that has a picture, and what has none by fault of its solver.
fn found<'a>(subjects: &'a [Subject<'a>]) -> Result<Found<'a>, BlindError> {
    let (mut shown, mut without_picture) = (Vec::new(), Vec::new());
    for subject in subjects {
        let points: Vec<AskedPoint> =
            subject.task.hidden.annotations.scoring_points.iter().map(asked).collect();
        for folder in &subject.trials {
            let Some(outcome) = folder.outcome()? else { continue };
            if not_the_solvers(&outcome).is_some() {
                continue;
            }
            let (inputs, failure): (VisionInputs, _) = inputs(folder, &outcome, subject.task)?;
            let (trial, points) = (folder.id().clone(), points.clone());
            match failure {
                Some(failure) => without_picture.push(KeyFailure { trial, failure, inputs, points }),
                None => shown.push((subject, KeyItem { item: String::new(), trial, inputs, points })),
            }
        }
    }
    Ok((shown, without_picture))
}

fn asked(point: &ScoringPoint) -> AskedPoint {
    let kind = match point.kind {
        PointType::Direct => PointKind::Direct,
        PointType::Derived => PointKind::Derived,
        PointType::Invariant => PointKind::Invariant,
    };
    AskedPoint { id: point.id.clone(), kind }
}

/// Keeps a sheet as it came, beside the key: nothing that a rater wrote is ever lost.
pub(super) fn keep(run: &RunDir, export: &str, judge: &str, sheet: &[u8]) -> Result<PathBuf, BlindError> {
    for number in 1_u32.. {
        let path = run.blind_sheet(export, judge, number);
        match fs::read(&path) {
            Ok(there) if there == sheet => return Ok(path),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                write_atomic(&path, sheet)?;
                return Ok(path);
            }
            Err(source) => return Err(BlindError::Io { path, source }),
        }
    }
    Ok(run.blind_key(export))
}
