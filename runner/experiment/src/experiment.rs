//! The resolved experiment: what `run.json` keeps as `plan`, and everything that a start of the run goes by.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proctor_harnesses::HarnessId;
use proctor_store::MethodId;
use proctor_tasks::{Ablation, Category, Difficulty, ImageDelivery, RenderMode, operations, toml_text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::value::{
    AtATime, Attempts, Cpus, Inodes, Pids, Retries, Size, Span, TaskCount, Tokens, Usd, ValueError,
};

/// An experiment in which nothing is left open. As JSON it is read back without loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Attempts per task and method.
    pub attempts: Attempts,
    /// Whether what the methods leave is rendered.
    pub render: bool,
    /// Which tasks.
    pub tasks: TaskSelection,
    /// Which methods, at least one.
    pub methods: Vec<Method>,
    /// How much at a time.
    pub schedule: Schedule,
    /// What is done when our side fails, or the provider's.
    pub retry: Retry,
    /// Bounds of each room.
    pub limits: Limits,
    /// Bounds of the whole run.
    pub ceilings: Ceilings,
    /// Who judges.
    pub judge: Option<Judge>,
    /// What models cost.
    pub prices: BTreeMap<ModelId, Price>,
}

/// Which of the task packages below some paths. Each filter that is not empty narrows; then comes the sample, then the
/// limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSelection {
    /// Packages or folders of them, absolute.
    pub paths: Vec<PathBuf>,
    /// Only these tasks; what `ids_file` named is among them.
    pub ids: Vec<String>,
    /// Only tasks whose name one of these patterns matches.
    pub globs: Vec<String>,
    /// None of these tasks: names or patterns.
    pub exclude: Vec<String>,
    /// Only these categories.
    pub category: Vec<Category>,
    /// Only these rendering modes.
    pub mode: Vec<RenderMode>,
    /// Only these difficulties.
    pub difficulty: Vec<Difficulty>,
    /// Only these operations.
    pub operation: Vec<OperationName>,
    /// So many of them, drawn by lot.
    pub sample: Option<Sample>,
    /// At most so many: the first by name.
    pub limit: Option<TaskCount>,
}

/// A sample that represents what it is drawn from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Tasks to draw.
    pub size: TaskCount,
    /// Another seed draws other tasks; the same seed always the same.
    #[serde(default)]
    pub seed: u64,
    /// What it represents in proportion. VAO-Bench (appendix C) stratifies by source batch, category and difficulty.
    #[serde(default = "Stratum::of_the_paper")]
    pub by: Vec<Stratum>,
}

/// A property of tasks that a sample represents in proportion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stratum {
    /// The batch of sources.
    Batch,
    /// The category.
    Category,
    /// The difficulty.
    Difficulty,
    /// The rendering mode.
    Mode,
    /// The operation.
    Operation,
}

impl Stratum {
    pub(crate) fn of_the_paper() -> Vec<Self> {
        vec![Self::Batch, Self::Category, Self::Difficulty]
    }
}

/// A method: a row of every table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// Its name, its own.
    pub id: MethodId,
    /// Who answers.
    pub track: Track,
    /// The agent CLI, on the agent track.
    pub harness: Option<HarnessId>,
    /// The model; none if the harness takes none.
    pub model: Option<ModelId>,
    /// Command line of the `command` harness.
    pub command: Option<String>,
    /// Time per trial.
    pub budget: Span,
    /// How the source picture reaches the solver.
    pub image_delivery: ImageDelivery,
    /// Whether `TASK.md` names the budget.
    pub tell_budget: bool,
    /// File with more providers, absolute.
    pub providers: Option<PathBuf>,
    /// At most so many trials of it at a time.
    pub jobs: Option<AtATime>,
    /// Time between the starts of two of its trials, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_interval: Option<Span>,
    /// What a model that answers alone is given otherwise than in the main experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
    /// The route by which a picture is asked for, on the track `direct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// Level of reasoning that is asked for, on the track `native`; none asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Most tokens of an answer, on the track `native`; none leaves it to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<Tokens>,
    /// More fields of the request, on the tracks without an agent.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub request: Map<String, Value>,
    /// At most so many tokens per trial.
    pub max_trial_tokens: Option<Tokens>,
    /// At most so much per trial.
    pub max_trial_cost: Option<Usd>,
    /// At most so many tokens in all its trials.
    pub max_tokens: Option<Tokens>,
    /// At most so much for all its trials.
    pub max_cost: Option<Usd>,
    /// What it takes from another method.
    pub needs: Option<Needs>,
}

