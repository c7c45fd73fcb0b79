//! `RUN/slurm/`: what was submitted, written down. `<n>.sbatch` is the script of the n-th submission, `<job>.json` says what
//! became of it, `<job>_<index>.log` is what an array task printed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use proctor_store::{RunDir, TrialId, read_json, write_json};
use proctor_traces::Timestamp;
use serde::{Deserialize, Serialize};

use super::queue::ArrayTask;
use crate::failure::Failure;

/// `<job>.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Submission {
    /// Version of this format.
    pub(super) schema: u32,
    /// The array's job.
    pub(super) job: u64,
    /// Its cluster, where there are several.
    pub(super) cluster: Option<String>,
    /// Its name.
    pub(super) job_name: String,
    /// Number of its array tasks.
    pub(super) tasks: u32,
    /// Trials at a time in each.
    pub(super) per_task_jobs: u16,
    /// Its script.
    pub(super) script: String,
    /// When it was submitted.
    pub(super) submitted_at: Timestamp,
    /// Version of proctor that submitted it.
    pub(super) version: String,
    /// The trials that were missing then.
    pub(super) missing: Vec<TrialId>,
}

impl Submission {
    /// The version of the format that this code writes.
    pub(super) const SCHEMA: u32 = 1;
}

/// `RUN/slurm/`.
pub(super) fn folder(run: &RunDir) -> PathBuf {
    run.root().join("slurm")
}

/// Keeps a script in `folder` under the next free number.
pub(super) fn keep_script(folder: &Path, text: &str) -> Result<PathBuf, Failure> {
    let failed =
        |path: &Path, error: std::io::Error| Failure::input(format!("writing {}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut number = names(folder, "sbatch").filter_map(|name| name.parse::<u32>().ok()).max().unwrap_or(0);
    loop {
        number = number.saturating_add(1);
        let path = folder.join(format!("{number}.sbatch"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).map_err(|error| failed(&path, error))?;
                return Ok(path);
            }
            // Somebody else submits just now.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < u32::MAX => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
}

/// All submissions of a run.
#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<u64, Submission>);

impl Jobs {
    /// Reads those in `folder`. One that is not valid is an error: its tasks would be forgotten silently.
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let mut jobs = BTreeMap::new();
        for name in names(folder, "json").filter(|name| name.parse::<u64>().is_ok()) {
            let path = folder.join(format!("{name}.json"));
            let it: Submission = read_json(&path, "submission")?;
            if it.schema != Submission::SCHEMA || it.job.to_string() != name {
                return Err(Failure::input(format!(
                    "{} is not a submission that this proctor knows",
                    path.display()
                )));
            }
            jobs.insert(it.job, it);
        }
        Ok(Self(jobs))
    }

    /// Writes one down in `folder`.
    pub(super) fn record(folder: &Path, submission: &Submission) -> Result<(), Failure> {
        write_json(&folder.join(format!("{}.json", submission.job)), submission)?;
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every array task that was submitted.
    pub(super) fn tasks(&self) -> impl Iterator<Item = ArrayTask> {
        self.0.values().flat_map(|it| (0..it.tasks).map(|index| ArrayTask { job: it.job, index }))
    }

    /// Ids of the jobs by cluster; a single cluster has no name.
    pub(super) fn by_cluster(&self) -> BTreeMap<Option<&str>, Vec<u64>> {
        let mut found: BTreeMap<Option<&str>, Vec<u64>> = BTreeMap::new();
        for it in self.0.values() {
            found.entry(it.cluster.as_deref()).or_default().push(it.job);
        }
        found
    }

    /// Those of them for which `wanted` holds.
    pub(super) fn only(mut self, wanted: impl Fn(u64) -> bool) -> Self {
        self.0.retain(|job, _| wanted(*job));
        self
    }

    /// Ids of the jobs.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
    }
}

/// Names without their ending of the files in `folder` that end so.
fn names(folder: &Path, ending: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let dotted = format!(".{ending}");
    entries.filter_map(move |entry| Some(entry.file_name().to_str()?.strip_suffix(&dotted)?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submission(job: u64, cluster: Option<&str>) -> Submission {
        Submission {
            schema: Submission::SCHEMA,
            job,
            cluster: cluster.map(str::to_owned),
            job_name: "proctor-x".into(),
            tasks: 2,
            per_task_jobs: 1,
            script: "1.sbatch".into(),
            submitted_at: Timestamp::now(),
            version: "1".into(),
            missing: vec!["vao/a/m/1".parse().unwrap()],
        }
    }

    #[test]
    fn what_was_submitted_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Jobs::read(&folder.path().join("not there")).unwrap().is_empty());
        for (job, cluster) in [(7, None), (11, Some("alpha")), (12, Some("alpha"))] {
            Jobs::record(folder.path(), &submission(job, cluster)).unwrap();
        }
        fs::write(folder.path().join("7_0.log"), "").unwrap();
        fs::write(folder.path().join("notes.json"), "mine").unwrap();
        let jobs = Jobs::read(folder.path()).unwrap();
        assert_eq!(jobs.by_cluster(), BTreeMap::from([(None, vec![7]), (Some("alpha"), vec![11, 12])]));
        let tasks: Vec<String> = jobs.tasks().map(|it| it.to_string()).collect();
        assert_eq!(tasks, ["7_0", "7_1", "11_0", "11_1", "12_0", "12_1"]);
        assert_eq!(jobs.only(|job| job > 11).ids(), [12]);
        for strange in ["", "{}", &serde_json::to_string(&submission(9, None)).unwrap()] {
            fs::write(folder.path().join("8.json"), strange).unwrap();
            assert!(Jobs::read(folder.path()).is_err(), "{strange}");
        }
    }

    #[test]
    fn scripts_are_numbered_and_none_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("slurm");
        let keep = |text| keep_script(&folder, text).unwrap().file_name().unwrap().to_owned();
        assert_eq!((keep("a"), keep("b")), ("1.sbatch".into(), "2.sbatch".into()));
        fs::remove_file(folder.join("1.sbatch")).unwrap();
        assert_eq!(keep("c"), "3.sbatch");
        assert_eq!(fs::read_to_string(folder.join("2.sbatch")).unwrap(), "b");
    }
}
