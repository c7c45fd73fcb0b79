//! Campaigns of pretended trials: many processes on one results directory, killed at random moments.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_store::{RunDir, TryRecord, resume};
use proctor_traces::JournalReader;

const TRIALS: u32 = 30;

fn start(out: &Path, trials: u32, work: u64) -> Child {
    let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tasks/samples/vao/flow-approval");
    Command::new(env!("CARGO_BIN_EXE_simulated"))
        .args(["--trials", &trials.to_string(), "--jobs", "3", "--work", &work.to_string(), "--out"])
        .arg(out)
        .arg("--task")
        .arg(task)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of a process that ends well; returns how many trials it ended.
fn ended(child: Child) -> u64 {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["end"], "Finished");
    told["ended"].as_u64().unwrap()
}

/// Trials that have not ended.
fn open(out: &Path) -> usize {
    let run = RunDir::open(out).unwrap();
    resume(&run.record().unwrap().trials().unwrap(), &run.survey().unwrap()).len()
}

/// Every trial of the plan has ended, and what it left is whole and from one process.
fn check(out: &Path, trials: u32, round: u64) -> u64 {
    let run = RunDir::open(out).unwrap();
    let plan = run.record().unwrap().trials().unwrap();
    assert_eq!(plan.len(), trials as usize);
    assert_eq!(open(out), 0, "round {round}");
    let mut tries = 0;
    for trial in &plan {
        let folder = run.trial(trial);
        let outcome = folder.outcome().unwrap().unwrap();
        let texts = ["raw/stdout.jsonl", "artifacts/artifact.dot"]
            .map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
        assert_eq!(texts[0], texts[1], "round {round}: {trial} mixes evidence");
        assert!(
            texts[0].ends_with(&format!(" try {}\n", outcome.r#try)),
            "round {round}: {trial}: {}",
            texts[0]
        );
        assert_eq!(JournalReader::read(&folder.path().join("trace.jsonl")).unwrap().0.len(), 1);
        let last = folder.path().join(format!("tries/{}/try.json", outcome.r#try));
        let last: TryRecord = serde_json::from_slice(&fs::read(last).unwrap()).unwrap();
        assert_eq!(last.ending, outcome.ending);
        let names: BTreeSet<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        let known = ["artifacts", "outcome.json", "raw", "trace.jsonl", "tries"].map(str::to_owned);
        // A process that is killed while it writes leaves a temporary file, which nobody takes for anything else.
        let others: Vec<_> =
            names.iter().filter(|it| !known.contains(it) && !it.starts_with(".tmp-")).collect();
        assert!(others.is_empty(), "round {round}: {trial} has {others:?}");
        tries += u64::from(folder.tries());
    }
    tries
}

/// A generator of small random numbers: the same ones each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn of_three_processes_two_are_killed_and_every_trial_ends_once() {
    let mut dice = Dice(20_261_130);
    let mut interrupted = 0;
    for round in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("run");
        let mut children: Vec<Child> = (0..3).map(|_| start(&out, TRIALS, 30)).collect();
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(10 + dice.below(120)));
            let victim = usize::try_from(dice.below(children.len() as u64)).unwrap();
            let mut victim = children.swap_remove(victim);
            kill(Pid::from_raw(victim.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
            victim.wait().unwrap();
        }
        let survivor = ended(children.pop().unwrap());
        assert!(survivor <= u64::from(TRIALS));
        assert_eq!(open(&out), 0, "round {round}");
        // Whoever comes later has nothing to do, but to put in order what one left that was killed in its last steps.
        assert_eq!(ended(start(&out, TRIALS, 30)), 0, "round {round}");
        interrupted += check(&out, TRIALS, round) - u64::from(TRIALS);
    }
    assert!(interrupted >= 40, "only {interrupted} tries were interrupted: nothing was tested");
}

#[test]
fn processes_side_by_side_share_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let children: Vec<Child> = (0..4).map(|_| start(&out, 120, 20)).collect();
    let shares: Vec<u64> = children.into_iter().map(ended).collect();
    assert_eq!(shares.iter().sum::<u64>(), 120, "{shares:?}");
    assert!(shares.iter().filter(|share| **share > 0).count() > 1, "{shares:?}");
    assert_eq!(check(&out, 120, 0), 120, "each was tried once");
}
