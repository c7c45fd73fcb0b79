//! `proctor merge`: one run out of parts that were run on machines without a shared disk.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::counted;
use proctor_store::{Holder, RunDir, StoreError, merge as merge_runs};
use serde_json::json;

use super::print_json;
use crate::failure::{Failure, chain};

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The runs: parts of the same plan, or plans that complement each other
    #[arg(required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// The merged run: new, or begun by the same command
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn merge(args: &MergeArgs) -> Result<ExitCode, Failure> {
    let us = Holder::this_process(None)
        .map_err(|error| Failure::internal(format!("naming this process: {error}")))?;
    let merged = merge_runs(&args.runs, &args.output, &us).map_err(|error| match error {
        StoreError::Conflict { .. } => Failure::input(chain(&error)).hint(
            "only one of them can stand: move the other away, or leave its run out; nothing was overwritten",
        ),
        other => other.into(),
    })?;
    if args.json {
        print_json(&json!({
            "done": merged.done,
            "unfinished": merged.unfinished,
            "files": {"linked": merged.linked, "copied": merged.copied, "present": merged.present},
            "left_out": merged.left_out,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in &merged.left_out {
        println!("left out: {line}");
    }
    println!(
        "{}: {} done, {} begun; {} linked, {} copied, {} there before",
        args.output.display(),
        counted(merged.done, "trial"),
        merged.unfinished,
        counted(merged.linked, "file"),
        merged.copied,
        merged.present
    );
    if RunDir::open(&args.output)?.record()?.plan.is_none() {
        println!(
            "The parts were asked for in different words: their tables are one now, but what is left of them is run in the parts, \
             which are then merged again."
        );
    }
    Ok(ExitCode::SUCCESS)
}
