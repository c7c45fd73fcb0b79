//! `proctor trace actions`.

use std::process::ExitCode;

use clap::Args;
use proctor_traces::actions::{Action, CallActions, Reason, classify};
use proctor_traces::{Call, Trace};
use serde::Serialize;

use super::Subject;
use super::timeline::printable;
use crate::commands::print_json;
use crate::failure::Failure;

/// Arguments of `trace actions`.
#[derive(Debug, Args)]
pub(crate) struct ActionsArgs {
    #[command(flatten)]
    subject: Subject,
    /// The designated file, relative to the workspace, instead of telling it from the calls
    #[arg(long, value_name = "FILE")]
    artifact: Option<String>,
    /// Say why
    #[arg(long)]
    explain: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A line of `--json`.
#[derive(Serialize)]
struct Row<'t> {
    name: &'t str,
    #[serde(flatten)]
    actions: CallActions,
}

pub(super) fn actions(args: &ActionsArgs) -> Result<ExitCode, Failure> {
    let trace = args.subject.read()?;
    let labelled = classify(&trace, args.artifact.as_deref());
    if args.json {
        let rows = trace.outer_calls().zip(labelled).map(|(call, mut actions)| {
            if !args.explain {
                actions.reasons.clear();
            }
            Row { name: &call.name, actions }
        });
        print_json(&rows.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for (call, actions) in trace.outer_calls().zip(&labelled) {
        println!("{}", line(call, actions));
        if args.explain {
            for reason in &actions.reasons {
                println!("{}", why(reason));
            }
        }
    }
    for line in sums(&trace, &labelled) {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

fn line(call: &Call, actions: &CallActions) -> String {
    let names: Vec<&str> = actions.actions.iter().map(|it| it.as_str()).collect();
    let names = if names.is_empty() { "other".to_owned() } else { names.join(", ") };
    let flags = [
        (actions.first, "first write"),
        (actions.designated.write && !actions.first, "write"),
        (actions.designated.render, "render"),
        (actions.designated.preview, "preview"),
    ];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("  [{}]", flags.join(", ")) };
    let id: String = printable(&call.id.0).chars().take(24).collect();
    let name: String = printable(&call.name).chars().take(14).collect();
    format!("{id:<24} {name:<14} {names}{flags}")
}

fn why(reason: &Reason) -> String {
    let evidence: String = printable(&reason.evidence).chars().take(80).collect();
    format!("{:<40}{}: {} ({evidence})", "", reason.action, reason.because)
}

/// How many calls carry each action, and how many none.
fn sums(trace: &Trace, labelled: &[CallActions]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for action in Action::ALL {
        let count = labelled.iter().filter(|it| it.actions.contains(&action)).count();
        if count > 0 {
            lines.push(format!("{count:>5} {action}"));
        }
    }
    let other = labelled.iter().filter(|it| it.actions.is_empty()).count();
    lines.push(format!("{other:>5} other, of {} calls", trace.outer_calls().count()));
    lines
}
