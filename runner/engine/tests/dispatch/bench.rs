//! A run with methods and tasks that exist only here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proctor_engine::{
    Agent, Ceiling, EngineEvent, Executor, Input, Method, MethodSettings, Plan, RetryPolicy, RunEnd,
    Schedule, Setting, Site, Steps, Stop, Track, TrialSpec, run as dispatch,
};
use proctor_harnesses::HarnessId;
use proctor_store::{
    ArtifactRecord, Digests, Holder, LeaseTerms, Outcome, Resources, RunDir, RunRecord, StreamCounts,
    TaskFacts, Timing, TrialId, TryDir,
};
use proctor_tasks::Task;
use proctor_traces::{ArtifactState, Digest, Ending, ImageIdentity, Millis, Timestamp, Usage};
use tokio::sync::mpsc;

/// A method by which nothing is run.
pub(crate) fn method(name: &str, change: impl FnOnce(&mut Method)) -> Method {
    let mut method = Method {
        id: name.to_owned().try_into().unwrap(),
        track: Track::Agent(Agent::new("nop".parse::<HarnessId>().unwrap().harness())),
        model: None,
        settings: MethodSettings::default(),
        budget: Duration::from_secs(1800),
        price: None,
        ceiling: Ceiling::default(),
        ceiling_total: Ceiling::default(),
        jobs: None,
        launch_interval: Duration::ZERO,
        needs: None,
    };
    change(&mut method);
    method
}

pub(crate) fn tokens(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, ..Usage::default() }
}

pub(crate) struct Bench {
    pub(crate) dir: RunDir,
    pub(crate) jobs: usize,
    pub(crate) retries: u32,
    pub(crate) ceiling: Ceiling,
    /// What each trial uses.
    pub(crate) usage: Usage,
    methods: Vec<Arc<Method>>,
    tasks: u32,
    _folder: tempfile::TempDir,
}

/// What one run of the dispatcher came to.
pub(crate) struct Ran {
    pub(crate) end: RunEnd,
    pub(crate) events: Vec<EngineEvent>,
    /// Each try, with what it was given.
    pub(crate) inputs: Vec<(TrialId, Option<Input>)>,
}

impl Ran {
    /// The trials that ended, in order of their names.
    pub(crate) fn finished(&self) -> Vec<String> {
        let ended = self.events.iter().filter_map(|it| match it {
            EngineEvent::Finished(outcome) => Some(outcome.trial.to_string()),
            _ => None,
        });
        let mut ended: Vec<String> = ended.collect();
        ended.sort();
        ended
    }
}

impl Bench {
    pub(crate) fn new(tasks: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::open_or_create(&folder.path().join("run"), &record()).unwrap();
        Self {
            dir,
            jobs: 1,
            retries: 0,
            ceiling: Ceiling::default(),
            usage: Usage::default(),
            methods: Vec::new(),
            tasks,
            _folder: folder,
        }
    }

    pub(crate) fn add(&mut self, method: Method) {
        self.methods.push(Arc::new(method));
    }

    pub(crate) fn outcome(&self, trial: &str) -> Option<Outcome> {
        self.dir.trial(&trial.parse().unwrap()).outcome().unwrap()
    }

    /// How many trials of a method have an outcome.
    pub(crate) fn done(&self, method: &str) -> usize {
        let survey = self.dir.survey().unwrap();
        survey.iter().filter(|(trial, standing)| trial.method().as_str() == method && standing.done).count()
    }

