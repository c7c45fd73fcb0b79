//! `proctor render`: one file, or again all artifacts of a run.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use proctor_render::{RenderJob, RenderRecord, RenderStatus};
use proctor_store::{RunDir, TrialDir, TrialId, write_atomic};
use proctor_tasks::{RenderMode, RenderSettings, Task};

use super::print_json;
use crate::args::RenderArgs;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::Laboratory;
use crate::rendering::{AT_A_TIME, Rendering, by_id};

pub(crate) async fn render(args: RenderArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    match (&args.file, &args.run) {
        (Some(file), _) => one(file, &args, environment).await,
        (None, Some(run)) => whole_run(run, &args, environment).await,
        (None, None) => Err(Failure::input("nothing to render")),
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
    let rendering = Rendering::new(&laboratory, environment, "render", AT_A_TIME)?;
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

async fn whole_run(root: &Path, args: &RenderArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let run = RunDir::open(root)?;
    let tasks: Vec<_> = proctor_tasks::discover(&args.tasks)?.into_iter().map(Arc::new).collect();
    let tasks = by_id(&tasks);
    let laboratory = Laboratory::open(environment).await?;
    let rendering = Rendering::new(&laboratory, environment, &run.record()?.name, AT_A_TIME)?;
    let result = each_trial(&run, &tasks, &rendering, args.json).await;
    rendering.close().await?;
    result
}

async fn each_trial(
    run: &RunDir,
    tasks: &HashMap<String, Arc<Task>>,
    rendering: &Rendering,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut left_out = 0;
    let trials = run.trials_on_disk()?;
    let work = stream::iter(&trials).map(|folder| again(folder, tasks, rendering));
    let mut results = work.buffered(AT_A_TIME);
    while let Some(result) = results.next().await {
        let Some((trial, found)) = result? else { continue };
        let status = found.as_ref().map(|status| status.map_or_else(|| "no_artifact".to_owned(), name_of));
        left_out += u32::from(found.is_none());
        if json {
            print_json(&serde_json::json!({ "trial": trial, "status": status }))?;
        } else {
            println!("{trial}: {}", status.as_deref().unwrap_or("its task is not among --tasks"));
        }
    }
    Ok(if left_out == 0 { ExitCode::SUCCESS } else { Kind::Incomplete.into() })
}

/// One trial: none without an outcome; and in it no status at all where its task is not known.
async fn again<'a>(
    folder: &'a TrialDir,
    tasks: &HashMap<String, Arc<Task>>,
    rendering: &Rendering,
) -> Result<Option<(&'a TrialId, Option<Option<RenderStatus>>)>, Failure> {
    let Some(outcome) = folder.outcome()? else { return Ok(None) };
    let Some(task) = tasks.get(folder.id().task()) else { return Ok(Some((folder.id(), None))) };
    Ok(Some((folder.id(), Some(rendering.trial(folder, &outcome, task).await?))))
}
