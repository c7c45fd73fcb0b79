//! A results directory on a disk that is full: no trial is failed for it, what is there stays readable, and the same
//! command goes on when there is room again. Root makes the disk, a small file system in a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_traces::Digest;
use tempfile::TempDir;

use crate::support::{Run, Trial, is_legal, names_in, proctor, sample};

const MIB: u64 = 1 << 20;

/// A small file system, unmounted when dropped.
struct Disk {
    folder: TempDir,
}

impl Disk {
    /// One of 160 MiB, of which so many are free.
    fn with_free(mib: u64) -> Self {
        let disk = Self { folder: tempfile::Builder::new().prefix("disk-").tempdir().unwrap() };
        let image = disk.folder.path().join("image");
        File::create(&image).unwrap().set_len(160 * MIB).unwrap();
        let image = image.to_string_lossy().into_owned();
        // No blocks only for root, who runs this, and none for a journal.
        system("mkfs.ext4", &["-q", "-F", "-m", "0", "-O", "^has_journal", &image]);
        fs::create_dir(disk.path()).unwrap();
        system("mount", &["-o", "loop", &image, &disk.path().to_string_lossy()]);
        disk.occupy_all_but(mib);
        disk
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Takes all room but so much.
    fn occupy_all_but(&self, mib: u64) {
        let told = nix::sys::statvfs::statvfs(&self.path()).unwrap();
        let free = told.blocks_available() * told.fragment_size();
        let mut file = File::create(self.path().join("ballast")).unwrap();
        let chunk = vec![0; usize::try_from(MIB).unwrap()];
        let mut left = free.saturating_sub(mib * MIB);
        while left > 0 {
            let length = chunk.len().min(usize::try_from(left).unwrap());
            match file.write(&chunk[..length]) {
                Ok(written @ 1..) => left -= written as u64,
                // The file system has taken some for itself: it is as full as can be.
                _ => break,
            }
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: whoever still has a file open does not keep it in the tree.
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn system(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?} (these tests need root): {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Leaves its artifact, and at one of the tasks writes 90 MiB besides: `how` says what comes then.
fn filling(disk: &Disk, how: &str) -> Run {
    let tasks = [sample("arch-replicas"), sample("flow-approval")];
    let script = format!("echo 'digraph {{ a }}' > artifact.dot; grep -q Finance TASK.md || exit 0; {how}");
    Run::over(&[&tasks[0], &tasks[1]]).within(&disk.path()).shell(&script).args([
        "--attempts",
        "2",
        "--retries",
        "1",
        "--backoff",
        "50ms",
    ])
}

/// Makes the run on a disk that its second trial fills, then again with room enough.
fn stops_and_goes_on(how: &str) {
    let disk = Disk::with_free(70);
    let run = filling(&disk, how);
    let ended = run.start_as("full", &[]).end();
    let said = ended.stderr();
    assert!(ended.code.is_some_and(|code| code != 0), "{:?}: {said}", ended.code);
    assert!(said.contains("the disk of the results directory is full"), "{said}");
    assert!(said.contains("make space, then give the same command again"), "{said}");
    ended.leaves_nothing();
    let done: Vec<String> = ended.trials().iter().map(|it| it.outcome.trial.to_string()).collect();
    assert_eq!(done, ["vao/arch-replicas/command/1"], "{said}");
    assert!(show(&run).contains("command"), "{}", show(&run));
    let stopped = run.out().join("trials/vao/flow-approval/command/1");
    assert_eq!(names_in(&stopped), ["tries"], "it is open, and nobody's");
    assert_eq!(names_in(&stopped.join("tries")), ["1"], "a full disk is no reason to try again at once");
    is_legal(&stopped.join("tries/1"));
    assert!(
        !run.out().join("trials/vao/arch-replicas/command/2").exists(),
        "nothing was started after it: {said}"
    );
    let before = files(ended.trial().folder.path());

    disk.make_room();
    let ended = run.start_as("again", &[]).end().with_code(0);
    let trials = ended.trials();
    assert_eq!(trials.iter().map(Trial::ending).collect::<Vec<_>>(), ["completed"; 4]);
    assert_eq!(trials.iter().map(|it| it.outcome.r#try).collect::<Vec<_>>(), [1, 1, 2, 1]);
    assert_eq!(files(trials[0].folder.path()), before, "what was finished is as it was");
}

#[test]
fn a_trial_that_fills_the_disk_is_not_failed_for_it() {
    stops_and_goes_on("head -c 90M /dev/zero > big && rm big");
}

#[test]
fn nor_is_one_that_leaves_hardly_any_room() {
    // Our own evidence fits, but what else the agent wrote may not have.
    stops_and_goes_on(
        "head -c 66M /dev/zero > big; if head -c 24M /dev/zero 2>/dev/null > more; then rm big more; else rm more; exit 3; fi",
    );
}

#[test]
fn on_a_full_disk_nothing_is_started() {
    for free in [20, 0] {
        let disk = Disk::with_free(free);
        let run = filling(&disk, "true");
        let ended = run.start_as("full", &[]).end();
        let said = ended.stderr();
        assert!(ended.code.is_some_and(|code| code != 0), "{free}: {:?}: {said}", ended.code);
        assert!(said.contains("No space left on device") || said.contains("is full"), "{free}: {said}");
        ended.leaves_nothing();
        assert_eq!(names_in(&run.out().join("trials")), Vec::<String>::new());
        if free > 0 {
            show(&run);
        }
        disk.make_room();
        let trials = run.start_as("again", &[]).end().with_code(0).trials();
        assert_eq!(trials.iter().map(Trial::ending).collect::<Vec<_>>(), ["completed"; 4], "{free}");
    }
}

/// What `proctor show` says of the run.
fn show(run: &Run) -> String {
    let output = proctor().arg("show").arg(run.out()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Every file with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Digest> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(|entry| (entry.path().to_owned(), Digest::of(&fs::read(entry.path()).unwrap()))).collect()
}
