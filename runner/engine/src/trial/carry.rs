//! One try, whoever answers: the outcome that is known beforehand, whose failure it was, and where the time went.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use proctor_gateway::{Backend, Script};
use proctor_sandbox::SandboxError;
use proctor_store::{Digests, Outcome, Resources, Runner, StreamCounts, Timing, TryDir};
use proctor_traces::{Digest, Ending, Millis, Usage};

use super::alone::Alone;
use super::sitting::Sitting;
use crate::executor::{Executor, Input, Setting};
use crate::method::{ModelSource, Track};
use crate::plan::task_facts;
use crate::{EngineError, Host, TrialSpec};

/// Opens a room for each try of an agent, and asks a model that answers alone.
#[async_trait]
impl Executor for Host {
    async fn execute(&self, spec: &TrialSpec, evidence: &TryDir, setting: &Setting<'_>) -> Outcome {
        carry_out(spec, self, evidence, setting).await
    }
}

/// Runs one try. Whatever happens is in the outcome, a failure of ours included.
async fn carry_out(spec: &TrialSpec, host: &Host, evidence: &TryDir, setting: &Setting<'_>) -> Outcome {
    let began = Instant::now();
    let mut outcome = blank(spec, host, evidence, setting, began);
    let mut marks = Marks::default();
    let result = match (&setting.input, &spec.method.track) {
        (Some(Input::Missing(source)), _) => {
            let message = format!("not started: {source} left nothing to start from");
            outcome.ending = Ending::AgentError { message };
            Ok(())
        }
        (_, Track::Agent(agent)) => {
            Sitting { spec, agent, host, evidence, setting }.run(&mut outcome, &mut marks).await
        }
        (_, Track::Native(_) | Track::Direct(_)) => {
            Alone { spec, host, evidence, setting }.run(&mut outcome, &mut marks).await
        }
    };
    if let Err(Failure { stage, error }) = result {
        let message = error.chain();
        tracing::warn!(trial = %spec.id, stage, message, "a try failed");
        outcome.ending = match *error {
            // The room was fine; the program that was to be the agent is not there, and will not be the next time.
            EngineError::Sandbox(SandboxError::NotStarted { .. }) => Ending::AgentError { message },
            _ => Ending::InfraError { stage: stage.to_owned(), message },
        };
    }
    account(&mut outcome.timing, setting, began, &marks);
    outcome
}

/// Who answers model requests of a trial; nobody if its method has no model.
pub(super) fn backend(spec: &TrialSpec) -> Result<Option<Backend>, EngineError> {
    let Some(model) = &spec.method.model else { return Ok(None) };
    Ok(Some(match &model.source {
        ModelSource::Replay(replay) => Backend::Replay(replay.clone()),
        ModelSource::Live(upstream) => Backend::Live(Arc::clone(upstream)),
        ModelSource::Script => {
            let no_script = || EngineError::NoScript { task: spec.task.id().to_string() };
            let path = spec.task.script().ok_or_else(no_script)?;
            Backend::Script(Arc::new(Script::load(&path)?))
        }
    }))
}

/// A failure of ours, and what was being done.
pub(super) struct Failure {
    pub(super) stage: &'static str,
    pub(super) error: Box<EngineError>,
}

/// Names what was being done.
pub(super) trait During<T> {
    fn during(self, stage: &'static str) -> Result<T, Failure>;
}

impl<T, E: Into<EngineError>> During<T> for Result<T, E> {
    fn during(self, stage: &'static str) -> Result<T, Failure> {
        self.map_err(|error| Failure { stage, error: Box::new(error.into()) })
    }
}

/// The moments between which time is accounted; one that was not reached is absent.
#[derive(Default)]
pub(super) struct Marks {
    pub(super) started: Option<Instant>,
    pub(super) frozen: Option<Instant>,
    pub(super) collected: Option<Instant>,
}

/// An outcome with nothing in it yet but what is known beforehand.
fn blank(spec: &TrialSpec, host: &Host, evidence: &TryDir, setting: &Setting<'_>, began: Instant) -> Outcome {
    let task = &spec.task;
    let nothing = Digest::of(b"");
    Outcome {
        schema: Outcome::SCHEMA,
        trial: spec.id.clone(),
        r#try: evidence.number(),
        task: task_facts(task),
        ending: Ending::InfraError {
            stage: "running".into(),
            message: "the try did not come to an end".into(),
        },
        exit: None,
        started_at: None,
        budget_ms: spec.method.budget.into(),
        timing: Timing { queue_ms: setting.clock.at(began).into(), ..Timing::default() },
        freeze: None,
        frozen_at: None,
        overrun_ms: None,
        artifacts: Vec::new(),
        consumed: match &setting.input {
            Some(Input::Given(given)) => Some(given.consumed.clone()),
            _ => None,
        },
        digests: Digests {
            image: host.image.clone(),
            task: task.digest(),
            harness: spec.method.harness_digest().unwrap_or(nothing),
            prompt: nothing,
        },
        resources: Resources::default(),
        model_wait_ms: Millis(0),
        provider_wait_ms: Millis(0),
        runner: Some(Runner {
            host: host.holder.host.clone(),
            pid: host.holder.pid,
            job: host.holder.job.clone(),
        }),
        exchanges: 0,
        tokens: Usage::default(),
        tool_calls: 0,
        stream: StreamCounts::default(),
    }
}

/// Fills in where the time went. All parts are differences of the same monotonic marks, so they add up; a phase that
/// was not reached took no time, and what came instead belongs to the one before.
fn account(timing: &mut Timing, setting: &Setting<'_>, began: Instant, marks: &Marks) {
    let end = Instant::now();
    let at = |instant: Instant| Millis::from(setting.clock.at(instant)).0;
    let started = marks.started.map_or(at(end), at);
    let frozen = marks.frozen.map_or(if marks.started.is_some() { at(end) } else { started }, at);
    let collected = marks.collected.map_or(frozen, at);
    timing.queue_ms = Millis(at(began));
    timing.prepare_ms = Millis(started.saturating_sub(at(began)));
    timing.agent_ms = Millis(frozen.saturating_sub(started));
    timing.collect_ms = Millis(collected.saturating_sub(frozen));
    timing.teardown_ms = Millis(at(end).saturating_sub(collected));
    timing.wall_ms = Millis(at(end));
    timing.suspended_ms = setting.clock.suspended();
    timing.clock_step_ms = setting.clock.step_ms();
}