/// Who answers (DESIGN §4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Track {
    /// An agent CLI in a room.
    #[default]
    Agent,
    /// A model that returns code.
    Native,
    /// A model that returns a picture.
    Direct,
}

impl Track {
    /// The word for it in files and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Native => "native",
            Self::Direct => "direct",
        }
    }
}

impl FromStr for Track {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        [Self::Agent, Self::Native, Self::Direct]
            .into_iter()
            .find(|track| track.as_str() == text)
            .ok_or_else(|| ValueError("a track is agent, native or direct".to_owned()))
    }
}

impl fmt::Display for Track {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The route by which a picture is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// `images/edits`: a form with the picture as a file.
    #[default]
    Edits,
    /// `images/generations`: an object with the picture in it.
    Generations,
}

/// An artifact of another method's trial that a trial starts from (VAO-Bench, appendix C.2: A2 edits what A1 made).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Name of the other method.
    pub method: MethodId,
    /// The file that it leaves; the task's own artifact if not given.
    #[serde(default)]
    pub artifact: Option<String>,
    /// Its name in this trial's workspace; the same if not given.
    #[serde(default, rename = "as")]
    pub rename: Option<String>,
    /// Of which of its trials.
    #[serde(default)]
    pub same: Same,
    /// What is done when it left none.
    #[serde(default)]
    pub on_missing: OnMissing,
}

/// Of which of the other method's trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Same {
    /// Of the same attempt at the same task.
    #[default]
    #[serde(rename = "task+attempt")]
    TaskAndAttempt,
}

/// What is done when the other method left nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnMissing {
    /// The trial starts from an empty file.
    Empty,
    /// The trial is not run.
    #[default]
    Skip,
    /// The trial fails.
    Fail,
}

/// How much at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Trials at a time that take a room.
    pub jobs: AtATime,
    /// Trials at a time by provider.
    pub provider_jobs: BTreeMap<String, AtATime>,
    /// Time between the starts of two trials, at least.
    pub launch_interval: Option<Span>,
    /// Renderings at a time.
    pub render_jobs: AtATime,
    /// Whether more rooms may be open than fit into memory.
    pub overcommit: bool,
}

/// What is done when a try fails on our side or the provider's (DESIGN §3.7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Tries after the first.
    pub retries: Retries,
    /// Pause before each.
    pub backoff: Span,
}

/// Bounds of each room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory.
    pub memory: Size,
    /// Processors; two, or as many as the machine has, if not given.
    pub cpus: Option<Cpus>,
    /// Processes and threads.
    pub pids: Pids,
    /// Workspace and HOME together.
    pub disk: Size,
    /// Files and folders in both.
    pub inodes: Inodes,
}

/// Bounds of the whole run: no trial is started once one is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ceilings {
    /// Tokens, of all trials.
    #[serde(default)]
    pub max_tokens: Option<Tokens>,
    /// US dollars, for all trials.
    #[serde(default)]
    pub max_cost: Option<Usd>,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Prompt tokens that did not come from the provider's cache.
    pub input: Usd,
    /// Prompt tokens that did.
    pub cached_input: Usd,
    /// Generated tokens, reasoning included.
    pub output: Usd,
}

/// A model: `PROVIDER/NAME`; `script` for the one that plays each task's own script; or `replay:TRIAL` for the one that
/// gives the recorded responses of an earlier trial again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ModelId {
    provider: String,
    name: String,
}

/// What follows the path of a recording that is played whatever is asked.
const LENIENT: &str = "?lenient";

/// The recording of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording<'a> {
    /// The trial's folder.
    pub trial: &'a Path,
    /// Whether requests may differ from the recorded ones.
    pub lenient: bool,
}

impl ModelId {
    /// The provider that plays each task's script.
    pub const SCRIPT: &'static str = "script";
    /// The provider that plays a recording.
    pub const REPLAY: &'static str = "replay";

