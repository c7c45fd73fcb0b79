//! `outcome.json`: what came of a trial. Written once; its existence means that the trial is done.

use proctor_traces::{ArtifactState, Digest, Ending, FreezeKind, ImageIdentity, Millis, Timestamp, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Attempt, TrialId};

/// The outcome of a trial, or of one try of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Version of this format.
    pub schema: u32,
    /// The trial.
    pub trial: TrialId,
    /// Number of the try that this is the outcome of, from 1.
    pub r#try: u32,
    /// What the task is, for tables and filters.
    pub task: TaskFacts,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
    /// How the agent process ended, if it ended by itself.
    pub exit: Option<Exit>,
    /// Wall time at which the agent had been exec'd.
    pub started_at: Option<Timestamp>,
    /// The budget in milliseconds.
    pub budget_ms: Millis,
    /// Where the time went.
    pub timing: Timing,
    /// How the room was stopped.
    pub freeze: Option<FreezeKind>,
    /// Wall time from which on nothing in the room could run any more.
    #[serde(default)]
    pub frozen_at: Option<Timestamp>,
    /// From the deadline to the moment nothing in the room could run any more; negative if it ended before.
    pub overrun_ms: Option<i64>,
    /// The designated artifact, and what stood at its path.
    pub artifacts: Vec<ArtifactRecord>,
    /// The artifact of another trial that this one was given.
    #[serde(default)]
    pub consumed: Option<Consumed>,
    /// What was used to get here.
    pub digests: Digests,
    /// What the room used.
    pub resources: Resources,
    /// Time in which at least one model request was under way.
    pub model_wait_ms: Millis,
    /// Time lost to the provider's failures, within the agent's time: requests that it refused or broke off, and the
    /// pauses until the agent asked again.
    #[serde(default)]
    pub provider_wait_ms: Millis,
    /// Who ran it.
    #[serde(default)]
    pub runner: Option<Runner>,
    /// Model requests made.
    pub exchanges: u64,
    /// Tokens as the model server counted them.
    pub tokens: Usage,
    /// Tool calls of the agent and its sub-agents, by its stream and its session files; by the stream alone where no session
    /// file can be read.
    pub tool_calls: u64,
    /// Lines of the agent's stream.
    pub stream: StreamCounts,
}

impl Outcome {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;

    /// Time of all stages: that of this trial, and that of the trials whose artifacts it was given (VAO-Bench, C.2: "total
    /// duration is the sum of A1 reconstruction and A2 editing").
    pub fn time_of_all_stages(&self) -> Millis {
        let before = self.consumed.as_ref().and_then(|it| it.spent_ms).unwrap_or_default();
        Millis(self.timing.agent_ms.0.saturating_add(before.0))
    }
}

/// What a table wants to know of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskFacts {
    /// Artifact category.
    pub category: String,
    /// Rendering mode.
    pub mode: String,
    /// Difficulty.
    pub difficulty: String,
    /// Operation.
    #[serde(default)]
    pub operation: String,
    /// The source artifact; tasks on the same one are not independent of each other.
    #[serde(default)]
    pub source: String,
    /// The batch that the source was made in.
    #[serde(default)]
    pub batch: String,
}

/// Which process ran a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    /// Name of the machine.
    pub host: String,
    /// Number of the process.
    pub pid: u32,
    /// The batch job that it was part of, as in `1234_5`.
    pub job: Option<String>,
}

/// An artifact of another trial, as it was given to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consumed {
    /// The trial that left it.
    pub trial: TrialId,
    /// Its name there.
    pub artifact: String,
    /// Its name in the workspace.
    pub name: String,
    /// Its content; none if the other trial left nothing, and an empty file was given.
    pub digest: Option<Digest>,
    /// Time that making it took: the other trial's own, and that of what it was given itself.
    #[serde(default)]
    pub spent_ms: Option<Millis>,
}

/// How a process ended: by itself with a code, or by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Where the time went, in monotonic milliseconds. The parts add up to `wall_ms` (DESIGN §3.9), to the millisecond
/// that each is rounded down by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    /// From the start of the run to the start of the trial.
    pub queue_ms: Millis,
    /// From the start of the trial to the exec of the agent.
    pub prepare_ms: Millis,
    /// From exec to *frozen*.
    pub agent_ms: Millis,
    /// Collecting files and streams.
    pub collect_ms: Millis,
    /// Killing and removing the container, and clearing up.
    pub teardown_ms: Millis,
    /// From the start of the run to the end of the trial.
    pub wall_ms: Millis,
    /// Time within that which the machine slept: counted by none of the above.
    pub suspended_ms: Millis,
    /// Time between the tries of this trial, within `queue_ms`.
    pub backoff_ms: Millis,
    /// How far the time of day went ahead of the monotonic clock, the time asleep left out; negative if it fell behind. A
    /// virtual machine that was paused shows here and nowhere else; so does a clock that was set.
    #[serde(default)]
    pub clock_step_ms: i64,
}

/// One designated artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactRecord {
    /// Its file name in the workspace, and in `artifacts/`.
    pub name: String,
    /// What stood there.
    #[serde(flatten)]
    pub state: ArtifactState,
    /// Versions seen while the agent worked, kept in `history/`.
    pub versions: u64,
    /// Versions that were not kept, by the limits of the watcher.
    pub versions_skipped: u64,
}

/// What was used, by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digests {
    /// The toolchain image.
    pub image: ImageIdentity,
    /// The task package.
    pub task: Digest,
    /// The installed harness and how it is started.
    pub harness: Digest,
    /// The prompt, `TASK.md` and images, as delivered.
    pub prompt: Digest,
}

/// What the room used; a figure is absent where the kernel does not give it, or the room died first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Highest memory use in bytes, page cache included.
    pub memory_peak_bytes: Option<u64>,
    /// Processes killed by the kernel for memory.
    pub oom_kills: Option<u64>,
    /// Time that the CPU limit kept processes from running, in milliseconds.
    pub cpu_throttled_ms: Option<u64>,
    /// Forks refused by the limit on processes.
    pub forks_refused: Option<u64>,
}

/// How the agent's stream was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamCounts {
    /// Bytes on stdout and stderr.
    pub bytes: u64,
    /// Lines of stdout that the harness knows.
    pub recognised: u64,
    /// Well-formed lines that it does not know: kept raw.
    pub unknown: u64,
    /// Lines that are not even well-formed.
    pub malformed: u64,
}

/// `try.json`: that a try was made, and why it was not the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TryRecord {
    /// Number of the try, from 1.
    pub r#try: u32,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
    /// When it ended.
    pub ended_at: Timestamp,
    /// All that an outcome says, if it came so far.
    pub outcome: Option<Box<Outcome>>,
}

/// `rerun.json`: that a trial is the rerun of another, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RerunRecord {
    /// Version of this format.
    pub schema: u32,
    /// The attempt that it stands in for.
    pub of: Attempt,
    /// Why it was asked for.
    pub reason: String,
    /// When it was asked for.
    pub at: Timestamp,
}

impl RerunRecord {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;
}
