//! The texts that a solver reads, made from template files under version. They are made from `[solver]` and the run's
//! facts only: a template has no way to reach metadata or hidden parts.

use std::time::Duration;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use proctor_traces::Digest;

use crate::error::TaskError;
use crate::render_mode::{RenderMode, preview_name, render_command};
use crate::task::{SOURCE_PICTURE, Task};

/// The name of the sheet in the workspace.
pub const TASK_SHEET: &str = "TASK.md";

const SHEET_TEMPLATE: &str = include_str!("../templates/vao/TASK.md.j2");
const PROMPT_TEMPLATE: &str = include_str!("../templates/vao/prompt.txt.j2");

/// What a run decides and the texts tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The budget, if the solver is told; whole seconds are shown.
    pub budget: Option<Duration>,
    /// How the source picture reaches the solver.
    pub image: ImageDelivery,
    /// What to preview with; `None` = [`render_command`].
    pub render_command: Option<String>,
}

/// How the source picture reaches the solver.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ImageDelivery {
    /// As a file: looking at it is an action of the solver, and the paper counts it.
    #[default]
    Workspace,
    /// With the message.
    Attach,
    /// Both.
    Both,
}

impl ImageDelivery {
    /// The picture is a file of the workspace.
    pub const fn in_workspace(self) -> bool {
        matches!(self, Self::Workspace | Self::Both)
    }

    /// The picture comes with the message.
    pub const fn attached(self) -> bool {
        matches!(self, Self::Attach | Self::Both)
    }
}

/// The text of `TASK.md`.
pub fn task_md(task: &Task, facts: &Facts) -> Result<String, TaskError> {
    render("vao/TASK.md.j2", SHEET_TEMPLATE, task, facts)
}

/// The message to the solver.
pub fn prompt(task: &Task, facts: &Facts) -> Result<String, TaskError> {
    render("vao/prompt.txt.j2", PROMPT_TEMPLATE, task, facts)
}

/// The digest of all template files: a part of what a result depends on.
pub fn templates_digest() -> Digest {
    Digest::of_parts([
        ("vao/TASK.md.j2", SHEET_TEMPLATE.as_bytes()),
        ("vao/prompt.txt.j2", PROMPT_TEMPLATE.as_bytes()),
    ])
}

fn render(name: &'static str, template: &str, task: &Task, facts: &Facts) -> Result<String, TaskError> {
    fill(name, template, values(task, facts))
}

/// Fills a template in.
pub(crate) fn fill(name: &'static str, template: &str, values: Value) -> Result<String, TaskError> {
    let wrong =
        |error: minijinja::Error| TaskError::Template { template: name, reason: format!("{error:#}") };
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(syntax.build().map_err(wrong)?);
    environment.render_str(template, values).map_err(wrong)
}

/// What a template may tell.
pub(crate) fn values(task: &Task, facts: &Facts) -> Value {
    let mode = task.mode();
    let command = facts.render_command.clone().unwrap_or_else(|| render_command(mode, &task.render));
    let assets = &task.solver.public_assets;
    let assets: Vec<String> = assets.iter().filter(|name| task.is_public(name)).cloned().collect();
    context! {
        instruction => task.solver.instruction.trim().to_owned(),
        language => task.solver.language.title(),
        rendering_target => rendering_target(task),
        mode => mode.as_str(),
        allowed_dependencies => task.solver.allowed_dependencies.clone(),
        public_assets => assets,
        artifact => mode.artifact_name(),
        source_picture => SOURCE_PICTURE,
        task_sheet => TASK_SHEET,
        in_workspace => facts.image.in_workspace(),
        attached => facts.image.attached(),
        render_command => command,
        preview => preview_name(mode, &task.render).to_owned(),
        full_page => task.render.html.full_page,
        budget_seconds => facts.budget.map(|budget| budget.as_secs()),
    }
}

/// The rendering target in words.
fn rendering_target(task: &Task) -> String {
    let settings = &task.render;
    match task.mode() {
        RenderMode::Html => {
            let html = &settings.html;
            let extent = if html.full_page { "full page" } else { "viewport only" };
            format!(
                "headless Chrome, viewport {} x {} CSS pixels, {extent}, scale {}",
                html.width, html.height, html.scale
            )
        }
        RenderMode::Dot => format!("Graphviz `dot`, PNG at {} dpi", settings.dot.dpi),
        RenderMode::Python => "Python 3 script that draws one figure, backend Agg".to_owned(),
        RenderMode::Tikz => format!("`pdflatex` with TikZ, first page as PNG at {} dpi", settings.tex.dpi),
        RenderMode::Circuitikz => {
            format!("`pdflatex` with CircuitikZ, first page as PNG at {} dpi", settings.tex.dpi)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Package;

    fn both(task: &Task, facts: &Facts) -> String {
        task_md(task, facts).unwrap() + &prompt(task, facts).unwrap()
    }

    #[test]
    fn the_sheet_says_what_is_asked_and_how_to_look_at_it() {
        let task = Package::new().load();
        let sheet = task_md(&task, &Facts::default()).unwrap();
        for part in [
            "> Change the threshold from 80 to 90.",
            "`artifact.html`",
            "HTML",
            "viewport 1440 x 900",
            "d3",
            "`public/logo.txt`",
            "--window-size=1440,900",
        ] {
            assert!(sheet.contains(part), "{part} is not in\n{sheet}");
        }
        assert!(!sheet.contains("seconds"), "{sheet}");
        assert!(!sheet.contains("\n\n\n"), "{sheet}");
        assert!(sheet.ends_with(".\n"), "{sheet}");
    }

    #[test]
    fn the_budget_is_told_only_if_the_run_says_so() {
        let task = Package::new().load();
        let facts = Facts { budget: Some(Duration::from_secs(1800)), ..Facts::default() };
        assert!(task_md(&task, &facts).unwrap().contains("1800 seconds"));
    }

    #[test]
    fn an_attached_picture_is_not_called_a_file() {
        let task = Package::new().load();
        let with = |image| both(&task, &Facts { image, ..Facts::default() });
        assert!(with(ImageDelivery::Workspace).contains("The source image is source.png."));
        assert!(!with(ImageDelivery::Attach).contains("source.png"));
        assert!(with(ImageDelivery::Attach).contains("attached"));
        assert!(
            with(ImageDelivery::Both).contains("source.png")
                && with(ImageDelivery::Both).contains("attached")
        );
    }

    #[test]
    fn nothing_hidden_and_no_metadata_is_told() {
        let task = Package::new().load();
        let text = both(&task, &Facts { budget: Some(Duration::from_secs(9)), ..Facts::default() });
        let annotations = &task.hidden.annotations;
        let points =
            annotations.scoring_points.iter().flat_map(|point| [&point.description, &point.evidence]);
        let metadata = &task.metadata;
        let words = [
            metadata.id.as_str(),
            &metadata.canary,
            &metadata.source_artifact_id,
            "threshold_change",
            "hard",
        ];
        let updates = annotations.required_synchronized_updates.iter().chain(&annotations.expected_delta);
        for secret in points.chain(updates).map(String::as_str).chain(words) {
            assert!(!text.contains(secret), "{secret} is in\n{text}");
        }
    }

    #[test]
    fn a_template_does_not_run_what_a_task_says() {
        let package = Package::new();
        package.edit("task.toml", "Change the threshold from 80 to 90.", "{{ metadata }} {% raw %} <b>&</b>");
        let sheet = task_md(&package.load(), &Facts::default()).unwrap();
        assert!(sheet.contains("> {{ metadata }} {% raw %} <b>&</b>"), "{sheet}");
    }
}
