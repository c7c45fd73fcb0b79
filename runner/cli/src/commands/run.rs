//! `proctor run`: plan, run, render, and say how it went.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_engine::{
    DiskLimits, EngineEvent, Host, Method, Plan, RetryPolicy, RunEnd, Schedule, Site, Step, Steps, Stop,
    run as dispatch,
};
use proctor_gateway::ScriptError;
use proctor_report::RunSummary;
use proctor_sandbox::{Limits, Sandbox};
use proctor_store::{LeaseTerms, RunDir, TrialId};
use proctor_tasks::Task;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::{methods, print_json};
use crate::args::{LimitArgs, RunArgs, TaskSelection};
use crate::console::{self, Console};
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::{Laboratory, absolute, processors};
use crate::rendering::{AT_A_TIME, Rendering, by_id};

pub(crate) async fn run(args: Box<RunArgs>, environment: &Environment) -> Result<ExitCode, Failure> {
    let tasks = select(&args.tasks)?;
    let methods = methods::of_run(&args, environment)?;
    check_scripts(&tasks, &methods)?;
    let laboratory = Laboratory::open(environment).await?;

    let out = absolute(&args.out)?;
    check_place(&out)?;
    check_processors(args.limits.cpus)?;
    let name = out.file_name().map_or_else(|| "run".to_owned(), |name| name.to_string_lossy().into_owned());
    let version = env!("CARGO_PKG_VERSION");
    let limits = limits(&args.limits);
    let disk = DiskLimits { bytes: args.limits.disk, inodes: args.limits.inodes };
    let bounds = bounds(&limits, disk);
    let record = Plan::record(&name, version, &laboratory.image, &tasks, &methods, args.attempts, bounds)?;
    let run = RunDir::open_or_create(&out, &record)?;
    let schedule = Schedule { jobs: args.jobs.into(), ..Schedule::default() };
    let mut plan = Plan::new(&tasks, &methods, args.attempts, schedule)?;
    plan.retry = RetryPolicy { retries: args.retries, backoff: args.backoff };

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
    let rendering =
        if args.no_render { None } else { Some(Rendering::new(&laboratory, environment, &name)?) };
    let site = Site {
        run: run.clone(),
        holder: laboratory.holder.clone(),
        terms: LeaseTerms::default(),
        steps: steps(environment)?,
    };
    let show = Show { json: args.json, total: plan.trials.len() };
    let stopped = carry_out(plan, site, host, &tasks, rendering, show).await?;

    let summary = RunSummary::read(&run)?;
    if args.json {
        print_json(&summary)?;
    } else {
        println!("{}", summary.table());
        println!("Results: {}", args.out.display());
    }
    Ok(match (stopped, summary.unresolved()) {
        (true, _) => Kind::Stopped.into(),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => Kind::Incomplete.into(),
    })
}

/// Bounds of a room, as the run keeps them.
fn bounds(limits: &Limits, disk: DiskLimits) -> BTreeMap<String, String> {
    let all = [
        ("memory_bytes", limits.memory_bytes),
        ("pids", limits.pids.into()),
        ("cpu_millis", limits.cpu_millis.into()),
        ("disk_bytes", disk.bytes),
        ("disk_inodes", disk.inodes),
    ];
    all.map(|(name, value)| (name.to_owned(), value.to_string())).into()
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

/// The engine refuses more than there are, and would do so for each trial.
fn check_processors(cpus: Option<f64>) -> Result<(), Failure> {
    let there = processors();
    let known = f64::from(u32::try_from(there).unwrap_or(u32::MAX));
    match cpus {
        Some(cpus) if cpus > known => {
            Err(Failure::input(format!("--cpus {cpus}: this machine has {there}")).hint("give that or fewer"))
        }
        _ => Ok(()),
    }
}

struct Show {
    json: bool,
    total: usize,
}

/// Runs the plan, shows it, and renders behind it. Returns whether the user stopped it.
async fn carry_out(
    plan: Plan,
    site: Site,
    host: Host,
    tasks: &[Arc<Task>],
    rendering: Option<Rendering>,
    show: Show,
) -> Result<bool, Failure> {
    let stop = Stop::default();
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut console = Console::new(show.total, show.json);
    let run = host.run.clone();
    let running = tokio::spawn(dispatch(plan, Arc::new(site), Arc::new(host), stop.clone(), sender));

    // Rendering goes on behind the trials, in a task of its own with a queue before it.
    let (queue, waiting) = mpsc::unbounded_channel::<TrialId>();
    let rendered = tokio::spawn(render_queue(rendering, waiting, run, by_id(tasks)));
    let mut interrupts = Interrupts::listen()?;
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            event = events.recv() => {
                let Some(event) = event else { break };
                console.show(&event);
                match &event {
                    EngineEvent::Finished(outcome) => {
                        if show.json {
                            print_json(outcome)?;
                        }
                        // The renderer lives as long as the queue.
                        let _ = queue.send(outcome.trial.clone());
                    }
                    EngineEvent::Skipped { trial } => drop(queue.send(trial.clone())),
                    _ => {}
                }
            }
            () = interrupts.next() => console.say(interrupts.act(&stop)),
            _ = tick.tick() => console.tick(),
        }
    }
    drop(queue);
    let end = running.await.map_err(|error| Failure::internal(format!("the dispatcher: {error}")))??;
    let stopped = end == RunEnd::Stopped;
    if let Some(text) = console::why(&end) {
        console.say(&text);
    }
    for problem in rendered.await.map_err(|error| Failure::internal(format!("the renderer: {error}")))? {
        console.say(&problem);
    }
    Ok(stopped)
}

