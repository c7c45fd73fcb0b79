//! `proctor trace check`.

use std::process::ExitCode;

use proctor_report::counted;
use proctor_traces::{Finding, Severity, Tally, UsageReport};
use serde::Serialize;

use super::CheckArgs;
use super::timeline::printable;
use crate::commands::print_json;
use crate::failure::{Failure, Kind};

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    tally: Tally,
    usage: UsageReport,
    findings: Vec<Finding>,
}

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let trace = args.subject.read()?;
    let report = Report { tally: trace.tally(), usage: trace.usage.clone(), findings: trace.findings() };
    let count = |severity| report.findings.iter().filter(|it| it.severity == severity).count();
    let (errors, warnings, notes) = (count(Severity::Error), count(Severity::Warning), count(Severity::Note));
    if args.json {
        print_json(&report)?;
    } else {
        for finding in &report.findings {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            println!("{severity:<8} {}", printable(&finding.message));
        }
        let tally = &report.tally;
        println!(
            "{}, {} of programs; {}, {}, {}",
            counted(tally.outer, "call"),
            counted(tally.inner, "operation"),
            counted(errors, "error"),
            counted(warnings, "warning"),
            counted(notes, "note")
        );
    }
    Ok(if errors > 0 { Kind::Findings.into() } else { ExitCode::SUCCESS })
}
