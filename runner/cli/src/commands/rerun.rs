//! `proctor rerun`: asks for trials to be made once more. The old attempts keep their evidence and count no more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::{Depth, ProviderErrors, Recover, Row, RowState, Rows, agreeing, counted, judge};
use proctor_store::{LeaseTerms, MethodId, PresenceState, RunDir, TrialId};
use serde::Serialize;
use serde_json::json;

use super::print_json;
use crate::failure::Failure;
use crate::printing::quoted;

/// How many trials of a method are named that keep what they were given.
const TOLD: usize = 5;

const RERUN_EXAMPLES: &str = "\
Examples:
  proctor rerun runs/campaign --where 'ending == \"infra_error\"' --reason 'the disk was full'
  proctor rerun runs/campaign --where 'host == \"node7\" and agent_s > 60' --reason 'its clock was wrong' --dry-run

Only trials that have an outcome are made again. Choosing by result and running again until it pleases is not an experiment:
the reasons stay in the run.";

/// Arguments of `rerun`.
#[derive(Debug, Args)]
#[command(after_help = RERUN_EXAMPLES)]
pub(crate) struct RerunArgs {
    /// The run
    pub(crate) run: PathBuf,
    /// Which trials: an expression as for `report --where`
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: String,
    /// Why; it is kept with the trial
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: String,
    /// Only list what would be made again
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn rerun(args: &RerunArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let rows = Rows::read(&run, Depth::Everything)?;
    let (_, verdicts) = judge(&rows, ProviderErrors::Unresolved, Recover::Timeouts);
    let chosen = rows.select(&verdicts, &args.filter)?.into_iter().map(|at| &rows.rows[at]);
    let (done, open): (Vec<_>, Vec<_>) =
        chosen.partition(|row| !matches!(row.state, RowState::Pending { .. }));
    let mut made = Vec::new();
    for row in &done {
        let again = row.trial.at(row.trial.attempt().again());
        made.push(if args.dry_run { again } else { run.rerun(&row.trial, &args.reason)? });
    }
    let consumers = consumers(&run, &rows, &done)?;
    if args.json {
        let pairs: Vec<_> =
            done.iter().zip(&made).map(|(row, again)| json!({"trial": row.trial, "again": again})).collect();
        print_json(
            &json!({"dry_run": args.dry_run, "reruns": pairs, "still_open": open.len(), "consumers": consumers}),
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let verb = if args.dry_run { "would be made again as" } else { "is to be made again as" };
    for (row, again) in done.iter().zip(&made) {
        println!("{} ({}) {verb} {again}", row.trial, row.ending());
    }
    if !open.is_empty() {
        let (have, they) = (agreeing(open.len(), "has", "have"), agreeing(open.len(), "it is", "they are"));
        println!("{} more {have} no outcome yet: {they} run anyway", open.len());
    }
    for line in note(&consumers) {
        println!("{line}");
    }
    match (made.len(), args.dry_run) {
        (0, _) => println!("no trial with an outcome was chosen"),
        (_, true) => println!("nothing was changed"),
        (count, false) => {
            println!("{}", what_now(count, is_at_work(&run, &rows)));
            if rows.record.plan.is_some() {
                println!("  or: proctor run --join {}", quoted(&args.run));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A trial that was given what another left which is to be made again.
#[derive(Serialize)]
struct Consumer {
    trial: TrialId,
    method: MethodId,
    given: TrialId,
}

/// The trials that were given what one of these left, and are not made again themselves.
fn consumers(run: &RunDir, rows: &Rows, chosen: &[&Row]) -> Result<Vec<Consumer>, Failure> {
    let methods = &rows.record.methods;
    let with_needs = |row: &&Row| methods.get(row.method).is_some_and(|it| it.settings.contains_key("needs"));
    let old: BTreeSet<&TrialId> = chosen.iter().map(|row| &row.trial).collect();
    let mut found = Vec::new();
    for row in rows.rows.iter().filter(with_needs).filter(|row| !old.contains(&row.trial)) {
        if row.ended().is_none() {
            continue;
        }
        let consumed = run.trial(&row.trial).outcome()?.and_then(|outcome| outcome.consumed);
        if let Some(consumed) = consumed.filter(|it| old.contains(&it.trial)) {
            let (trial, method) = (row.trial.clone(), row.trial.method().clone());
            found.push(Consumer { trial, method, given: consumed.trial });
        }
    }
    Ok(found)
}

/// A line for each method whose trials keep what they were given.
fn note(consumers: &[Consumer]) -> Vec<String> {
    let mut by_method: BTreeMap<&MethodId, Vec<&Consumer>> = BTreeMap::new();
    for it in consumers {
        by_method.entry(&it.method).or_default().push(it);
    }
    let lines = by_method.into_iter().map(|(method, them)| {
        let mut names: Vec<String> = them.iter().take(TOLD).map(|it| it.trial.to_string()).collect();
        if them.len() > TOLD {
            names.push(format!("{} more", them.len() - TOLD));
        }
        format!(
            "note: {} of {method} {} given what was left before, and {} as {} (rerun {} too if that is not what you want): {}",
            counted(them.len(), "trial"),
            agreeing(them.len(), "was", "were"),
            agreeing(them.len(), "stays", "stay"),
            agreeing(them.len(), "it is", "they are"),
            agreeing(them.len(), "it", "them"),
            names.join(", ")
        )
    });
    lines.collect()
}

/// Whether a living process works on the run: it takes in what is asked for.
fn is_at_work(run: &RunDir, rows: &Rows) -> bool {
    let expiry = LeaseTerms::default().expiry;
    let pending = rows.rows.iter().filter(|row| matches!(row.state, RowState::Pending { .. }));
    let mut presences = pending.filter_map(|row| run.trial(&row.trial).presence(expiry));
    presences.any(|it| it.state == PresenceState::Alive)
}

fn what_now(count: usize, is_at_work: bool) -> String {
    let (trials, are) = (counted(count, "trial"), agreeing(count, "is", "are"));
    let (it, its) = (agreeing(count, "it", "them"), agreeing(count, "it is", "they are"));
    if is_at_work {
        format!(
            "{trials} {are} pending now. The process that is at work on the run takes {it} in when all else is started; \
             if {its} pending after that: the command that started the run"
        )
    } else {
        format!("{trials} {are} pending now. To run {it}: the command that started the run")
    }
}

fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("say why".to_owned()) } else { Ok(text.to_owned()) }
}
