//! What a report is of: a run, or a part of it, or it and another beside it.

use std::path::Path;

use proctor_report::{Depth, Rows, SubsetError, TaskNames, judge};
use proctor_store::RunDir;

use super::ReportArgs;
use crate::failure::Failure;

/// A longer list of tasks is none, in bytes.
const LONGEST: u64 = 16 << 20;

pub(super) fn read(args: &ReportArgs, run: &Path) -> Result<Rows, Failure> {
    let mut rows = Rows::read_by(&RunDir::open(run)?, Depth::Everything, args.judge.as_deref())?;
    if let Some(file) = &args.subset {
        rows.keep(&names(file)?).map_err(|error| wrong(file, &error))?;
    }
    if let Some(path) = &args.baseline {
        let baseline = Rows::read_by(&RunDir::open(path)?, Depth::Everything, args.judge.as_deref())?;
        if rows.is_judged() != baseline.is_judged() {
            let unjudged = if rows.is_judged() { path } else { run };
            return Err(Failure::input(format!(
                "{}: no judge has marked this run, and one has marked the other: their figures do not mean the same",
                unjudged.display()
            ))
            .hint("`proctor judge RUN` does; --judge says whose marks count"));
        }
        rows.put_beside(baseline).map_err(|error| wrong(path, &error))?;
    }
    if let Some(wanted) = args.judge.as_deref().filter(|_| !rows.is_judged()) {
        return Err(Failure::input(format!("no trial of this run has marks by `{wanted}`"))
            .hint("judges name themselves at the end of `proctor judge`, and in score.json"));
    }
    if let Some(filter) = &args.filter {
        let (_, verdicts) = judge(&rows, args.provider_errors.into(), args.recover.into());
        if rows.select(&verdicts, filter)?.is_empty() {
            return Err(Failure::input(format!("no trial of this run matches --where '{filter}'"))
                .hint("--json without --where shows what each trial has"));
        }
    }
    Ok(rows)
}

fn names(file: &Path) -> Result<TaskNames, Failure> {
    let read = std::fs::metadata(file).and_then(|it| {
        if it.len() > LONGEST {
            Err(std::io::Error::other("it is too long"))
        } else {
            std::fs::read_to_string(file)
        }
    });
    let text = read.map_err(|error| Failure::input(format!("reading {}: {error}", file.display())))?;
    TaskNames::parse(&text).map_err(|error| wrong(file, &error))
}

fn wrong(path: &Path, error: &SubsetError) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}
