//! `experiment.toml`, as a person writes it: everything may be left out that has a default.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proctor_harnesses::HarnessId;
use proctor_store::MethodId;
use proctor_tasks::toml_text::{Step, locate, named};
use proctor_tasks::{Ablation, Category, Difficulty, ImageDelivery, RenderMode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ExperimentError;
use crate::experiment::{Ceilings, Endpoint, Judge, ModelId, Needs, OperationName, Sample, Track};
use crate::value::{AtATime, Attempts, Cpus, Inodes, Pids, Retries, Size, Span, TaskCount, Tokens, Usd};

/// Far more than anybody writes.
const MAX_BYTES: u64 = 4 << 20;

/// `experiment.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// Name of the experiment.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Attempts per task and method; 1 if not given.
    #[serde(default)]
    pub(crate) attempts: Option<Attempts>,
    /// Whether what the methods leave is rendered; it is if not given.
    #[serde(default)]
    pub(crate) render: Option<bool>,
    /// Which tasks.
    #[serde(default)]
    pub(crate) tasks: TasksTable,
    /// What holds for every method that does not say otherwise.
    #[serde(default)]
    pub(crate) defaults: DefaultsTable,
    /// The methods.
    #[serde(default)]
    pub(crate) methods: Vec<MethodTable>,
    /// How much at a time.
    #[serde(default)]
    pub(crate) schedule: ScheduleTable,
    /// What is done when our side fails, or the provider's.
    #[serde(default)]
    pub(crate) retry: RetryTable,
    /// Bounds of each room.
    #[serde(default)]
    pub(crate) limits: LimitsTable,
    /// Bounds of the whole run: no trial is started once one is reached.
    #[serde(default)]
    pub(crate) ceilings: Ceilings,
    /// Who judges: `pixel`, or a vision model as PROVIDER/NAME. It is only recorded so far.
    #[serde(default)]
    pub(crate) judge: Option<Judge>,
    /// What models cost, by PROVIDER/NAME.
    #[serde(default)]
    pub(crate) prices: BTreeMap<ModelId, PriceTable>,
    /// Where it was read.
    #[serde(skip)]
    pub(crate) place: Place,
}

/// A file and its text, for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

/// `[tasks]`: each filter that is given narrows; then comes the sample, then the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TasksTable {
    /// Task packages or folders of them, relative to this file.
    pub(crate) paths: Option<Vec<PathBuf>>,
    /// Only these tasks.
    pub(crate) ids: Option<Vec<String>>,
    /// Only the tasks that this file names, one a line; `#` begins a comment. Relative to this file.
    pub(crate) ids_file: Option<PathBuf>,
    /// Only tasks whose name one of these patterns matches, as in `chart-*`.
    pub(crate) globs: Option<Vec<String>>,
    /// None of these tasks: names or patterns.
    pub(crate) exclude: Option<Vec<String>>,
    /// Only these categories.
    pub(crate) category: Option<Vec<Category>>,
    /// Only these rendering modes.
    pub(crate) mode: Option<Vec<RenderMode>>,
    /// Only these difficulties.
    pub(crate) difficulty: Option<Vec<Difficulty>>,
    /// Only these operations.
    pub(crate) operation: Option<Vec<OperationName>>,
    /// So many of them, drawn by lot.
    pub(crate) sample: Option<Sample>,
    /// At most so many: the first by name.
    pub(crate) limit: Option<TaskCount>,
}

/// `[defaults]`: what holds for every method that does not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DefaultsTable {
    /// The agent CLI: NAME or NAME@VERSION.
    #[schemars(with = "Option<String>")]
    pub(crate) harness: Option<HarnessId>,
    /// PROVIDER/NAME, or `script`.
    pub(crate) model: Option<ModelId>,
    /// Time per trial; 1800s if not given.
    pub(crate) budget: Option<Span>,
    /// How the source picture reaches the solver; `workspace` if not given.
    pub(crate) image_delivery: Option<ImageDelivery>,
    /// Whether `TASK.md` names the budget; it does not if not given.
    pub(crate) tell_budget: Option<bool>,
    /// File with more providers, relative to this file.
    pub(crate) providers: Option<PathBuf>,
    /// At most so many trials of one method at a time.
    pub(crate) jobs: Option<AtATime>,
    /// At most so many tokens per trial.
    pub(crate) max_trial_tokens: Option<Tokens>,
    /// At most so many US dollars per trial.
    pub(crate) max_trial_cost: Option<Usd>,
    /// At most so many tokens in all trials of one method.
    pub(crate) max_tokens: Option<Tokens>,
    /// At most so many US dollars for all trials of one method.
    pub(crate) max_cost: Option<Usd>,
}

