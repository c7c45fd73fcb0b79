//! Several processes at work on one run: whichever of them die, and when, every trial ends once.

use std::fs;
use std::io::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use proctor_store::RunDir;

use crate::support::{
    Live, Run, SIGNS, Trial, is_whole, read_trace, record_of, sample, signature_in, unique, world,
};

/// How long rounds are started; each takes some seconds.
const ROUNDS: Duration = Duration::from_secs(45);

/// Numbers that look random and can be had again.
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    /// From `PROCTOR_TEST_SEED` if it is set.
    fn thrown() -> Self {
        let given = std::env::var("PROCTOR_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
        let now =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |it| u64::from(it.subsec_nanos()));
        let seed = given.unwrap_or_else(now);
        Self { seed, state: seed }
    }

    /// Less than `most`.
    fn below(&mut self, most: u64) -> u64 {
        // splitmix64
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

impl Drop for Dice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nobody else knows it any more.
            let _ = writeln!(
                std::io::stderr(),
                "with PROCTOR_TEST_SEED={} the same moments come again",
                self.seed
            );
        }
    }
}

#[test]
fn of_three_processes_two_are_killed_and_every_trial_ends_once() {
    let mut dice = Dice::thrown();
    let (start, mut rounds) = (Instant::now(), 0);
    while rounds < 2 || start.elapsed() < ROUNDS {
        three_of_which_two_are_killed(&mut dice);
        rounds += 1;
    }
}

fn three_of_which_two_are_killed(dice: &mut Dice) {
    let marker = unique("joined-");
    let run = Run::over(&[&sample("flow-approval"), &sample("arch-replicas")])
        .shell(&format!(": {marker}; {SIGNS}"))
        .args(["--attempts", "2", "-j", "2"]);
    let mut kills: Vec<(&str, Duration)> =
        ["a", "b"].map(|name| (name, Duration::from_millis(200 + dice.below(2_300)))).into();
    kills.sort_by_key(|(_, at)| *at);
    // They start at once: each may be the one that makes the run.
    let start = Instant::now();
    let victims = kills.into_iter().map(|(name, at)| (run.start_as(name, &[]), at));
    let victims: Vec<(Live<'_>, Duration)> = victims.collect();
    let survivor = run.start_as("survivor", &[]);
    for (victim, at) in victims {
        std::thread::sleep(at.saturating_sub(start.elapsed()));
        // It may have found nothing left to do, which is no failure.
        victim.signal(Signal::SIGKILL);
        let ended = victim.end();
        assert!(matches!(ended.code, None | Some(0)), "{:?}: {}", ended.code, ended.stderr());
    }
    let pid = survivor.id();
    let ended = survivor.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr());
    let left = world::owners_of_containers_of(&run.out());
    assert!(
        left.iter().all(|owner| !owner.contains(&format!(":{pid}:"))),
        "the survivor leaves a container: {left:?}"
    );

    let trials = ended.trials();
    assert_eq!(trials.len(), 4, "{}", ended.stderr());
    let mut signatures: Vec<String> = trials.iter().map(is_whole).collect();
    signatures.sort();
    signatures.dedup();
    assert_eq!(signatures.len(), 4, "each trial has evidence of its own");

    // What the dead have left is noticed by their rooms, and removed by the next start, or by hand.
    world::no_process_with(&marker);
    run.sweep();
    run.left_nothing();
    let before = outcomes_and_tries(&trials);
    let again = run.start_as("again", &[]).end().with_code(0);
    assert_eq!(before, outcomes_and_tries(&again.trials()), "nothing was left to do");
}

fn outcomes_and_tries(trials: &[Trial]) -> Vec<(Vec<u8>, u32)> {
    trials.iter().map(|trial| (trial.bytes("outcome.json"), trial.folder.tries())).collect()
}

/// Signs what it leaves, and works until it is told to stop.
fn waiting() -> Run {
    let script = format!("{SIGNS}; touch ready; while [ ! -e stop ]; do sleep 0.05; done");
    Run::over_one().shell(&script).args(["--budget", "600s"])
}

/// A process that was taken for dead is back, and first.
#[test]
fn of_two_owners_the_first_one_has_the_outcome() {
    two_owners(true);
}

/// A process that was taken for dead is back, and too late.
#[test]
fn of_two_owners_the_last_one_keeps_its_evidence_to_itself() {
    two_owners(false);
}

