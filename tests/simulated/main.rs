//! A campaign without rooms: the real dispatcher, the real results directory with its fsyncs and leases, and agents that
//! only pretend. Tests kill it at random moments; the benchmark measures what the runner itself costs per trial.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is this program's work")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use proctor_engine::{
    Agent, Ceiling, EngineEvent, Executor, Method, MethodSettings, Plan, RetryPolicy, Schedule, Setting,
    Site, Steps, Stop, Track, TrialSpec, run as dispatch,
};
use proctor_harnesses::HarnessName;
use proctor_store::{
    ArtifactRecord, Attempt, Digests, Holder, LeaseTerms, MethodId, Outcome, Resources, RunDir, RunRecord,
    StreamCounts, TaskFacts, TaskRecord, Timing, TrialId, TryDir,
};
use proctor_tasks::Task;
use proctor_traces::{
    ArtifactState, Clock, Digest, Ending, EventKind, ImageIdentity, JournalWriter, Millis, Source, Timestamp,
    Usage,
};
use tokio::sync::mpsc;

/// Runs trials that only pretend.
#[derive(Debug, Parser)]
struct Arguments {
    /// Results directory
    #[arg(long)]
    out: PathBuf,
    /// A task package, for what an outcome says of its task
    #[arg(long, default_value = "tasks/samples/vao/flow-approval")]
    task: PathBuf,
    /// Trials in the plan, a multiple of the methods
    #[arg(long, default_value_t = 100)]
    trials: u32,
    /// Methods that share them
    #[arg(long, default_value_t = 1)]
    methods: u32,
    /// Trials at a time
    #[arg(short, long, default_value_t = 4)]
    jobs: usize,
    /// Most milliseconds that an agent pretends to work
    #[arg(long, default_value_t = 0)]
    work: u64,
    /// Agents print nothing and make no artifact: what is left is the runner's own
    #[arg(long)]
    silent: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulated: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let task = Arc::new(Task::load(&arguments.task)?);
    let methods: Vec<Arc<Method>> =
        (1..=arguments.methods).map(|number| method(number).map(Arc::new)).collect::<Result<_, _>>()?;
    let record = record(arguments, &task, &methods)?;
    let run = RunDir::open_or_create(&arguments.out, &record)?;
    let spec = |id: TrialId| {
        let method = methods.iter().find(|it| it.id == *id.method())?;
        Some(TrialSpec { task: Arc::clone(&task), method: Arc::clone(method), id })
    };
    let schedule = Schedule { jobs: arguments.jobs, ..Schedule::default() };
    let plan = Plan {
        trials: record.trials()?.into_iter().filter_map(spec).collect(),
        schedule,
        retry: RetryPolicy::default(),
    };
    let site = Site {
        run,
        holder: Holder::this_process(None)?,
        terms: LeaseTerms::default(),
        steps: Steps::default(),
    };

    let start = Instant::now();
    let (sender, mut events) = mpsc::unbounded_channel();
    let pretender = Arc::new(Pretender { work: arguments.work, silent: arguments.silent });
    let running = tokio::spawn(dispatch(plan, Arc::new(site), pretender, Stop::default(), sender));
    let (mut ended, mut failed) = (0u32, Vec::new());
    while let Some(event) = events.recv().await {
        match event {
            EngineEvent::Finished(_) => ended += 1,
            EngineEvent::Failed { trial, message } => failed.push(format!("{trial}: {message}")),
            _ => {}
        }
    }
    let end = running.await??;
    if !failed.is_empty() {
        return Err(failed.join("\n").into());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}",
        serde_json::json!({ "ended": ended, "end": format!("{end:?}"), "seconds": seconds, "peak_kib": peak_kib() })
    );
    Ok(())
}

/// Leaves what an agent would, with the name of its process in every file.
struct Pretender {
    work: u64,
    silent: bool,
}

#[async_trait::async_trait]
impl Executor for Pretender {
    async fn execute(&self, spec: &TrialSpec, evidence: &TryDir, setting: &Setting<'_>) -> Outcome {
        let began = Instant::now();
        let ending = match self.pretend(evidence).await {
            Ok(()) => Ending::Completed,
            Err(error) => Ending::InfraError { stage: "pretending".into(), message: error.to_string() },
        };
        outcome(spec, evidence, ending, setting.clock.at(began), began.elapsed())
    }
}

