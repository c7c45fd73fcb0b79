//! A run: one results directory with a plan that does not change under it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use proctor_traces::{Digest, ImageIdentity, Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tempfile::TempDir;

use crate::atomic::{TEMPORARY, check_schema, write_json_once};
use crate::folder::{owned_folder, remove_orphans};
use crate::{MethodId, Owner, StoreError, TrialDir, TrialId, read_json};

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
    /// The tasks by name, with the digests of their packages.
    pub tasks: Vec<(String, Digest)>,
    /// Attempts per task and method.
    pub attempts: u32,
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
    pub settings: std::collections::BTreeMap<String, String>,
    /// Digest of the installed harness and how it is started.
    pub harness_digest: Digest,
}

impl RunRecord {
    /// The version of the format that this code writes.
    pub const SCHEMA: u32 = 1;

    /// What differs from `other` in a way that would mix two experiments, one line each.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut compare = |what: &str, here: String, there: String| {
            if here != there {
                lines.push(format!("  {what}: was {here}, now {there}"));
            }
        };
        compare("image", self.image.id.clone(), other.image.id.clone());
        compare("attempts", self.attempts.to_string(), other.attempts.to_string());
        for method in &self.methods {
            let now = other.methods.iter().find(|it| it.id == method.id);
            compare(&format!("method {}", method.id), describe(Some(method)), describe(now));
        }
        for method in other.methods.iter().filter(|it| self.methods.iter().all(|other| other.id != it.id)) {
            compare(&format!("method {}", method.id), describe(None), describe(Some(method)));
        }
        let digest_in = |record: &Self, name: &str| {
            record
                .tasks
                .iter()
                .find(|(task, _)| task == name)
                .map_or("absent".to_owned(), |(_, digest)| digest.short())
        };
        let mut names: Vec<&String> = self.tasks.iter().chain(&other.tasks).map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        for name in names {
            compare(&format!("task {name}"), digest_in(self, name), digest_in(other, name));
        }
        lines
    }
}

fn describe(method: Option<&MethodRecord>) -> String {
    method.map_or("absent".to_owned(), |it| {
        let settings: Vec<String> =
            it.settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let model = it.model.as_deref().unwrap_or("no model");
        format!(
            "{} with {model}, {} ms, {}{}",
            it.harness,
            it.budget_ms.0,
            it.harness_digest.short(),
            settings.concat()
        )
    })
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
            return Err(StoreError::OtherPlan { path: root.to_owned(), differences: differences.join("\n") });
        }
        fs::create_dir_all(run.trials()).map_err(StoreError::io("creating", root))?;
        Ok(run)
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

    /// A new folder for what is mounted into a room. Its name says nothing: an agent can read where its mounts come
    /// from, and the name of a task is not for its eyes (DESIGN §3.5).
    pub fn new_room(&self, owner: &Owner) -> Result<TempDir, StoreError> {
        let rooms = self.rooms();
        fs::create_dir_all(&rooms).map_err(StoreError::io("creating", &rooms))?;
        owned_folder(&rooms, owner)
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
        let walk = walkdir::WalkDir::new(&trials).min_depth(4).max_depth(4).sort_by_file_name();
        for entry in walk.into_iter().flatten().filter(|entry| entry.file_type().is_dir()) {
            let name = entry.path().strip_prefix(&trials).ok().and_then(Path::to_str);
            if let Some(id) = name.and_then(|name| name.parse().ok()) {
                found.push(TrialDir::new(entry.path().to_owned(), id));
            }
        }
        Ok(found)
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
mod tests {
    use super::*;

    fn record(attempts: u32) -> RunRecord {
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
        }
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