fn two_owners(the_old_one_is_first: bool) {
    let run = waiting();
    let mut old = run.start_as("old", &[]);
    let old_work = old.workspace_with("ready");
    old.signal(Signal::SIGSTOP);
    // As who takes over from the dead does. This one is not.
    let trial = RunDir::open(&run.out()).unwrap().trials_on_disk().unwrap().remove(0);
    fs::remove_file(trial.path().join("lease")).unwrap();
    let mut new = run.start_as("new", &[]);
    let new_work = new.workspace_beside(std::slice::from_ref(&old_work), "ready");
    let (holder, _) = trial.holder().unwrap();
    assert_eq!(holder.pid, new.id());

    let (winner, loser) = if the_old_one_is_first {
        old.signal(Signal::SIGCONT);
        fs::write(old_work.join("stop"), "").unwrap();
        let winner = old.end();
        assert_eq!(
            trial.holder().map(|(holder, _)| holder.pid),
            Some(new.id()),
            "a lease is only given back by its owner"
        );
        fs::write(new_work.join("stop"), "").unwrap();
        (winner, new)
    } else {
        fs::write(new_work.join("stop"), "").unwrap();
        let winner = new.end();
        assert!(old_work.join("ready").exists(), "the room of who lives is left alone");
        old.signal(Signal::SIGCONT);
        fs::write(old_work.join("stop"), "").unwrap();
        (winner, old)
    };
    assert_eq!(winner.code, Some(0), "{}", winner.stderr());
    let outcome = winner.trial().bytes("outcome.json");
    let loser = loser.end().with_code(0);
    assert!(loser.stderr().contains("finished by another process"), "{}", loser.stderr());

    let trial = loser.trial();
    assert_eq!(trial.bytes("outcome.json"), outcome, "there is one outcome");
    let (won, lost) = if the_old_one_is_first { (1, 2) } else { (2, 1) };
    assert_eq!(trial.outcome.r#try, won);
    let signature = is_whole(&trial);

    let kept = trial.path(&format!("tries/{lost}"));
    assert_eq!(record_of(&kept).map(|it| it.ending.name()), Some("completed"));
    let said = fs::read_to_string(kept.join("raw/stdout.jsonl")).unwrap();
    let other = signature_in(&said).expect("it is signed");
    assert_ne!(signature, other);
    for file in ["artifacts/artifact.dot", "artifacts/workspace/note.txt"] {
        assert_eq!(
            signature_in(&fs::read_to_string(kept.join(file)).unwrap()).as_ref(),
            Some(&other),
            "{file}"
        );
    }
    assert!(!read_trace(&kept.join("trace.jsonl")).is_empty() && kept.join("prompt/TASK.md").exists());
}

#[test]
fn who_finds_a_trial_at_work_waits_and_has_nothing_to_do() {
    let run = waiting();
    let mut first = run.start_as("first", &[]);
    let work = first.workspace_with("ready");
    let mut second = run.start_as("second", &[]);
    second.says("is being run by");
    assert!(work.join("ready").exists() && first.is_running(), "the first goes on undisturbed");
    fs::write(work.join("stop"), "").unwrap();
    let first = first.end();
    assert_eq!(first.code, Some(0), "{}", first.stderr());
    let second = second.end().with_code(0);
    assert_eq!(second.stderr().matches("is being run by").count(), 1, "it is said once: {}", second.stderr());
    let trial = second.trial();
    is_whole(&trial);
    assert_eq!((trial.outcome.r#try, trial.folder.tries()), (1, 1));
}

#[test]
fn who_waits_puts_in_order_what_the_owner_had_no_time_for() {
    let run = waiting();
    let mut first = run.start_as("first", &[("PROCTOR_TEST_CRASH_AT", "outcome-written")]);
    let work = first.workspace_with("ready");
    let mut second = run.start_as("second", &[]);
    second.says("is being run by");
    fs::write(work.join("stop"), "").unwrap();
    assert_eq!(first.end().code, None);
    let second = second.end();
    assert_eq!(second.code, Some(0), "{}", second.stderr());
    let trial = second.trial();
    is_whole(&trial);
    assert_eq!(trial.folder.tries(), 1, "there is an outcome, which is not made again");
}

#[test]
fn who_waits_takes_over_when_the_owner_dies() {
    let run = waiting();
    let mut first = run.start_as("first", &[]);
    let work = first.workspace_with("ready");
    let mut second = run.start_as("second", &[]);
    second.says("is being run by");
    first.signal(Signal::SIGKILL);
    assert_eq!(first.end().code, None);
    let taken = second.workspace_beside(&[work], "ready");
    fs::write(taken.join("stop"), "").unwrap();
    let second = second.end();
    assert_eq!(second.code, Some(0), "{}", second.stderr());
    let trial = second.trial();
    is_whole(&trial);
    assert_eq!((trial.outcome.r#try, trial.folder.tries()), (2, 2));
    run.sweep();
    run.left_nothing();
}
