//! Rooms as Docker containers.

mod room;
mod spec;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::Docker;
use bollard::container::LogOutput;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, StartContainerOptions,
};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::control::{Control, Waiting};
use crate::docker::room::DockerRoom;
use crate::{OpenRoom, OutputChunk, RoomSpec, Sandbox, SandboxError, Stream, Swept, guest, sweep};

/// How long the guest may take to come up after `start` returned; a machine under load takes seconds.
const GUEST_UP: Duration = Duration::from_secs(30);

/// Chunks of output that may wait for their reader; a full queue holds the container's writers back.
const OUTPUT_QUEUE: usize = 64;

/// How long an engine may take to say that it is there.
const PING: Duration = Duration::from_secs(15);

/// A Docker engine, or one that speaks its API.
#[derive(Clone)]
pub struct DockerSandbox {
    docker: Docker,
    address: String,
    guest: PathBuf,
}

/// What the engine says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct EngineFacts {
    /// Where it was reached.
    pub address: String,
    /// Its version.
    pub version: String,
    /// Newest API version it speaks.
    pub api_version: String,
    /// Version of control groups, "1" or "2".
    pub cgroup_version: String,
    /// Who manages control groups.
    pub cgroup_driver: String,
    /// Folder of its images and containers.
    pub root: PathBuf,
    /// Processors it sees.
    pub processors: i64,
    /// Memory it sees, in bytes.
    pub memory_bytes: i64,
    /// What it warns of.
    pub warnings: Vec<String>,
}

impl DockerSandbox {
    /// Connects to the engine at `address` (`unix:///…`), and puts the guest program below `cache`.
    pub async fn connect(address: &str, cache: &Path) -> Result<Self, SandboxError> {
        let no_engine = |source| SandboxError::NoEngine { address: address.to_owned(), source };
        let path = address.strip_prefix("unix://").unwrap_or(address);
        let docker = Docker::connect_with_unix(path, 120, bollard::API_DEFAULT_VERSION).map_err(no_engine)?;
        // Something that listens and never answers is no engine.
        docker.clone().with_timeout(PING).ping().await.map_err(no_engine)?;
        let guest = guest::install(cache)?;
        Ok(Self { docker, address: address.to_owned(), guest })
    }

    /// The client, for building and inspecting images.
    pub fn client(&self) -> &Docker {
        &self.docker
    }

    /// What the engine says of itself.
    pub async fn facts(&self) -> Result<EngineFacts, SandboxError> {
        let version = self.docker.version().await.map_err(SandboxError::engine("asking for the version"))?;
        let info = self.docker.info().await.map_err(SandboxError::engine("asking for facts"))?;
        Ok(EngineFacts {
            address: self.address.clone(),
            version: version.version.unwrap_or_default(),
            api_version: version.api_version.unwrap_or_default(),
            cgroup_version: info.cgroup_version.map(|it| it.to_string()).unwrap_or_default(),
            cgroup_driver: info.cgroup_driver.map(|it| it.to_string()).unwrap_or_default(),
            root: info.docker_root_dir.map(PathBuf::from).unwrap_or_default(),
            processors: info.ncpu.unwrap_or_default(),
            memory_bytes: info.mem_total.unwrap_or_default(),
            warnings: info.warnings.unwrap_or_default(),
        })
    }

    /// The environment that an image gives its processes. The guest passes nothing on by itself.
    pub async fn image_environment(&self, image: &str) -> Result<Vec<(String, String)>, SandboxError> {
        let details =
            self.docker.inspect_image(image).await.map_err(SandboxError::engine("inspecting the image"))?;
        let lines = details.config.and_then(|config| config.env).unwrap_or_default();
        let pair =
            |line: &String| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(lines.iter().filter_map(pair).collect())
    }

    /// Removes every container of ours whose owner `is_alive` denies; with `dry` only lists them.
    pub async fn sweep(
        &self,
        dry: bool,
        is_alive: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Vec<Swept>, SandboxError> {
        sweep::sweep(&self.docker, dry, is_alive).await
    }

    async fn start(
        &self,
        id: &str,
        waiting: Waiting,
        name: &str,
    ) -> Result<(Control, mpsc::Receiver<OutputChunk>), SandboxError> {
        // Attached before the start: what the first process prints at once would be lost otherwise.
        let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
        let attached = self
            .docker
            .attach_container(id, Some(options))
            .await
            .map_err(SandboxError::engine("attaching to the container"))?;
        let (sender, output) = mpsc::channel(OUTPUT_QUEUE);
        tokio::spawn(forward(attached.output, sender));
        self.docker
            .start_container(id, None::<StartContainerOptions>)
            .await
            .map_err(SandboxError::engine("starting the container"))?;
        let control = tokio::time::timeout(GUEST_UP, waiting.accept(name))
            .await
            .map_err(|_| SandboxError::Slow { action: "the guest's start", seconds: GUEST_UP.as_secs() })??;
        Ok((control, output))
    }
}

#[async_trait]
impl Sandbox for DockerSandbox {
    async fn open(&self, spec: RoomSpec) -> Result<OpenRoom, SandboxError> {
        let waiting = Waiting::bind(&spec.control)?;
        let options = CreateContainerOptionsBuilder::new().name(&spec.name).build();
        let body = spec::container(&spec, &self.guest);
        let created = self
            .docker
            .create_container(Some(options), body)
            .await
            .map_err(SandboxError::engine("creating the container"))?;
        match self.start(&created.id, waiting, &spec.name).await {
            Ok((control, output)) => {
                let room = DockerRoom::new(self.docker.clone(), created.id, spec.name, control);
                Ok(OpenRoom { room: Arc::new(room), output })
            }
            Err(error) => {
                // The first error is the one to tell; what cannot be removed now is swept later, by its label.
                let _ = room::remove(&self.docker, &created.id).await;
                Err(error)
            }
        }
    }
}

type LogStream =
    std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// Passes the container's output on until it or its reader ends.
async fn forward(mut output: LogStream, sender: mpsc::Sender<OutputChunk>) {
    while let Some(Ok(chunk)) = output.next().await {
        let at = Instant::now();
        let (stream, bytes) = match chunk {
            LogOutput::StdOut { message } | LogOutput::Console { message } => (Stream::Stdout, message),
            LogOutput::StdErr { message } => (Stream::Stderr, message),
            LogOutput::StdIn { .. } => continue,
        };
        if sender.send(OutputChunk { stream, bytes, at }).await.is_err() {
            return;
        }
    }
}
