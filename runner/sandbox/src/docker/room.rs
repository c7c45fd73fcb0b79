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
use proctor_guest::{Bridge, Command, Reply, Request};
use proctor_traces::FreezeKind;

use crate::control::Control;
use crate::monotonic::instant_at;
use crate::{Closed, Freeze, PostMortem, Room, Running, SandboxError};

/// How long the guest's acknowledgement of SIGSTOP is waited for (DESIGN §3.1).
const STOP_ACK: Duration = Duration::from_millis(100);
/// How long the engine may take to pause a container before the acknowledgement counts.
const PAUSE: Duration = Duration::from_secs(2);
/// How long a request to the guest may take otherwise.
const GUEST: Duration = Duration::from_secs(5);
/// How long a container whose guest was told to leave may take to end by itself; it is killed afterwards.
const LEAVE: Duration = Duration::from_secs(2);
/// How long one attempt to remove a container may take, and how many are made.
const REMOVE: Duration = Duration::from_secs(15);
const REMOVE_ATTEMPTS: u32 = 3;

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
        // First stage: it takes effect at once, and also holds when the engine thaws a container to kill it.
        let stopped = match self.control.request(&Request::Stop, STOP_ACK).await {
            // Nothing runs, and nothing can start: there is nothing to pause.
            Ok(Reply::Stopped { at_ns, alone: true, usage }) => {
                tracing::debug!(room = self.name, "found empty");
                return Freeze { kind: FreezeKind::Empty, at: instant_at(at_ns), usage: Some(usage) };
            }
            Ok(Reply::Stopped { at_ns, alone: false, usage }) => Some((instant_at(at_ns), usage)),
            _ => None,
        };
        let usage = stopped.map(|(_, usage)| usage);
        // Second stage: nothing that the first missed runs on.
        let paused = tokio::time::timeout(PAUSE, self.docker.pause_container(&self.id)).await;
        let (kind, at) = match (paused, stopped) {
            (Ok(Ok(())), _) => (FreezeKind::Paused, Instant::now()),
            (Ok(Err(error)), _) if has_ended(&error) => (FreezeKind::Gone, Instant::now()),
            (_, Some((at, _))) => (FreezeKind::Stopped, at),
            (_, None) => (FreezeKind::None, Instant::now()),
        };
        tracing::debug!(room = self.name, ?kind, "frozen");
        Freeze { kind, at, usage }
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

/// Whether a refused pause means that there is nothing left to pause.
fn has_ended(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404 | 409, message }
        if message.contains("not running") || message.contains("No such container"))
}