impl Pretender {
    async fn pretend(&self, evidence: &TryDir) -> Result<(), Box<dyn Error + Send + Sync>> {
        let name = format!("process {} try {}\n", std::process::id(), evidence.number());
        let now = Instant::now();
        let mut trace = JournalWriter::create(&evidence.trace())?;
        let notice = EventKind::Notice { text: name.trim().to_owned() };
        trace.append(Timestamp::now(), Clock::starting_at(now).offset_of(now), 1, Source::Runner, notice)?;
        if !self.silent {
            fs::write(evidence.folder("raw")?.join("stdout.jsonl"), &name)?;
        }
        if self.work > 0 {
            // Different from trial to trial, and the same each time.
            let spread =
                u64::from(Digest::of(evidence.path().as_os_str().as_encoded_bytes()).hex().as_bytes()[0]);
            tokio::time::sleep(Duration::from_millis(self.work * (spread % 10 + 1) / 10)).await;
        }
        if !self.silent {
            fs::write(evidence.folder("artifacts")?.join("artifact.dot"), &name)?;
        }
        Ok(())
    }
}

fn outcome(spec: &TrialSpec, evidence: &TryDir, ending: Ending, queue: Duration, took: Duration) -> Outcome {
    let nothing = Digest::of(b"");
    let timing = Timing {
        queue_ms: queue.into(),
        agent_ms: took.into(),
        wall_ms: (queue + took).into(),
        ..Timing::default()
    };
    Outcome {
        schema: Outcome::SCHEMA,
        trial: spec.id.clone(),
        r#try: evidence.number(),
        task: TaskFacts::default(),
        ending,
        exit: None,
        started_at: Some(Timestamp::now()),
        budget_ms: spec.method.budget.into(),
        timing,
        freeze: None,
        frozen_at: None,
        overrun_ms: None,
        artifacts: vec![ArtifactRecord {
            name: "artifact.dot".into(),
            state: ArtifactState::Present { digest: nothing, bytes: 0 },
            versions: 1,
            versions_skipped: 0,
        }],
        consumed: None,
        digests: Digests { image: image(), task: spec.task.digest(), harness: nothing, prompt: nothing },
        resources: Resources::default(),
        model_wait_ms: Millis(0),
        provider_wait_ms: Millis(0),
        runner: None,
        exchanges: 0,
        tokens: Usage::default(),
        tool_calls: 0,
        stream: StreamCounts::default(),
    }
}

fn method(number: u32) -> Result<Method, Box<dyn Error>> {
    Ok(Method {
        id: MethodId::try_from(format!("pretender-{number}"))?,
        track: Track::Agent(Agent::new(
            HarnessName::Nop.to_string().parse::<proctor_harnesses::HarnessId>()?.harness(),
        )),
        model: None,
        settings: MethodSettings::default(),
        budget: Duration::from_secs(1800),
        price: None,
        ceiling: Ceiling::default(),
        ceiling_total: Ceiling::default(),
        jobs: None,
        launch_interval: Duration::ZERO,
        needs: None,
    })
}

fn record(arguments: &Arguments, task: &Task, methods: &[Arc<Method>]) -> Result<RunRecord, Box<dyn Error>> {
    let tasks = (0..arguments.trials / arguments.methods.max(1)).map(|number| TaskRecord {
        id: format!("task-{number:05}"),
        suite: "vao".into(),
        digest: task.digest(),
        facts: TaskFacts::default(),
    });
    Ok(RunRecord {
        schema: RunRecord::SCHEMA,
        name: "simulated".into(),
        created_at: Timestamp::now(),
        version: env!("CARGO_PKG_VERSION").into(),
        image: image(),
        methods: methods.iter().map(|it| it.record()).collect::<Result<_, _>>()?,
        tasks: tasks.collect(),
        attempts: Attempt::nth(1).number(),
        limits: BTreeMap::new(),
        prices: BTreeMap::new(),
        plan: None,
        extended: Vec::new(),
    })
}

fn image() -> ImageIdentity {
    let nothing = Digest::of(b"");
    ImageIdentity { reference: "none".into(), id: "none".into(), inputs: nothing, packages: nothing }
}

/// Most memory that this process had, in KiB.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc/self/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
