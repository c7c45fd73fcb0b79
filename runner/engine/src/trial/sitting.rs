//! One try, from an empty room to a removed one: prepare → agent → freeze → collect → close (DESIGN §3.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proctor_gateway::{Gateway, GatewayConfig};
use proctor_sandbox::{Bridge, CONTROL_DIR, Endpoint, Freeze, OpenRoom, PostMortem, Room, Running};
use proctor_store::{ArtifactRecord, Outcome, Resources, StreamCounts, TryDir};
use proctor_traces::{ArtifactState, Clock, EventKind, FreezeKind, Limit, Source};
use tokio::sync::{oneshot, watch};

use super::carry::{During as _, Failure, Marks, backend};
use super::describe::{closed, freeze as describe_freeze, stop};
use super::ending::{self, Stopped};
use super::exchanges;
use super::exchanges::ExchangeLog;
use super::leavings::Leavings;
use super::prepare::{MODEL_PORT, MODEL_SOCKET, Prepared};
use super::streams::{Streams, StreamsEnd};
use super::tally;
use crate::dispatch::send;
use crate::executor::{Setting, Step};
use crate::method::Agent;
use crate::record::Recorder;
use crate::watch::{ArtifactWatch, watch_disk};
use crate::{EngineError, EngineEvent, Host, Phase, TrialSpec, disk};

/// How often progress is told.
const PROGRESS: Duration = Duration::from_millis(500);
/// How long the end of a room's output is waited for once the room is gone.
const DRAIN: Duration = Duration::from_secs(10);

/// A try in a room.
pub(super) struct Sitting<'a> {
    pub(super) spec: &'a TrialSpec,
    pub(super) agent: &'a Agent,
    pub(super) host: &'a Host,
    pub(super) evidence: &'a TryDir,
    pub(super) setting: &'a Setting<'a>,
}

/// What is listening while the agent works.
struct Witnesses {
    recorder: Recorder,
    clock: watch::Sender<Option<Clock>>,
    streams: Streams,
    stream_limit: oneshot::Receiver<Limit>,
    tool_calls: Arc<AtomicU64>,
    tokens: Arc<AtomicU64>,
    exceeded: watch::Receiver<Option<Limit>>,
    diverged: watch::Receiver<Option<String>>,
}

/// The model, as far as it is asked, and what is counted of that.
struct Asking {
    gateway: Option<Gateway>,
    tokens: Arc<AtomicU64>,
    exceeded: watch::Receiver<Option<Limit>>,
    diverged: watch::Receiver<Option<String>>,
}

