//! A run: one results directory with a plan that does not change under it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use proctor_traces::{Digest, ImageIdentity, Millis, Timestamp, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tempfile::TempDir;
use walkdir::WalkDir;

use crate::atomic::{TEMPORARY, check_schema, write_json_once};
use crate::folder::{owned_folder, remove_orphans};
use crate::{
    Attempt, Holder, IdError, Lease, LeaseHolder, LeaseTerms, MethodId, RerunRecord, Sightings, StoreError,
    Survey, TaskFacts, TrialDir, TrialId, read_json, write_json,
};

/// `run.json`: the resolved plan, and what it was resolved with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// Version of this format.
    pub schema: u32,
    /// Name of the run: that of its folder.
    pub name: String,
    /// When it was first started.
    pub created_at: Timestamp,
    /// Version of proctor that created it.
    pub version: String,
    /// The toolchain image.
    pub image: ImageIdentity,
    /// The methods.
    pub methods: Vec<MethodRecord>,
    /// The tasks.
    pub tasks: Vec<TaskRecord>,
    /// Attempts per task and method.
    pub attempts: u32,
    /// Bounds of a room, as text: they change what an agent can do.
    pub limits: BTreeMap<String, String>,
    /// What a million tokens cost, by `PROVIDER/MODEL`.
    pub prices: BTreeMap<String, Price>,
    /// All that the run was asked for, as `proctor run --print-plan --json` prints it: whoever joins starts from this.
    pub plan: Option<serde_json::Value>,
    /// What was added since.
    pub extended: Vec<Extension>,
}

/// A task of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRecord {
    /// Its name.
    pub id: String,
    /// Its suite.
    pub suite: String,
    /// Digest of its package.
    pub digest: Digest,
    /// What a table wants to know of it.
    #[serde(flatten)]
    pub facts: TaskFacts,
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Input that was not cached.
    pub input: f64,
    /// Input that was cached; like other input if not given.
    #[serde(default)]
    pub cached_input: Option<f64>,
    /// Output, reasoning included.
    pub output: f64,
}

impl Price {
    /// What this use costs, in USD.
    pub fn of(&self, usage: &Usage) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let millions = |tokens: u64| tokens as f64 / 1e6;
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        millions(usage.input_tokens - cached) * self.input
            + millions(cached) * self.cached_input.unwrap_or(self.input)
            + millions(usage.output_tokens) * self.output
    }
}

/// Something was added to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Extension {
    /// When.
    pub at: Timestamp,
    /// By which version of proctor.
    pub version: String,
    /// What, one line each.
    pub added: Vec<String>,
}

/// A method of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MethodRecord {
    /// Its name.
    pub id: MethodId,
    /// Who answers: `agent`, `native` or `direct`.
    pub track: String,
    /// The harness, with its version.
    pub harness: String,
    /// `PROVIDER/NAME`, if it uses a model.
    pub model: Option<String>,
    /// The budget per trial.
    pub budget_ms: Millis,
    /// Settings that change what the agent is shown or told.
    pub settings: BTreeMap<String, String>,
    /// Digest of the installed harness and how it is started.
    pub harness_digest: Digest,
}

impl RunRecord {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 2;

    /// The trials of the plan, as first attempted: attempt by attempt, so that an early stop has seen all tasks.
    pub fn trials(&self) -> Result<Vec<TrialId>, IdError> {
        let mut trials = Vec::new();
        for attempt in (1..=self.attempts).map(Attempt::nth) {
            for task in &self.tasks {
                for method in &self.methods {
                    trials.push(TrialId::new(&task.suite, &task.id, method.id.clone(), attempt)?);
                }
            }
        }
        Ok(trials)
    }
}

