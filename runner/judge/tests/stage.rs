//! Judging as a stage: what it reads and writes in a results directory.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proctor_judge::Picture;
use proctor_judge::pixel::{Flag, Reason, Reference, Settings, Standing, Verdict, judge, look, pictures};
use proctor_judge::{Failure, JudgeError};
use proctor_store::{
    ArtifactRecord, Digests, Outcome, Resources, RunDir, RunRecord, Score, StreamCounts, TaskFacts, Timing,
    TrialDir,
};
use proctor_tasks::Task;
use proctor_traces::{ArtifactState, Digest, Ending, ImageIdentity, Millis, ModelCause, Timestamp, Usage};
use serde_json::json;

/// A run with one trial of a sample, and what is needed to judge it.
struct Stage {
    _dir: tempfile::TempDir,
    task: Task,
    trial: TrialDir,
}

impl Stage {
    fn new() -> Self {
        let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks/samples/vao");
        let task = Task::load(&samples.join("webpage-cta")).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::open_or_create(&dir.path().join("run"), &plan()).unwrap();
        let trial = run.trial(&"vao/webpage-cta/oracle/1".parse().unwrap());
        fs::create_dir_all(trial.render()).unwrap();
        Self { _dir: dir, task, trial }
    }

    fn ended(self, ending: Ending, artifact: Option<&str>) -> Self {
        let outcome =
            outcome(&self.trial, self.task.digest(), ending, artifact.map(|it| Digest::of(it.as_bytes())));
        fs::write(self.trial.path().join("outcome.json"), serde_json::to_vec(&outcome).unwrap()).unwrap();
        self
    }

    /// Left `artifact`, whose rendering came to `status` with this picture.
    fn rendered(self, artifact: &str, status: &str, png: Option<&[u8]>) -> Self {
        let stage = self.ended(Ending::Completed, Some(artifact));
        let record = json!({
            "status": status, "source": Digest::of(artifact.as_bytes()), "digest": png.map(Digest::of),
        });
        fs::write(stage.trial.render().join("render.json"), record.to_string()).unwrap();
        if let Some(png) = png {
            fs::write(stage.trial.render().join("output.png"), png).unwrap();
        }
        stage
    }

    fn look(&self) -> Result<Standing, JudgeError> {
        look(&self.trial, &self.task, pictures(&self.task).unwrap(), &Settings::default())
    }

    fn judge(&self) -> Result<Verdict, JudgeError> {
        let settings = Settings::default();
        let work = match self.look()? {
            Standing::Due(work) => Some(work),
            _ => None,
        };
        let reference = Reference::of_task(&self.task, settings).unwrap();
        judge(&self.trial, work.unwrap(), &reference, &settings)
    }

    fn target(&self) -> Vec<u8> {
        fs::read(&self.task.hidden.target_picture).unwrap()
    }

    fn marks(&self) -> Vec<(String, bool)> {
        let score = self.trial.score().unwrap().unwrap();
        assert!(score.judge == "pixel/1" && score.is_complete());
        score.points.into_iter().map(|it| (it.id, it.satisfied.unwrap())).collect()
    }
}

#[test]
fn a_trial_is_judged_once_and_again_when_something_changed() {
    let stage = Stage::new();
    let target = stage.target();
    let stage = stage.rendered("<p>right</p>", "rendered", Some(&target));
    let verdict = stage.judge().unwrap();
    assert_eq!((verdict.failure.as_ref(), verdict.flags.as_slice()), (None, [].as_slice()));
    assert_eq!(verdict.inputs.candidate, Some(Digest::of(&target)));
    // The second direct point has no region: it is told, and not marked.
    let open: Vec<_> = verdict.points.iter().filter(|it| it.satisfied.is_none()).collect();
    assert_eq!(
        open.iter().map(|it| (it.id.as_str(), it.reason)).collect::<Vec<_>>(),
        [("d2", Reason::NoRegion)]
    );
    let all = ["d1", "i1", "i2", "i3"].map(|id| (id.to_owned(), true));
    assert_eq!(stage.marks(), all);
    assert!(matches!(stage.look().unwrap(), Standing::Current));

    let written: Verdict = serde_json::from_slice(&fs::read(stage.trial.verdict_path()).unwrap()).unwrap();
    assert_eq!(written.score(), verdict.score());
    fs::remove_file(stage.trial.score_path()).unwrap();
    assert!(matches!(stage.look().unwrap(), Standing::Due(_)), "its marks are gone");
    stage.judge().unwrap();
    fs::write(stage.trial.verdict_path(), b"{ \"judge\": \"pixel\"").unwrap();
    assert!(matches!(stage.look().unwrap(), Standing::Due(_)), "its verdict is broken");

    let source = fs::read(stage.task.source_picture()).unwrap();
    let stage = stage.rendered("<p>wrong</p>", "rendered", Some(&source));
    let verdict = stage.judge().unwrap();
    assert!(verdict.findings.unwrap().in_box.unwrap().normalised < 1e-12);
    assert_eq!(
        stage.marks(),
        [("d1".into(), false), ("i1".into(), true), ("i2".into(), true), ("i3".into(), true)]
    );
}

