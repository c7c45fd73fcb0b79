//! What must not reach the solver: names of the task, and words of the hidden part.

use proctor_traces::Digest;

use super::{Report, Severity};
use crate::files::MAX_FILE_BYTES;
use crate::task::{SOURCE_PICTURE, Task};

/// Shorter hidden texts may well be the words of the artifact itself.
const MIN_SECRET: usize = 24;

pub(super) fn check(report: &mut Report<'_>) {
    let task = report.task;
    let secrets = secrets(task);
    for (key, value) in solver_texts(task) {
        if let Some((name, _)) =
            secrets.iter().find(|(_, secret)| contains(value.as_bytes(), secret.as_bytes()))
        {
            let message = format!("the solver would read {name}");
            report.in_task(
                Severity::Error,
                &["solver", key],
                message,
                "the solver is told the edit, not its consequences",
            );
        }
    }
    let public: Vec<String> = task
        .files
        .names()
        .filter(|name| *name == SOURCE_PICTURE || name.starts_with("public/"))
        .map(str::to_owned)
        .collect();
    let hidden = hidden_digests(task);
    for name in public {
        let Ok(bytes) = task.files.bytes(&name, MAX_FILE_BYTES) else { continue };
        // Names are in files that a program wrote; long sentences of the annotations cannot be.
        if let Some((what, _)) = secrets.iter().find(|(_, secret)| contains(&bytes, secret.as_bytes())) {
            report.in_file(
                Severity::Error,
                &name,
                format!("the solver would find {what} in it"),
                "remove it",
            );
        }
        if hidden.contains(&Digest::of(&bytes)) {
            report.in_file(Severity::Error, &name, "is a copy of a hidden file", "remove it");
        }
    }
}

/// Texts that no solver may see, each with what it is.
fn secrets(task: &Task) -> Vec<(String, String)> {
    let metadata = &task.metadata;
    let mut secrets = vec![
        ("the canary".to_owned(), metadata.canary.clone()),
        ("the task's name".to_owned(), metadata.id.to_string()),
        ("the source artifact's name".to_owned(), metadata.source_artifact_id.clone()),
        ("the source batch".to_owned(), metadata.source_batch.clone()),
    ];
    // An empty or tiny text would be "found" everywhere.
    secrets.retain(|(_, text)| text.len() >= 6);
    let annotations = &task.hidden.annotations;
    let lists = [
        ("an expected change", &annotations.expected_delta),
        ("a dependent update", &annotations.required_synchronized_updates),
        ("an applied update", &annotations.synchronized_updates_applied),
        ("an invariant", &annotations.stable_invariants),
        ("a step of the operation plan", &annotations.operation_plan),
    ];
    let listed =
        lists.iter().flat_map(|(name, list)| list.iter().map(|text| ((*name).to_owned(), text.clone())));
    let points = annotations.scoring_points.iter().flat_map(|point| {
        [
            (format!("the description of point `{}`", point.id), point.description.clone()),
            (format!("the evidence of point `{}`", point.id), point.evidence.clone()),
        ]
    });
    secrets.extend(listed.chain(points).filter(|(_, text)| text.len() >= MIN_SECRET));
    secrets
}

fn solver_texts(task: &Task) -> Vec<(&'static str, &String)> {
    let solver = &task.solver;
    let mut texts = vec![("instruction", &solver.instruction)];
    texts.extend(solver.allowed_dependencies.iter().map(|text| ("allowed_dependencies", text)));
    texts.extend(solver.public_assets.iter().map(|text| ("public_assets", text)));
    texts
}

fn hidden_digests(task: &Task) -> Vec<Digest> {
    let hidden = task.files.names().filter(|name| name.starts_with("hidden/") || name.starts_with("script"));
    hidden
        .filter_map(|name| task.files.bytes(name, MAX_FILE_BYTES).ok())
        .map(|bytes| Digest::of(&bytes))
        .collect()
}

/// Whether `needle` occurs in `hay`.
fn contains(hay: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && hay.windows(needle.len()).any(|window| window == needle)
}
