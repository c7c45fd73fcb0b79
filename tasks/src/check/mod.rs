//! Everything that can be said about a package without rendering it.

mod finding;
mod leaks;
mod pictures;
mod points;

use std::path::PathBuf;

pub use finding::{Finding, Severity};

use crate::operations::operations;
use crate::task::{ANNOTATIONS, SCRIPT, TASK_FILE, Task};
use crate::toml_text::Step;
use crate::wording::{Facts, prompt, task_md};

/// Checks one package. Nothing found means that nothing is wrong that can be seen without rendering.
pub fn check(task: &Task) -> Vec<Finding> {
    let mut report = Report::new(task);
    task_file(&mut report);
    points::check(&mut report);
    pictures::check(&mut report);
    leaks::check(&mut report);
    script(&mut report);
    texts(&mut report);
    let mut findings = report.findings;
    findings.sort_by_key(|finding| {
        (finding.severity, finding.file.clone(), finding.span.clone().map(|s| s.start))
    });
    findings
}

/// Whether any of them is more than a warning.
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Findings in the making, with the texts that they point into.
struct Report<'a> {
    task: &'a Task,
    task_text: String,
    annotations_text: String,
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    fn new(task: &'a Task) -> Self {
        // A file that vanished since loading gives findings without a place.
        let text = |name| task.files.text(name).unwrap_or_default();
        Self { task, task_text: text(TASK_FILE), annotations_text: text(ANNOTATIONS), findings: Vec::new() }
    }

    /// Something about a value of `task.toml`.
    fn in_task(
        &mut self,
        severity: Severity,
        path: &[&str],
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let steps: Vec<Step<'_>> = path.iter().map(|key| Step::Key(key)).collect();
        let text = self.task_text.clone();
        self.push(Finding::at(severity, self.task.files.path(TASK_FILE), &text, &steps, message, hint));
    }

    /// Something about a value of `hidden/annotations.toml`.
    fn in_annotations(
        &mut self,
        severity: Severity,
        path: &[Step<'_>],
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let text = self.annotations_text.clone();
        self.push(Finding::at(severity, self.task.files.path(ANNOTATIONS), &text, path, message, hint));
    }

    /// Something about a whole file.
    fn in_file(
        &mut self,
        severity: Severity,
        name: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let file: PathBuf = self.task.files.path(name);
        self.push(Finding::whole(severity, file, message, hint));
    }

    fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// The values of `task.toml` that a type cannot check.
fn task_file(report: &mut Report<'_>) {
    let task = report.task;
    let (solver, metadata) = (&task.solver, &task.metadata);
    let texts = [
        (["solver", "instruction"], &solver.instruction),
        (["metadata", "subtype"], &metadata.subtype),
        (["metadata", "source_artifact_id"], &metadata.source_artifact_id),
        (["metadata", "source_batch"], &metadata.source_batch),
        (["metadata", "dataset_version"], &metadata.dataset_version),
        (["metadata", "licence"], &metadata.licence),
    ];
    for (path, value) in texts {
        if value.trim().is_empty() {
            report.in_task(Severity::Error, &path, format!("`{}` is empty", path.join(".")), "say it");
        }
    }
    if solver.instruction.chars().count() > 1000 {
        let message = "the instruction has more than 1,000 characters";
        report.in_task(Severity::Warning, &["solver", "instruction"], message, "instructions are concise");
    }
    if metadata.canary.trim().chars().count() < 16 {
        let hint = "write a string that occurs nowhere else, such as a UUID";
        report.in_task(
            Severity::Error,
            &["metadata", "canary"],
            "the canary is shorter than 16 characters",
            hint,
        );
    }
    let mode = task.mode();
    if solver.language != mode.language() {
        let message = format!("programs for `{mode}` are written in {}", mode.language().title());
        let hint = format!("write `language = \"{}\"`", mode.language());
        report.in_task(Severity::Error, &["solver", "language"], message, hint);
    }
    operation(report);
    for name in &solver.public_assets {
        if !task.is_public(name) {
            let message = format!("`{name}` is not a file of `public/` in this package");
            let hint = "give the path inside the package, such as `public/logo.png`";
            report.in_task(Severity::Error, &["solver", "public_assets"], message, hint);
        }
    }
    let unnamed: Vec<String> = task
        .files
        .names()
        .filter(|name| name.starts_with("public/") && !solver.public_assets.iter().any(|asset| asset == name))
        .map(str::to_owned)
        .collect();
    for name in unnamed {
        let hint = "name it in `solver.public_assets`, or remove it";
        report.in_file(Severity::Warning, &name, "no solver gets this file", hint);
    }
}

fn operation(report: &mut Report<'_>) {
    let metadata = &report.task.metadata;
    let known = operations();
    match known.iter().find(|operation| operation.name == metadata.operation) {
        None => {
            let names: Vec<&str> = known.iter().map(|operation| operation.name.as_str()).collect();
            let message = format!("there is no operation `{}`", metadata.operation);
            report.in_task(
                Severity::Error,
                &["metadata", "operation"],
                message,
                format!("one of {}", names.join(", ")),
            );
        }
        Some(operation) if !operation.usual.contains(&metadata.difficulty) => {
            let message = format!("`{}` is unusual at difficulty `{}`", operation.name, metadata.difficulty);
            let hint = "see `operations.toml`; a warning only";
            report.in_task(Severity::Warning, &["metadata", "difficulty"], message, hint);
        }
        Some(_) => {}
    }
}

/// The script's drafts; what its steps mean is known to the gateway.
fn script(report: &mut Report<'_>) {
    let task = report.task;
    if task.script().is_none() {
        return;
    }
    let parsed = task.files.text(SCRIPT).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let Some(table) = parsed else {
        report.in_file(Severity::Error, SCRIPT, "is not TOML in UTF-8", "mend the file, or remove it");
        return;
    };
    let mut drafts = Vec::new();
    collect_drafts(&toml::Value::Table(table), 0, &mut drafts);
    for draft in drafts {
        if !task.files.contains(&draft) {
            let message = format!("a step writes from `{draft}`, which the package does not have");
            report.in_file(
                Severity::Error,
                SCRIPT,
                message,
                "give the path inside the package, beside script.toml",
            );
        }
    }
}

fn collect_drafts(value: &toml::Value, depth: usize, drafts: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            if let (Some(_), Some(toml::Value::String(from))) = (table.get("write"), table.get("from")) {
                drafts.push(from.clone());
            }
            for inner in table.values().filter(|_| depth < 16) {
                collect_drafts(inner, depth + 1, drafts);
            }
        }
        toml::Value::Array(array) => {
            for inner in array.iter().filter(|_| depth < 16) {
                collect_drafts(inner, depth + 1, drafts);
            }
        }
        _ => {}
    }
}

