//! What a room is asked for and what it tells, whatever engine is behind it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use proctor_guest::{Bridge, Command, ExitStatus, Usage};
use proctor_traces::FreezeKind;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::SandboxError;

/// Opens rooms.
#[async_trait]
pub trait Sandbox: Send + Sync + 'static {
    /// Creates and starts a room with the guest in it, ready for commands. Nothing is left behind on error.
    async fn open(&self, spec: RoomSpec) -> Result<OpenRoom, SandboxError>;
}

/// A room that is open: dropping it does not close it, [`Room::close`] does.
#[async_trait]
pub trait Room: Send + Sync {
    /// Starts a process under the guest. Returns when exec has succeeded.
    async fn run(&self, command: Command) -> Result<Running, SandboxError>;

    /// Carries connections from one address inside the room to another.
    async fn bridge(&self, bridge: Bridge) -> Result<(), SandboxError>;

    /// Sends a signal to every process but the guest.
    async fn signal(&self, signal: i32) -> Result<(), SandboxError>;

    /// Stops everything in two stages (DESIGN §3.1). Never fails: what could be reached is in the answer.
    async fn freeze(&self) -> Freeze;

    /// Ends a room that was found [`FreezeKind::Empty`], without waiting for it: its end takes place behind what the
    /// caller does next. [`Room::close`] must follow.
    async fn dismiss(&self);

    /// Lets a frozen room go on.
    async fn thaw(&self) -> Result<(), SandboxError>;

    /// What the engine knows of a room whose processes are gone.
    async fn post_mortem(&self) -> Result<PostMortem, SandboxError>;

    /// Kills whatever is left and removes the container, within a bound of its own; verifies that it is gone.
    async fn close(&self) -> Result<Closed, SandboxError>;
}

/// A started room.
pub struct OpenRoom {
    /// The room.
    pub room: Arc<dyn Room>,
    /// What its processes print on the container's stdout and stderr. Ends after the room's end.
    pub output: mpsc::Receiver<OutputChunk>,
}

/// A room to open.
#[derive(Clone, Debug)]
pub struct RoomSpec {
    /// Name of the container: unique, so that a second owner collides loudly.
    pub name: String,
    /// Labels by which leftovers are found.
    pub labels: BTreeMap<String, String>,
    /// Image id or reference.
    pub image: String,
    /// Who everything in the room runs as.
    pub user: User,
    /// Host directory for the control socket, mounted read-only at [`crate::CONTROL_DIR`]. Its path must be short: a
    /// socket address has at most 107 bytes.
    pub control: PathBuf,
    /// Host directories and files to mount.
    pub mounts: Vec<Mount>,
    /// Memory file systems.
    pub tmpfs: Vec<Tmpfs>,
    /// Bounds.
    pub limits: Limits,
}

/// A user by number; it needs no entry in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// A bind mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Absolute path on the host.
    pub host: PathBuf,
    /// Absolute path in the room.
    pub inside: String,
    /// Whether the room may write to it.
    pub writable: bool,
}

impl Mount {
    /// A mount that cannot be written to.
    pub fn read_only(host: impl Into<PathBuf>, inside: impl Into<String>) -> Self {
        Self { host: host.into(), inside: inside.into(), writable: false }
    }

    /// A mount that can be written to.
    pub fn writable(host: impl Into<PathBuf>, inside: impl Into<String>) -> Self {
        Self { host: host.into(), inside: inside.into(), writable: true }
    }
}

/// A memory file system; its pages count against the room's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tmpfs {
    /// Where.
    pub inside: String,
    /// Most bytes it holds.
    pub bytes: u64,
}

/// Bounds that the kernel enforces (DESIGN §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory in bytes; there is no swap beyond it.
    pub memory_bytes: u64,
    /// Processes and threads.
    pub pids: u32,
    /// Processors, in thousandths.
    pub cpu_millis: u32,
    /// Largest file in bytes.
    pub file_bytes: u64,
    /// Open files per process.
    pub open_files: u32,
    /// Shared memory in bytes.
    pub shm_bytes: u64,
}

impl Limits {
    /// The defaults of DESIGN §3.4 on a machine with `processors` processors.
    pub fn default_for(processors: usize) -> Self {
        Self {
            memory_bytes: 4 << 30,
            pids: 512,
            cpu_millis: u32::try_from(processors.clamp(1, 2)).unwrap_or(1) * 1000,
            file_bytes: 1 << 30,
            open_files: 4096,
            shm_bytes: 256 << 20,
        }
    }
}

/// Some bytes that were printed.
#[derive(Clone, Debug)]
pub struct OutputChunk {
    /// Where.
    pub stream: Stream,
    /// What.
    pub bytes: Bytes,
    /// When they arrived here.
    pub at: Instant,
}

/// One of a process's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A process that was exec'd.
#[derive(Debug)]
pub struct Running {
    /// When exec had succeeded.
    pub at: Instant,
    /// Resolves when the process is gone, or with an error when the room went first.
    pub end: oneshot::Receiver<ProcessEnd>,
}

/// A process that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEnd {
    /// How.
    pub status: ExitStatus,
    /// When.
    pub at: Instant,
    /// Out-of-memory kills in the room up to then.
    pub oom_kills: Option<u64>,
}

/// How a room was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// How far it got.
    pub kind: FreezeKind,
    /// From when on nothing inside could run any more.
    pub at: Instant,
    /// What the room had used by then, if the guest could still say.
    pub usage: Option<Usage>,
}

/// What the engine says of a room that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostMortem {
    /// Whether its processes still run.
    pub running: bool,
    /// Whether the kernel killed any of its processes for memory.
    pub oom_killed: bool,
    /// Exit code of the guest.
    pub exit_code: Option<i64>,
}

/// A room that no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// How long that took.
    pub took: Duration,
}
