//! People as judges: a folder goes out, a sheet comes back.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use proctor_judge::human::{BlindError, Rater, Sheet, Subject, export as write, key_of, take};
use proctor_report::counted;
use proctor_store::{RunDir, TrialDir, TrialId};
use serde_json::json;

use super::{JudgeArgs, packages};
use crate::commands::print_json;
use crate::failure::{Failure, Kind, chain};

/// The file that is filled in.
const SHEET: &str = "sheet.csv";

pub(super) fn export(args: &JudgeArgs, to: &Path) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let tasks = packages(&run, &args.tasks)?;
    let mut trials: BTreeMap<String, Vec<TrialDir>> = BTreeMap::new();
    for folder in run.trials_on_disk()? {
        trials.entry(folder.id().task().to_owned()).or_default().push(folder);
    }
    let subjects: Vec<Subject<'_>> = tasks
        .iter()
        .filter_map(|task| Some(Subject { trials: trials.remove(&task.id().to_string())?, task }))
        .collect();
    if let Some((task, _)) = trials.first_key_value() {
        return Err(Failure::input(format!("the task {task} is not among the packages"))
            .hint("say where all of them are: --tasks PATH"));
    }
    let done = write(&run, &subjects, to, args.seed, args.sample.map(NonZeroUsize::get))
        .map_err(|error| failure(&error))?;
    if args.json {
        print_json(&json!({
            "export": done.export, "items": done.items, "not_drawn": done.not_drawn, "key": done.key,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let rest = if done.not_drawn > 0 { format!(" ({} not drawn)", done.not_drawn) } else { String::new() };
    println!("{}{rest} in {}: open index.html, fill in {SHEET}.", counted(done.items, "item"), to.display());
    println!("The key is {}; it is not for raters.", done.key.display());
    Ok(ExitCode::SUCCESS)
}

pub(super) fn import(args: &JudgeArgs, from: &Path, rater: &Rater) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let key = key_of(&run, from).map_err(|error| failure(&error))?;
    let path = from.join(SHEET);
    let bytes = std::fs::read(&path)
        .map_err(|error| Failure::input(format!("reading {}: {error}", path.display())))?;
    let sheet = Sheet::read(&bytes, &key).map_err(|error| {
        Failure::input(format!("{}: {error}", path.display()))
            .hint("nothing was taken over; mend it and try again")
    })?;
    let taken = take(&run, &key, &sheet, &bytes, rater).map_err(|error| failure(&error))?;
    let whole = taken.missing == 0 && taken.stale.is_empty();
    let status = if whole { ExitCode::SUCCESS } else { Kind::Incomplete.into() };
    if args.json {
        print_json(&json!({
            "judge": rater.judge(), "export": key.export, "scored": taken.scored, "partly": taken.partly,
            "untouched": taken.untouched, "missing": taken.missing, "stale": taken.stale,
            "without_picture": taken.without_picture,
        }))?;
        return Ok(status);
    }
    println!(
        "{} scored by {}, {} in part, {} not at all; {} missing. {} without a picture: no point holds.",
        counted(taken.scored, "item"),
        rater.judge(),
        taken.partly.len(),
        taken.untouched,
        counted(taken.missing, "mark"),
        counted(taken.without_picture, "trial"),
    );
    tell("unscored, since marks are missing", &taken.partly);
    tell("not taken over: its picture is not the one that was looked at", &taken.stale);
    Ok(status)
}

fn tell(what: &str, trials: &[TrialId]) {
    for trial in trials {
        eprintln!("{trial}: {what}");
    }
}

fn failure(error: &BlindError) -> Failure {
    let failure = Failure::input(chain(error));
    match error {
        BlindError::NotEmpty { .. } => failure.hint("name a folder that is not there yet"),
        BlindError::Nothing => failure.hint("`proctor render RUN` renders what was left"),
        BlindError::NoLabel { .. } => failure.hint("name the folder that --export-blind wrote"),
        BlindError::Strange { .. } => {
            failure.hint("its key is in the folder `blind` of the run that it came from")
        }
        _ => failure,
    }
}