/// Renders trials as they come, some at a time; returns what went wrong on our side.
async fn render_queue(
    rendering: Option<Rendering>,
    waiting: mpsc::UnboundedReceiver<TrialId>,
    run: RunDir,
    tasks: HashMap<String, Arc<Task>>,
) -> Vec<String> {
    let Some(rendering) = rendering else { return Vec::new() };
    let ids = stream::unfold(waiting, async |mut waiting| waiting.recv().await.map(|id| (id, waiting)));
    let results = ids.map(|id| render_one(id, &rendering, &run, &tasks)).buffer_unordered(AT_A_TIME);
    let mut problems: Vec<String> = results.filter_map(|problem| async { problem }).collect().await;
    if let Err(failure) = rendering.close().await {
        problems.push(format!("closing the renderer: {failure}"));
    }
    problems
}

async fn render_one(
    id: TrialId,
    rendering: &Rendering,
    run: &RunDir,
    tasks: &HashMap<String, Arc<Task>>,
) -> Option<String> {
    let task = tasks.get(id.task())?;
    let folder = run.trial(&id);
    let result = match folder.outcome() {
        Ok(Some(outcome)) => rendering.trial(&folder, &outcome, task).await.map(drop),
        Ok(None) => Ok(()),
        Err(error) => Err(error.into()),
    };
    result.err().map(|failure| format!("{id}: rendering failed: {failure}"))
}

/// Ctrl-C and SIGTERM: once, no new trials; twice, running ones are cancelled; a third time ends at once. A terminal
/// that hangs up counts for two: nobody is there to ask again.
struct Interrupts {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    count: u32,
}

impl Interrupts {
    fn listen() -> Result<Self, Failure> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::internal(format!("listening for signals: {error}")));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            count: 0,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => self.count = self.count.max(1),
        }
    }

    /// Does what the next interrupt means, and says it.
    fn act(&mut self, stop: &Stop) -> &'static str {
        self.count += 1;
        match self.count {
            1 => {
                stop.drain.cancel();
                "no new trials are started; running ones finish (once more: cancel them)"
            }
            2 => {
                stop.drain.cancel();
                stop.cancel.cancel();
                "running trials are frozen, collected and cancelled (once more: end at once)"
            }
            _ => {
                // The user asked three times; the next start sweeps up.
                std::process::exit(Kind::Stopped as i32)
            }
        }
    }
}

/// The tasks that were asked for.
pub(crate) fn select(selection: &TaskSelection) -> Result<Vec<Arc<Task>>, Failure> {
    let mut tasks = proctor_tasks::discover(&selection.paths)?;
    for id in &selection.ids {
        if tasks.iter().all(|task| task.id().as_str() != id) {
            let known: Vec<&str> = tasks.iter().take(20).map(|task| task.id().as_str()).collect();
            return Err(Failure::input(format!("there is no task `{id}`"))
                .hint(format!("there is: {}", known.join(", "))));
        }
    }
    if !selection.ids.is_empty() {
        tasks.retain(|task| selection.ids.iter().any(|id| task.id().as_str() == id));
    }
    if tasks.is_empty() {
        return Err(
            Failure::input("no task package was found").hint("a package is a folder with a task.toml")
        );
    }
    Ok(tasks.into_iter().map(Arc::new).collect())
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

fn limits(args: &LimitArgs) -> Limits {
    let default = Limits::default_for(processors());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to lie within 0.05 and 512"
    )]
    let cpu_millis = args.cpus.map_or(default.cpu_millis, |cpus| (cpus * 1000.0) as u32);
    Limits { memory_bytes: args.memory, pids: args.pids, cpu_millis, ..default }
}
