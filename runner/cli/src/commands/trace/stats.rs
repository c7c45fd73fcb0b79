//! `proctor trace stats`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use proctor_report::{
    BehaviourReport, Behaviours, Depth, ProviderErrors, Reading, Recover, Rows, Verdict, judge,
};
use proctor_store::RunDir;

use crate::commands::print_json;
use crate::failure::Failure;
use crate::writing::write_from;

pub(super) const EXAMPLES: &str = "\
Examples:
  proctor trace stats runs/campaign
  proctor trace stats runs/campaign --markdown --csv behaviour.csv

The actions of each trial's calls are kept in its actions.jsonl, and worked out again only when its files have changed.
docs/behaviour.md says what is counted.";

/// What all verbs over the traces of a run take.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The run
    pub(super) run: PathBuf,
    /// Work the actions out again, whatever has been kept
    #[arg(long)]
    anew: bool,
    /// Do not write actions.jsonl into the folders of the trials
    #[arg(long)]
    no_keep: bool,
}

/// A run as it is read.
pub(super) struct Read {
    pub(super) run: RunDir,
    pub(super) rows: Rows,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) reading: Reading,
}

impl RunArgs {
    pub(super) fn read(&self) -> Result<Read, Failure> {
        let run = RunDir::open(&self.run)?;
        let rows = Rows::read(&run, Depth::Outcomes)?;
        let (_, verdicts) = judge(&rows, ProviderErrors::Unresolved, Recover::Timeouts);
        Ok(Read { run, rows, verdicts, reading: Reading { keep: !self.no_keep, anew: self.anew } })
    }

    /// Writes a file of what was read.
    pub(super) fn write(
        &self,
        path: &Path,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write_from(std::slice::from_ref(&self.run), path, fill)
    }
}

impl Read {
    /// Says on stderr that a run goes on, so that nobody takes its figures for the last.
    pub(super) fn warn(&self) {
        if let Some(said) = self.rows.not_final() {
            eprintln!("{said}");
        }
    }

    pub(super) fn behaviours(&self) -> Result<Behaviours, Failure> {
        let behaviours = Behaviours::read(&self.run, &self.rows, self.reading);
        if behaviours.found + behaviours.made == 0 {
            let why = behaviours.problems.first().map_or_else(String::new, |it| format!(": {it}"));
            return Err(Failure::input(format!("no trial of this run has a trace{why}")));
        }
        Ok(behaviours)
    }
}

/// Arguments of `trace stats`.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
    /// Write every figure as a line of CSV too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(super) fn stats(args: &StatsArgs) -> Result<ExitCode, Failure> {
    let read = args.run.read()?;
    let report = BehaviourReport::new(&read.rows, &read.verdicts, &read.behaviours()?);
    if args.json {
        print_json(&report)?;
    } else if args.markdown {
        println!("{}", report.markdown());
    } else {
        println!("{}", report.text());
    }
    if let Some(path) = &args.csv {
        args.run.write(path, |to| report.write_csv(to))?;
    }
    read.warn();
    Ok(ExitCode::SUCCESS)
}
