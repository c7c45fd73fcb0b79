//! Makes results directories as runs leave them, without running anything: for the tests of the accounts, and for the
//! benchmark of what reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proctor_store::{
    ArtifactRecord, Attempt, Digests, MethodId, MethodRecord, Outcome, PointKind, PointScore, Price, Rating,
    Resources, RunDir, RunRecord, Runner, Score, StreamCounts, TaskFacts, TaskRecord, Timing, TrialId,
};
use proctor_traces::{
    ArtifactState, Digest, Ending, FreezeKind, ImageIdentity, Millis, ModelCause, OffsetMs, Timestamp, Usage,
};
use serde_json::json;

pub(crate) const BUDGET_MS: u64 = 1_800_000;

/// What a judge said of a trial: its points, and the two ratings.
pub(crate) type Marks = (Vec<(PointKind, Option<bool>)>, Option<[u8; 2]>);

/// What is written of one trial.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) ending: Ending,
    pub(crate) agent_ms: u64,
    /// Whether it left an artifact.
    pub(crate) artifact: bool,
    /// Status of its rendering, and how long that took.
    pub(crate) render: Option<(&'static str, u64)>,
    /// Its marks: what is satisfied, by kind of point, and two ratings.
    pub(crate) marks: Option<Marks>,
    pub(crate) provider_wait_ms: u64,
    pub(crate) tokens: [u64; 3],
    pub(crate) tool_calls: u64,
    /// Versions of the artifact that the watcher kept.
    pub(crate) versions: u64,
    pub(crate) last_write_ms: Option<i64>,
    pub(crate) tries: u32,
    /// Whether the agent was started at all.
    pub(crate) started: bool,
}

impl Made {
    pub(crate) fn ended(ending: Ending) -> Self {
        Self {
            ending,
            agent_ms: 60_000,
            artifact: false,
            render: None,
            marks: None,
            provider_wait_ms: 0,
            tokens: [1000, 200, 100],
            tool_calls: 7,
            versions: 3,
            last_write_ms: None,
            tries: 1,
            started: true,
        }
    }

    /// With an artifact that renders.
    pub(crate) fn rendered(ending: Ending) -> Self {
        Self { artifact: true, render: Some(("rendered", 1500)), ..Self::ended(ending) }
    }

    /// With an artifact that does not.
    pub(crate) fn broken(ending: Ending) -> Self {
        Self { artifact: true, render: Some(("artifact_error", 700)), ..Self::ended(ending) }
    }
}

pub(crate) fn image() -> ImageIdentity {
    let digest = Digest::of(b"image");
    ImageIdentity {
        reference: "proctor/x".into(),
        id: "sha256:1234".into(),
        inputs: digest,
        packages: digest,
    }
}

pub(crate) fn method(id: &str, harness: &str) -> MethodRecord {
    MethodRecord {
        id: MethodId::try_from(id.to_owned()).unwrap(),
        track: "agent".into(),
        harness: harness.into(),
        model: Some("lab/large".into()),
        budget_ms: Millis(BUDGET_MS),
        settings: BTreeMap::new(),
        harness_digest: Digest::of(harness.as_bytes()),
    }
}

/// Task number `n` of many: category, mode and difficulty take turns, and two neighbours share a source.
pub(crate) fn task(n: usize) -> TaskRecord {
    let pick = |all: &[&str], at: usize| all[at % all.len()].to_owned();
    let id = format!("task-{n:04}");
    let facts = TaskFacts {
        category: pick(&["flowchart", "dashboard", "circuit", "chart", "document"], n),
        mode: pick(&["html", "dot", "python", "tikz", "circuitikz"], n / 2),
        difficulty: pick(&["easy", "medium", "hard"], n),
        operation: pick(&["relabel", "rewire", "recompute", "restyle"], n / 3),
        source: format!("source-{:04}", n / 2),
        batch: pick(&["one", "two"], n / 7),
    };
    TaskRecord { digest: Digest::of(id.as_bytes()), id, suite: "vao".into(), facts }
}

pub(crate) fn record(tasks: usize, methods: Vec<MethodRecord>, attempts: u32) -> RunRecord {
    let price = Price { input: 2.0, cached_input: Some(0.2), output: 10.0 };
    RunRecord {
        schema: RunRecord::SCHEMA,
        name: "made".into(),
        created_at: Timestamp::from_millis(1_790_000_000_000),
        version: "0.1.0".into(),
        image: image(),
        methods,
        tasks: (0..tasks).map(task).collect(),
        attempts,
        limits: BTreeMap::new(),
        prices: BTreeMap::from([("lab/large".to_owned(), price)]),
        plan: None,
        extended: Vec::new(),
    }
}