/// A results directory.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// Opens the run at `root` with the plan `record`: creates it in an absent or empty folder, continues it if the
    /// plan is the same, and refuses anything else without touching it.
    pub fn open_or_create(root: &Path, record: &RunRecord) -> Result<Self, StoreError> {
        let run = Self { root: root.to_owned() };
        if !run.record_path().exists() {
            let names = match fs::read_dir(root) {
                Ok(entries) => entries.flatten().map(|entry| entry.file_name()).collect(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
                Err(error) => return Err(StoreError::io("opening", root)(error)),
            };
            // What a start that was killed, or another that is just going on, has begun with is no stranger's.
            let ours = |name: &OsString| name == "run.json" || name.to_string_lossy().starts_with(TEMPORARY);
            if !names.iter().all(ours) {
                return Err(StoreError::Foreign { path: root.to_owned() });
            }
            fs::create_dir_all(root).map_err(StoreError::io("creating", root))?;
            // First of all, so that nothing is ever here without it; once, so that of two starts one makes the plan.
            write_json_once(&run.record_path(), record)?;
        }
        let differences = run.record()?.differences(record);
        if !differences.is_empty() {
            return Err(StoreError::OtherPlan { path: root.to_owned(), differences });
        }
        fs::create_dir_all(run.trials()).map_err(StoreError::io("creating", root))?;
        Ok(run)
    }

    /// Adds to the run at `root` what `record` has more: methods, tasks, attempts. Anything else that differs is refused.
    /// Returns what was added.
    pub fn extend(root: &Path, record: &RunRecord, us: &Holder) -> Result<(Self, Vec<String>), StoreError> {
        let run = Self { root: root.to_owned() };
        // Of two that extend at once, one is told to come again.
        let lease = Lease::take(&root.join("run.lease"), us, LeaseTerms::default(), &Sightings::default())?;
        let LeaseHolder::Ours(_lease) = lease else {
            return Err(StoreError::Extending { path: root.to_owned() });
        };
        let old = run.record()?;
        let differences = old.differences(record);
        if !differences.changed.is_empty() {
            return Err(StoreError::OtherPlan { path: root.to_owned(), differences });
        }
        let added = differences.added;
        if !added.is_empty() {
            let mut extended = old.extended;
            let version = record.version.clone();
            extended.push(Extension { at: Timestamp::now(), version, added: added.clone() });
            let new = RunRecord {
                name: old.name,
                created_at: old.created_at,
                version: old.version,
                extended,
                ..record.clone()
            };
            write_json(&run.record_path(), &new)?;
        }
        Ok((run, added))
    }

    /// Asks for `trial` to be made once more, for this reason; the old attempt keeps its evidence and counts no more.
    /// Returns the new trial; asked twice, it is the same.
    pub fn rerun(&self, trial: &TrialId, reason: &str) -> Result<TrialId, StoreError> {
        let again = trial.at(trial.attempt().again());
        let folder = self.trial(&again);
        fs::create_dir_all(folder.path()).map_err(StoreError::io("creating", folder.path()))?;
        let record = RerunRecord {
            schema: RerunRecord::SCHEMA,
            of: trial.attempt(),
            reason: reason.to_owned(),
            at: Timestamp::now(),
        };
        // Somebody else may have asked already, for a reason of theirs.
        write_json_once(&folder.rerun_path(), &record)?;
        Ok(again)
    }

    /// Opens an existing run.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let run = Self { root: root.to_owned() };
        run.record().map(|_| run)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its plan.
    pub fn record(&self) -> Result<RunRecord, StoreError> {
        let record: RunRecord = read_json(&self.record_path(), "run")?;
        check_schema(&self.record_path(), "run", record.schema, RunRecord::SCHEMA)?;
        Ok(record)
    }

    /// The folder of a trial.
    pub fn trial(&self, id: &TrialId) -> TrialDir {
        TrialDir::new(self.trials().join(id.to_string()), id.clone())
    }

    /// Where the key to a blind export is: whose work its items are.
    pub fn blind_key(&self, export: &str) -> PathBuf {
        self.root.join("blind").join(format!("{export}.json"))
    }

    /// Where a sheet that came back from a rater is kept: the `number`th that differs.
    pub fn blind_sheet(&self, export: &str, judge: &str, number: u32) -> PathBuf {
        self.root.join("blind").join(format!("{export}.{judge}.{number}.csv"))
    }

    /// A new folder for what is mounted into a room. Its name says nothing: an agent can read where its mounts come
    /// from, and the name of a task is not for its eyes (DESIGN §3.5).
    pub fn new_room(&self, owner: &Holder) -> Result<TempDir, StoreError> {
        owned_folder(&self.rooms(), owner)
    }

    /// Removes what runners that are gone have left in `rooms/`, and `rooms/` itself if nothing is in it.
    pub fn tidy(&self) -> Result<(), StoreError> {
        let rooms = self.rooms();
        remove_orphans(&rooms)?;
        // Not empty, or not there: both are fine.
        let _ = fs::remove_dir(&rooms);
        Ok(())
    }

    /// Every trial that has a folder, in order of its name. Folders that are no trials are passed over.
    pub fn trials_on_disk(&self) -> Result<Vec<TrialDir>, StoreError> {
        let trials = self.trials();
        let mut found = Vec::new();
        let walk = WalkDir::new(&trials).min_depth(4).max_depth(4).sort_by_file_name();
        for entry in walk.into_iter().flatten().filter(|entry| entry.file_type().is_dir()) {
            let name = entry.path().strip_prefix(&trials).ok().and_then(Path::to_str);
            if let Some(id) = name.and_then(|name| name.parse().ok()) {
                found.push(TrialDir::new(entry.path().to_owned(), id));
            }
        }
        Ok(found)
    }

    /// What is on disk of every trial that has a folder.
    pub fn survey(&self) -> Result<Survey, StoreError> {
        Ok(self.trials_on_disk()?.into_iter().map(|it| (it.id().clone(), it.standing())).collect())
    }

    fn record_path(&self) -> PathBuf {
        self.root.join("run.json")
    }

    fn rooms(&self) -> PathBuf {
        self.root.join("rooms")
    }

    fn trials(&self) -> PathBuf {
        self.root.join("trials")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::current;

    /// A plan without methods and tasks.
    pub(crate) fn record(attempts: u32) -> RunRecord {
        RunRecord {
            schema: RunRecord::SCHEMA,
            name: "x".into(),
            created_at: Timestamp::now(),
            version: "1".into(),
            image: ImageIdentity {
                reference: "x".into(),
                id: "sha256:1".into(),
                inputs: Digest::of(b""),
                packages: Digest::of(b""),
            },
            methods: Vec::new(),
            tasks: Vec::new(),
            attempts,
            limits: BTreeMap::new(),
            prices: BTreeMap::new(),
            plan: None,
            extended: Vec::new(),
        }
    }

    fn task(id: &str) -> TaskRecord {
        let facts = TaskFacts::default();
        TaskRecord { id: id.into(), suite: "vao".into(), digest: Digest::of(id.as_bytes()), facts }
    }

    #[test]
    fn a_run_grows_and_never_changes() {
        let dir = tempfile::tempdir().unwrap();
        let us = Holder::this_process(None).unwrap();
        let small = RunRecord { tasks: vec![task("a")], ..record(1) };
        let run = RunDir::open_or_create(dir.path(), &small).unwrap();
        let large = RunRecord { tasks: vec![task("b"), task("a")], name: "y".into(), ..record(2) };
        let refused = RunDir::open_or_create(dir.path(), &large);
        assert!(
            matches!(&refused, Err(StoreError::OtherPlan { differences, .. }) if differences.changed.is_empty())
        );
        let (_, added) = RunDir::extend(dir.path(), &large, &us).unwrap();
        assert_eq!(added.len(), 2, "{added:?}");
        let now = run.record().unwrap();
        assert_eq!((now.attempts, now.tasks.len(), now.name.as_str()), (2, 2, "x"));
        assert_eq!(now.extended[0].added, added);
        assert_eq!(RunDir::extend(dir.path(), &large, &us).unwrap().1, Vec::<String>::new());
        for other in [
            small,
            RunRecord {
                limits: BTreeMap::from([("memory".into(), "1".into())]),
                tasks: Vec::new(),
                ..record(3)
            },
            RunRecord {
                tasks: vec![task("b"), TaskRecord { digest: Digest::of(b""), ..task("a") }],
                ..record(2)
            },
        ] {
            let refused = RunDir::extend(dir.path(), &other, &us);
            assert!(matches!(refused, Err(StoreError::OtherPlan { .. })), "{refused:?}");
            assert_eq!(run.record().unwrap(), now);
        }
    }

    #[test]
    fn a_rerun_stands_in_the_place_of_its_trial() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::open_or_create(dir.path(), &record(1)).unwrap();
        let trial: TrialId = "vao/a/m/1".parse().unwrap();
        assert_eq!(current(&trial, &run.survey().unwrap()), trial);
        let again = run.rerun(&trial, "the provider was down").unwrap();
        assert_eq!(
            (again.to_string().as_str(), current(&trial, &run.survey().unwrap())),
            ("vao/a/m/1.1", again.clone())
        );
        assert_eq!(run.rerun(&trial, "another reason").unwrap(), again);
        assert_eq!(run.trial(&again).rerun().unwrap().unwrap().reason, "the provider was down");
        let last = run.rerun(&again, "and again").unwrap();
        assert_eq!(
            (current(&trial, &run.survey().unwrap()), current(&last, &run.survey().unwrap())),
            (last.clone(), last)
        );
    }

    #[test]
    fn what_a_killed_start_left_is_continued_and_what_is_a_strangers_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".tmp-x1Y2z3"), "{").unwrap();
        RunDir::open_or_create(dir.path(), &record(1)).unwrap();
        fs::remove_dir(dir.path().join("trials")).unwrap();
        RunDir::open_or_create(dir.path(), &record(1)).unwrap();
        let strangers = tempfile::tempdir().unwrap();
        fs::write(strangers.path().join("letter"), "").unwrap();
        let refused = RunDir::open_or_create(strangers.path(), &record(1));
        assert!(matches!(refused, Err(StoreError::Foreign { .. })), "{refused:?}");
    }

    #[test]
    fn of_starts_at_once_with_different_plans_one_makes_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("run");
        let starts: Vec<_> = (1..=8)
            .map(|attempts| {
                let root = root.clone();
                std::thread::spawn(move || RunDir::open_or_create(&root, &record(attempts)))
            })
            .collect();
        let made = starts.into_iter().map(|it| it.join().unwrap());
        let (made, refused): (Vec<_>, Vec<_>) = made.partition(Result::is_ok);
        assert_eq!(made.len(), 1);
        assert!(refused.iter().all(|it| matches!(it, Err(StoreError::OtherPlan { .. }))), "{refused:?}");
    }
}