    /// Runs everything that is left; a try of a trial ends as `script` says.
    pub(crate) async fn run(&self, script: impl Fn(&str, u32) -> Ending + Send + Sync + 'static) -> Ran {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/samples/vao/flow-approval");
        let task = Arc::new(Task::load(&package).unwrap());
        let mut trials = Vec::new();
        for number in 0..self.tasks {
            for method in &self.methods {
                let id = format!("vao/t{number}/{}/1", method.id).parse().unwrap();
                trials.push(TrialSpec { id, task: Arc::clone(&task), method: Arc::clone(method) });
            }
        }
        let schedule = Schedule { jobs: self.jobs, ceiling: self.ceiling, ..Schedule::default() };
        let retry = RetryPolicy { retries: self.retries, backoff: Duration::from_millis(1) };
        let site = Site {
            run: self.dir.clone(),
            holder: Holder::this_process(None).unwrap(),
            terms: LeaseTerms::default(),
            steps: Steps::default(),
        };
        let pretender = Arc::new(Pretender {
            script: Box::new(script),
            usage: self.usage,
            inputs: Mutex::new(Vec::new()),
        });
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let executor = Arc::clone(&pretender) as Arc<dyn Executor>;
        let plan = Plan { trials, schedule, retry };
        let end = dispatch(plan, Arc::new(site), executor, Stop::default(), sender).await.unwrap();
        let mut events = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            events.push(event);
        }
        let inputs = pretender.inputs.lock().unwrap().clone();
        Ran { end, events, inputs }
    }
}

/// How a try of a trial ends.
type Script = Box<dyn Fn(&str, u32) -> Ending + Send + Sync>;

struct Pretender {
    script: Script,
    usage: Usage,
    inputs: Mutex<Vec<(TrialId, Option<Input>)>>,
}

#[async_trait::async_trait]
impl Executor for Pretender {
    async fn execute(&self, spec: &TrialSpec, evidence: &TryDir, setting: &Setting<'_>) -> Outcome {
        self.inputs.lock().unwrap().push((spec.id.clone(), setting.input.clone()));
        let ending = (self.script)(&spec.id.to_string(), evidence.number());
        let text = format!("digraph {{ {} }}", Digest::of(spec.id.to_string().as_bytes()).hex());
        let state = if ending == Ending::Completed {
            fs::write(evidence.folder("artifacts").unwrap().join("artifact.dot"), &text).unwrap();
            ArtifactState::Present { digest: Digest::of(text.as_bytes()), bytes: text.len() as u64 }
        } else {
            ArtifactState::Missing
        };
        fs::write(evidence.trace(), "").unwrap();
        outcome(spec, evidence.number(), ending, state, self.usage, setting)
    }
}

fn outcome(
    spec: &TrialSpec,
    number: u32,
    ending: Ending,
    state: ArtifactState,
    usage: Usage,
    setting: &Setting<'_>,
) -> Outcome {
    let nothing = Digest::of(b"");
    Outcome {
        schema: Outcome::SCHEMA,
        trial: spec.id.clone(),
        r#try: number,
        task: TaskFacts::default(),
        ending,
        exit: None,
        started_at: Some(Timestamp::now()),
        budget_ms: spec.method.budget.into(),
        timing: Timing { queue_ms: setting.clock.at(Instant::now()).into(), ..Timing::default() },
        freeze: None,
        frozen_at: None,
        overrun_ms: None,
        artifacts: vec![ArtifactRecord {
            name: "artifact.dot".into(),
            state,
            versions: 0,
            versions_skipped: 0,
        }],
        consumed: match &setting.input {
            Some(Input::Given(given)) => Some(given.consumed.clone()),
            _ => None,
        },
        digests: Digests { image: image(), task: nothing, harness: nothing, prompt: nothing },
        resources: Resources::default(),
        model_wait_ms: Millis(0),
        provider_wait_ms: Millis(0),
        runner: None,
        exchanges: 0,
        tokens: usage,
        tool_calls: 0,
        stream: StreamCounts::default(),
    }
}

fn record() -> RunRecord {
    RunRecord {
        schema: RunRecord::SCHEMA,
        name: "x".into(),
        created_at: Timestamp::now(),
        version: "1".into(),
        image: image(),
        methods: Vec::new(),
        tasks: Vec::new(),
        attempts: 1,
        limits: BTreeMap::new(),
        prices: BTreeMap::new(),
        plan: None,
        extended: Vec::new(),
    }
}

fn image() -> ImageIdentity {
    let nothing = Digest::of(b"");
    ImageIdentity { reference: "none".into(), id: "none".into(), inputs: nothing, packages: nothing }
}
