//! `proctor trace show`.

use std::process::ExitCode;

use super::{ShowArgs, timeline};
use crate::commands::print_json;
use crate::failure::Failure;

pub(super) fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let trace = args.subject.read()?;
    if args.json {
        print_json(&trace)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in timeline::lines(&trace, args.model) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}
