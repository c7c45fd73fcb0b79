//! `proctor show`: the table of a run.

use std::process::ExitCode;

use proctor_report::RunSummary;
use proctor_store::RunDir;

use super::print_json;
use crate::args::ShowArgs;
use crate::failure::Failure;

pub(crate) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let summary = RunSummary::read(&RunDir::open(&args.run)?)?;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", summary.table());
        for problem in &summary.problems {
            eprintln!("{problem}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
