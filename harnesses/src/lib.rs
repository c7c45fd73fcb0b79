//! The agent CLIs that sit the exam: one module for each. A harness module says how its CLI is installed, how it is
//! started and told where the model is, and how the lines it prints become events of a trace.
//!
//! Nothing here starts an agent: [`Harness::launch`] only describes the process, and the engine has the guest start
//! it. The one process this crate runs is `npm`, in [`install`].
//!
//! Map: [`id`](HarnessId) what the user may ask for · [`Launch`] the process to start · [`StreamReader`] its printed
//! lines, as events · [`judge_exit`] what its end means · [`install`] the cache of pinned CLIs · `codex`,
//! `claude_code`, `opencode`, `gemini`, `qwen`, `pi`, `command`, `controls` the harnesses themselves · `node` what those that
//! run on node share.

mod claude_code;
mod codex;
mod command;
mod command_line;
mod controls;
mod digest;
mod error;
mod gemini;
mod harness;
mod id;
mod install;
mod kept_tree;
mod launch;
mod manifest;
mod node;
mod opencode;
mod pi;
mod qwen;
mod records;
mod stream;
mod verdict;

pub use command_line::{CommandLineError, split_command_line};
pub use digest::harness_digest;
pub use error::HarnessError;
pub use harness::Harness;
pub use id::{HarnessId, HarnessName, Version};
pub use install::{InstallError, InstallSpec, InstallStep, KeptFile, NpmCommand, NpmPackage, install};
pub use kept_tree::{KeptTree, PackagePin};
pub use launch::{AttachedImage, Launch, LaunchRequest, LaunchSettings, OracleAnswer, SessionId};
pub use manifest::{InstallManifest, Installed, InstalledFile, InstalledPackage, installed, verify};
pub use stream::{StreamEnd, StreamReader};
pub use verdict::{AgentVerdict, ExitStatus, judge_exit};
