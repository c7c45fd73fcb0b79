//! `proctor run`: plan, run, render, and say how it went.

mod args;
mod carry_out;
mod estimate;
mod interrupts;
mod plan;
mod room;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_engine::{Ceiling, Host, Method, Plan, RetryPolicy, RunEnd, Schedule, Site, Step, Steps};
use proctor_experiment::{Experiment, Span, Tokens, Usd};
use proctor_gateway::ScriptError;
use proctor_report::{RunSummary, agreeing, counted};
use proctor_sandbox::Sandbox;
use proctor_store::{LeaseTerms, RunDir};
use proctor_tasks::Task;

pub(crate) use self::args::RunArgs;
use self::carry_out::{Show, carry_out};
use super::{methods, print_json};
use crate::console::LeftOut;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::{Laboratory, absolute};
use crate::printing::{in_a_line, quoted};
use crate::rendering::Rendering;

pub(crate) async fn run(args: Box<RunArgs>, environment: &Environment) -> Result<ExitCode, Failure> {
    let resolved = plan::resolved(&args)?;
    let tasks = plan::tasks(&resolved.experiment, args.join.as_deref())?;
    if args.print_plan {
        return plan::print(&args, &resolved, &tasks, environment);
    }
    let experiment = resolved.experiment;
    let tasks: Vec<Arc<Task>> = tasks.into_iter().map(Arc::new).collect();
    let methods = methods::of_experiment(&experiment, environment)?;
    check_scripts(&tasks, &methods)?;
    let laboratory = Laboratory::open(environment).await?;

    let shown = args.join.as_deref().or(args.out.as_deref()).unwrap_or(Path::new("."));
    let out = absolute(shown)?;
    check_place(&out)?;
    room::check_processors(&experiment.limits)?;
    let name = out.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
    let limits = room::limits(&experiment.limits);
    let disk = room::disk(&experiment.limits);
    let run = open(&args, &out, &name, &laboratory, &experiment, &tasks, &methods)?;
    if args.no_start {
        println!(
            "{} is made, and nothing started: `proctor run --join {}` does",
            shown.display(),
            quoted(shown)
        );
        return Ok(ExitCode::SUCCESS);
    }
    let attempts = experiment.attempts.as_u32();
    let mut plan = Plan::new(&tasks, &methods, attempts, schedule(&experiment))?;
    plan.retry = RetryPolicy {
        retries: experiment.retry.retries.as_u32(),
        backoff: experiment.retry.backoff.duration(),
    };

    let host = Host {
        sandbox: Arc::clone(&laboratory.sandbox) as Arc<dyn Sandbox>,
        image: laboratory.image.clone(),
        environment: laboratory.sandbox.image_environment(&laboratory.image.id).await?,
        user: laboratory.user,
        limits,
        disk,
        runtime: environment.runtime(),
        holder: laboratory.holder.clone(),
        run: run.clone(),
    };
    let at_a_time = experiment.schedule.render_jobs.as_usize();
    let rendering = if experiment.render {
        Some(Rendering::new(&laboratory, environment, &name, at_a_time)?)
    } else {
        None
    };
    let site = Site {
        run: run.clone(),
        holder: laboratory.holder.clone(),
        terms: LeaseTerms::default(),
        steps: steps(environment)?,
    };
    let planned = methods.iter().map(|method| {
        let trials = plan.trials.iter().filter(|spec| spec.method.id == method.id).count();
        (method.id.clone(), trials)
    });
    let show = Show { json: args.json, planned: planned.collect() };
    let (end, left_out) = carry_out(plan, site, host, &tasks, rendering, show).await?;

    let summary = RunSummary::read(&run)?;
    let stopped = end == RunEnd::Stopped && summary.unresolved() > 0;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", summary.table());
        println!("Results: {}", in_a_line(&shown.to_string_lossy()));
        println!("{}", next(shown, stopped, left_out, summary.unresolved()));
    }
    Ok(match (stopped, summary.unresolved()) {
        (true, _) => Kind::Stopped.into(),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => Kind::Incomplete.into(),
    })
}

