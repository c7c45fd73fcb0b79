//! Makes one run out of several that were parts of it on machines without a shared disk: the union of their plans and of
//! their trials. The sources are only read.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_traces::Digest;
use walkdir::WalkDir;

use crate::atomic::TEMPORARY;
use crate::{Holder, LeaseTerms, PresenceState, RunDir, RunRecord, StoreError, TrialDir, TrialId};

const OUTCOME: &str = "outcome.json";

/// What came of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Trials with an outcome in the merged run that came from a source.
    pub done: u64,
    /// Trials of which only tries are there.
    pub unfinished: u64,
    /// Files that share their bytes with the source.
    pub linked: u64,
    /// Files that were copied, since a link was not possible.
    pub copied: u64,
    /// Files that were there already.
    pub present: u64,
    /// What was not taken over, one line each: trials at work, tries of a trial that another source has more of, links.
    pub left_out: Vec<String>,
}

/// Merges the runs at `sources` into `target`, which is made, or continued if it was begun before. Trials with the same
/// outcome are one trial; different ones, plans that contradict each other, and different marks or pictures of one trial
/// are a [`StoreError::Conflict`] that names both. The outcome of a trial arrives last, so that a merge that was cut
/// short is continued by the next.
pub fn merge(sources: &[PathBuf], target: &Path, us: &Holder) -> Result<Merged, StoreError> {
    let runs: Vec<RunDir> = sources.iter().map(|it| RunDir::open(it)).collect::<Result<_, _>>()?;
    let same = |source: &PathBuf| {
        source.canonicalize().is_ok_and(|source| target.canonicalize().is_ok_and(|target| source == target))
    };
    if sources.iter().any(same) {
        return Err(StoreError::IntoItself { path: target.to_owned() });
    }
    let record = union(&runs, target)?;
    // All conflicts come to light before anything is written.
    let candidates = gather(&runs)?;
    let mut merged = Merged::default();
    let chosen: Vec<Choice> =
        candidates.into_iter().map(|(id, all)| choose(id, all, &mut merged)).collect::<Result<_, _>>()?;
    let run = if target.join("run.json").exists() {
        RunDir::extend(target, &record, us)?.0
    } else {
        RunDir::open_or_create(target, &record)?
    };
    for choice in chosen.iter().filter(|it| !it.folders.is_empty()) {
        let place = run.trial(&choice.trial);
        for folder in &choice.folders {
            take(folder, &place, choice.done, &mut merged)?;
        }
        if choice.done {
            let outcome = choice.folders[0].path().join(OUTCOME);
            put(&outcome, &place.path().join(OUTCOME), &mut merged)?;
            merged.done += 1;
        } else {
            merged.unfinished += 1;
        }
    }
    Ok(merged)
}

/// The plan that has what each of them has.
fn union(runs: &[RunDir], target: &Path) -> Result<RunRecord, StoreError> {
    let records: Vec<RunRecord> = runs.iter().map(RunDir::record).collect::<Result<_, _>>()?;
    let Some((first, others)) = records.split_first() else {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "there is nothing to merge");
        return Err(StoreError::Io { action: "merging into", path: target.to_owned(), source });
    };
    let mut all = first.clone();
    all.name = target.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned());
    for (other, run) in others.iter().zip(&runs[1..]) {
        let conflict = |what: String| {
            let (left, right) = (runs[0].root().to_owned(), run.root().to_owned());
            StoreError::Conflict { what, left, right }
        };
        for method in &other.methods {
            if all.methods.iter().all(|it| it.id != method.id) {
                all.methods.push(method.clone());
            }
        }
        for task in &other.tasks {
            if all.tasks.iter().all(|it| (&it.suite, &it.id) != (&task.suite, &task.id)) {
                all.tasks.push(task.clone());
            }
        }
        for (model, price) in &other.prices {
            if all.prices.entry(model.clone()).or_insert(*price) != price {
                return Err(conflict(format!("prices of {model}")));
            }
        }
        all.attempts = all.attempts.max(other.attempts);
        all.created_at = all.created_at.min(other.created_at);
        // Whoever joins the merged run could start from neither.
        if all.plan != other.plan {
            all.plan = None;
        }
        for extension in &other.extended {
            if !all.extended.contains(extension) {
                all.extended.push(extension.clone());
            }
        }
        let differences = other.differences(&all);
        if !differences.changed.is_empty() {
            return Err(conflict(format!("plans ({})", differences.changed.join("; "))));
        }
    }
    Ok(all)
}