/// `[[methods]]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MethodTable {
    /// Its name in tables and folders; made of harness and model if not given.
    #[schemars(with = "Option<String>")]
    pub(crate) id: Option<MethodId>,
    /// Who answers; `agent` if not given.
    pub(crate) track: Option<Track>,
    /// The agent CLI: NAME or NAME@VERSION.
    #[schemars(with = "Option<String>")]
    pub(crate) harness: Option<HarnessId>,
    /// PROVIDER/NAME, or `script`.
    pub(crate) model: Option<ModelId>,
    /// Command line of the harness `command`; it is not given to a shell.
    pub(crate) command: Option<String>,
    /// Time per trial.
    pub(crate) budget: Option<Span>,
    /// How the source picture reaches the solver.
    pub(crate) image_delivery: Option<ImageDelivery>,
    /// Whether `TASK.md` names the budget.
    pub(crate) tell_budget: Option<bool>,
    /// File with more providers, relative to this file.
    pub(crate) providers: Option<PathBuf>,
    /// At most so many trials of it at a time; 10 on the tracks without an agent, else as all if not given.
    pub(crate) jobs: Option<AtATime>,
    /// Time between the starts of two of its trials, at least; 250ms on the tracks without an agent, else none.
    pub(crate) launch_interval: Option<Span>,
    /// What a model that answers alone is given otherwise: `a1`, `a2`, `b` or `c`.
    pub(crate) ablation: Option<Ablation>,
    /// The route by which a picture is asked for, on the track `direct`; `edits` if not given.
    pub(crate) endpoint: Option<Endpoint>,
    /// Level of reasoning that is asked for, on the track `native`; none is if not given.
    pub(crate) reasoning: Option<String>,
    /// Most tokens of an answer, on the track `native`; as the server has it if not given.
    pub(crate) max_output_tokens: Option<Tokens>,
    /// More fields of the request, on the tracks without an agent.
    pub(crate) request: Option<Map<String, Value>>,
    /// At most so many tokens per trial.
    pub(crate) max_trial_tokens: Option<Tokens>,
    /// At most so many US dollars per trial.
    pub(crate) max_trial_cost: Option<Usd>,
    /// At most so many tokens in all its trials.
    pub(crate) max_tokens: Option<Tokens>,
    /// At most so many US dollars for all its trials.
    pub(crate) max_cost: Option<Usd>,
    /// What it takes from another method.
    pub(crate) needs: Option<Needs>,
}

/// `[schedule]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScheduleTable {
    /// Trials at a time that take a room; 1 if not given.
    pub(crate) jobs: Option<AtATime>,
    /// Trials at a time by provider.
    pub(crate) provider_jobs: Option<BTreeMap<String, AtATime>>,
    /// Time between the starts of two trials, at least; none if not given.
    pub(crate) launch_interval: Option<Span>,
    /// Renderings at a time; 2 if not given.
    pub(crate) render_jobs: Option<AtATime>,
    /// Whether more rooms may be open than fit into memory.
    pub(crate) overcommit: Option<bool>,
}

/// `[retry]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetryTable {
    /// Tries after the first; 3 if not given.
    pub(crate) retries: Option<Retries>,
    /// Pause before each; 5s if not given.
    pub(crate) backoff: Option<Span>,
}

/// `[limits]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsTable {
    /// Memory; 4g if not given.
    pub(crate) memory: Option<Size>,
    /// Processors; two, or as many as the machine has, if not given.
    pub(crate) cpus: Option<Cpus>,
    /// Processes and threads; 512 if not given.
    pub(crate) pids: Option<Pids>,
    /// Workspace and HOME together; 4g if not given.
    pub(crate) disk: Option<Size>,
    /// Files and folders in both; 200,000 if not given.
    pub(crate) inodes: Option<Inodes>,
}

/// `[prices."PROVIDER/NAME"]`: US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceTable {
    /// Prompt tokens that did not come from the provider's cache.
    pub(crate) input: Usd,
    /// Prompt tokens that did; as `input` if not given.
    #[serde(default)]
    pub(crate) cached_input: Option<Usd>,
    /// Generated tokens, reasoning included.
    pub(crate) output: Usd,
}

impl ExperimentFile {
    /// Reads `path`.
    pub fn load(path: &Path) -> Result<Self, ExperimentError> {
        let text = read_text(path)?;
        Self::parse(path, &text)
    }

    /// Reads `text`, which is the content of `file`. Paths in it are relative to the folder of `file`.
    pub fn parse(file: &Path, text: &str) -> Result<Self, ExperimentError> {
        let mut parsed: Self =
            toml::from_str(text).map_err(|error| ExperimentError::toml(file, text, &error))?;
        parsed.place = Place { file: file.to_owned(), text: text.to_owned() };
        Ok(parsed)
    }
}

/// The text of a file that a person wrote.
pub(crate) fn read_text(path: &Path) -> Result<String, ExperimentError> {
    let read = |error| ExperimentError::read(path, error);
    let about = fs::metadata(path).map_err(read)?;
    if about.is_dir() || about.len() > MAX_BYTES {
        let what = if about.is_dir() { "is a folder" } else { "is larger than 4 MiB" };
        return Err(ExperimentError::input(format!("{}: it {what}", path.display())));
    }
    fs::read_to_string(path).map_err(read)
}

impl Place {
    /// The line of the value at `path`, from 1, if it is there.
    pub(crate) fn line(&self, path: &[Step<'_>]) -> Option<usize> {
        let span = locate(&self.text, path)?;
        Some(1 + self.text.get(..span.start)?.bytes().filter(|byte| *byte == b'\n').count())
    }

    /// An error about the value at `path`.
    pub(crate) fn error(&self, path: &[Step<'_>], message: impl Into<String>) -> ExperimentError {
        ExperimentError::InFile {
            file: self.file.clone(),
            message: message.into(),
            hint: None,
            text: named(&self.file, &self.text),
            span: locate(&self.text, path).map(Into::into),
        }
    }
}