/// What to do now.
fn next(run: &Path, stopped: bool, left_out: LeftOut, unresolved: u64) -> String {
    let run = quoted(run);
    if stopped {
        return format!("Stopped: the same command continues. How it stands: proctor status {run}");
    }
    let mut why = Vec::new();
    if left_out.missing > 0 {
        why.push(format!(
            "{} {} left out, since another did not leave what is needed: on_missing = \"empty\" or \"fail\" would end {}",
            left_out.missing,
            agreeing(left_out.missing, "was", "were"),
            agreeing(left_out.missing, "it", "them")
        ));
    }
    if left_out.ceiling > 0 {
        why.push(format!(
            "{} {} not started: raise max_tokens or max_cost to go on",
            left_out.ceiling,
            agreeing(left_out.ceiling, "was", "were")
        ));
    }
    if !why.is_empty() {
        return format!(
            "{} {} unresolved. {}. All of them: proctor status {run}",
            counted(unresolved, "trial"),
            agreeing(unresolved, "is", "are"),
            why.join(". ")
        );
    }
    if unresolved > 0 {
        return format!(
            "{} {} unresolved. Why: proctor status {run}. Those not begun or broken off: the same command \
             continues. Those that failed on our side or the provider's: \
             proctor rerun {run} --where 'ending in [\"infra_error\", \"model_error\"]' --reason '…', then the same command.",
            counted(unresolved, "trial"),
            agreeing(unresolved, "is", "are"),
        );
    }
    format!("Tables with intervals, completion curve, data: proctor report {run} (--help)")
}

/// Makes the run, continues it, joins it, or adds to it.
fn open(
    args: &RunArgs,
    out: &Path,
    name: &str,
    laboratory: &Laboratory,
    experiment: &Experiment,
    tasks: &[Arc<Task>],
    methods: &[Arc<Method>],
) -> Result<RunDir, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let bounds = room::bounds(&experiment.limits);
    let attempts = experiment.attempts.as_u32();
    let mut record = Plan::record(name, version, &laboratory.image, tasks, methods, attempts, bounds)?;
    let plan = serde_json::to_value(experiment);
    record.plan = Some(plan.map_err(|error| Failure::internal(format!("writing the plan: {error}")))?);
    if args.extend && !out.join("run.json").exists() {
        return Err(Failure::input(format!("{}: there is no run to extend", out.display()))
            .hint("without --extend a new one is made"));
    }
    if !args.extend {
        return Ok(RunDir::open_or_create(out, &record)?);
    }
    let (run, added) = RunDir::extend(out, &record, &laboratory.holder)?;
    for line in added {
        eprintln!("added: {line}");
    }
    Ok(run)
}

/// What runs side by side.
fn schedule(experiment: &Experiment) -> Schedule {
    let plan = &experiment.schedule;
    let providers = plan.provider_jobs.iter();
    Schedule {
        jobs: room::that_fit(plan, &experiment.limits),
        provider_jobs: providers.map(|(name, jobs)| (name.clone(), jobs.as_usize())).collect(),
        launch_interval: plan.launch_interval.map_or(Duration::ZERO, Span::duration),
        ceiling: Ceiling {
            tokens: experiment.ceilings.max_tokens.map(Tokens::get),
            cost: experiment.ceilings.max_cost.map(Usd::dollars),
        },
        ..Schedule::default()
    }
}

/// For tests of what a crash leaves: this process kills itself at the step that is named.
fn steps(environment: &Environment) -> Result<Steps, Failure> {
    let Some(name) = environment.crash_at() else { return Ok(Steps::default()) };
    let fatal = Step::ALL.into_iter().find(|step| step.name() == name);
    let fatal = fatal.ok_or_else(|| Failure::input(format!("there is no step `{name}` to crash at")))?;
    Ok(Steps::told_to(move |step| {
        if step == fatal {
            // Nothing is cleaned up after this signal.
            let _ = kill(Pid::this(), Signal::SIGKILL);
        }
    }))
}

/// The engine takes a mount as `HERE:THERE`.
fn check_place(out: &Path) -> Result<(), Failure> {
    if out.as_os_str().as_encoded_bytes().contains(&b':') {
        return Err(Failure::input(format!("--out {}: its path holds a colon", out.display()))
            .hint("the engine cannot mount such a folder: give another"));
    }
    Ok(())
}

/// A script that is missing or wrong would fail every trial: say so before the first.
fn check_scripts(tasks: &[Arc<Task>], methods: &[Arc<Method>]) -> Result<(), Failure> {
    let scripted = methods.iter().any(|method| {
        method.model.as_ref().is_some_and(|it| matches!(it.source, proctor_engine::ModelSource::Script))
    });
    for task in tasks.iter().filter(|_| scripted) {
        let path = task.script().ok_or_else(|| {
            Failure::input(format!("task {} has no script.toml for the scripted model", task.id()))
                .hint("name a real model with --model PROVIDER/NAME, or leave the task out")
        })?;
        proctor_gateway::Script::load(&path).map_err(|error| match error {
            // It knows its text, not where that lies.
            ScriptError::Invalid { .. } => Failure::input(format!("{}: {error}", path.display())),
            ScriptError::Read { .. } => error.into(),
        })?;
    }
    Ok(())
}
