//! `proctor trace check`.

use std::path::Path;
use std::process::ExitCode;

use proctor_report::counted;
use proctor_store::{Outcome, read_json};
use proctor_traces::{Finding, Format, Severity, Tally, Trace, UsageReport};
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
    let mut findings = trace.findings();
    findings.extend(
        args.subject.trial().map(|folder| against_outcome(folder, &trace)).transpose()?.unwrap_or_default(),
    );
    findings.sort_by_key(|it| it.severity);
    let report = Report { tally: trace.tally(), usage: trace.usage.clone(), findings };
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

/// What the runner counted when the trial ended, beside what its files still tell.
fn against_outcome(folder: &Path, trace: &Trace) -> Result<Vec<Finding>, Failure> {
    let path = folder.join("outcome.json");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let outcome: Outcome = read_json(&path, "outcome")?;
    let mut findings = Vec::new();
    let mut lost = |rule, message| {
        findings.push(Finding { severity: Severity::Error, rule, message, call: None });
    };
    if outcome.started_at.is_some() && !trace.sources.iter().any(|it| it.format == Some(Format::Proctor)) {
        let message =
            "trace.jsonl is missing: times are those of the agent's own files, and nobody saw the artifact";
        lost("no_journal", message.to_owned());
    } else {
        let versions: u64 = outcome.artifacts.iter().map(|it| it.versions).sum();
        if (trace.versions.len() as u64) < versions {
            let seen = trace.versions.len();
            lost(
                "lost_versions",
                format!("trace.jsonl tells of {seen} of {versions} versions of the artifact"),
            );
        }
    }
    let calls = trace.tally().outer;
    if calls < outcome.tool_calls {
        lost("lost_calls", format!("its files tell of {calls} of {} tool calls", outcome.tool_calls));
    }
    Ok(findings)
}