/// The folders of each trial, in the order of the sources.
fn gather(runs: &[RunDir]) -> Result<BTreeMap<TrialId, Vec<TrialDir>>, StoreError> {
    let mut found: BTreeMap<TrialId, Vec<TrialDir>> = BTreeMap::new();
    for run in runs {
        for trial in run.trials_on_disk()? {
            found.entry(trial.id().clone()).or_default().push(trial);
        }
    }
    Ok(found)
}

/// What is taken over of one trial.
struct Choice {
    trial: TrialId,
    folders: Vec<TrialDir>,
    done: bool,
}

/// Of a trial that is done somewhere, the folders where it is, which must agree. Of one that is done nowhere, the one with
/// the most tries that nobody is at work on.
fn choose(trial: TrialId, all: Vec<TrialDir>, merged: &mut Merged) -> Result<Choice, StoreError> {
    let (done, open): (Vec<_>, Vec<_>) = all.into_iter().partition(TrialDir::is_done);
    let mut leave_out = |it: &TrialDir, why: &str| {
        merged.left_out.push(format!("{}: {why}", it.path().display()));
    };
    if let Some((first, others)) = done.split_first() {
        others.iter().try_for_each(|other| agree(first, other))?;
        open.iter().filter(|it| it.tries() > 0).for_each(|it| leave_out(it, "it has an outcome elsewhere"));
        return Ok(Choice { trial, folders: done, done: true });
    }
    let expiry: Duration = LeaseTerms::default().expiry;
    let at_work = |it: &TrialDir| it.presence(expiry).is_some_and(|it| it.state == PresenceState::Alive);
    let (busy, mut idle): (Vec<_>, Vec<_>) = open.into_iter().partition(at_work);
    for it in &busy {
        leave_out(it, "it is being run");
    }
    // Stable, so that of equals the first source's is taken.
    idle.sort_by_key(|it| std::cmp::Reverse(it.tries()));
    idle.iter().skip(1).filter(|it| it.tries() > 0).for_each(|it| leave_out(it, "another has more tries"));
    idle.truncate(1);
    Ok(Choice { trial, folders: idle, done: false })
}

/// Whether two folders hold the same trial.
fn agree(left: &TrialDir, right: &TrialDir) -> Result<(), StoreError> {
    for (name, what) in [(OUTCOME, "outcomes"), ("score.json", "marks"), ("render/output.png", "pictures")] {
        let (left, right) = (left.path().join(name), right.path().join(name));
        if left.exists() && right.exists() && !same_bytes(&left, &right)? {
            return Err(StoreError::Conflict { what: format!("{what} of one trial"), left, right });
        }
    }
    Ok(())
}

/// Puts the files of a trial's folder into another, all but its outcome.
fn take(from: &TrialDir, to: &TrialDir, done: bool, merged: &mut Merged) -> Result<(), StoreError> {
    fs::create_dir_all(to.path()).map_err(StoreError::io("creating", to.path()))?;
    let top_level = fs::read_dir(from.path()).map_err(StoreError::io("reading", from.path()))?;
    for entry in top_level {
        let entry = entry.map_err(StoreError::io("reading", from.path()))?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text == OUTCOME || text == "lease" || text.starts_with("lease.") || text.starts_with(TEMPORARY) {
            continue;
        }
        // What is rendered twice has other times in its record; one of them is enough.
        if done && text == "render" && to.path().join("render/render.json").exists() {
            merged.present += 1;
            continue;
        }
        take_tree(&entry.path(), &to.path().join(&name), merged)?;
    }
    Ok(())
}