impl Sitting<'_> {
    pub(super) async fn run(&self, outcome: &mut Outcome, marks: &mut Marks) -> Result<(), Failure> {
        self.enter(Phase::Prepare);
        let (recorder, writing) = Recorder::start(&self.evidence.trace()).during("starting the trace")?;
        let prepared =
            Prepared::new(self.spec, self.agent, self.host, self.evidence, self.setting.input.as_ref())
                .during("preparing the workspace")?;
        self.setting.steps.reached(Step::Prepared);
        outcome.digests.prompt = prepared.prompt;
        outcome.budget_ms = prepared.budget.into();
        let result = self.with_model(&prepared, outcome, marks, recorder).await;
        // Done whatever came before; the first error is the one to tell.
        let written = writing.finish().await.during("writing the trace");
        let evidence = self.evidence.path().to_owned();
        if let Ok(Some(calls)) = tokio::task::spawn_blocking(move || tally::outer_calls(&evidence)).await {
            outcome.tool_calls = calls;
        }
        // Asked before the room's files are cleared away, which may be what there was no room beside.
        let room = disk::enough(self.evidence.path()).during("keeping the evidence");
        // On a thread of its own: an agent may have left so much that it takes minutes, and other trials have deadlines.
        let cleared = tokio::task::spawn_blocking(move || prepared.clear()).await;
        let cleared = cleared.unwrap_or(Err(EngineError::Broken { part: "the clearing up" }));
        if let Err(error) = cleared {
            // The evidence is complete: what stays in `rooms/` costs space, and no trial.
            tracing::warn!(trial = %self.spec.id, error = error.chain(), "the room's files were not all removed");
        }
        result.and(written).and(room)
    }

    /// Opens the gateway around the rest, if the agent asks a model.
    async fn with_model(
        &self,
        prepared: &Prepared,
        outcome: &mut Outcome,
        marks: &mut Marks,
        recorder: Recorder,
    ) -> Result<(), Failure> {
        let tokens = Arc::new(AtomicU64::new(0));
        let (clock, known) = watch::channel(None);
        let folder = self.evidence.path().join("model");
        let (log, writing) = ExchangeLog::start(
            folder,
            recorder.clone(),
            known.clone(),
            Arc::clone(&tokens),
            &self.spec.method,
        );
        let (exceeded, diverged) = (log.exceeded(), log.diverged());
        let backend = if prepared.needs_model { backend(self.spec) } else { Ok(None) };
        let gateway = match backend.during("reading the script")? {
            Some(backend) => {
                let config = GatewayConfig::new(prepared.control.join(MODEL_SOCKET), backend);
                let gateway =
                    Gateway::open(config, Arc::clone(&log) as _).await.during("opening the gateway")?;
                Some(gateway)
            }
            None => None,
        };
        let asking = Asking { gateway, tokens, exceeded, diverged };
        let result = self.with_room(prepared, outcome, marks, recorder, clock, known, asking).await;
        let totals = log.totals();
        drop(log);
        outcome.exchanges = totals.exchanges;
        outcome.tokens = totals.tokens;
        outcome.model_wait_ms = totals.wait.into();
        outcome.provider_wait_ms = totals.provider_wait.into();
        result.and(writing.finish().await.during("writing the model exchanges"))
    }

    /// Opens the room, lets the agent work, and closes the room whatever happened in it.
    async fn with_room(
        &self,
        prepared: &Prepared,
        outcome: &mut Outcome,
        marks: &mut Marks,
        recorder: Recorder,
        clock: watch::Sender<Option<Clock>>,
        known: exchanges::ClockSignal,
        asking: Asking,
    ) -> Result<(), Failure> {
        let Asking { gateway, tokens, exceeded, diverged } = asking;
        let raw = self.evidence.folder("raw").during("preparing the evidence")?;
        let number = self.evidence.number();
        let spec = prepared.room(self.spec, self.agent, self.host, number);
        let OpenRoom { room, output } = self.host.sandbox.open(spec).await.during("opening the room")?;
        let tool_calls = Arc::new(AtomicU64::new(0));
        let reader = self.agent.harness.stream();
        let (streams, stream_limit) =
            Streams::start(output, reader, raw, recorder.clone(), known, Arc::clone(&tool_calls));
        self.setting.steps.reached(Step::RoomOpened);
        let mut witnesses =
            Witnesses { recorder, clock, streams, stream_limit, tool_calls, tokens, exceeded, diverged };

        let worked = self.work(&*room, prepared, outcome, marks, &mut witnesses, gateway).await;
        self.enter(Phase::Teardown);
        let closed = room.close().await.during("removing the container");
        self.setting.steps.reached(Step::RoomClosed);
        let Witnesses { recorder, clock, streams, tool_calls, diverged, .. } = witnesses;
        // Without a clock the writers would wait for a start that never came.
        drop(clock);
        let ended = tokio::time::timeout(DRAIN, streams.finish()).await;
        outcome.tool_calls = tool_calls.load(Ordering::Relaxed);
        let (stopped, deadline, post_mortem) = worked?;
        closed?;
        let StreamsEnd { mut reader, bytes } = ended
            .map_err(|_| EngineError::Broken { part: "the agent's output" })
            .and_then(|it| it)
            .during("reading the agent's output")?;
        outcome.stream = StreamCounts {
            bytes,
            recognised: reader.recognised,
            unknown: reader.unknown,
            malformed: reader.malformed,
        };
        let artifact = outcome.artifacts.first().map_or(&ArtifactState::Missing, |it| &it.state);
        outcome.ending = ending::decide(
            stopped,
            deadline,
            post_mortem,
            &reader.verdict,
            diverged.borrow().as_deref(),
            artifact,
        );
        outcome.exit = stopped.exit();
        // The turn ends with the agent's last moment, and so does what was cut off by that.
        let frozen = marks.frozen.unwrap_or_else(Instant::now);
        for kind in reader.events.drain(..) {
            recorder.event(frozen, Source::AgentStream, kind);
        }
        recorder.event(frozen, Source::Runner, EventKind::TurnFinished { usage: reader.usage });
        Ok(())
    }

    /// From the exec of the agent to collected evidence.
    async fn work(
        &self,
        room: &dyn Room,
        prepared: &Prepared,
        outcome: &mut Outcome,
        marks: &mut Marks,
        witnesses: &mut Witnesses,
        gateway: Option<Gateway>,
    ) -> Result<(Stopped, Instant, Option<PostMortem>), Failure> {
        if gateway.is_some() {
            let listen = Endpoint::Loopback(MODEL_PORT);
            let connect = Endpoint::Unix(format!("{CONTROL_DIR}/{MODEL_SOCKET}"));
            room.bridge(Bridge { listen, connect }).await.during("bridging the model port")?;
        }
        let history = self.evidence.folder("history").during("preparing the evidence")?;
        let artifact = &prepared.artifact;
        let recorder = witnesses.recorder.clone();
        let watch =
            ArtifactWatch::start(&prepared.workspace, &artifact.name, artifact.size_cap, history, recorder)
                .during("watching the artifact")?;

        let running = room.run(prepared.command(self.host)).await.during("starting the agent")?;
        prepared.started();
        self.setting.steps.reached(Step::AgentStarted);
        let clock = Clock::starting_at(running.at);
        let deadline = running.at + prepared.budget;
        marks.started = Some(running.at);
        outcome.started_at = Some(Clock::wall_of(running.at));
        witnesses.recorder.clock(clock);
        witnesses.recorder.event(running.at, Source::Guest, EventKind::TurnStarted);
        // The receivers may all be gone only if the try is ending anyway.
        let _ = witnesses.clock.send(Some(clock));

        self.enter(Phase::Agent { budget: prepared.budget });
        let stopped = self.wait(running, deadline, prepared, witnesses).await;
        let freeze = room.freeze().await;
        marks.frozen = Some(freeze.at);
        self.setting.steps.reached(Step::Frozen);
        if freeze.kind == FreezeKind::Empty {
            // Nothing runs that its end could set free: it may end while its files are collected.
            room.dismiss().await;
        }
        self.enter(Phase::Collect);
        let late = match gateway {
            Some(gateway) => Some(gateway.close().await),
            None => None,
        };
        note_freeze(outcome, freeze, deadline);
        if let Stopped::Exited(end) = stopped {
            // The guest may have been too busy to tell the rest.
            outcome.resources.oom_kills = outcome.resources.oom_kills.or(end.oom_kills);
        }
        let text = format!("{}; {}", stop(stopped), describe_freeze(freeze, deadline));
        witnesses.recorder.event(freeze.at, Source::Runner, EventKind::Notice { text });
        for text in late.iter().flat_map(closed) {
            witnesses.recorder.notice(text);
        }

        let post_mortem = match stopped {
            Stopped::RoomGone => Some(room.post_mortem().await.during("asking what ended the container")?),
            _ => None,
        };
        if freeze.kind == FreezeKind::None {
            // It could not be stopped, so it is killed before anything is read.
            room.close().await.during("removing the container")?;
        }
        let versions = watch.finish().await.during("taking the last version of the artifact")?;
        let leavings = self.leavings(prepared, witnesses.recorder.clone());
        let state = leavings.take().await.during("collecting what the agent left")?;
        outcome.artifacts = vec![ArtifactRecord {
            name: artifact.name.clone(),
            state,
            versions: versions.kept,
            versions_skipped: versions.skipped,
        }];
        marks.collected = Some(Instant::now());
        self.setting.steps.reached(Step::Collected);
        Ok((stopped, deadline, post_mortem))
    }

    /// Waits for the first thing that ends the agent's work.
    async fn wait(
        &self,
        running: Running,
        deadline: Instant,
        prepared: &Prepared,
        witnesses: &mut Witnesses,
    ) -> Stopped {
        let mut end = running.end;
        let disk = watch_disk(vec![prepared.workspace.clone(), prepared.home.clone()], self.host.disk);
        let deadline = tokio::time::sleep_until(deadline.into());
        let mut progress = tokio::time::interval(PROGRESS);
        let mut told = (0, 0);
        tokio::pin!(disk, deadline);
        loop {
            tokio::select! {
                biased;
                end = &mut end => return end.map_or(Stopped::RoomGone, Stopped::Exited),
                () = &mut deadline => return Stopped::Deadline,
                () = self.setting.cancel.cancelled() => return Stopped::Cancelled,
                limit = &mut disk => return Stopped::Limit(limit),
                Ok(limit) = &mut witnesses.stream_limit, if !witnesses.stream_limit.is_terminated() => {
                    return Stopped::Limit(limit);
                }
                Ok(()) = witnesses.exceeded.changed() => {
                    if let Some(limit) = *witnesses.exceeded.borrow() {
                        return Stopped::Limit(limit);
                    }
                }
                Ok(()) = witnesses.diverged.changed() => return Stopped::Diverged,
                _ = progress.tick() => self.tell_progress(witnesses, &mut told),
            }
        }
    }

    fn tell_progress(&self, witnesses: &Witnesses, told: &mut (u64, u64)) {
        let now = (witnesses.tool_calls.load(Ordering::Relaxed), witnesses.tokens.load(Ordering::Relaxed));
        if *told != now {
            *told = now;
            let (tool_calls, tokens) = now;
            send(
                self.setting.events,
                EngineEvent::Progress { trial: self.spec.id.clone(), tool_calls, tokens },
            );
        }
    }

    fn leavings(&self, prepared: &Prepared, recorder: Recorder) -> Leavings {
        Leavings {
            workspace: prepared.workspace.clone(),
            home: prepared.home.clone(),
            artifact: prepared.artifact.clone(),
            sessions: self.agent.harness.session_paths(),
            evidence: self.evidence.clone(),
            recorder,
        }
    }

    fn enter(&self, phase: Phase) {
        send(self.setting.events, EngineEvent::Entered { trial: self.spec.id.clone(), phase });
    }
}

fn note_freeze(outcome: &mut Outcome, freeze: Freeze, deadline: Instant) {
    let signed = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
    outcome.freeze = Some(freeze.kind);
    outcome.frozen_at = Some(Clock::wall_of(freeze.at));
    outcome.overrun_ms = Some(match freeze.at.checked_duration_since(deadline) {
        Some(after) => signed(after),
        None => -signed(deadline.duration_since(freeze.at)),
    });
    if let Some(usage) = freeze.usage {
        outcome.resources = Resources {
            memory_peak_bytes: usage.memory_peak_bytes,
            oom_kills: usage.oom_kills,
            cpu_throttled_ms: usage.throttled_ms,
            forks_refused: usage.forks_refused,
        };
    }
}
