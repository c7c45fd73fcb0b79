//! `proctor preflight`: one small trial of a harness with a model, in a real room, and what it proves.

mod package;
mod proofs;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use proctor_engine::{
    DiskLimits, EngineEvent, Host, Method, Plan, RetryPolicy, Schedule, Site, Steps, Stop, run as dispatch,
};
use proctor_sandbox::{Limits, Sandbox};
use proctor_store::{LeaseTerms, Outcome, RunDir};
use proctor_tasks::Task;
use proctor_traces::{Ending, Millis};
use serde::Serialize;
use tempfile::TempDir;
use tokio::sync::mpsc;

use self::proofs::{Evidence, Proof, Service};
use super::{methods, print_json};
use crate::args::PreflightArgs;
use crate::console::Console;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::{Laboratory, processors};

pub(crate) async fn preflight(args: PreflightArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let harness = args.harness.harness();
    if harness.wire().is_none() {
        return Err(Failure::input(format!("--harness {} asks no model of its own", harness.name()))
            .hint("a preflight tries an agent CLI: codex, claude-code, opencode, gemini, qwen or pi"));
    }
    let answerer = methods::Answerer {
        harness: &args.harness,
        model: args.model.model.as_ref(),
        providers: args.model.providers.as_deref(),
    };
    let method = Method { budget: args.budget.duration(), ..answerer.resolve(environment)? };
    let method = Arc::new(method);
    let laboratory = Laboratory::open(environment).await?;

    let folder = scratch(environment)?;
    let task = Arc::new(package::unpack(folder.path())?);
    let run = open_run(&folder, &laboratory, &task, &method)?;
    let Some(outcome) = sit(&run, &laboratory, environment, &task, &method, args.json).await? else {
        return Ok(Kind::Stopped.into());
    };
    let evidence = Evidence::read(run.trial(&outcome.trial).path())?;
    let mut report = Report::new(&method, &outcome, &evidence);
    if !report.good {
        report.evidence = Some(folder.keep());
    }
    if args.json {
        print_json(&report)?;
    } else {
        report.print();
    }
    Ok(if report.good { ExitCode::SUCCESS } else { Kind::Findings.into() })
}

fn scratch(environment: &Environment) -> Result<TempDir, Failure> {
    tempfile::Builder::new()
        .prefix("proctor-preflight-")
        .tempdir_in(environment.runtime())
        .map_err(|error| Failure::internal(format!("making a folder: {error}")))
}

fn open_run(
    folder: &TempDir,
    laboratory: &Laboratory,
    task: &Arc<Task>,
    method: &Arc<Method>,
) -> Result<RunDir, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let (tasks, methods) = ([Arc::clone(task)], [Arc::clone(method)]);
    let record = Plan::record("preflight", version, &laboratory.image, &tasks, &methods, 1, BTreeMap::new())?;
    Ok(RunDir::open_or_create(&folder.path().join("run"), &record)?)
}

/// Runs the one trial; none if the user stopped it.
async fn sit(
    run: &RunDir,
    laboratory: &Laboratory,
    environment: &Environment,
    task: &Arc<Task>,
    method: &Arc<Method>,
    quiet: bool,
) -> Result<Option<Outcome>, Failure> {
    let mut plan = Plan::new(&[Arc::clone(task)], &[Arc::clone(method)], 1, Schedule::default())?;
    // Whoever tries the equipment wants to see its failures.
    plan.retry = RetryPolicy { retries: 0, ..RetryPolicy::default() };
    let host = Host {
        sandbox: Arc::clone(&laboratory.sandbox) as Arc<dyn Sandbox>,
        image: laboratory.image.clone(),
        environment: laboratory.sandbox.image_environment(&laboratory.image.id).await?,
        user: laboratory.user,
        limits: Limits::default_for(processors()),
        disk: DiskLimits::default(),
        runtime: environment.runtime(),
        holder: laboratory.holder.clone(),
        run: run.clone(),
    };
    let site = Site {
        run: run.clone(),
        holder: laboratory.holder.clone(),
        terms: LeaseTerms::default(),
        steps: Steps::default(),
    };
    let stop = Stop::default();
    let (sender, mut events) = mpsc::unbounded_channel();
    let mut console = Console::new(&[(method.id.clone(), 1)], 1, quiet);
    let running = tokio::spawn(dispatch(plan, Arc::new(site), Arc::new(host), stop.clone(), sender));
    let mut outcome = None;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                None => break,
                Some(EngineEvent::Finished(finished)) => outcome = Some(*finished),
                Some(EngineEvent::Failed { message, .. }) => return Err(Failure::internal(message)),
                Some(event) if !quiet => console.show(&event),
                Some(_) => {}
            },
            _ = tokio::signal::ctrl_c() => {
                stop.drain.cancel();
                stop.cancel.cancel();
            }
        }
    }
    running.await.map_err(|error| Failure::internal(format!("the dispatcher: {error}")))??;
    Ok(outcome)
}

/// What is told at the end.
#[derive(Serialize)]
struct Report {
    harness: String,
    model: Option<String>,
    good: bool,
    proofs: [Proof; 4],
    #[serde(flatten)]
    ending: Ending,
    agent_ms: Millis,
    service: Service,
    /// Kept when something is bad.
    evidence: Option<PathBuf>,
}

impl Report {
    fn new(method: &Method, outcome: &Outcome, evidence: &Evidence) -> Self {
        let proofs = evidence.proofs();
        // What the agent drew is not looked at; that it ended by itself is.
        let ended = matches!(outcome.ending, Ending::Completed | Ending::NoArtifact);
        Self {
            harness: method.harness_name(),
            model: method.model.as_ref().map(|model| format!("{}/{}", model.provider, model.name)),
            good: ended && proofs.iter().all(|proof| proof.good),
            proofs,
            ending: outcome.ending.clone(),
            agent_ms: outcome.timing.agent_ms,
            service: evidence.service(),
            evidence: None,
        }
    }

    fn print(&self) {
        for Proof { name, good, seen } in &self.proofs {
            println!("{name:<12} {:<5} {seen}", if *good { "good" } else { "BAD" });
        }
        let model = self.model.as_deref().unwrap_or("no model");
        let seconds = self.agent_ms.as_secs_f64();
        println!();
        println!("{} with {model}: {} after {seconds:.1} s", self.harness, describe(&self.ending));
        let Service { requests, first_byte_ms_median, first_byte_ms_max, served_models, tokens } =
            &self.service;
        if let (Some(median), Some(max)) = (first_byte_ms_median, first_byte_ms_max) {
            println!("{requests} model requests, first byte after {median} ms (median; {max} ms at most)");
        }
        println!(
            "{} tokens in ({} cached), {} out ({} of them reasoning)",
            tokens.input_tokens, tokens.cached_input_tokens, tokens.output_tokens, tokens.reasoning_tokens
        );
        if !served_models.is_empty() {
            println!("Answered by {}", served_models.join(", "));
        }
        if let Some(evidence) = &self.evidence {
            println!("Evidence: {}", evidence.display());
        }
    }
}

/// An ending with what was said about it.
fn describe(ending: &Ending) -> String {
    match ending {
        Ending::InfraError { stage, message } => format!("{} ({stage}: {message})", ending.name()),
        Ending::ModelError { message, .. } | Ending::AgentError { message } => {
            format!("{} ({message})", ending.name())
        }
        _ => ending.name().to_owned(),
    }
}
