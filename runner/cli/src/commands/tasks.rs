//! `proctor tasks`: list, count and check packages.

use std::path::Path;
use std::process::ExitCode;

use futures_util::stream::{self, StreamExt as _};
use proctor_render::RenderJob;
use proctor_report::{counted, headed_table};
use proctor_tasks::{
    Composition, Finding, PictureImage, Pictures, Severity, Stats, Task, check, discover,
    discover_unrendered, has_errors, stats,
};

use super::print_json;
use crate::args::{CheckArgs, TasksArgs, TasksVerb};
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::Laboratory;
use crate::rendering::{AT_A_TIME, Rendering, assets};

pub(crate) async fn tasks(verb: TasksVerb, environment: &Environment) -> Result<ExitCode, Failure> {
    match verb {
        TasksVerb::List(args) => list(&args),
        TasksVerb::Stats(args) => count(&args),
        TasksVerb::Check(args) => check_all(&args, environment).await,
    }
}

fn list(args: &TasksArgs) -> Result<ExitCode, Failure> {
    let tasks = discover(&args.paths)?;
    let mut lines =
        headed_table(&["task", "category", "mode", "operation", "difficulty", "points", "instruction"]);
    for task in &tasks {
        let it = &task.metadata;
        let points = task.hidden.annotations.scoring_points.len();
        if args.json {
            print_json(&serde_json::json!({
                "id": it.id, "suite": it.suite, "category": it.category, "mode": task.mode(), "operation": it.operation,
                "difficulty": it.difficulty, "points": points, "digest": task.digest(), "dir": task.dir,
            }))?;
        } else {
            let instruction: String = task.solver.instruction.trim().chars().take(60).collect();
            lines.add_row([
                it.id.to_string(),
                it.category.to_string(),
                task.mode().to_string(),
                it.operation.clone(),
                it.difficulty.to_string(),
                points.to_string(),
                instruction,
            ]);
        }
    }
    if !args.json {
        println!("{lines}\n{}", counted(tasks.len(), "task"));
    }
    Ok(ExitCode::SUCCESS)
}

fn count(args: &TasksArgs) -> Result<ExitCode, Failure> {
    let stats = stats(&discover(&args.paths)?);
    if args.json {
        print_json(&stats)?;
    } else {
        println!("{}", composition(&stats));
    }
    Ok(ExitCode::SUCCESS)
}

fn composition(stats: &Stats) -> String {
    let head =
        ["", "tasks", "sources", "easy", "medium", "hard", "direct", "derived", "invariant", "no derived"];
    let mut lines = headed_table(&head);
    let mut add = |name: String, it: &Composition| {
        let mut row = vec![name, it.tasks.to_string(), it.sources.to_string()];
        row.extend(it.by_difficulty.map(|count| count.to_string()));
        for points in it.points {
            // The paper's Table 10: total / mean per task.
            row.push(
                points.mean.map_or_else(|| "–".to_owned(), |mean| format!("{} / {mean:.2}", points.total)),
            );
        }
        row.push(it.without_derived.to_string());
        lines.add_row(row);
    };
    for (name, it) in &stats.categories {
        add(name.to_string(), it);
    }
    for (name, it) in &stats.modes {
        add(format!("mode {name}"), it);
    }
    for (name, it) in &stats.operations {
        add(format!("operation {name}"), it);
    }
    add("all".to_owned(), &stats.total);
    lines.to_string()
}

async fn check_all(args: &CheckArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let tasks = if args.update { discover_unrendered(&args.paths)? } else { discover(&args.paths)? };
    let rendering = if args.no_render {
        None
    } else {
        let laboratory = Laboratory::open(environment).await?;
        Some((Rendering::new(&laboratory, environment, "check", AT_A_TIME.get())?, laboratory))
    };
    let mut failed = false;
    let mut checked =
        stream::iter(&tasks).map(|task| one(task, rendering.as_ref(), args.update)).buffered(AT_A_TIME.get());
    while let Some(result) = checked.next().await {
        let (task, findings) = result?;
        failed |= has_errors(&findings);
        tell(task, findings, args.json)?;
    }
    drop(checked);
    if let Some((rendering, _)) = rendering {
        rendering.close().await?;
    }
    Ok(if failed { Kind::Findings.into() } else { ExitCode::SUCCESS })
}

/// Everything that is wrong with one package.
async fn one<'a>(
    task: &'a Task,
    rendering: Option<&(Rendering, Laboratory)>,
    update: bool,
) -> Result<(&'a Task, Vec<Finding>), Failure> {
    let mut findings = Vec::new();
    if let Some((rendering, laboratory)) = rendering {
        findings = pictures(task, rendering, laboratory, update).await?;
    }
    // What was stored just now has to be read again.
    let stored = if update { Task::load(&task.dir)? } else { task.clone() };
    findings.extend(check(&stored));
    Ok((task, findings))
}

fn tell(task: &Task, findings: Vec<Finding>, json: bool) -> Result<(), Failure> {
    if json {
        return print_json(&serde_json::json!({ "task": task.id(), "findings": findings }));
    }
    println!("{}: {}", task.id(), if findings.is_empty() { "good" } else { "" });
    for finding in findings {
        println!("{:?}", miette::Report::new(finding));
    }
    Ok(())
}

/// Renders source and target again, and compares with the stored pictures, or stores the new ones.
async fn pictures(
    task: &Task,
    rendering: &Rendering,
    laboratory: &Laboratory,
    update: bool,
) -> Result<Vec<Finding>, Failure> {
    let programs = [&task.hidden.source_program, &task.hidden.target_program];
    let stored = [task.source_picture(), task.hidden.target_picture.clone()];
    let mut made = Vec::new();
    let mut findings = Vec::new();
    for (program, picture) in programs.into_iter().zip(&stored) {
        let job = RenderJob {
            assets: assets(task),
            ..RenderJob::new(program, task.mode(), task.render.clone(), format!("check {}", task.id()))
        };
        let result = rendering.render(job).await?;
        let Some(png) = result.png else {
            let why = result.record.message.unwrap_or_else(|| format!("{:?}", result.status));
            let message = format!("does not render: {why}");
            findings.push(Finding::whole(
                Severity::Error,
                program.clone(),
                message,
                "the program must draw its picture",
            ));
            continue;
        };
        if !update && std::fs::read(picture).is_ok_and(|bytes| bytes != png) {
            findings.push(differs(task, picture, laboratory));
        }
        made.push((png, read(program)?));
    }
    if let ([source, target], true) = (made.as_slice(), update) {
        for (path, (png, _)) in stored.iter().zip(&made) {
            std::fs::write(path, png)
                .map_err(|error| Failure::internal(format!("{}: {error}", path.display())))?;
        }
        let image = PictureImage { inputs: laboratory.image.inputs, packages: laboratory.image.packages };
        Pictures::update(&task.dir, image, [&source.0, &target.0], [&source.1, &target.1])?;
    }
    Ok(findings)
}

/// Other bytes are an error under the image that made the stored ones; under another image they are a warning.
fn differs(task: &Task, picture: &Path, laboratory: &Laboratory) -> Finding {
    let same_image =
        task.hidden.pictures.as_ref().is_none_or(|it| it.image.packages == laboratory.image.packages);
    let (severity, message) = if same_image {
        (Severity::Error, "is not what the program renders to")
    } else {
        (Severity::Warning, "was made by another image, and this one renders other bytes")
    };
    let hint =
        format!("`proctor tasks check --update {}` stores what this image renders", task.dir.display());
    Finding::whole(severity, picture.to_owned(), message, hint)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}