fn take_tree(from: &Path, to: &Path, merged: &mut Merged) -> Result<(), StoreError> {
    for entry in WalkDir::new(from).sort_by_file_name() {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(from).to_owned();
            StoreError::Io { action: "reading", path, source: error.into() }
        })?;
        let within = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        let place = if within == OsStr::new("") { to.to_owned() } else { to.join(within) };
        let kind = entry.file_type();
        if kind.is_dir() {
            fs::create_dir_all(&place).map_err(StoreError::io("creating", &place))?;
        } else if kind.is_file() {
            put(entry.path(), &place, merged)?;
        } else {
            // Proctor keeps no such things; whoever put them there may mean anything by them.
            merged.left_out.push(format!("{}: it is not a plain file", entry.path().display()));
        }
    }
    Ok(())
}

/// Puts one file in its place: by link if that can be, else as a whole copy.
fn put(from: &Path, to: &Path, merged: &mut Merged) -> Result<(), StoreError> {
    match fs::hard_link(from, to) {
        Ok(()) => merged.linked += 1,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !same_bytes(from, to)? {
                let (left, right) = (from.to_owned(), to.to_owned());
                return Err(StoreError::Conflict { what: "bytes".into(), left, right });
            }
            merged.present += 1;
        }
        Err(_) => {
            copy(from, to).map_err(StoreError::io("copying", from))?;
            merged.copied += 1;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
    let mut source = File::open(from)?;
    io::copy(&mut source, file.as_file_mut())?;
    file.as_file().set_permissions(source.metadata()?.permissions())?;
    file.as_file().sync_data()?;
    file.persist(to).map(drop).map_err(|error| error.error)
}

fn same_bytes(left: &Path, right: &Path) -> Result<bool, StoreError> {
    let digest = |path: &Path| {
        let plain = fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
        let file = if plain { File::open(path) } else { Err(io::Error::other("it is not a file")) };
        file.and_then(|it| Digest::of_reader(it.take(u64::MAX))).map_err(StoreError::io("reading", path))
    };
    Ok(digest(left)? == digest(right)?)
}

#[cfg(test)]
mod tests {
    use proctor_traces::{ImageIdentity, Timestamp};

    use super::*;
    use crate::{TaskFacts, TaskRecord};

    fn record(attempts: u32) -> RunRecord {
        let task = |id: &str| TaskRecord {
            id: id.into(),
            suite: "vao".into(),
            digest: Digest::of(id.as_bytes()),
            facts: TaskFacts::default(),
        };
        let (inputs, packages) = (Digest::of(b""), Digest::of(b""));
        RunRecord {
            schema: RunRecord::SCHEMA,
            name: "x".into(),
            created_at: Timestamp::from_millis(0),
            version: "1".into(),
            image: ImageIdentity { reference: "x".into(), id: "sha256:1".into(), inputs, packages },
            methods: Vec::new(),
            tasks: vec![task("a"), task("b"), task("c")],
            attempts,
            limits: BTreeMap::new(),
            prices: BTreeMap::new(),
            plan: None,
            extended: Vec::new(),
        }
    }

    /// A run with tasks `a` and `b`, some of whose trials have an outcome that says `said`.
    fn run(root: &Path, done: &[(&str, &str)], tries: &[&str]) -> PathBuf {
        let run = RunDir::open_or_create(root, &record(1)).unwrap();
        for (trial, said) in done {
            let folder = run.trial(&trial.parse().unwrap());
            fs::create_dir_all(folder.path().join("raw")).unwrap();
            fs::write(folder.path().join("raw/stdout.jsonl"), said).unwrap();
            fs::write(folder.path().join(OUTCOME), said).unwrap();
        }
        for trial in tries {
            let place = run.trial(&trial.parse().unwrap()).new_try().unwrap();
            fs::write(place.path().join("try.json"), root.to_string_lossy().as_bytes()).unwrap();
        }
        root.to_owned()
    }

    fn us() -> Holder {
        Holder::this_process(None).unwrap()
    }

    #[test]
    fn no_run_is_merged_into_itself() {
        let dir = tempfile::tempdir().unwrap();
        let part = dir.path().join("part");
        RunDir::open_or_create(&part, &record(1)).unwrap();
        let us = Holder::this_process(None).unwrap();
        let refused = merge(std::slice::from_ref(&part), &dir.path().join("./part"), &us);
        assert!(matches!(refused, Err(StoreError::IntoItself { .. })), "{refused:?}");
    }

    #[test]
    fn the_union_has_every_trial_once_and_a_merge_that_was_cut_short_is_continued() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let a = run(&path("a"), &[("vao/a/m/1", "one"), ("vao/b/m/1", "same")], &["vao/c/m/1"]);
        let b = run(&path("b"), &[("vao/b/m/1", "same"), ("vao/c/m/1", "three")], &[]);
        std::os::unix::fs::symlink("/etc/passwd", a.join("trials/vao/a/m/1/raw/link")).unwrap();
        let merged = merge(&[a.clone(), b.clone()], &path("c"), &us()).unwrap();
        assert_eq!((merged.done, merged.unfinished, merged.copied), (3, 0, 0));
        assert_eq!(merged.left_out.len(), 2, "{:?}", merged.left_out);
        assert_eq!(fs::read_to_string(path("c/trials/vao/c/m/1/raw/stdout.jsonl")).unwrap(), "three");
        assert!(!path("c/trials/vao/c/m/1/tries").exists() && !path("c/trials/vao/a/m/1/raw/link").exists());
        // As if it had been killed in the middle.
        fs::remove_file(path("c/trials/vao/a/m/1/outcome.json")).unwrap();
        fs::remove_dir_all(path("c/trials/vao/b")).unwrap();
        let again = merge(&[a, b], &path("c"), &us()).unwrap();
        assert_eq!((again.done, again.linked), (3, 3));
        assert!(path("c/trials/vao/b/m/1/outcome.json").exists());
    }

    #[test]
    fn what_contradicts_itself_is_refused_before_anything_is_written_and_both_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let a = run(&path("a"), &[("vao/a/m/1", "one")], &[]);
        let b = run(&path("b"), &[("vao/a/m/1", "two")], &[]);
        let refused = merge(&[a.clone(), b], &path("c"), &us()).unwrap_err();
        let said = refused.to_string();
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused:?}");
        assert!(
            said.contains("a/trials/vao/a/m/1/outcome.json") && said.contains("b/trials/vao/a"),
            "{said}"
        );
        assert!(!path("c").exists());

        let mut other = record(1);
        other.limits.insert("memory".into(), "another".into());
        RunDir::open_or_create(&path("d"), &other).unwrap();
        let refused = merge(&[a, path("d")], &path("c"), &us()).unwrap_err();
        assert!(
            matches!(&refused, StoreError::Conflict { what, .. } if what.contains("memory")),
            "{refused}"
        );
    }

    #[test]
    fn plans_that_complement_each_other_are_added_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (mut left, mut right) = (record(1), record(3));
        left.tasks.truncate(1);
        right.tasks.remove(0);
        let both: Vec<_> = left.tasks.iter().chain(&right.tasks).cloned().collect();
        RunDir::open_or_create(&path("a"), &left).unwrap();
        RunDir::open_or_create(&path("b"), &right).unwrap();
        merge(&[path("a"), path("b")], &path("c"), &us()).unwrap();
        let merged = RunDir::open(&path("c")).unwrap().record().unwrap();
        assert_eq!((merged.tasks, merged.attempts, merged.name.as_str()), (both, 3, "c"));
    }

    #[test]
    fn of_what_is_done_nowhere_the_most_tries_are_kept_and_what_is_at_work_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let a = run(&path("a"), &[], &["vao/a/m/1", "vao/b/m/1"]);
        let b = run(&path("b"), &[], &["vao/a/m/1", "vao/a/m/1"]);
        fs::write(a.join("trials/vao/b/m/1/lease"), serde_json::to_vec(&us()).unwrap()).unwrap();
        let merged = merge(&[a, b.clone()], &path("c"), &us()).unwrap();
        assert_eq!((merged.done, merged.unfinished, merged.left_out.len()), (0, 1, 2));
        let kept = fs::read_to_string(path("c/trials/vao/a/m/1/tries/2/try.json")).unwrap();
        assert_eq!(kept, b.to_string_lossy());
        assert!(!path("c/trials/vao/b").exists());
    }
}
