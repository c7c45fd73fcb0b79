//! A method: who answers, with which model, under which settings. The rows of every table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proctor_gateway::client::{LimitField, PictureEndpoint};
use proctor_gateway::{Replay, Upstream, wire_name};
use proctor_harnesses::{Harness, Installed, LaunchSettings, harness_digest};
use proctor_store::{MethodId, MethodRecord, Price};
use proctor_tasks::{Ablation, ImageDelivery, questions_digest};
use proctor_traces::{Digest, WireFormat};
use serde_json::{Map, Value};

use crate::{Ceiling, EngineError, Need};

/// A method, resolved and ready to run.
pub struct Method {
    /// Its name.
    pub id: MethodId,
    /// Who answers.
    pub track: Track,
    /// The model, unless the harness needs none.
    pub model: Option<Model>,
    /// What the agent is shown and told.
    pub settings: MethodSettings,
    /// Time per trial.
    pub budget: Duration,
    /// What the model costs, if that is known.
    pub price: Option<Price>,
    /// What a trial may use at most: it is stopped when it has.
    pub ceiling: Ceiling,
    /// What all trials of the method may use at most: no more are started when they have.
    pub ceiling_total: Ceiling,
    /// How many of its trials run at a time, if that is bounded.
    pub jobs: Option<usize>,
    /// Least time between the starts of two of its trials.
    pub launch_interval: Duration,
    /// The artifact of another method's trial that its trials are given.
    pub needs: Option<Need>,
}

/// Who answers (DESIGN §4).
pub enum Track {
    /// An agent CLI in a room.
    Agent(Agent),
    /// A model that is asked once and returns a program.
    Native(Native),
    /// A model that is asked once and returns a picture.
    Direct(Direct),
}

/// An agent CLI.
pub struct Agent {
    /// Which.
    pub harness: Box<dyn Harness>,
    /// Where it is installed, if it needs that.
    pub installed: Option<Installed>,
    /// The command line of the `command` harness.
    pub command: Option<Vec<String>>,
}

/// How a model is asked for a program.
#[derive(Clone, Debug)]
pub struct Native {
    /// In which words.
    pub wire: WireFormat,
    /// Which field bounds the answer in chat completions.
    pub limit_field: LimitField,
    /// Most tokens of the answer, if that is bounded.
    pub max_output_tokens: Option<u32>,
    /// Level of reasoning; none sends nothing.
    pub reasoning: Option<String>,
    /// More fields of the request: only what somebody configured (DESIGN §3.10).
    pub request: Map<String, Value>,
    /// What it is given otherwise than in the main experiment.
    pub ablation: Option<Ablation>,
}

/// How a model is asked for a picture.
#[derive(Clone, Debug)]
pub struct Direct {
    /// By which route.
    pub endpoint: PictureEndpoint,
    /// More fields of the request: only what somebody configured (DESIGN §3.10).
    pub request: Map<String, Value>,
    /// What it is given otherwise than in the main experiment.
    pub ablation: Option<Ablation>,
}

impl Track {
    /// The word for it in files and tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Native(_) => "native",
            Self::Direct(_) => "direct",
        }
    }

    /// Whether its trials take a room.
    pub const fn has_room(&self) -> bool {
        matches!(self, Self::Agent(_))
    }
}

impl Agent {
    /// One that is nowhere installed.
    pub fn new(harness: Box<dyn Harness>) -> Self {
        Self { harness, installed: None, command: None }
    }
}

/// A model, as `PROVIDER/NAME`.
pub struct Model {
    /// The provider, `script` for the scripted model, `replay` for a recorded one.
    pub provider: String,
    /// The name that the CLI is told.
    pub name: String,
    /// Who answers.
    pub source: ModelSource,
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// Who answers model requests.
pub enum ModelSource {
    /// The task's own script.
    Script,
    /// The recording of an earlier trial.
    Replay(Replay),
    /// A provider.
    Live(Arc<Upstream>),
}

/// What the agent is shown and told.
#[derive(Clone, Debug, Default)]
pub struct MethodSettings {
    /// How the source picture reaches the agent.
    pub image_delivery: ImageDelivery,
    /// Whether `TASK.md` names the budget.
    pub tell_budget: bool,
    /// Settings of the CLI itself.
    pub launch: LaunchSettings,
}

impl Method {
    /// Digest of who answers and how: the installed harness and how it is started, or the wording of the question.
    pub fn harness_digest(&self) -> Result<Digest, EngineError> {
        match &self.track {
            Track::Agent(Agent { harness, installed, command }) => {
                let manifest = installed.as_ref().map(|it| &it.manifest);
                Ok(harness_digest(&**harness, manifest, command.as_deref(), &self.settings.launch)?)
            }
            Track::Native(_) | Track::Direct(_) => Ok(questions_digest()),
        }
    }

    /// The harness with its version, as in `codex@0.171.0`; where there is none, the track.
    pub fn harness_name(&self) -> String {
        match &self.track {
            Track::Agent(Agent { harness, .. }) => match harness.version() {
                Some(version) => format!("{}@{version}", harness.name()),
                None => harness.name().to_owned(),
            },
            track => track.name().to_owned(),
        }
    }

    /// What a run keeps of it.
    pub fn record(&self) -> Result<MethodRecord, EngineError> {
        let mut settings = self.track_settings();
        let mut put = |key: &str, value: Option<String>| {
            settings.extend(value.map(|value| (key.to_owned(), value)));
        };
        put("needs", self.needs.as_ref().map(ToString::to_string));
        put("max_tokens", self.ceiling.tokens.map(|it| it.to_string()));
        put("max_cost", self.ceiling.cost.map(|it| it.to_string()));
        if let Some(ModelSource::Replay(replay)) = self.model.as_ref().map(|model| &model.source) {
            put("recording", Some(replay.cassette.digest().to_string()));
            put("replay", Some(replay.mode.to_string()));
        }
        Ok(MethodRecord {
            id: self.id.clone(),
            track: self.track.name().to_owned(),
            harness: self.harness_name(),
            model: self.model.as_ref().map(ToString::to_string),
            budget_ms: self.budget.into(),
            settings,
            harness_digest: self.harness_digest()?,
        })
    }

    fn track_settings(&self) -> BTreeMap<String, String> {
        let (some, request) = match &self.track {
            Track::Agent(agent) => {
                let delivery = format!("{:?}", self.settings.image_delivery).to_lowercase();
                let some = vec![
                    ("image_delivery", Some(delivery)),
                    ("tell_budget", Some(self.settings.tell_budget.to_string())),
                    ("command", agent.command.as_ref().map(|it| it.join(" "))),
                ];
                (some, None)
            }
            Track::Native(native) => {
                let some = vec![
                    ("wire", Some(wire_name(native.wire).to_owned())),
                    ("max_output_tokens", native.max_output_tokens.map(|it| it.to_string())),
                    ("reasoning", native.reasoning.clone()),
                    ("ablation", native.ablation.map(|it| it.to_string())),
                ];
                (some, Some(&native.request))
            }
            Track::Direct(direct) => {
                let some = vec![
                    ("endpoint", Some(direct.endpoint.to_string())),
                    ("ablation", direct.ablation.map(|it| it.to_string())),
                ];
                (some, Some(&direct.request))
            }
        };
        let some = some.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let request = request.into_iter().flatten();
        some.chain(request.map(|(key, value)| (format!("request.{key}"), value.to_string()))).collect()
    }
}
