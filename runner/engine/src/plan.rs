//! What is to be done, and on what: every (task × method × attempt) is a trial.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proctor_sandbox::{Limits, Sandbox, User};
use proctor_store::{Attempt, Holder, RunDir, RunRecord, TaskFacts, TaskRecord, TrialId};
use proctor_tasks::{SOURCE_PICTURE, TASK_SHEET, Task};
use proctor_traces::{ImageIdentity, Timestamp};

use crate::{DiskLimits, EngineError, Method, Schedule};

/// The trials of a run, in the order in which they are started.
pub struct Plan {
    /// The trials.
    pub trials: Vec<TrialSpec>,
    /// What runs side by side.
    pub schedule: Schedule,
    /// What is done when our side fails.
    pub retry: RetryPolicy,
}

/// One trial.
#[derive(Clone)]
pub struct TrialSpec {
    /// Its name.
    pub id: TrialId,
    /// The task.
    pub task: Arc<Task>,
    /// The method.
    pub method: Arc<Method>,
}

/// What is done when a try fails on our side or the provider's (DESIGN §3.7).
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Tries after the first.
    pub retries: u32,
    /// Pause before each.
    pub backoff: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { retries: 3, backoff: Duration::from_secs(5) }
    }
}

/// Where trials run.
#[derive(Clone)]
pub struct Host {
    /// Opens rooms.
    pub sandbox: Arc<dyn Sandbox>,
    /// The toolchain image.
    pub image: ImageIdentity,
    /// The image's own environment.
    pub environment: Vec<(String, String)>,
    /// Who agents run as.
    pub user: User,
    /// Bounds of a room that the kernel enforces.
    pub limits: Limits,
    /// Bounds of what an agent leaves on this machine's disk, which are watched.
    pub disk: DiskLimits,
    /// Folder with a short path for sockets.
    pub runtime: PathBuf,
    /// This process.
    pub holder: Holder,
    /// The results directory.
    pub run: RunDir,
}

impl Plan {
    /// Every task by every method, `attempts` times; attempt by attempt, so that an early stop has seen all tasks.
    pub fn new(
        tasks: &[Arc<Task>],
        methods: &[Arc<Method>],
        attempts: u32,
        schedule: Schedule,
    ) -> Result<Self, EngineError> {
        for need in methods.iter().filter_map(|method| method.needs.as_ref()) {
            if methods.iter().all(|other| other.id != need.method) {
                return Err(EngineError::NoSuchMethod { method: need.method.clone() });
            }
            if let Some(name) =
                need.name.as_ref().filter(|name| [TASK_SHEET, SOURCE_PICTURE].contains(&name.as_str()))
            {
                return Err(EngineError::TakenName { name: name.clone() });
            }
        }
        let mut trials = Vec::new();
        for attempt in 1..=attempts {
            for task in tasks {
                for method in methods {
                    let suite = task.metadata.suite.to_string();
                    let id =
                        TrialId::new(&suite, task.id().as_str(), method.id.clone(), Attempt::nth(attempt))?;
                    trials.push(TrialSpec { id, task: Arc::clone(task), method: Arc::clone(method) });
                }
            }
        }
        Ok(Self { trials, schedule, retry: RetryPolicy::default() })
    }

    /// What a run with this plan keeps in `run.json`.
    pub fn record(
        name: &str,
        version: &str,
        image: &ImageIdentity,
        tasks: &[Arc<Task>],
        methods: &[Arc<Method>],
        attempts: u32,
        limits: BTreeMap<String, String>,
    ) -> Result<RunRecord, EngineError> {
        let prices = methods.iter().filter_map(|it| Some((it.model.as_ref()?.to_string(), it.price?)));
        Ok(RunRecord {
            schema: RunRecord::SCHEMA,
            name: name.to_owned(),
            created_at: Timestamp::now(),
            version: version.to_owned(),
            image: image.clone(),
            methods: methods.iter().map(|method| method.record()).collect::<Result<_, _>>()?,
            tasks: tasks.iter().map(|task| task_record(task)).collect(),
            attempts,
            limits,
            prices: prices.collect(),
            plan: None,
            extended: Vec::new(),
        })
    }
}

fn task_record(task: &Task) -> TaskRecord {
    TaskRecord {
        id: task.id().to_string(),
        suite: task.metadata.suite.to_string(),
        digest: task.digest(),
        facts: task_facts(task),
    }
}

/// What tables want to know of a task.
pub(crate) fn task_facts(task: &Task) -> TaskFacts {
    let about = &task.metadata;
    TaskFacts {
        category: about.category.to_string(),
        mode: task.mode().to_string(),
        difficulty: about.difficulty.to_string(),
        operation: about.operation.clone(),
        source: about.source_artifact_id.clone(),
        batch: about.source_batch.clone(),
    }
}
