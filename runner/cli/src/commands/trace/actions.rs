//! `proctor trace actions`.

use std::process::ExitCode;

use clap::Args;
use proctor_report::counted;
use proctor_traces::Trace;
use proctor_traces::actions::{Action, CallActions, Reason, Session, StatedActions, classify, stated};
use serde::Serialize;

use super::Subject;
use super::labeller::LabellerArgs;
use super::timeline::printable;
use crate::commands::print_json;
use crate::environment::Environment;
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
    #[arg(long, conflicts_with = "labeller")]
    explain: bool,
    #[command(flatten)]
    labeller: LabellerArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// An element of `--json`: a call, or something that was said outside of calls; in causal order.
#[derive(Serialize)]
#[serde(untagged)]
enum Row<'t> {
    Call {
        name: &'t str,
        #[serde(flatten)]
        actions: CallActions,
    },
    Stated {
        stated: StatedActions,
    },
}

pub(super) async fn actions(args: &ActionsArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let trace = args.subject.read()?;
    let mut labelled = classify(&trace, args.artifact.as_deref());
    if let Some(labeller) = args.labeller.open(environment).await? {
        // Flags stay those of the rules: they are facts about a path, which a model has no better view of.
        let labels = labeller.label(&Session::of_trace(&trace, args.artifact.as_deref())).await?;
        for (ours, theirs) in labelled.iter_mut().zip(labels) {
            ours.actions = theirs.into_iter().collect();
            ours.reasons.clear();
        }
    }
    let statements = stated(&trace, &labelled);
    let closing = sums(&trace, &labelled, &statements);
    let mut rows: Vec<(u32, Row<'_>)> = Vec::new();
    rows.extend(statements.into_iter().map(|it| (it.seq, Row::Stated { stated: it })));
    let calls = trace.outer_calls().zip(labelled);
    rows.extend(calls.map(|(call, actions)| (call.seq, Row::Call { name: &call.name, actions })));
    rows.sort_by_key(|(seq, _)| *seq);
    let rows: Vec<Row<'_>> = rows.into_iter().map(|(_, row)| row.explained(args.explain)).collect();
    if args.json {
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for row in &rows {
        let (line, reasons) = match row {
            Row::Call { name, actions } => (call_line(name, actions), &actions.reasons),
            Row::Stated { stated } => (stated_line(stated), &stated.reasons),
        };
        println!("{line}");
        for reason in reasons {
            println!("{}", why(reason));
        }
    }
    for line in closing {
        println!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

impl Row<'_> {
    /// With its reasons, or without.
    fn explained(mut self, explain: bool) -> Self {
        let reasons = match &mut self {
            Self::Call { actions, .. } => &mut actions.reasons,
            Self::Stated { stated } => &mut stated.reasons,
        };
        if !explain {
            reasons.clear();
        }
        self
    }
}

fn stated_line(stated: &StatedActions) -> String {
    let names: Vec<&str> = stated.actions.iter().map(|it| it.as_str()).collect();
    let kind = if stated.reasoning { "reasoning" } else { "message" };
    format!("{:<24} {kind:<14} {}", format!("(said, {})", stated.seq), names.join(", "))
}

fn call_line(name: &str, actions: &CallActions) -> String {
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
    let id = middle_cut(&printable(&actions.call.0), 24);
    let name: String = printable(name).chars().take(14).collect();
    format!("{id:<24} {name:<14} {names}{flags}")
}

/// Cut in the middle: the ids of some agents begin alike, those of others end alike.
fn middle_cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let head = most / 3;
    let tail = length - (most - head - 1);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(tail)).collect()
}

fn why(reason: &Reason) -> String {
    let evidence: String = printable(&reason.evidence).chars().take(80).collect();
    format!("{:<40}{}: {} ({evidence})", "", reason.action, reason.because)
}

/// How many calls carry each action, and how many none.
fn sums(trace: &Trace, labelled: &[CallActions], stated: &[StatedActions]) -> Vec<String> {
    let mut lines = vec![String::new()];
    for action in Action::ALL {
        let count = labelled.iter().filter(|it| it.actions.contains(&action)).count();
        if count > 0 {
            lines.push(format!("{count:>5} {action}"));
        }
    }
    let other = labelled.iter().filter(|it| it.actions.is_empty()).count();
    lines.push(format!("{other:>5} other, of {}", counted(trace.outer_calls().count(), "call")));
    if !stated.is_empty() {
        lines.push(format!("{:>5} stated outside of calls", stated.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_begin_alike_stay_apart() {
        let id = |last: u32| middle_cut(&format!("run_shell_command-1796000000000-{last}"), 24);
        assert_ne!(id(17), id(18));
        assert_eq!((id(17).chars().count(), middle_cut("call_1", 24)), (24, "call_1".to_owned()));
    }
}
