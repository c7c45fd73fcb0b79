//! A method: who answers, with which model, under which settings. The rows of every table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use proctor_gateway::{Replay, Upstream};
use proctor_harnesses::{Harness, Installed, LaunchSettings, harness_digest};
use proctor_store::{MethodId, MethodRecord, Price};
use proctor_tasks::ImageDelivery;
use proctor_traces::Digest;

use crate::{Ceiling, EngineError, Need};

/// A method, resolved and ready to run.
pub struct Method {
    /// Its name.
    pub id: MethodId,
    /// The agent CLI.
    pub harness: Box<dyn Harness>,
    /// Where it is installed, if it needs that.
    pub installed: Option<Installed>,
    /// The command line of the `command` harness.
    pub command: Option<Vec<String>>,
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
    /// How many of its trials run at a time, if fewer than of all.
    pub jobs: Option<usize>,
    /// The artifact of another method's trial that its trials are given.
    pub needs: Option<Need>,
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
    /// Digest of the installed harness and how it is started.
    pub fn harness_digest(&self) -> Result<Digest, EngineError> {
        let manifest = self.installed.as_ref().map(|it| &it.manifest);
        Ok(harness_digest(&*self.harness, manifest, self.command.as_deref(), &self.settings.launch)?)
    }

    /// The harness with its version, as in `codex@0.171.0`.
    pub fn harness_name(&self) -> String {
        match self.harness.version() {
            Some(version) => format!("{}@{version}", self.harness.name()),
            None => self.harness.name().to_owned(),
        }
    }

    /// What a run keeps of it.
    pub fn record(&self) -> Result<MethodRecord, EngineError> {
        let delivery = format!("{:?}", self.settings.image_delivery).to_lowercase();
        let mut settings = BTreeMap::from([
            ("image_delivery".to_owned(), delivery),
            ("tell_budget".to_owned(), self.settings.tell_budget.to_string()),
        ]);
        if let Some(need) = &self.needs {
            settings.insert("needs".to_owned(), need.to_string());
        }
        let ceilings = [
            ("max_tokens", self.ceiling.tokens.map(|it| it.to_string())),
            ("max_cost", self.ceiling.cost.map(|it| it.to_string())),
        ];
        settings.extend(ceilings.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        if let Some(ModelSource::Replay(replay)) = self.model.as_ref().map(|model| &model.source) {
            settings.insert("recording".to_owned(), replay.cassette.digest().to_string());
            settings.insert("replay".to_owned(), replay.mode.to_string());
        }
        if let Some(command) = &self.command {
            settings.insert("command".to_owned(), command.join(" "));
        }
        Ok(MethodRecord {
            id: self.id.clone(),
            track: "agent".to_owned(),
            harness: self.harness_name(),
            model: self.model.as_ref().map(ToString::to_string),
            budget_ms: self.budget.into(),
            settings,
            harness_digest: self.harness_digest()?,
        })
    }
}
