//! `proctor rerun`: asks for trials to be made once more. The old attempts keep their evidence and count no more.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::{Depth, ProviderErrors, Recover, RowState, Rows, judge};
use proctor_store::RunDir;
use serde_json::json;

use super::print_json;
use crate::failure::Failure;
use crate::printing::quoted;

const RERUN_EXAMPLES: &str = "\
Examples:
  proctor rerun runs/campaign --where 'ending == \"infra_error\"' --reason 'the disk was full'
  proctor rerun runs/campaign --where 'host == \"node7\" and agent_s > 60' --reason 'its clock was wrong' --dry-run

Only trials that have an outcome are made again. Choosing by result and running again until it pleases is not an experiment:
the reasons stay in the run.";

/// Arguments of `rerun`.
#[derive(Debug, Args)]
#[command(after_help = RERUN_EXAMPLES)]
pub(crate) struct RerunArgs {
    /// The run
    pub(crate) run: PathBuf,
    /// Which trials: an expression as for `report --where`
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: String,
    /// Why; it is kept with the trial
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Only list what would be made again
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn rerun(args: &RerunArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let rows = Rows::read(&run, Depth::Everything)?;
    let (_, verdicts) = judge(&rows, ProviderErrors::Unresolved, Recover::Timeouts);
    let chosen = rows.select(&verdicts, &args.filter)?.into_iter().map(|at| &rows.rows[at]);
    let (done, open): (Vec<_>, Vec<_>) =
        chosen.partition(|row| !matches!(row.state, RowState::Pending { .. }));
    let mut made = Vec::new();
    for row in &done {
        let again = row.trial.at(row.trial.attempt().again());
        made.push(if args.dry_run { again } else { run.rerun(&row.trial, &args.reason)? });
    }
    if args.json {
        let pairs: Vec<_> =
            done.iter().zip(&made).map(|(row, again)| json!({"trial": row.trial, "again": again})).collect();
        print_json(&json!({"dry_run": args.dry_run, "reruns": pairs, "still_open": open.len()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would be made again as" } else { "is to be made again as" };
    for (row, again) in done.iter().zip(&made) {
        println!("{} ({}) {verb} {again}", row.trial, row.ending());
    }
    if !open.is_empty() {
        println!("{} more have no outcome yet: they are run anyway", open.len());
    }
    match (made.len(), args.dry_run) {
        (0, _) => println!("no trial with an outcome was chosen"),
        (_, true) => println!("nothing was changed"),
        (count, false) => {
            println!(
                "{count} trials are pending now. To run them: the command that started the run, once it has ended"
            );
            if rows.record.plan.is_some() {
                println!("  or: proctor run --join {}", quoted(&args.run));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("say why".to_owned()) } else { Ok(text.to_owned()) }
}
