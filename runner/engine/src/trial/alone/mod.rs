//! One try without a room: a model is asked once, and its answer is the artifact (tracks `native` and `direct`).
//!
//! All else is as with an agent: the clock runs from the moment of asking, the deadline holds to the moment, and the same
//! evidence is left in the same places.

mod answer;
mod blocks;
mod told;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use proctor_gateway::client::{AskError, ModelClient, Patience};
use proctor_gateway::{Gateway, GatewayConfig};
use proctor_store::{Outcome, TryDir, owned_folder};
use proctor_traces::{Clock, Ending, EventKind, Limit, ModelCause, Source};
use tokio::sync::watch;

use self::answer::Answer;
use self::told::Told;
use super::carry::{During as _, Failure, Marks, backend};
use super::describe::closed;
use super::exchanges::ExchangeLog;
use super::prepare::MODEL_SOCKET;
use crate::dispatch::send;
use crate::executor::{Setting, Step};
use crate::method::Track;
use crate::record::Recorder;
use crate::{EngineError, EngineEvent, Host, Phase, TrialSpec, disk};

/// How long the record of an exchange is waited for whose answer is there.
const SETTLING: Duration = Duration::from_secs(2);

/// A try of a model that answers alone.
pub(super) struct Alone<'a> {
    pub(super) spec: &'a TrialSpec,
    pub(super) host: &'a Host,
    pub(super) evidence: &'a TryDir,
    pub(super) setting: &'a Setting<'a>,
}

/// What ended the wait.
enum Stopped {
    Answered(Box<Answer>),
    Failed(AskError),
    Deadline,
    Cancelled,
}

/// Whom the try tells what happens, and what is told by them.
struct Witnesses {
    recorder: Recorder,
    clock: watch::Sender<Option<Clock>>,
    log: Arc<ExchangeLog>,
}

