//! The scoring points: names, texts, regions, and whether their types fit the difficulty.

use std::collections::BTreeSet;

use super::{Report, Severity};
use crate::annotations::{PointType, RegionPicture};
use crate::package::Difficulty;
use crate::task::{SOURCE_PICTURE, TARGET_PICTURE};
use crate::toml_text::Step;

pub(super) fn check(report: &mut Report<'_>) {
    let task = report.task;
    let annotations = &task.hidden.annotations;
    let points = [Step::Key("scoring_points")];
    if annotations.scoring_points.is_empty() {
        report.in_annotations(
            Severity::Error,
            &points,
            "there are no scoring points",
            "add [[scoring_points]]",
        );
        return;
    }
    for (name, list) in [
        ("target_objects", &annotations.target_objects),
        ("expected_delta", &annotations.expected_delta),
        ("stable_invariants", &annotations.stable_invariants),
    ] {
        if list.is_empty() {
            report.in_annotations(
                Severity::Error,
                &[Step::Key(name)],
                format!("`{name}` is empty"),
                "say it",
            );
        }
    }
    each(report);
    for kind in [PointType::Direct, PointType::Invariant] {
        if annotations.points(kind).next().is_none() {
            let message = format!("there is no scoring point of type `{kind}`");
            report.in_annotations(
                Severity::Error,
                &points,
                message,
                "every task has direct and invariant points",
            );
        }
    }
    dependent(report);
}

/// What holds of every single point.
fn each(report: &mut Report<'_>) {
    let task = report.task;
    let size = |name: &str| super::pictures::size(task, name);
    let (source, target) = (size(SOURCE_PICTURE), size(TARGET_PICTURE));
    let mut ids = BTreeSet::new();
    for (index, point) in task.hidden.annotations.scoring_points.iter().enumerate() {
        let at = |key| [Step::Key("scoring_points"), Step::Index(index), Step::Key(key)];
        if !ids.insert(&point.id) {
            let message = format!("two scoring points are called `{}`", point.id);
            report.in_annotations(Severity::Error, &at("id"), message, "give one of them another name");
        }
        for (key, value) in
            [("id", &point.id), ("description", &point.description), ("evidence", &point.evidence)]
        {
            if value.trim().is_empty() {
                report.in_annotations(Severity::Error, &at(key), format!("`{key}` is empty"), "say it");
            }
        }
        let Some(region) = point.region else { continue };
        let picture = match region.picture {
            RegionPicture::Source => source,
            RegionPicture::Target => target,
        };
        // A picture that cannot be read has a finding of its own.
        let Some((width, height)) = picture else { continue };
        if region.in_pixels(width, height).is_none() {
            let message =
                format!("the region of `{}` is not inside the picture of {width} x {height}", point.id);
            report.in_annotations(Severity::Error, &at("region"), message, "check unit, origin and numbers");
        }
    }
}

/// Dependent points and the difficulty: Easy tasks rarely have any (eight of 600 in the paper), the others always.
fn dependent(report: &mut Report<'_>) {
    let task = report.task;
    let annotations = &task.hidden.annotations;
    let count = annotations.points(PointType::Derived).count();
    let points = [Step::Key("scoring_points")];
    match (task.metadata.difficulty, count) {
        (Difficulty::Easy, 1..) => {
            let message = format!("an easy task with {count} derived points");
            report.in_annotations(Severity::Warning, &points, message, "is it not of medium difficulty?");
        }
        (Difficulty::Medium | Difficulty::Hard, 0) => {
            let message =
                format!("a task of difficulty `{}` without derived points", task.metadata.difficulty);
            report.in_annotations(
                Severity::Error,
                &points,
                message,
                "add what follows from the edit, or call it easy",
            );
        }
        _ => {}
    }
    if count > 0 && annotations.required_synchronized_updates.is_empty() {
        let message = "there are derived points, but `required_synchronized_updates` is empty";
        report.in_annotations(Severity::Error, &points, message, "name the updates that the points measure");
    }
    if annotations.required_synchronized_updates.len() > annotations.synchronized_updates_applied.len() {
        let message = "`synchronized_updates_applied` names fewer updates than are required";
        let hint = "every required update must be made by the target program";
        report.in_annotations(Severity::Warning, &[Step::Key("synchronized_updates_applied")], message, hint);
    }
}
