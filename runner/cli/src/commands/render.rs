//! `proctor render`: one file, or again all artifacts of a run.

use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal as _;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use indicatif::{ProgressBar, ProgressStyle};
use proctor_render::{RenderJob, RenderRecord, RenderStatus};
use proctor_report::counted;
use proctor_store::{RunDir, TrialDir, TrialId, write_atomic};
use proctor_tasks::{RenderMode, RenderSettings, Task};
use serde_json::json;

use super::judge::packages;
use super::print_json;
use crate::args::RenderArgs;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::Laboratory;
use crate::rendering::{AT_A_TIME, CameOfIt, Rendering, by_id};

pub(crate) async fn render(args: RenderArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    if args.path.is_dir() {
        whole_run(&args, environment).await
    } else {
        one(&args.path, &args, environment).await
    }
}

async fn one(file: &Path, args: &RenderArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let mode = args.mode.or_else(|| mode_of(file)).ok_or_else(|| {
        Failure::input(format!("{}: the ending does not tell how to render it", file.display()))
            .hint("give --mode")
    })?;
    if !file.is_file() {
        return Err(Failure::input(format!("{}: there is no such file", file.display())));
    }
    let output = args.output.clone().unwrap_or_else(|| file.with_extension("png"));
    if output.is_dir() || same_file(file, &output) {
        return Err(Failure::input(format!("{}: the picture cannot go there", output.display()))
            .hint("give -o FILE.png"));
    }
    let laboratory = Laboratory::open(environment).await?;
    let rendering = Rendering::new(&laboratory, environment, "render", AT_A_TIME.get())?;
    let label = file.display().to_string();
    let result = rendering.render(RenderJob::new(file, mode, RenderSettings::default(), label)).await;
    rendering.close().await?;
    let result = result?;
    if let Some(png) = &result.png {
        write_atomic(&output, png)?;
    }
    if args.json {
        print_json(&result.record)?;
    } else {
        println!("{}", describe(&result.record, &output));
    }
    Ok(if result.png.is_some() { ExitCode::SUCCESS } else { Kind::Findings.into() })
}

fn same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn describe(record: &RenderRecord, output: &Path) -> String {
    if let (Some(width), Some(height), Some(digest)) = (record.width, record.height, record.digest) {
        return format!("{} {width}x{height} {digest} in {} ms", output.display(), record.duration_ms);
    }
    let line = record.line.map(|line| format!(" at line {line}")).unwrap_or_default();
    let message = record.message.as_deref().unwrap_or("no message");
    format!("no picture: {}{line}: {message}", name_of(record.status))
}

/// A status as it is written in files.
fn name_of(status: RenderStatus) -> String {
    let value = serde_json::to_value(status).unwrap_or_default();
    value.as_str().unwrap_or("failed").to_owned()
}

fn mode_of(file: &Path) -> Option<RenderMode> {
    let ending = file.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "html" | "htm" => RenderMode::Html,
        "dot" | "gv" => RenderMode::Dot,
        "py" => RenderMode::Python,
        "tex" => RenderMode::Tikz,
        _ => return None,
    })
}

async fn whole_run(args: &RenderArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    if args.mode.is_some() || args.output.is_some() {
        return Err(Failure::input("--mode and --output are for one artifact, and this is a folder"));
    }
    let run = RunDir::open(&args.path)?;
    let tasks: Vec<_> = packages(&run, &args.tasks)?.into_iter().map(Arc::new).collect();
    let tasks = by_id(&tasks);
    let laboratory = Laboratory::open(environment).await?;
    let rendering = Rendering::new(&laboratory, environment, &run.record()?.name, args.jobs.get())?;
    let result = each_trial(&run, &tasks, &rendering, args).await;
    rendering.close().await?;
    result
}

