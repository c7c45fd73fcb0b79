//! What can be typed. Nothing is resolved here.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use proctor_experiment::{ModelId, Span};
use proctor_harnesses::HarnessId;
use proctor_tasks::RenderMode;

use crate::commands::compare::CompareArgs;
use crate::commands::judge::JudgeArgs;
use crate::commands::merge::MergeArgs;
use crate::commands::report::ReportArgs;
use crate::commands::rerun::RerunArgs;
use crate::commands::run::RunArgs;
use crate::commands::slurm::SlurmVerb;
use crate::commands::status::StatusArgs;
use crate::commands::trace::TraceVerb;
use crate::rendering::AT_A_TIME;

/// Exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a failure of proctor itself
  2    bad input: arguments, task packages, a results directory that is something else
  3    something is missing: container engine, image, agent CLI, key
  4    the run ended, but some of its trials have no valid outcome (see the table); or a model that was asked for labels or
       marks gave no answer that can be used
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

/// Names of values that are numbers, with a unit or without.
const NUMBERS: [&str; 5] = ["N", "NUMBER", "SIZE", "TIME", "USD"];

impl Cli {
    /// What was typed. Prints help, or what is wrong with it, and exits.
    pub(crate) fn typed() -> Self {
        let typed = Self::command_line().get_matches();
        Self::from_arg_matches(&typed).unwrap_or_else(|error| error.exit())
    }

    /// The command line. What begins with a hyphen and stands behind an option that takes a number, a time or a size, is the
    /// value of that option, which says what it may be; else it would be taken for an option that there is not.
    fn command_line() -> Command {
        fn with_numbers(command: Command) -> Command {
            command
                .mut_args(|it| {
                    let names = it.get_value_names().unwrap_or_default();
                    let takes = names.iter().any(|name| NUMBERS.contains(&name.as_str()));
                    it.allow_hyphen_values(takes)
                })
                .mut_subcommands(with_numbers)
        }
        with_numbers(Self::command())
    }
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run tasks with one or more agents
    Run(Box<RunArgs>),
    /// Render an artifact canonically, or again all artifacts of a run
    Render(RenderArgs),
    /// Mark what was rendered against the hidden reference
    Judge(JudgeArgs),
    /// Compare two pictures: SSIM, PSNR, MAE, MSE, and where they differ
    Compare(CompareArgs),
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
    /// Show what an agent did, call by call; import, check and export traces
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Check everything that a run needs, and say how to mend what is wrong
    Doctor(JsonArgs),
    /// Remove what dead runs have left behind
    Sweep(SweepArgs),
    /// Run on a Slurm cluster: submit, watch and cancel job arrays that join a run
    #[command(subcommand)]
    Slurm(SlurmVerb),
}

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// PROVIDER/NAME, or `script` for the model that plays each task's own script, or replay:TRIAL for the one that gives
    /// the recorded responses of the trial in that folder again (replay:TRIAL?lenient: whatever is asked)
    #[arg(long, value_name = "PROVIDER/NAME", help_heading = "Model")]
    pub(crate) model: Option<ModelId>,
    /// File with more providers (base URL, wire formats, name of the variable with the key)
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub(crate) providers: Option<PathBuf>,
}

const RENDER_EXAMPLES: &str = "\
Examples:
  proctor render page.html --mode html -o page.png
  proctor render runs/first -j 4
  proctor render runs/first --anew --json

Of a run, the artifacts of all trials that have ended are rendered. What is rendered already from the same bytes, with the same
image and settings, is left alone. Status 1: something could not be rendered for a reason of ours; a broken artifact is a
result, and no failure.";

/// Arguments of `render`.
#[derive(Debug, Args)]
#[command(after_help = RENDER_EXAMPLES)]
pub(crate) struct RenderArgs {
    /// An artifact, or the folder of a run
    pub(crate) path: PathBuf,
    /// How it is rendered; told from the file's ending if not given (`.tex` is tikz)
    #[arg(long, value_parser = mode, help_heading = "One artifact")]
    pub(crate) mode: Option<RenderMode>,
    /// Where the picture goes; beside the artifact if not given
    #[arg(short, long, value_name = "FILE", help_heading = "One artifact")]
    pub(crate) output: Option<PathBuf>,
    /// The task packages of the run; where they were when it was started, if not given
    #[arg(long, value_name = "PATH", num_args = 1.., help_heading = "A run")]
    pub(crate) tasks: Vec<PathBuf>,
    /// Artifacts rendered at a time, each in a container or a warm browser of its own
    #[arg(short = 'j', long, value_name = "N", default_value_t = AT_A_TIME, help_heading = "A run")]
    pub(crate) jobs: NonZeroUsize,
    /// Render again what is rendered already
    #[arg(long, help_heading = "A run")]
    pub(crate) anew: bool,
    /// Print the record as JSON; of a run a line per trial
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
    #[arg(long, value_name = "TIME", default_value = "300s")]
    pub(crate) budget: Span,
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

/// A word that is one of some.
pub(crate) fn one_of<T: Copy>(text: &str, known: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    known.iter().copied().find(|it| name(*it) == text).ok_or_else(|| {
        let names: Vec<&str> = known.iter().copied().map(name).collect();
        format!("it is one of {}", names.join(", "))
    })
}

pub(crate) fn mode(text: &str) -> Result<RenderMode, String> {
    one_of(text, &RenderMode::ALL, RenderMode::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command_line().debug_assert();
    }

    #[test]
    fn a_number_below_zero_is_a_bad_value_and_no_option() {
        for (options, expected) in [
            (&["run", "--limit", "-1"][..], "invalid value '-1' for '--limit <N>'"),
            (&["run", "-j", "-2"], "invalid value '-2' for '--jobs <N>'"),
            (&["run", "--budget", "-30s"], "invalid value '-30s' for '--budget <TIME>'"),
            (&["slurm", "submit", "r", "--tasks", "-1"], "invalid value '-1' for '--tasks"),
        ] {
            let typed = [&["proctor"], options].concat();
            let said = Cli::command_line().try_get_matches_from(typed).unwrap_err().to_string();
            assert!(said.contains(expected) && !said.contains("tip:"), "{said}");
        }
    }
}
