//! One container: freezing it in two stages, and making sure that it is gone.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{
    InspectContainerOptions, RemoveContainerOptionsBuilder, WaitContainerOptions,
};
use futures_util::StreamExt as _;
use proctor_guest::{Bridge, Command, Reply, Request, Usage};
use proctor_traces::FreezeKind;

use crate::control::Control;
use crate::monotonic::instant_at;
use crate::{Closed, Freeze, PostMortem, Room, Running, SandboxError};

/// How long the guest's acknowledgement of SIGSTOP is waited for (DESIGN §3.1).
const STOP_ACK: Duration = Duration::from_millis(100);
/// How long the engine may take to pause a container, however often it is asked.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a request to the guest may take otherwise.
const GUEST: Duration = Duration::from_secs(5);
/// How long a container whose guest was told to leave may take to end by itself; it is killed afterwards.
const LEAVE: Duration = Duration::from_secs(2);
/// How long one attempt to remove a container may take, and how many are made.
const REMOVE: Duration = Duration::from_secs(15);
const REMOVE_ATTEMPTS: u32 = 3;

/// What the guest says of a room that was sent SIGSTOP.
#[derive(Clone, Copy)]
struct Stopped {
    at: Instant,
    alone: bool,
    still: bool,
    usage: Usage,
}

pub(crate) struct DockerRoom {
    docker: Docker,
    id: String,
    name: String,
    control: Control,
    dismissed: AtomicBool,
}

impl DockerRoom {
    pub(crate) fn new(docker: Docker, id: String, name: String, control: Control) -> Self {
        Self { docker, id, name, control, dismissed: AtomicBool::new(false) }
    }

    /// The guest's part of a freeze; none if it has not answered in time.
    async fn stop(&self) -> Option<Stopped> {
        match self.control.request(&Request::Stop, STOP_ACK).await {
            Ok(Reply::Stopped { at_ns, alone, still, usage }) => {
                Some(Stopped { at: instant_at(at_ns), alone, still, usage })
            }
            _ => None,
        }
    }

    async fn expect(&self, request: Request, expected: Reply) -> Result<(), SandboxError> {
        let reply = self.control.request(&request, GUEST).await?;
        if reply == expected { Ok(()) } else { Err(self.control.unexpected(&reply)) }
    }
}

#[async_trait]
impl Room for DockerRoom {
    async fn run(&self, command: Command) -> Result<Running, SandboxError> {
        self.control.run(command).await
    }

    async fn bridge(&self, bridge: Bridge) -> Result<(), SandboxError> {
        self.expect(Request::Bridge(bridge), Reply::Bridged).await
    }

    async fn signal(&self, signal: i32) -> Result<(), SandboxError> {
        self.expect(Request::Signal(signal), Reply::Signalled).await
    }

    async fn freeze(&self) -> Freeze {
        let end = Instant::now() + PAUSE;
        // First stage: it holds also when the engine thaws a container to kill it.
        let mut stopped = self.stop().await;
        let freeze = loop {
            if let Some(stopped) = stopped.filter(|it| it.alone) {
                // Nothing runs, and nothing can start: there is nothing to pause.
                break (FreezeKind::Empty, stopped.at);
            }
            // Second stage: nothing that the first missed runs on.
            let left = end.saturating_duration_since(Instant::now());
            match tokio::time::timeout(left, self.docker.pause_container(&self.id)).await {
                Ok(Ok(())) => break (FreezeKind::Paused, Instant::now()),
                Ok(Err(error)) if is_paused(&error) => break (FreezeKind::Paused, Instant::now()),
                Ok(Err(error)) if has_ended(&error) => break (FreezeKind::Gone, Instant::now()),
                Ok(Err(error)) => tracing::info!(room = self.name, %error, "not paused"),
                Err(_) => tracing::info!(room = self.name, "not paused in time"),
            }
            // The engine gives up on a container with a process that does not leave the kernel at once, as happens at
            // the limits on processors and processes. What is known to be at rest needs no pause.
            if stopped.is_none_or(|it| !it.still) {
                stopped = self.stop().await.or(stopped);
            }
            match stopped {
                Some(stopped) if stopped.still => break (FreezeKind::Stopped, stopped.at),
                _ if Instant::now() >= end => break (FreezeKind::None, Instant::now()),
                _ => {}
            }
        };
        let (kind, at) = freeze;
        tracing::debug!(room = self.name, ?kind, "frozen");
        Freeze { kind, at, usage: stopped.map(|it| it.usage) }
    }

    async fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
        self.control.hang_up().await;
    }

    async fn thaw(&self) -> Result<(), SandboxError> {
        self.docker
            .unpause_container(&self.id)
            .await
            .map_err(SandboxError::engine("thawing the container"))?;
        self.expect(Request::Continue, Reply::Continued).await
    }

    async fn post_mortem(&self) -> Result<PostMortem, SandboxError> {
        let details = self
            .docker
            .inspect_container(&self.id, None::<InspectContainerOptions>)
            .await
            .map_err(SandboxError::engine("inspecting the container"))?;
        let state = details.state.unwrap_or_default();
        Ok(PostMortem {
            running: state.running.unwrap_or(false),
            oom_killed: state.oom_killed.unwrap_or(false),
            exit_code: state.exit_code,
        })
    }

    async fn close(&self) -> Result<Closed, SandboxError> {
        let start = Instant::now();
        if self.dismissed.load(Ordering::Relaxed) {
            // A kill that meets a container on its way out makes its removal fail. What goes wrong here, removal tells.
            let mut end = self.docker.wait_container(&self.id, None::<WaitContainerOptions>);
            let _ = tokio::time::timeout(LEAVE, end.next()).await;
        }
        let mut last = Ok(());
        for _ in 0..REMOVE_ATTEMPTS {
            last = remove(&self.docker, &self.id).await;
            if last.is_ok() {
                break;
            }
        }
        last?;
        Ok(Closed { took: start.elapsed() })
    }
}

/// Kills and removes a container. The engine answers when its processes are gone: removal deletes the control group,
/// which the kernel refuses while anything is in it.
pub(crate) async fn remove(docker: &Docker, id: &str) -> Result<(), SandboxError> {
    const ACTION: &str = "removing the container";
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match bounded(ACTION, REMOVE, docker.remove_container(id, Some(options))).await? {
        Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        Err(source) => Err(SandboxError::Engine { action: ACTION, source }),
    }
}

async fn bounded<T>(
    action: &'static str,
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, SandboxError> {
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| SandboxError::Slow { action, seconds: limit.as_secs() })
}

/// Whether a refused pause means that an earlier one, which was given up, has come about.
fn is_paused(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { message, .. } if message.contains("already paused"))
}

/// Whether a refused pause means that there is nothing left to pause.
fn has_ended(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404 | 409, message }
        if message.contains("not running") || message.contains("No such container"))
}
