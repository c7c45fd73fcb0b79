//! `proctor slurm`: a run on a Slurm cluster. Every array task of a job is a `proctor run --join`, so the results directory
//! on the shared file system stays the only queue and the only state there is; Slurm starts processes, no more.
//!
//! Map: [`script`] writes a job, [`programs`] calls Slurm's own, [`queue`] reads what they print, [`submission`] is what is
//! written down, [`submit`], [`status`] and [`cancel`] are the verbs.

mod cancel;
mod programs;
mod queue;
mod script;
mod standing;
mod status;
mod submission;
mod submit;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Verbs of `slurm`.
#[derive(Debug, Subcommand)]
pub(crate) enum SlurmVerb {
    /// Submit a job array whose tasks join a run; again: only as many as are missing
    Submit(SubmitArgs),
    /// Say what the array tasks of a run do, and which trials each has run
    Status(StatusArgs),
    /// Cancel the array tasks of a run that still wait or run
    Cancel(CancelArgs),
}

const SUBMIT_EXAMPLES: &str = "\
Examples:
  proctor slurm submit runs/campaign --tasks 20 --per-task-jobs 4 --time 12:00:00
  proctor slurm submit runs/campaign --partition cpu --sbatch-arg=--mem=32G --sbatch-arg=--constraint=docker
  proctor slurm submit runs/campaign --dry-run

The run must exist, on a file system that all nodes see under the same path; each node needs a container engine, the
toolchain image and the agent CLIs. The same command again replaces tasks that have ended while trials are missing.
The environment goes along with the job (sbatch's --export), and with it the keys of model providers.";

/// Arguments of `slurm submit`.
#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitArgs {
    /// The run
    run: PathBuf,
    /// Array tasks that shall be at work, counting those that wait or run already; never more than trials are missing
    #[arg(short = 'N', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tasks: u32,
    /// Trials at a time in each array task
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=512))]
    per_task_jobs: u16,
    /// Partition
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Time limit of each array task, as Slurm writes it: 90 (minutes), 12:00:00, 2-00:00:00
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// One more option for sbatch, such as --mem=16G; may be repeated
    #[arg(long = "sbatch-arg", value_name = "ARG", allow_hyphen_values = true)]
    sbatch_args: Vec<String>,
    /// Only print the script
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `slurm status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run
    run: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `slurm cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The run
    run: PathBuf,
}

pub(crate) async fn slurm(verb: SlurmVerb) -> Result<ExitCode, Failure> {
    match verb {
        SlurmVerb::Submit(args) => submit::submit(&args).await,
        SlurmVerb::Status(args) => status::status(&args).await,
        SlurmVerb::Cancel(args) => cancel::cancel(&args).await,
    }
}
