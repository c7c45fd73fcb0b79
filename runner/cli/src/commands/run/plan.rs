//! From what was typed to what is to be run; and `--print-plan`, which only says it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proctor_experiment::{
    Estimate, Experiment, ExperimentFile, Pilot, Resolved, TrialCounts, choose, estimate, join, resolve,
};
use proctor_report::{counted, headed_table};
use proctor_store::{Attempt, RunDir, Survey, TrialId, resume};
use proctor_tasks::Task;
use serde::Serialize;
use serde_json::Value;

use super::RunArgs;
use super::estimate::{describe, read_pilot};
use crate::commands::{methods, print_json};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::laboratory::absolute;
use crate::printing::quoted;
use crate::recordings;

/// The experiment: of the run that is joined, or of file and flags.
pub(super) fn resolved(args: &RunArgs) -> Result<Resolved, Failure> {
    let flags = args.flags();
    if let Some(run) = &args.join {
        return Ok(join(plan_of(run)?, &flags)?);
    }
    let file = args.experiment.as_deref().map(ExperimentFile::load).transpose()?;
    let here = absolute(Path::new("."))?;
    Ok(resolve(file.as_ref(), &flags, &here)?)
}

/// What a run was asked for.
fn plan_of(run: &Path) -> Result<Experiment, Failure> {
    let record = RunDir::open(run)?.record()?;
    let again = "continue it by the command that started it, with --out";
    let plan = record.plan.ok_or_else(|| {
        Failure::input(format!("{}: this run keeps no plan to join", run.display())).hint(again)
    })?;
    serde_json::from_value(plan).map_err(|error| {
        Failure::input(format!("{}: its plan is not of this version of proctor: {error}", run.display()))
            .hint(again)
    })
}

/// The tasks that are selected, by name. A run that is `joined` says where its tasks were when it was made.
pub(super) fn tasks(experiment: &Experiment, joined: Option<&Path>) -> Result<Vec<Task>, Failure> {
    let here = absolute(Path::new("."))?;
    let paths: Vec<PathBuf> = experiment.tasks.paths.iter().map(|path| shown(path, &here)).collect();
    let hinted = |failure: Failure| {
        match joined {
        Some(run) => failure.hint(format!(
            "the run says that its tasks are there: put them back, or name where they are now by the command that \
             started it, with --tasks FOLDER --out {}; it continues if they are the same tasks",
            quoted(run)
        )),
        None => failure,
    }
    };
    let found = proctor_tasks::discover(&paths).map_err(|error| hinted(error.into()))?;
    choose(&experiment.tasks, found).map_err(|error| match joined {
        Some(_) => hinted(error.into()),
        None => error.into(),
    })
}

/// A path as one would type it `here`: messages about packages name it.
fn shown(path: &Path, here: &Path) -> PathBuf {
    match path.strip_prefix(here) {
        Ok(inside) if inside.as_os_str().is_empty() => PathBuf::from("."),
        Ok(inside) => inside.to_owned(),
        Err(_) => path.to_owned(),
    }
}

/// What `--print-plan --json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    /// The experiment, as `run.json` keeps it.
    plan: &'a Experiment,
    /// Where settings came from; those that are not here are as proctor has them.
    origins: BTreeMap<&'a str, String>,
    /// The tasks that are selected.
    tasks: Vec<&'a str>,
    /// Trials by method.
    trials: Vec<Counted<'a>>,
    /// What recordings are played.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recordings: Vec<recordings::Listed>,
    /// What the open trials will take, if there is a run to tell it from.
    estimate: Option<Estimate>,
    /// What this machine lacks to run it: agent CLIs, keys.
    lacks: Vec<String>,
}

#[derive(Serialize)]
struct Counted<'a> {
    method: &'a str,
    planned: u64,
    done: u64,
}

