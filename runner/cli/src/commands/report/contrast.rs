//! `proctor report RUN --compare A B`: two methods on the same tasks.

use std::process::ExitCode;

use proctor_report::{Cluster, Rows, contrast, judge};

use super::{Clusters, ReportArgs, write_into};
use crate::commands::print_json;
use crate::failure::{Failure, Kind};

pub(super) fn run(args: &ReportArgs, rows: &Rows, methods: &[String]) -> Result<ExitCode, Failure> {
    let [first, second] = methods else { return Err(Failure::input("--compare takes two methods")) };
    let (rules, verdicts) = judge(rows, args.provider_errors.into(), args.recover.into());
    let cluster = match args.cluster {
        Clusters::Source => Cluster::Source,
        Clusters::Task => Cluster::Task,
    };
    let chosen = match &args.filter {
        Some(filter) => rows.select(&verdicts, filter)?,
        None => (0..rows.rows.len()).collect(),
    };
    let found = contrast(rows, &verdicts, &rules, &chosen, [first, second], cluster)
        .map_err(|error| Failure::input(error.to_string()))?;
    if found.pairs == 0 {
        return Err(Failure::input("there is no task that both methods were given"));
    }
    if args.json {
        print_json(&found)?;
    } else {
        for problem in &found.problems {
            println!("PROBLEM  {problem}");
        }
        println!("{}", if args.markdown { found.sheet().markdown() } else { found.sheet().text() });
    }
    write_into(args, "compare.csv", |file| found.write_csv(file))?;
    let open = found.left_out > 0 && !args.allow_incomplete;
    Ok(if open { Kind::Incomplete.into() } else { ExitCode::SUCCESS })
}