pub(crate) fn id(task: usize, method: &str, attempt: &str) -> TrialId {
    let attempt: Attempt = attempt.parse().unwrap();
    TrialId::new("vao", &format!("task-{task:04}"), MethodId::try_from(method.to_owned()).unwrap(), attempt)
        .unwrap()
}

/// Writes what a trial leaves, as the runner, the renderer and a judge write it, but without forcing it to the disk.
pub(crate) fn write(run: &RunDir, record: &RunRecord, trial: &TrialId, made: &Made) {
    let folder = run.trial(trial);
    fs::create_dir_all(folder.path()).unwrap();
    let put = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    put("outcome.json", serde_json::to_vec_pretty(&outcome(record, trial, made)).unwrap());
    if let Some((status, took)) = made.render {
        fs::create_dir_all(folder.render()).unwrap();
        let record = json!({
            "status": status, "source": artifact(trial), "mode": "html", "settings": {}, "image": image(),
            "duration_ms": took, "dialogs": 0
        });
        put("render/render.json", serde_json::to_vec_pretty(&record).unwrap());
        if status == "rendered" {
            put("render/output.png", b"a picture".to_vec());
        }
    }
    if let Some((points, ratings)) = &made.marks {
        let points = points.iter().enumerate().map(|(at, (kind, satisfied))| PointScore {
            id: format!("p{at}"),
            kind: *kind,
            satisfied: *satisfied,
        });
        let rating = |at: usize| ratings.map(|it| Rating::try_from(it[at]).unwrap());
        let score = Score {
            schema: Score::SCHEMA,
            judge: "a judge".into(),
            candidate: None,
            points: points.collect(),
            visual_quality: rating(0),
            domain_quality: rating(1),
        };
        put("score.json", serde_json::to_vec_pretty(&score).unwrap());
    }
    if let Some(at) = made.last_write_ms {
        let event = |seq: u64, offset: i64, kind: serde_json::Value| {
            let mut event = json!({"seq": seq, "at": "2026-11-30T10:00:00.000Z", "offset_ms": OffsetMs(offset), "turn": 1, "source": "watcher"});
            event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            format!("{event}\n")
        };
        let changed = json!({"kind": "artifact_changed", "digest": artifact(trial), "bytes": 10});
        let said = json!({"kind": "agent_text", "text": "\"artifact_changed\" is not what this is"});
        let lines = [event(0, at / 2, changed.clone()), event(1, at, changed), event(2, at + 5, said)];
        put("trace.jsonl", lines.concat().into_bytes());
    }
}

fn artifact(trial: &TrialId) -> Digest {
    Digest::of(trial.to_string().as_bytes())
}

fn outcome(record: &RunRecord, trial: &TrialId, made: &Made) -> Outcome {
    let task = record.tasks.iter().find(|it| it.id == trial.task()).unwrap();
    let method = record.methods.iter().find(|it| it.id == *trial.method()).unwrap();
    let started = Timestamp::from_millis(1_790_000_000_000);
    let state = if made.artifact {
        ArtifactState::Present { digest: artifact(trial), bytes: 10 }
    } else {
        ArtifactState::Missing
    };
    let [input_tokens, cached_input_tokens, output_tokens] = made.tokens;
    Outcome {
        schema: Outcome::SCHEMA,
        trial: trial.clone(),
        r#try: made.tries,
        task: task.facts.clone(),
        ending: made.ending.clone(),
        exit: None,
        started_at: made.started.then_some(started),
        budget_ms: method.budget_ms,
        timing: Timing {
            queue_ms: Millis(500),
            prepare_ms: Millis(400),
            agent_ms: Millis(made.agent_ms),
            collect_ms: Millis(50),
            teardown_ms: Millis(50),
            wall_ms: Millis(made.agent_ms + 1000),
            ..Timing::default()
        },
        freeze: Some(FreezeKind::Paused),
        frozen_at: Some(Timestamp::from_millis(started.as_millis() + i64::try_from(made.agent_ms).unwrap())),
        overrun_ms: None,
        artifacts: vec![ArtifactRecord {
            name: "artifact.html".into(),
            state,
            versions: made.versions,
            versions_skipped: 0,
        }],
        consumed: None,
        digests: Digests {
            image: image(),
            task: task.digest,
            harness: method.harness_digest,
            prompt: Digest::of(trial.task().as_bytes()),
        },
        resources: Resources::default(),
        model_wait_ms: Millis(made.agent_ms / 2),
        provider_wait_ms: Millis(made.provider_wait_ms),
        runner: Some(Runner { host: "here".into(), pid: 1, job: None }),
        exchanges: made.tool_calls + 1,
        tokens: Usage { input_tokens, cached_input_tokens, output_tokens, reasoning_tokens: 0 },
        tool_calls: made.tool_calls,
        stream: StreamCounts { bytes: 100, recognised: 10, unknown: 0, malformed: 0 },
    }
}

