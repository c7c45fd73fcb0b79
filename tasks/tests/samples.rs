//! The bundled sample packages cover what a suite needs to be shown with, and have nothing wrong with them.

#![expect(clippy::unwrap_used, reason = "a sample that cannot be loaded fails the test")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use proctor_tasks::{
    Category, Difficulty, Facts, RenderMode, Severity, Task, check, discover, prompt, stats, task_md,
};

fn samples() -> Vec<Task> {
    discover(&[PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples")]).unwrap()
}

#[test]
fn nothing_is_wrong_with_any() {
    let found: Vec<String> = samples()
        .iter()
        .flat_map(check)
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{finding} ({})", finding.hint))
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn they_cover_categories_modes_and_difficulties() {
    let samples = samples();
    let stats = stats(&samples);
    assert!(samples.len() >= 12);
    assert_eq!(stats.categories.len(), Category::ALL.len());
    assert_eq!(stats.modes.len(), RenderMode::ALL.len());
    for (difficulty, row) in stats.difficulties {
        assert!(row.tasks >= 3, "{difficulty}");
    }
    let hard = samples.iter().filter(|task| task.metadata.difficulty == Difficulty::Hard);
    assert!(hard.map(Task::mode).collect::<BTreeSet<_>>().len() >= 4);
}

#[test]
fn each_has_a_script_and_a_canary_of_its_own() {
    let samples = samples();
    assert!(samples.iter().all(|task| task.script().is_some()));
    let canaries: BTreeSet<_> = samples.iter().map(|task| &task.metadata.canary).collect();
    assert_eq!(canaries.len(), samples.len());
}

#[test]
fn no_sheet_or_message_tells_what_the_task_is_called() {
    for task in samples() {
        let text = task_md(&task, &Facts::default()).unwrap() + &prompt(&task, &Facts::default()).unwrap();
        for secret in [task.id().as_str(), &task.metadata.canary, &task.metadata.source_batch] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}

#[test]
fn pictures_stay_small() {
    for task in samples() {
        for picture in [task.source_picture(), task.hidden.target_picture.clone()] {
            assert!(std::fs::metadata(&picture).unwrap().len() < 150_000, "{}", picture.display());
        }
    }
}
