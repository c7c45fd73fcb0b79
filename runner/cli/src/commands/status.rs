//! `proctor status`: how a run stands, whether it goes on or not.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::RunStatus;
use proctor_store::RunDir;

use super::print_json;
use crate::failure::Failure;

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run
    pub(crate) run: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let status = RunStatus::read(&RunDir::open(&args.run)?)?;
    if args.json {
        print_json(&status)?;
    } else {
        println!("{}", status.text());
    }
    Ok(ExitCode::SUCCESS)
}