/// All trials, `args.jobs` at a time and each told as soon as it is done: one that takes long holds up nobody else.
async fn each_trial(
    run: &RunDir,
    tasks: &HashMap<String, Arc<Task>>,
    rendering: &Rendering,
    args: &RenderArgs,
) -> Result<ExitCode, Failure> {
    let trials = run.trials_on_disk()?;
    let mut tally = Tally::default();
    let bar = progress(trials.len(), args.json);
    let work = stream::iter(&trials)
        .map(|folder| async move { (folder, again(folder, tasks, rendering, args.anew).await) });
    let mut results = pin!(work.buffer_unordered(args.jobs.get()));
    while let Some((folder, result)) = results.next().await {
        bar.inc(1);
        tally.count(&result);
        let line = match &result {
            _ if args.json => Some(json_line(folder.id(), &result)?),
            Ok(Found::Ended(CameOfIt::Now(status))) => Some(format!("{}: {}", folder.id(), name_of(*status))),
            Err(failure) => Some(format!("{}: error: {failure}", folder.id())),
            Ok(_) => None,
        };
        if let Some(line) = line {
            bar.suspend(|| println!("{line}"));
        }
    }
    bar.finish_and_clear();
    if !args.json {
        println!("{}", tally.sentence());
    }
    Ok(match tally {
        Tally { errors: 1.., .. } => Kind::Internal.into(),
        Tally { unknown: 1.., .. } | Tally { elsewhere: 1.., .. } => Kind::Incomplete.into(),
        _ => ExitCode::SUCCESS,
    })
}

/// A line that counts, where there is a terminal to show it on.
fn progress(trials: usize, json: bool) -> ProgressBar {
    if json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos} of {len} trials, {elapsed}, {eta} to go")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(trials as u64).with_style(style)
}

/// What a trial is to the renderer.
enum Found {
    /// It has no outcome yet.
    Pending,
    /// Its task is not among the packages.
    Unknown,
    /// It has ended.
    Ended(CameOfIt),
}

async fn again(
    folder: &TrialDir,
    tasks: &HashMap<String, Arc<Task>>,
    rendering: &Rendering,
    anew: bool,
) -> Result<Found, Failure> {
    let Some(outcome) = folder.outcome()? else { return Ok(Found::Pending) };
    let Some(task) = tasks.get(folder.id().task()) else { return Ok(Found::Unknown) };
    rendering.trial(folder, &outcome, task, anew).await.map(Found::Ended)
}

fn json_line(trial: &TrialId, result: &Result<Found, Failure>) -> Result<String, Failure> {
    let (state, status) = match result {
        Ok(Found::Pending) => ("pending", None),
        Ok(Found::Unknown) => ("no_task", None),
        Ok(Found::Ended(CameOfIt::NoArtifact)) => ("no_artifact", None),
        Ok(Found::Ended(CameOfIt::Elsewhere)) => ("elsewhere", None),
        Ok(Found::Ended(CameOfIt::AsBefore(status))) => ("as_before", Some(*status)),
        Ok(Found::Ended(CameOfIt::Now(status))) => ("now", Some(*status)),
        Err(_) => ("error", None),
    };
    let message = result.as_ref().err().map(ToString::to_string);
    let line = json!({ "trial": trial, "state": state, "status": status, "message": message });
    serde_json::to_string(&line).map_err(|error| Failure::internal(error.to_string()))
}

/// How many trials came to what.
#[derive(Default)]
struct Tally {
    /// By state of the picture; those rendered now.
    now: BTreeMap<String, u64>,
    before: u64,
    no_artifact: u64,
    pending: u64,
    elsewhere: u64,
    unknown: u64,
    errors: u64,
}

impl Tally {
    fn count(&mut self, result: &Result<Found, Failure>) {
        *match result {
            Ok(Found::Pending) => &mut self.pending,
            Ok(Found::Unknown) => &mut self.unknown,
            Ok(Found::Ended(CameOfIt::NoArtifact)) => &mut self.no_artifact,
            Ok(Found::Ended(CameOfIt::Elsewhere)) => &mut self.elsewhere,
            Ok(Found::Ended(CameOfIt::AsBefore(_))) => &mut self.before,
            Ok(Found::Ended(CameOfIt::Now(status))) => self.now.entry(name_of(*status)).or_default(),
            Err(_) => &mut self.errors,
        } += 1;
    }

    fn sentence(&self) -> String {
        let now: u64 = self.now.values().sum();
        let mut parts = vec![match now {
            0 => "nothing to render".to_owned(),
            now => {
                let by_status = self.now.iter().map(|(status, count)| format!("{count} {status}"));
                format!("{} now: {}", counted(now, "artifact"), by_status.collect::<Vec<_>>().join(", "))
            }
        }];
        let rest = [
            (self.before, "as before"),
            (self.no_artifact, "without an artifact"),
            (self.pending, "without an outcome"),
            (self.elsewhere, "at which another process is"),
            (self.unknown, "whose task is not among the packages"),
            (self.errors, "with errors"),
        ];
        parts.extend(
            rest.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        parts.join("; ") + "."
    }
}
