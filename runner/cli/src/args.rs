//! What can be typed. Nothing is resolved here.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use proctor_harnesses::HarnessId;
use proctor_tasks::RenderMode;

use crate::commands::merge::MergeArgs;
use crate::commands::report::ReportArgs;
use crate::commands::rerun::RerunArgs;
use crate::commands::slurm::SlurmVerb;
use crate::commands::status::StatusArgs;

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a failure of proctor itself
  2    bad input: arguments, task packages, a results directory that is something else
  3    something is missing: container engine, image, agent CLI, key
  4    the run ended, but some of its trials have no valid outcome (see the table)
  5    a check found errors
  130  stopped by the user; the same command continues";

/// Sits coding agents an exam: each task alone in a sealed container, against the clock, with everything written down.
#[derive(Debug, Parser)]
#[command(name = "proctor", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    /// Tell more; twice for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run tasks with one or more agents
    Run(Box<RunArgs>),
    /// Render an artifact canonically, or again all artifacts of a run
    Render(RenderArgs),
    /// List, count and check task packages
    #[command(subcommand)]
    Tasks(TasksVerb),
    /// List and install agent CLIs
    #[command(subcommand)]
    Harness(HarnessVerb),
    /// Build the toolchain image, or say how it stands
    #[command(subcommand)]
    Image(ImageVerb),
    /// Try an agent with a model: a text, a tool call, a picture, a long output
    Preflight(PreflightArgs),
    /// Print the table of a run again
    Show(ShowArgs),
    /// Say how a run stands: done, running, pending, failures, time to go
    Status(StatusArgs),
    /// Account for a run: completion, recovery, failures, times, cost, scores
    Report(ReportArgs),
    /// Ask for trials to be made once more, for a reason
    Rerun(RerunArgs),
    /// Make one run out of several parts
    Merge(MergeArgs),
    /// Check everything that a run needs, and say how to mend what is wrong
    Doctor(JsonArgs),
    /// Remove what dead runs have left behind
    Sweep(SweepArgs),
    /// Run on a Slurm cluster: submit, watch and cancel job arrays that join a run
    #[command(subcommand)]
    Slurm(SlurmVerb),
}

const RUN_EXAMPLES: &str = "\
Examples:
  The bundled tasks with the real Codex CLI and the scripted model, no key needed:
    proctor run --tasks tasks/samples --harness codex --model script --out runs/first

  One task, Claude Code, a real provider:
    export ANTHROPIC_API_KEY=…
    proctor run --tasks tasks/samples --task dashboard-threshold --harness claude-code \\
        --model anthropic/claude-opus-5-5 --out runs/claude

  Any program of the image as the agent, 60 seconds each, four at a time (the prompt is on its stdin):
    proctor run --tasks my-tasks --harness command --command 'python3 -c \"…\"' \\
        --budget 60s -j 4 --out runs/mine

The same command again continues a run: what has an outcome is not run again.";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) tasks: TaskSelection,
    /// The agent: codex, claude-code, command, oracle or nop; NAME@VERSION for a version; may be repeated
    #[arg(long = "harness", value_name = "NAME[@VERSION]", required = true, help_heading = "Method")]
    pub(crate) harnesses: Vec<HarnessId>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Command line of `--harness command`; it is not given to a shell
    #[arg(long, value_name = "LINE", help_heading = "Method")]
    pub(crate) command: Option<String>,
    /// How the source picture reaches the agent
    #[arg(long, value_enum, default_value = "workspace", help_heading = "Method")]
    pub(crate) image_delivery: Delivery,
    /// Name the budget in TASK.md
    #[arg(long, help_heading = "Method")]
    pub(crate) tell_budget: bool,
    /// Time per trial, as in 1800s, 30m or 90
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1800s", help_heading = "Method")]
    pub(crate) budget: Duration,
    /// Results directory: new, empty, or a run to continue
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub(crate) out: PathBuf,
    /// Trials at a time
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=512), help_heading = "Run")]
    pub(crate) jobs: u16,
    /// Attempts per task and method
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Run")]
    pub(crate) attempts: u32,
    /// Tries after a failure that is not the agent's
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=20), help_heading = "Run")]
    pub(crate) retries: u32,
    /// Pause before such a try
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", help_heading = "Run")]
    pub(crate) backoff: Duration,
    /// Do not render what the agents leave
    #[arg(long, help_heading = "Run")]
    pub(crate) no_render: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Print outcomes and summary as JSON, one object a line
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Which tasks.
#[derive(Debug, Args)]
pub(crate) struct TaskSelection {
    /// Task packages, or folders of them
    #[arg(long = "tasks", value_name = "PATH", required = true, num_args = 1.., help_heading = "Tasks")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only this task; may be repeated
    #[arg(long = "task", value_name = "ID", help_heading = "Tasks")]
    pub(crate) ids: Vec<String>,
}

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// PROVIDER/NAME, or `script` for the model that plays each task's own script
    #[arg(long, value_name = "PROVIDER/NAME", help_heading = "Model")]
    pub(crate) model: Option<String>,
    /// File with more providers (base URL, wire formats, name of the variable with the key)
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) providers: Option<PathBuf>,
}

