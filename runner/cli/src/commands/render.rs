//! `proctor render`: one file, or again all artifacts of a run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use proctor_render::{RenderJob, RenderRecord};
use proctor_store::{RunDir, write_atomic};
use proctor_tasks::{RenderMode, RenderSettings};

use super::print_json;
use crate::args::RenderArgs;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::Laboratory;
use crate::rendering::{Rendering, by_id};

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
    let laboratory = Laboratory::open(environment).await?;
    let rendering = Rendering::new(&laboratory, environment, "render")?;
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

fn describe(record: &RenderRecord, output: &Path) -> String {
    match (record.width, record.height, record.digest) {
        (Some(width), Some(height), Some(digest)) => {
            format!("{} {width}x{height} {digest} in {} ms", output.display(), record.duration_ms)
        }
        _ => {
            let status = serde_json::to_value(record.status).ok();
            let status = status.as_ref().and_then(|it| it.as_str()).unwrap_or("failed");
            let line = record.line.map(|line| format!(" at line {line}")).unwrap_or_default();
            format!("no picture: {status}{line}: {}", record.message.as_deref().unwrap_or("no message"))
        }
    }
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

async fn whole_run(
    root: &PathBuf,
    args: &RenderArgs,
    environment: &Environment,
) -> Result<ExitCode, Failure> {
    let run = RunDir::open(root)?;
    let tasks: Vec<_> = proctor_tasks::discover(&args.tasks)?.into_iter().map(Arc::new).collect();
    let tasks = by_id(&tasks);
    let laboratory = Laboratory::open(environment).await?;
    let rendering = Rendering::new(&laboratory, environment, &run.record()?.name)?;
    let result = each_trial(&run, &tasks, &rendering, args.json).await;
    rendering.close().await?;
    result
}

async fn each_trial(
    run: &RunDir,
    tasks: &std::collections::HashMap<String, Arc<proctor_tasks::Task>>,
    rendering: &Rendering,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut left_out = 0;
    for folder in run.trials_on_disk()? {
        let Some(outcome) = folder.outcome()? else { continue };
        let Some(task) = tasks.get(folder.id().task()) else {
            eprintln!("{}: its task is not among --tasks", folder.id());
            left_out += 1;
            continue;
        };
        let status = rendering.trial(&folder, &outcome, task).await?;
        if json {
            print_json(&serde_json::json!({ "trial": folder.id(), "status": status }))?;
        } else {
            let status = serde_json::to_value(status).ok();
            let status = status.as_ref().and_then(|it| it.as_str()).unwrap_or("no artifact");
            println!("{}: {status}", folder.id());
        }
    }
    Ok(if left_out == 0 { ExitCode::SUCCESS } else { Kind::Incomplete.into() })
}
