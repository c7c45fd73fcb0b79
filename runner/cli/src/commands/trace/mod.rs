//! `proctor trace`: what an agent did, call by call, from every witness.

mod actions;
mod check;
mod compare;
mod export;
mod figure;
mod import;
mod labeller;
mod measure;
mod parquet;
mod show;
mod stats;
mod timeline;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use proctor_store::Testimony;
use proctor_traces::{Arrivals, Format, SourceError, SourceFile, Trace, TraceError};

use crate::environment::Environment;
use crate::failure::Failure;

const IMPORT_EXAMPLES: &str = "\
Examples:
  proctor trace import ~/.codex/sessions/2026/11/30/rollout-11-27-SESSION.jsonl -o trace.jsonl
  proctor trace import SESSION.jsonl SESSION/subagents/agent-*.jsonl -o trace.jsonl
  proctor trace import ~/.codex/sessions/2026/11/30/rollout-*.jsonl -o traces/

A trace is of one session: files of several need a folder to go to, which gets a trace of each.";

const SHOW_EXAMPLES: &str = "\
Examples:
  proctor trace show runs/first/trials/vao/flow-approval/codex-openai-gpt-5.5/1
  proctor trace show ~/.claude/projects/-work/SESSION.jsonl --model";

const ACTIONS_EXAMPLES: &str = "\
Examples:
  proctor trace actions runs/first/trials/vao/flow-approval/codex-openai-gpt-5.5/1 --explain
  proctor trace actions rollout.jsonl --artifact artifact.tex --json";

/// Verbs of `trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceVerb {
    /// Read session files of agents and write them as one trace.jsonl
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Print a timeline
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// List what is odd; errors make exit status 5
    Check(CheckArgs),
    /// Write it in the form of another tool
    Export(ExportArgs),
    /// Say what the agent was doing in each call, in the fifteen strategy actions
    #[command(after_help = ACTIONS_EXAMPLES)]
    Actions(actions::ActionsArgs),
    /// Measure strategy actions against labels made by hand: precision, recall, F1, kappa
    Measure(measure::MeasureArgs),
    /// Say how the agents of a run work: calls, writes, renders, times by phase, per method
    #[command(after_help = stats::EXAMPLES)]
    Stats(stats::StatsArgs),
    /// Compare how two methods work on the same tasks
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Draw what the agents of a run were doing when, a panel per method
    #[command(after_help = figure::EXAMPLES)]
    Figure(figure::FigureArgs),
}

/// What is read.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    /// The folder of a trial, a trace.jsonl, or session files that tell of the same session
    #[arg(required = true, value_name = "TRIAL|FILE")]
    paths: Vec<PathBuf>,
    /// Format of the files, instead of telling it from their content
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
}

/// Arguments of `trace import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    subject: Subject,
    /// Where the trace goes; `-` is stdout; a folder (`DIR/`) gets one trace per session
    #[arg(short, long, value_name = "FILE|DIR/")]
    output: PathBuf,
    /// Print what was read as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `trace show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    subject: Subject,
    /// Show model requests too
    #[arg(long)]
    model: bool,
    /// Print the whole trace as JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `trace check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    subject: Subject,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Arguments of `trace export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of a trial, a trace.jsonl, or a session file; several only for csv and parquet
    #[arg(required = true, value_name = "TRIAL|FILE")]
    paths: Vec<PathBuf>,
    /// The form
    #[arg(long, value_enum, value_name = "FORM")]
    format: export::Form,
    /// Where it goes; stdout if not given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn trace(verb: TraceVerb, environment: &Environment) -> Result<ExitCode, Failure> {
    match verb {
        TraceVerb::Import(args) => import::import(&args),
        TraceVerb::Show(args) => show::show(&args),
        TraceVerb::Check(args) => check::check(&args),
        TraceVerb::Export(args) => export::export(&args),
        TraceVerb::Actions(args) => actions::actions(&args, environment).await,
        TraceVerb::Measure(args) => measure::measure(&args, environment).await,
        TraceVerb::Stats(args) => stats::stats(&args),
        TraceVerb::Compare(args) => compare::compare(&args),
        TraceVerb::Figure(args) => figure::figure(&args),
    }
}

fn format(text: &str) -> Result<Format, SourceError> {
    text.parse()
}

impl Subject {
    /// The folder of the trial, if it is one.
    fn trial(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path).filter(|path| path.is_dir())
    }

    fn read(&self) -> Result<Trace, Failure> {
        read(&self.paths, self.format)
    }
}

/// The trace of one trial, or of files that tell of one session.
fn read(paths: &[PathBuf], format: Option<Format>) -> Result<Trace, Failure> {
    let Some(folder) = paths.iter().find(|path| path.is_dir()) else {
        return Trace::of_one_session(&files(paths, format)?, None).map_err(|error| failure(&error));
    };
    if paths.len() > 1 {
        return Err(Failure::input(format!("{} is a folder: give one trial, or files", folder.display())));
    }
    let testimony = Testimony::of(folder)?;
    if testimony.files.is_empty() {
        let message =
            format!("{} is no folder of a trial: it has neither trace.jsonl nor raw/", folder.display());
        return Err(Failure::input(message).hint("trials are RUN/trials/SUITE/TASK/METHOD/ATTEMPT"));
    }
    testimony.trace().map_err(|error| failure(&error))
}

fn files(paths: &[PathBuf], format: Option<Format>) -> Result<Vec<SourceFile>, Failure> {
    paths.iter().map(|path| file(path, format)).collect()
}

/// A file; beside what an agent printed, `*.times` has the arrivals of its lines.
fn file(path: &Path, format: Option<Format>) -> Result<SourceFile, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::input(format!("reading {}: {error}", path.display())))?;
    let arrivals = std::fs::read(path.with_extension("times")).ok().map(|bytes| Arrivals::parse(&bytes));
    Ok(SourceFile { name: path.display().to_string(), bytes, format, arrivals })
}

fn failure(error: &TraceError) -> Failure {
    let hint = match error {
        TraceError::Source { source: SourceError::UnknownFormat { .. }, .. } => {
            let known: Vec<&str> = Format::ALL.into_iter().map(Format::as_str).collect();
            Some(format!("--format says which it is: {}", known.join(", ")))
        }
        TraceError::Source { source: SourceError::NothingRecognised { .. }, .. } => {
            Some("without --format it is told from the content".to_owned())
        }
        TraceError::Source { source: SourceError::NotText { what }, .. } if what.contains("gzip") => {
            Some("unpack it first: gunzip FILE".to_owned())
        }
        TraceError::Strangers { .. } => Some(
            "give the files of one session; `proctor trace import FILE… -o DIR/` writes a trace of each"
                .to_owned(),
        ),
        TraceError::Streams { .. } => Some(
            "give each on its own; the printed lines of several turns, in order, are one stream: cat them"
                .to_owned(),
        ),
        TraceError::Source { .. } | TraceError::Nothing => None,
    };
    let failure = Failure::input(error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What a trace is called in tables: the trial's id where it lies in a run, else the file's name.
fn label(path: &Path) -> String {
    let parts: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
    match parts.iter().rposition(|part| part == "trials") {
        Some(at) if parts.len() > at + 4 => parts[at + 1..at + 5].join("/"),
        _ => parts.last().cloned().unwrap_or_default(),
    }
}