#[test]
fn what_cannot_be_rendered_fails_the_same_points() {
    for (artifact, status) in [(None, "rendered"), (Some("<p>"), "artifact_error")] {
        let stage = match artifact {
            Some(artifact) => Stage::new().rendered(artifact, status, None),
            None => Stage::new().ended(Ending::NoArtifact, None),
        };
        let verdict = stage.judge().unwrap();
        let expected = artifact.map_or(Failure::NoArtifact, |_| Failure::Render("artifact_error".into()));
        assert_eq!((verdict.failure, verdict.findings), (Some(expected), None));
        assert_eq!(stage.marks(), ["d1", "i1", "i2", "i3"].map(|id| (id.to_owned(), false)));
        assert!(matches!(stage.look().unwrap(), Standing::Current));
    }
}

#[test]
fn nobody_is_marked_for_what_is_not_his_doing() {
    assert_eq!(Stage::new().look().unwrap(), Standing::Pending);
    let provider = Ending::ModelError { cause: ModelCause::Provider, message: "503".into() };
    for ending in [
        Ending::InfraError { stage: "collecting".into(), message: "disk full".into() },
        Ending::Cancelled,
        provider,
    ] {
        let name = ending.name();
        assert_eq!(Stage::new().ended(ending, Some("a")).look().unwrap(), Standing::NotTheSolvers(name));
    }
}

#[test]
fn each_thing_that_does_not_fit_is_an_error_of_its_own() {
    let target = Stage::new().target();
    let due = || Stage::new().rendered("a", "rendered", Some(&target));

    assert!(matches!(Stage::new().ended(Ending::Completed, Some("a")).look(), Err(JudgeError::NotRendered)));

    let stage = due().ended(Ending::Completed, Some("b"));
    assert!(matches!(stage.look(), Err(JudgeError::Rendering(_))), "rendered from something else");

    let stage = due();
    fs::write(stage.trial.render().join("output.png"), fs::read(stage.task.source_picture()).unwrap())
        .unwrap();
    assert!(matches!(stage.judge(), Err(JudgeError::Rendering(_))), "another picture");
    fs::write(stage.trial.render().join("output.png"), b"no picture").unwrap();
    assert!(matches!(stage.judge(), Err(JudgeError::Picture { .. })));
    fs::remove_file(stage.trial.render().join("output.png")).unwrap();
    assert!(matches!(stage.judge(), Err(JudgeError::Picture { .. })));
    assert!(!stage.trial.verdict_path().exists() && stage.trial.score().unwrap().is_none());

    let stage = due();
    let other = Score {
        schema: Score::SCHEMA,
        judge: "a vision model".into(),
        candidate: None,
        points: Vec::new(),
        visual_quality: None,
        domain_quality: None,
    };
    fs::write(stage.trial.score_path(), serde_json::to_vec(&other).unwrap()).unwrap();
    let verdict = stage.judge().unwrap();
    // Each keeps its own: the first has the trial's, the next stands beside it.
    assert_eq!(stage.trial.score().unwrap().as_ref(), Some(&other));
    let ours = stage.trial.score_by(&Verdict::signature()).unwrap();
    assert_eq!(ours, Some(verdict.score()));
    assert_eq!(stage.trial.scores().unwrap().len(), 2);
    assert!(matches!(stage.look(), Ok(Standing::Current)));
}

#[test]
fn what_should_be_known_beside_the_marks_is_flagged() {
    let stage = Stage::new();
    let small = Picture::filled(proctor_judge::Size { width: 30, height: 20 }, [9, 9, 200]).to_png().unwrap();
    let stage = stage.rendered("a", "rendered", Some(&small));
    let outcome = outcome(&stage.trial, Digest::of(b"older"), Ending::TimedOut, Some(Digest::of(b"a")));
    fs::write(stage.trial.path().join("outcome.json"), serde_json::to_vec(&outcome).unwrap()).unwrap();
    let verdict = stage.judge().unwrap();
    assert_eq!(verdict.flags, [Flag::Blank, Flag::CandidateFitted, Flag::TaskChanged]);
    assert!(stage.marks().iter().all(|(_, holds)| !holds));
}

fn image() -> ImageIdentity {
    let digest = Digest::of(b"image");
    ImageIdentity { reference: "r".into(), id: "i".into(), inputs: digest, packages: digest }
}

fn plan() -> RunRecord {
    RunRecord {
        schema: RunRecord::SCHEMA,
        name: "run".into(),
        created_at: Timestamp::from_millis(1_790_000_000_000),
        version: "0".into(),
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

fn outcome(trial: &TrialDir, task: Digest, ending: Ending, artifact: Option<Digest>) -> Outcome {
    let state = artifact.map_or(ArtifactState::Missing, |digest| ArtifactState::Present { digest, bytes: 1 });
    Outcome {
        schema: Outcome::SCHEMA,
        trial: trial.id().clone(),
        r#try: 1,
        task: TaskFacts::default(),
        ending,
        exit: None,
        started_at: None,
        budget_ms: Millis(1),
        timing: Timing::default(),
        freeze: None,
        frozen_at: None,
        overrun_ms: None,
        artifacts: vec![ArtifactRecord {
            name: "artifact.html".into(),
            state,
            versions: 1,
            versions_skipped: 0,
        }],
        consumed: None,
        digests: Digests { image: image(), task, harness: Digest::of(b"h"), prompt: Digest::of(b"p") },
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