impl Alone<'_> {
    pub(super) async fn run(&self, outcome: &mut Outcome, marks: &mut Marks) -> Result<(), Failure> {
        self.enter(Phase::Prepare);
        let (recorder, writing) = Recorder::start(&self.evidence.trace()).during("starting the trace")?;
        let told = Told::new(self.spec, self.setting.input.as_ref()).during("preparing the question")?;
        told.keep(self.evidence).during("preparing the evidence")?;
        self.setting.steps.reached(Step::Prepared);
        outcome.digests.prompt = told.digest();
        let result = self.with_model(&told, outcome, marks, recorder).await;
        // Done whatever came before; the first error is the one to tell.
        let written = writing.finish().await.during("writing the trace");
        let room = disk::enough(self.evidence.path()).during("keeping the evidence");
        result.and(written).and(room)
    }

    /// Opens the gateway around the rest.
    async fn with_model(
        &self,
        told: &Told,
        outcome: &mut Outcome,
        marks: &mut Marks,
        recorder: Recorder,
    ) -> Result<(), Failure> {
        let (clock, known) = watch::channel(None);
        let folder = self.evidence.path().join("model");
        let tokens = Arc::new(AtomicU64::new(0));
        let (log, writing) = ExchangeLog::start(folder, recorder.clone(), known, tokens, &self.spec.method);
        let socket =
            owned_folder(&self.host.runtime, &self.host.holder).during("making a folder for a socket")?;
        let backend = backend(self.spec).and_then(|it| it.ok_or(EngineError::Broken { part: "a model" }));
        let backend = backend.during("reading the script")?;
        let mut config = GatewayConfig::new(socket.path().join(MODEL_SOCKET), backend);
        config.pictures = matches!(self.spec.method.track, Track::Direct(_));
        let gateway = Gateway::open(config, Arc::clone(&log) as _).await.during("opening the gateway")?;
        let witnesses = Witnesses { recorder, clock, log };
        let result = self.ask(told, outcome, marks, &witnesses, gateway).await;
        let totals = witnesses.log.totals();
        drop(witnesses);
        outcome.exchanges = totals.exchanges;
        outcome.tokens = totals.tokens;
        outcome.model_wait_ms = totals.wait.into();
        outcome.provider_wait_ms = totals.provider_wait.into();
        result.and(writing.finish().await.during("writing the model exchanges"))
    }

    /// From the question to collected evidence.
    async fn ask(
        &self,
        told: &Told,
        outcome: &mut Outcome,
        marks: &mut Marks,
        witnesses: &Witnesses,
        gateway: Gateway,
    ) -> Result<(), Failure> {
        let Witnesses { recorder, clock, log } = witnesses;
        let budget = self.spec.method.budget;
        // The deadline is ours, and so are the tries (DESIGN §3.7): the client asks once and waits longer than we do.
        let patience =
            Patience { timeout: budget + Duration::from_secs(60), retries: 0, backoff: Duration::ZERO };
        let ask = answer::Ask::new(self.spec, told).during("preparing the question")?;
        let client = ModelClient::new(gateway.socket(), ask.wire(), patience);
        let client =
            client.map_err(|error| EngineError::Client { source: error }).during("preparing to ask")?;

        let start = Instant::now();
        let deadline = start + budget;
        let known = Clock::starting_at(start);
        marks.started = Some(start);
        outcome.started_at = Some(Clock::wall_of(start));
        recorder.clock(known);
        recorder.event(start, Source::Runner, EventKind::TurnStarted);
        recorder.event(start, Source::Runner, EventKind::Prompt { text: told.text.clone() });
        // The receiver is gone only if the try is ending anyway.
        let _ = clock.send(Some(known));
        self.setting.steps.reached(Step::AgentStarted);
        self.enter(Phase::Agent { budget });
        let stopped = tokio::select! {
            biased;
            answer = ask.put(&client) => match answer {
                // One that was only noticed in time, but came after the deadline, is a timeout like any other.
                _ if Instant::now() > deadline => Stopped::Deadline,
                Ok(answer) => Stopped::Answered(Box::new(answer)),
                Err(error) => Stopped::Failed(error),
            },
            () = tokio::time::sleep_until(deadline.into()) => Stopped::Deadline,
            () = self.setting.cancel.cancelled() => Stopped::Cancelled,
        };
        if matches!(stopped, Stopped::Answered(_) | Stopped::Failed(_)) {
            log.settled(SETTLING).await;
        }
        let late = gateway.close().await;
        let end = Instant::now();
        marks.frozen = Some(end);
        note_end(outcome, end, deadline);
        self.setting.steps.reached(Step::Frozen);
        self.enter(Phase::Collect);
        for text in closed(&late) {
            recorder.notice(text);
        }
        let limit = *log.exceeded().borrow();
        let diverged = log.diverged().borrow().clone();
        self.take(stopped, limit, diverged, outcome, recorder, end).during("keeping the answer")?;
        recorder.event(Instant::now(), Source::Runner, EventKind::TurnFinished { usage: None });
        marks.collected = Some(Instant::now());
        self.setting.steps.reached(Step::Collected);
        self.enter(Phase::Teardown);
        Ok(())
    }

    /// Decides how it ended, in the order of DESIGN §4, and keeps what was answered.
    fn take(
        &self,
        stopped: Stopped,
        limit: Option<Limit>,
        diverged: Option<String>,
        outcome: &mut Outcome,
        recorder: &Recorder,
        end: Instant,
    ) -> Result<(), EngineError> {
        let place = answer::Place { spec: self.spec, evidence: self.evidence, recorder, end };
        let (kept, ending) = match stopped {
            Stopped::Answered(answer) => answer.keep(&place)?,
            Stopped::Failed(error) => (place.nothing(), failed(&error)),
            Stopped::Deadline => {
                recorder.notice("the budget ran out before the answer was there");
                (place.nothing(), Ending::TimedOut)
            }
            Stopped::Cancelled => (place.nothing(), Ending::Cancelled),
        };
        outcome.artifacts = vec![kept];
        outcome.ending = match (ending, limit, diverged) {
            (ending @ (Ending::Cancelled | Ending::InfraError { .. } | Ending::TimedOut), _, _) => ending,
            (_, Some(limit), _) => Ending::LimitExceeded { limit },
            (_, None, Some(message)) => Ending::ModelError { cause: ModelCause::Replay, message },
            (ending, None, None) => ending,
        };
        Ok(())
    }

    fn enter(&self, phase: Phase) {
        send(self.setting.events, EngineEvent::Entered { trial: self.spec.id.clone(), phase });
    }
}

/// The ending of a try whose question was not answered.
fn failed(error: &AskError) -> Ending {
    let message = error.to_string();
    match error {
        AskError::Client(_) | AskError::Tls(_) => {
            Ending::InfraError { stage: "asking the model".to_owned(), message }
        }
        AskError::Moderated { .. } => Ending::AgentError { message },
        AskError::Refused { .. } => Ending::ModelError { cause: ModelCause::Request, message },
        // What is no answer in its own wire format comes from something between us and the model.
        AskError::Exhausted { .. } | AskError::Unreadable(_) => {
            Ending::ModelError { cause: ModelCause::Provider, message }
        }
    }
}

fn note_end(outcome: &mut Outcome, end: Instant, deadline: Instant) {
    let signed = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    outcome.frozen_at = Some(Clock::wall_of(end));
    outcome.overrun_ms = Some(match end.checked_duration_since(deadline) {
        Some(after) => signed(after),
        None => -signed(deadline.duration_since(end)),
    });
}