/// Prints the plan and what it comes to. Needs no engine, no image and no key.
pub(super) fn print(
    args: &RunArgs,
    resolved: &Resolved,
    tasks: &[Task],
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let experiment = &resolved.experiment;
    let lacks = methods::look_over(experiment, environment)?;
    for lack in &lacks {
        eprintln!("warning: {lack}");
    }
    let recordings = recordings::of_experiment(experiment)?;
    let run = args.out.as_deref().filter(|out| out.join("run.json").is_file());
    let run = run.map(RunDir::open).transpose()?;
    let trials = counts(experiment, tasks, run.as_ref())?;
    let open: TrialCounts = experiment
        .methods
        .iter()
        .zip(&trials)
        .map(|(method, counted)| (method.id.clone(), counted.planned - counted.done))
        .collect();
    let pilot = match &args.pilot {
        Some(pilot) => Some(read_pilot(&RunDir::open(pilot)?)?),
        None => run.as_ref().map(read_pilot).transpose()?,
    };
    let pilot = pilot.filter(|pilot: &Pilot| !pilot.methods.is_empty());
    let estimate = pilot.map(|pilot| estimate(experiment, &open, &pilot));
    if args.json {
        let origins = resolved.origins.iter();
        print_json(&Printed {
            plan: experiment,
            origins: origins.map(|(path, origin)| (path.as_str(), origin.to_string())).collect(),
            tasks: tasks.iter().map(|task| task.id().as_str()).collect(),
            trials,
            recordings,
            estimate,
            lacks,
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", settings(resolved));
    println!("{}", trial_table(&trials, estimate.as_ref()));
    for recording in &recordings {
        println!("{recording}");
    }
    println!("{}", sum(experiment, tasks.len(), &trials));
    println!("{}", describe(estimate.as_ref(), args.pilot.is_some()));
    Ok(ExitCode::SUCCESS)
}

/// Trials by method, and how many of them have an outcome.
fn counts<'a>(
    experiment: &'a Experiment,
    tasks: &[Task],
    run: Option<&RunDir>,
) -> Result<Vec<Counted<'a>>, Failure> {
    let survey = run.map(RunDir::survey).transpose()?.unwrap_or_else(Survey::new);
    let mut counted = Vec::new();
    for method in &experiment.methods {
        let mut planned = Vec::new();
        for attempt in 1..=experiment.attempts.as_u32() {
            for task in tasks {
                let suite = task.metadata.suite.to_string();
                let id = TrialId::new(&suite, task.id().as_str(), method.id.clone(), Attempt::nth(attempt));
                planned.push(id.map_err(|error| Failure::input(error.to_string()))?);
            }
        }
        let open = resume(&planned, &survey).len();
        let done = planned.len().saturating_sub(open) as u64;
        counted.push(Counted { method: method.id.as_str(), planned: planned.len() as u64, done });
    }
    Ok(counted)
}

/// Every setting. What all methods have in common is said once, before what each has of its own.
fn settings(resolved: &Resolved) -> String {
    let common = common_to_methods(resolved);
    let mut said = BTreeSet::new();
    let mut rows = Vec::new();
    for setting in resolved.settings() {
        let mut path = setting.path.clone();
        let key = method_key(resolved, &path);
        if let Some(key) = key.filter(|key| common.contains(key)) {
            if !said.insert(key.clone()) {
                continue;
            }
            path = format!("methods.*.{key}");
        }
        let value = match (&setting.value, path.as_str()) {
            // They may be thousands.
            (Value::Array(ids), "tasks.ids") if ids.len() > 10 => format!("{} names", ids.len()),
            _ => setting.text(),
        };
        rows.push(vec![path, value, setting.origin.to_string()]);
    }
    let is_common = |row: &Vec<String>| row.first().is_some_and(|path| path.starts_with("methods.*."));
    let methods = rows.iter().position(|row| row.first().is_some_and(|path| path.starts_with("methods.")));
    if let Some(of_methods) = methods.and_then(|first| rows.get_mut(first..)) {
        let end = of_methods.iter().position(|row| row.first().is_none_or(|it| !it.starts_with("methods.")));
        let end = end.unwrap_or(of_methods.len());
        if let Some(of_methods) = of_methods.get_mut(..end) {
            of_methods.sort_by_key(|row| !is_common(row));
        }
    }
    let mut table = headed_table(&["setting", "value", "from"]);
    table.add_rows(rows);
    table.to_string()
}

/// The part of a setting's path after the name of its method.
fn method_key(resolved: &Resolved, path: &str) -> Option<String> {
    let rest = path.strip_prefix("methods.")?;
    let methods = resolved.experiment.methods.iter();
    let own = methods.filter_map(|method| rest.strip_prefix(method.id.as_str())?.strip_prefix('.'));
    // A name may begin as another does.
    own.min_by_key(|key| key.len()).map(str::to_owned)
}

/// Settings that are the same for all methods, from the same place; none if there is only one method.
fn common_to_methods(resolved: &Resolved) -> BTreeSet<String> {
    let mut values: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    let settings = resolved.settings();
    for setting in &settings {
        if let Some(key) = method_key(resolved, &setting.path) {
            values.entry(key).or_default().insert((setting.value.to_string(), setting.origin.to_string()));
        }
    }
    let several = resolved.experiment.methods.len() > 1;
    values.into_iter().filter(|(_, values)| several && values.len() == 1).map(|(key, _)| key).collect()
}

fn trial_table(trials: &[Counted<'_>], estimate: Option<&Estimate>) -> String {
    let mut head = vec!["method", "trials", "done"];
    if estimate.is_some() {
        head.extend(["to come: tokens", "USD", "hours in rooms"]);
    }
    let mut table = headed_table(&head);
    for (index, counted) in trials.iter().enumerate() {
        let mut row = vec![counted.method.to_owned(), counted.planned.to_string(), counted.done.to_string()];
        if let Some(estimate) = estimate {
            row.extend(super::estimate::cells(estimate.methods.get(index)));
        }
        table.add_row(row);
    }
    table.to_string()
}

fn sum(experiment: &Experiment, tasks: usize, trials: &[Counted<'_>]) -> String {
    let planned: u64 = trials.iter().map(|counted| counted.planned).sum();
    let done: u64 = trials.iter().map(|counted| counted.done).sum();
    let (methods, attempts) = (experiment.methods.len(), experiment.attempts.get());
    format!(
        "{}: {} × {} × {}; {done} done.",
        counted(planned, "trial"),
        counted(tasks, "task"),
        counted(methods, "method"),
        counted(attempts, "attempt"),
    )
}