/// Numbers that look like chance and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A trial as chance has it; `judged` with marks that may lack something.
    pub(crate) fn trial(&mut self, task: usize, judged: bool) -> Option<Made> {
        let said = || "it said so".to_owned();
        let mut made = match self.below(100) {
            0..3 => return None,
            3..60 => Made::rendered(Ending::Completed),
            60..64 => Made::broken(Ending::Completed),
            64..67 => Made { artifact: true, ..Made::ended(Ending::Completed) },
            67..75 => Made::rendered(Ending::TimedOut),
            75..80 => Made::ended(Ending::TimedOut),
            80..82 => Made::broken(Ending::TimedOut),
            82..84 => Made::ended(Ending::InfraError { stage: said(), message: said() }),
            84..87 => Made::ended(Ending::ModelError { cause: ModelCause::Provider, message: said() }),
            87..89 => Made::ended(Ending::ModelError { cause: ModelCause::Request, message: said() }),
            89..92 => Made::rendered(Ending::AgentError { message: said() }),
            92..95 => Made::ended(Ending::AgentError { message: said() }),
            95..97 => Made::rendered(Ending::OutOfMemory),
            _ => Made::ended(Ending::NoArtifact),
        };
        made.agent_ms = match made.ending {
            Ending::TimedOut => BUDGET_MS + self.below(30),
            Ending::InfraError { .. } => self.below(5000),
            _ => 20_000 + self.below(1_700_000),
        };
        made.started = !matches!(made.ending, Ending::InfraError { .. }) || self.below(2) == 0;
        made.provider_wait_ms = if self.below(10) == 0 { made.agent_ms / (5 + self.below(10)) } else { 0 };
        made.tokens = [10_000 + self.below(90_000), self.below(9000), self.below(20_000)];
        made.tool_calls = self.below(60);
        made.tries = 1 + u32::from(self.below(20) == 0);
        if made.ending == Ending::TimedOut && made.artifact {
            made.last_write_ms = Some(i64::try_from(self.below(BUDGET_MS)).unwrap());
        }
        if judged && made.render.is_some_and(|(status, _)| status == "rendered") && self.below(20) > 0 {
            made.marks = Some(self.marks(task));
        }
        Some(made)
    }

    fn marks(&mut self, task: usize) -> Marks {
        let kinds = [(PointKind::Direct, 2), (PointKind::Derived, task % 4), (PointKind::Invariant, 3)];
        let mut points = Vec::new();
        for (kind, count) in kinds {
            for _ in 0..count {
                let lacking = self.below(60) == 0;
                points.push((kind, (!lacking).then(|| self.below(4) > 0)));
            }
        }
        let rating = |dice: &mut Self| u8::try_from(1 + dice.below(5)).unwrap();
        let ratings = [rating(self), rating(self)];
        (points, Some(ratings))
    }
}

/// A run of `tasks` by `methods` methods whose trials end as chance has it.
pub(crate) fn chance(root: &Path, tasks: usize, methods: usize, attempts: u32, judged: bool) -> RunDir {
    let methods = (0..methods).map(|n| method(&format!("agent-{n}-with-a-model"), "codex@1.0.0")).collect();
    let record = record(tasks, methods, attempts);
    let run = RunDir::open_or_create(root, &record).unwrap();
    let mut dice = Dice(7);
    for trial in record.trials().unwrap() {
        let number: usize = trial.task().trim_start_matches("task-").parse().unwrap();
        if let Some(made) = dice.trial(number, judged) {
            write(&run, &record, &trial, &made);
        }
    }
    run
}