/// Bounds of a room.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Memory per trial
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4g", help_heading = "Limits")]
    pub(crate) memory: u64,
    /// Processors per trial; two, or as many as there are, if not given
    #[arg(long, value_name = "N", value_parser = processors, help_heading = "Limits")]
    pub(crate) cpus: Option<f64>,
    /// Processes and threads per trial
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=100_000), help_heading = "Limits")]
    pub(crate) pids: u32,
    /// Disk per trial: workspace and HOME together, counted every second (an unlinked file that is kept open is not seen)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4g", help_heading = "Limits")]
    pub(crate) disk: u64,
    /// Files and folders per trial in workspace and HOME
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000), help_heading = "Limits")]
    pub(crate) inodes: u64,
}

/// How the source picture reaches the agent.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Delivery {
    /// As a file of the workspace, to be looked at
    Workspace,
    /// Attached to the prompt
    Attach,
    /// Both
    Both,
}

const RENDER_EXAMPLES: &str = "\
Examples:
  proctor render page.html --mode html -o page.png
  proctor render --run runs/first --tasks tasks/samples";

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(after_help = RENDER_EXAMPLES)]
pub(crate) struct RenderArgs {
    /// The artifact
    #[arg(required_unless_present = "run", conflicts_with = "run")]
    pub(crate) file: Option<PathBuf>,
    /// How it is rendered; told from the file's ending if not given (`.tex` is tikz)
    #[arg(long, value_parser = mode)]
    pub(crate) mode: Option<RenderMode>,
    /// Where the picture goes; beside the artifact if not given
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Render the artifacts of this run; what is rendered already with the same image and settings is left alone
    #[arg(long, value_name = "DIR", requires = "tasks")]
    pub(crate) run: Option<PathBuf>,
    /// The task packages of the run, for their settings
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "run")]
    pub(crate) tasks: Vec<PathBuf>,
    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verbs of `tasks`.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksVerb {
    /// List packages
    List(TasksArgs),
    /// Count packages by category, mode, difficulty and operation
    Stats(TasksArgs),
    /// Validate packages, render source and target again and compare the bytes
    Check(CheckArgs),
}

/// Arguments of `tasks list` and `tasks stats`.
#[derive(Debug, Args)]
pub(crate) struct TasksArgs {
    /// Task packages, or folders of them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `tasks check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Task packages, or folders of them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Store the pictures that this image makes, instead of comparing
    #[arg(long)]
    pub(crate) update: bool,
    /// Only what can be checked without rendering
    #[arg(long, conflicts_with = "update")]
    pub(crate) no_render: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Verbs of `harness`.
#[derive(Debug, Subcommand)]
pub(crate) enum HarnessVerb {
    /// List harnesses and installed versions
    List(JsonArgs),
    /// Install an agent CLI into the cache: NAME or NAME@VERSION
    Install {
        /// What to install
        #[arg(required = true)]
        harnesses: Vec<HarnessId>,
    },
}

/// Verbs of `image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageVerb {
    /// Build the toolchain image if it is not there yet
    Build {
        /// Image to start from, instead of debian:bookworm-slim
        #[arg(long)]
        base: Option<String>,
    },
    /// Say whether the image is there, and what is in it
    Status(JsonArgs),
}

/// Arguments of `preflight`.
#[derive(Debug, Args)]
pub(crate) struct PreflightArgs {
    /// The agent
    #[arg(long, value_name = "NAME[@VERSION]")]
    pub(crate) harness: HarnessId,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Time it may take
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "300s")]
    pub(crate) budget: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run
    pub(crate) run: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Only list what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// For verbs that only know `--json`.
#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `90`, `90s`, `1.5m`, `2h`, `500ms`; more than nothing and at most a week.
fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number with ms, s, m or h".to_owned()),
    };
    let seconds = number.parse::<f64>().map_err(|_| "a time begins with a number".to_owned())? * factor;
    if seconds > 0.0 && seconds <= 7.0 * 86400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("it must be more than nothing and at most a week".to_owned())
    }
}

/// `512m`, `4g`; at least 64 MiB.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let lower = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match lower.char_indices().last() {
        Some((at, 'k')) => (&lower[..at], 10),
        Some((at, 'm')) => (&lower[..at], 20),
        Some((at, 'g')) => (&lower[..at], 30),
        _ => (lower, 0),
    };
    let number: u64 = number.parse().map_err(|_| "a size is a number with k, m or g".to_owned())?;
    let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes < 1 << 50);
    bytes.filter(|bytes| *bytes >= 64 << 20).ok_or_else(|| "it must be at least 64m, and possible".to_owned())
}

fn processors(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|n| (0.05..=512.0).contains(n))
        .ok_or_else(|| "it must be between 0.05 and 512".to_owned())
}

fn mode(text: &str) -> Result<RenderMode, String> {
    let known = RenderMode::ALL.into_iter();
    known.clone().find(|mode| mode.as_str() == text).ok_or_else(|| {
        let names: Vec<&str> = known.map(RenderMode::as_str).collect();
        format!("it is one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_sizes_as_people_write_them() {
        assert_eq!(duration("1800s"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "0", "-3s", "3 s", "3d", "1e9h", "nan", "inf", "999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("4g"), Ok(4 << 30));
        assert_eq!(size("512MiB"), Ok(512 << 20));
        for wrong in ["", "g", "1k", "99999999999g", "-1g", "4t"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