/// Both texts for the solver can be made.
fn texts(report: &mut Report<'_>) {
    for text in [task_md(report.task, &Facts::default()), prompt(report.task, &Facts::default())] {
        if let Err(error) = text {
            report.in_file(
                Severity::Error,
                TASK_FILE,
                error.to_string(),
                "change what the template is given",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Package;

    #[track_caller]
    fn finds(package: &Package, severity: Severity, part: &str) -> Finding {
        let findings = check(&Task::load_unrendered(&package.dir).unwrap());
        let found =
            findings.iter().find(|finding| finding.severity == severity && finding.message.contains(part));
        found.unwrap_or_else(|| panic!("no {severity:?} says `{part}`: {findings:#?}")).clone()
    }

    #[test]
    fn a_good_package_has_no_findings() {
        assert_eq!(
            check(&Package::new().load()).iter().map(ToString::to_string).collect::<Vec<_>>(),
            [""; 0]
        );
    }

    #[test]
    fn a_mistake_in_a_value_is_shown_where_it_stands() {
        let package = Package::new();
        package.edit("task.toml", "\"threshold_change\"", "\"treshold\"");
        let finding = finds(&package, Severity::Error, "no operation `treshold`");
        let text = std::fs::read_to_string(&finding.file).unwrap();
        assert_eq!(&text[finding.span.clone().unwrap()], "\"treshold\"");
        let report = format!("{:?}", miette::Report::new(finding));
        assert!(report.contains("threshold_change"), "{report}");
    }

    #[test]
    fn values_that_contradict_each_other_are_found() {
        for (file, from, to, part) in [
            ("task.toml", "language = \"html\"", "language = \"dot\"", "are written in HTML"),
            ("task.toml", "canary 5d1e0d0e-7a53", "canary", "shorter than 16"),
            ("task.toml", "public/logo.txt", "hidden/target.png", "not a file of `public/`"),
            ("task.toml", "Change the threshold from 80 to 90.", " ", "`solver.instruction` is empty"),
            ("hidden/annotations.toml", "id = \"v1\"", "id = \"d1\"", "are called `d1`"),
            ("hidden/annotations.toml", "w = 20", "w = 41", "not inside the picture of 40 x 30"),
            ("hidden/annotations.toml", "type = \"derived\"", "type = \"direct\"", "without derived points"),
            (
                "hidden/annotations.toml",
                "type = \"invariant\"",
                "type = \"direct\"",
                "no scoring point of type `invariant`",
            ),
            ("script.toml", "draft-1", "draft-2", "which the package does not have"),
        ] {
            let package = Package::new();
            package.edit(file, from, to);
            finds(&package, Severity::Error, part);
        }
    }

    #[test]
    fn hidden_words_in_what_the_solver_reads_are_found() {
        for secret in
            ["The count of warnings falls from two to one.", "canary 5d1e0d0e-7a53", "artifact-17a4"]
        {
            let package = Package::new();
            package.edit("task.toml", "Change the threshold", &format!("{secret} Change the threshold"));
            finds(&package, Severity::Error, "the solver would read");
            let package = Package::new();
            package.put("public/logo.txt", format!("x {secret} y"));
            finds(&package, Severity::Error, "the solver would find");
        }
        let package = Package::new();
        package.put("public/logo.txt", "<p>90</p>");
        finds(&package, Severity::Error, "is a copy of a hidden file");
    }

    #[test]
    fn pictures_are_compared_with_their_record() {
        let package = Package::new();
        package.put("hidden/target.html", "<p>91</p>");
        finds(&package, Severity::Error, "another version of `hidden/target.html`");

        let package = Package::new();
        std::fs::copy(package.dir.join("hidden/target.png"), package.dir.join("source.png")).unwrap();
        finds(&package, Severity::Error, "is not the picture of the record");

        let package = Package::new();
        package.put("source.png", b"\x89PNG\r\n\x1a\n nothing");
        finds(&package, Severity::Error, "is not a readable PNG");

        let package = Package::new();
        std::fs::remove_file(package.dir.join("hidden/pictures.toml")).unwrap();
        finds(&package, Severity::Warning, "no record says");

        let package = Package::new();
        std::fs::remove_file(package.dir.join("source.png")).unwrap();
        finds(&package, Severity::Error, "is missing");
    }

    #[test]
    fn unusual_is_only_a_warning() {
        let package = Package::new();
        package.edit("task.toml", "difficulty = \"hard\"", "difficulty = \"easy\"");
        finds(&package, Severity::Warning, "is unusual at difficulty `easy`");
        finds(&package, Severity::Warning, "an easy task with 1 derived points");
        assert!(!has_errors(&check(&package.load())));
    }
}
