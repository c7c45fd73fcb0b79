//! What the runner and the guest say to each other.
//!
//! The guest is PID 1 of every container. It connects to the runner's control socket, which accepts one connection
//! and is then gone; requests and replies are JSON, one a line. When the connection ends, the guest kills everything
//! in the container and itself: a runner that dies leaves nothing running.

use serde::{Deserialize, Serialize};

/// Where the control directory is mounted inside every container.
pub const CONTROL_DIR: &str = "/run/proctor";

/// What the runner asks of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Start a process. Answered by [`Reply::Started`] or [`Reply::NotStarted`], later by [`Reply::Exited`].
    Run(Command),
    /// Accept connections at one address and carry their bytes to another. Answered by [`Reply::Bridged`].
    Bridge(Bridge),
    /// Stop every process but the guest, with SIGSTOP. Answered by [`Reply::Stopped`].
    Stop,
    /// Undo [`Request::Stop`]. Answered by [`Reply::Continued`].
    Continue,
    /// Send a signal to every process but the guest. Answered by [`Reply::Signalled`].
    Signal(i32),
}

/// A process to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Chosen by the runner; replies refer to it.
    pub id: u32,
    /// Program (searched for in `PATH` of `env`) and arguments.
    pub argv: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub cwd: String,
    /// File to read standard input from; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// File to write standard output to; the container's own output if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// File to write standard error to; the container's own error output if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// A one-way door for connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bridge {
    /// Where connections are accepted.
    pub listen: Endpoint,
    /// Where each is carried to.
    pub connect: Endpoint,
}

/// An address inside the container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A port on 127.0.0.1.
    Loopback(u16),
    /// A Unix socket.
    Unix(String),
}

/// What the guest answers. Times are `CLOCK_MONOTONIC` in nanoseconds, the same clock as the host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The guest is up.
    Ready {
        /// Version of the guest, to be compared with the runner's.
        version: String,
    },
    /// The process has been exec'd.
    Started {
        /// The command.
        id: u32,
        /// Its process id inside the container.
        pid: i32,
        /// When exec had succeeded.
        at_ns: u64,
    },
    /// The process could not be exec'd.
    NotStarted {
        /// The command.
        id: u32,
        /// Why.
        message: String,
    },
    /// The process is gone. Its children may live on.
    Exited {
        /// The command.
        id: u32,
        /// How.
        status: ExitStatus,
        /// When it was reaped.
        at_ns: u64,
        /// The kernel's count of out-of-memory kills in the container so far.
        oom_kills: Option<u64>,
    },
    /// Every process but the guest has been sent SIGSTOP.
    Stopped {
        /// When that was known to hold, or was given up waiting for.
        at_ns: u64,
        /// There was none: the guest is the only process, and starts another only when it is asked to.
        alone: bool,
        /// All have come to rest. Without it some may still be in the kernel, finishing what they had begun.
        still: bool,
        /// What the container has used.
        usage: Usage,
    },
    /// The processes run again.
    Continued,
    /// The signal was sent.
    Signalled,
    /// The bridge accepts connections.
    Bridged,
    /// The request could not be carried out.
    Failed {
        /// Why.
        message: String,
    },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl ExitStatus {
    /// Whether it exited with 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What the control group of the container has counted; a figure is absent where the kernel does not give it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Highest memory use in bytes, page cache included.
    pub memory_peak_bytes: Option<u64>,
    /// Processes killed by the kernel for memory.
    pub oom_kills: Option<u64>,
    /// Time that processes were kept from running by the CPU limit, in milliseconds.
    pub throttled_ms: Option<u64>,
    /// Forks refused by the limit on processes.
    pub forks_refused: Option<u64>,
}
