//! What came back from raters, as marks.

use std::path::Path;

use proctor_store::{PointScore, RunDir, Score, TrialDir, TrialId, read_json, write_json};

use super::export::keep;
use super::sheet::Marks;
use super::{
    AskedPoint, BlindError, Key, KeyItem, LABEL, Label, PointVerdict, Rater, RatingVerdict, Sheet, Verdict,
};
use crate::candidate::candidate;

/// What was taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Trials with all of their marks.
    pub scored: usize,
    /// Trials of which some marks are missing: they are unscored.
    pub partly: Vec<TrialId>,
    /// Items of which the rater said nothing: they are unscored, and earlier marks are left as they are.
    pub untouched: usize,
    /// Marks that are missing in all.
    pub missing: usize,
    /// Trials that have another picture now than the one that was looked at: nothing was taken over.
    pub stale: Vec<TrialId>,
    /// Trials without a picture, of which no point holds.
    pub without_picture: usize,
}

/// The key to a folder for raters.
pub fn key_of(run: &RunDir, folder: &Path) -> Result<Key, BlindError> {
    let label: Label = read_json(&folder.join(LABEL), "label").map_err(|error| {
        let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        BlindError::NoLabel { path: folder.to_owned(), why }
    })?;
    // It becomes the name of a file.
    let is_name = |it: &str| (1..=64).contains(&it.len()) && it.chars().all(|c| c.is_ascii_hexdigit());
    let strange = || BlindError::Strange { export: label.export.chars().take(64).collect() };
    if !is_name(&label.export) || !run.blind_key(&label.export).is_file() {
        return Err(strange());
    }
    let key: Key = read_json(&run.blind_key(&label.export), "key")?;
    if (key.schema, &key.export) == (Key::SCHEMA, &label.export) { Ok(key) } else { Err(strange()) }
}

/// Writes the marks of a sheet as those of the judge `human-NAME`. The sheet itself is kept as it came.
pub fn take(
    run: &RunDir,
    key: &Key,
    sheet: &Sheet,
    bytes: &[u8],
    rater: &Rater,
) -> Result<Taken, BlindError> {
    let judge = rater.judge();
    keep(run, &key.export, &judge, bytes)?;
    let mut taken = Taken::default();
    for item in &key.items {
        let marks = sheet.items.get(&item.item);
        let missing = marks.map_or(item.points.len() + 2, Marks::missing);
        taken.missing += missing;
        let Some(marks) = marks.filter(|it| !it.is_empty()) else {
            taken.untouched += 1;
            continue;
        };
        let folder = run.trial(&item.trial);
        if shown_now(&folder)? != item.inputs.candidate {
            taken.stale.push(item.trial.clone());
            continue;
        }
        write(&folder, &verdict(key, &judge, item, marks))?;
        if missing == 0 {
            taken.scored += 1;
        } else {
            taken.partly.push(item.trial.clone());
        }
    }
    // Who looked at nothing has no opinion of those either.
    if taken.untouched < key.items.len() {
        for it in &key.without_picture {
            let folder = run.trial(&it.trial);
            if shown_now(&folder)?.is_some() {
                taken.stale.push(it.trial.clone());
                continue;
            }
            let none = |point: &AskedPoint| PointVerdict {
                id: point.id.clone(),
                kind: point.kind,
                satisfied: Some(false),
                note: String::new(),
            };
            let verdict = Verdict {
                schema: Verdict::SCHEMA,
                judge: judge.clone(),
                export: key.export.clone(),
                item: None,
                inputs: it.inputs.clone(),
                failure: Some(it.failure.clone()),
                points: it.points.iter().map(none).collect(),
                visual_quality: RatingVerdict::default(),
                domain_quality: RatingVerdict::default(),
            };
            write(&folder, &verdict)?;
            taken.without_picture += 1;
        }
    }
    Ok(taken)
}

/// The picture that a trial has now.
fn shown_now(folder: &TrialDir) -> Result<Option<proctor_traces::Digest>, BlindError> {
    let Some(outcome) = folder.outcome()? else { return Ok(None) };
    Ok(candidate(folder, &outcome).map_or(None, |(digest, _)| digest))
}

fn verdict(key: &Key, judge: &str, item: &KeyItem, marks: &Marks) -> Verdict {
    let [visual_quality, domain_quality] = marks.ratings.clone();
    Verdict {
        schema: Verdict::SCHEMA,
        judge: judge.to_owned(),
        export: key.export.clone(),
        item: Some(item.item.clone()),
        inputs: item.inputs.clone(),
        failure: None,
        points: marks.points.clone(),
        visual_quality,
        domain_quality,
    }
}

fn write(folder: &TrialDir, verdict: &Verdict) -> Result<(), BlindError> {
    let point = |it: &PointVerdict| PointScore { id: it.id.clone(), kind: it.kind, satisfied: it.satisfied };
    let score = Score {
        schema: Score::SCHEMA,
        judge: verdict.judge.clone(),
        candidate: Some(verdict.inputs.candidate.into()),
        points: verdict.points.iter().map(point).collect(),
        visual_quality: verdict.visual_quality.rating,
        domain_quality: verdict.domain_quality.rating,
    };
    let place = folder.marks_of(&verdict.judge)?;
    place.make()?;
    write_json(&place.score(), &score)?;
    write_json(&place.verdict(), verdict)?;
    Ok(())
}