    /// The provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The model of it, slashes and all; empty for a script that asks for none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the scripted model.
    pub fn is_script(&self) -> bool {
        self.provider == Self::SCRIPT
    }

    /// The recording that it plays, if it is that.
    pub fn recording(&self) -> Option<Recording<'_>> {
        let (path, lenient) = match self.name.strip_suffix(LENIENT) {
            Some(path) => (path, true),
            None => (self.name.as_str(), false),
        };
        (self.provider == Self::REPLAY).then(|| Recording { trial: Path::new(path), lenient })
    }

    /// The same recording, said to lie at `trial`.
    pub(crate) fn recorded_at(&self, trial: &str) -> Self {
        let lenient = self.recording().is_some_and(|it| it.lenient);
        Self {
            provider: self.provider.clone(),
            name: format!("{trial}{}", if lenient { LENIENT } else { "" }),
        }
    }
}

impl FromStr for ModelId {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if let Some(name) = text.strip_prefix("replay:") {
            let trial = name.strip_suffix(LENIENT).unwrap_or(name);
            if trial.is_empty() || name.len() > 4096 || name.contains(char::is_control) {
                return Err(ValueError("a recording is replay:TRIAL, the folder of a trial".to_owned()));
            }
            return Ok(Self { provider: Self::REPLAY.to_owned(), name: name.to_owned() });
        }
        let (provider, name) = text.split_once('/').unwrap_or((text, ""));
        if provider == Self::REPLAY {
            return Err(ValueError("a recording is named with a colon: replay:TRIAL".to_owned()));
        }
        let fits = text.len() <= 300 && !text.contains(char::is_control) && !provider.is_empty();
        if fits && (provider == Self::SCRIPT || !name.is_empty()) {
            Ok(Self { provider: provider.to_owned(), name: name.to_owned() })
        } else {
            Err(ValueError(
                "a model is PROVIDER/NAME, as in anthropic/claude-opus-5-5; or `script`; or replay:TRIAL"
                    .to_owned(),
            ))
        }
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.provider)?;
        if self.provider == Self::REPLAY {
            return write!(f, ":{}", self.name);
        }
        if self.name.is_empty() { Ok(()) } else { write!(f, "/{}", self.name) }
    }
}

/// Who judges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Judge {
    /// Nobody: pictures are compared.
    Pixel,
    /// A vision model.
    Model(ModelId),
}

impl FromStr for Judge {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "pixel" => Ok(Self::Pixel),
            _ => text
                .parse()
                .map(Self::Model)
                .map_err(|_| ValueError("a judge is `pixel`, or a vision model as PROVIDER/NAME".to_owned())),
        }
    }
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pixel => f.write_str("pixel"),
            Self::Model(model) => model.fmt(f),
        }
    }
}

/// One of the operations of `tasks/operations.toml`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OperationName(String);

impl OperationName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OperationName {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let known = operations();
        if known.iter().any(|operation| operation.name == text) {
            return Ok(Self(text.to_owned()));
        }
        let names: Vec<&str> = known.iter().map(|operation| operation.name.as_str()).collect();
        let meant = toml_text::nearest(text, names.iter().copied());
        let meant = meant.first().map_or(String::new(), |meant| format!("did you mean `{meant}`? "));
        Err(ValueError(format!("it is no operation. {meant}There is: {}", names.join(", "))))
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is written as a text: `TryFrom`, `Into` and the schema are all the same.
macro_rules! written_as_text {
    ($($type:ident: $schema:tt),* $(,)?) => {$(
        impl TryFrom<String> for $type {
            type Error = ValueError;

            fn try_from(text: String) -> Result<Self, ValueError> {
                text.parse().map_err(|error| {
                    let shown: String = text.chars().take(80).collect();
                    ValueError(format!("`{shown}`: {error}"))
                })
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

written_as_text! {
    ModelId: { "type": "string", "pattern": "^(script(/.*)?|replay:.+|[^/]+/.+)$", "description": "PROVIDER/NAME, or `script`, or replay:TRIAL." },
    Judge: { "type": "string", "pattern": "^(pixel|[^/]+/.+)$", "description": "`pixel`, or PROVIDER/NAME." },
    OperationName: { "type": "string", "description": "One of the operations of tasks/operations.toml." },
}
