//! Makes inputs, gives each to a target, and notices when one fails or does not come to an end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::mutate::{Dice, mutated};

/// Far more than any input of the size below takes, also on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Inputs are no longer than this, so that a reader whose time grows with the square of it is told from one that hangs.
const LONGEST: usize = 256 << 10;

/// An input before it is mutated.
#[derive(Clone)]
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// What is given to a target.
pub(crate) struct Input<'a> {
    /// What the bytes were made of.
    pub(crate) seed: &'a Seed,
    /// The bytes after mutation.
    pub(crate) bytes: &'a [u8],
    /// For choices of the target.
    pub(crate) dice: Dice,
}

/// Gives mutated seeds to one target.
pub(crate) struct Driver {
    target: &'static str,
    seeds: Vec<Seed>,
}

impl Driver {
    pub(crate) fn new(target: &'static str, seeds: Vec<Seed>) -> Self {
        assert!(!seeds.is_empty(), "{target}: the fixtures are missing");
        Self { target, seeds }
    }

    /// Each seed as it is, then `count` mutated ones, or as many as there is time for.
    pub(crate) fn run(self, count: u64, target: fn(&mut Input<'_>)) {
        let seconds = number("PROCTOR_FUZZ_SECONDS");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let first = number("PROCTOR_FUZZ_SEED").unwrap_or(if seconds.is_some() { now << 20 } else { 0 });
        let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let (name, begun) = (self.target, Arc::new(Mutex::new((first, Vec::new()))));
        let (ends, ended) = mpsc::channel();
        let at_work = Arc::clone(&begun);
        thread::spawn(move || {
            for number in 0.. {
                let is_enough = match until {
                    Some(until) => Instant::now() >= until,
                    None => number >= self.seeds.len() as u64 + count,
                };
                if is_enough {
                    break;
                }
                let mut dice = Dice::new(first + number);
                let whole = usize::try_from(number).ok().and_then(|at| self.seeds.get(at));
                let seed = whole.unwrap_or_else(|| dice.pick(&self.seeds));
                let mut bytes = match whole {
                    Some(seed) => seed.bytes.clone(),
                    None => mutated(&seed.bytes, &dice.pick(&self.seeds).bytes, &mut dice),
                };
                bytes.truncate(LONGEST);
                *at_work.lock().unwrap() = (first + number, bytes.clone());
                let mut input = Input { seed, bytes: &bytes, dice };
                let result = catch_unwind(AssertUnwindSafe(|| target(&mut input)));
                let is_good = result.is_ok();
                let _ = ends.send(is_good);
                if !is_good {
                    break;
                }
            }
        });
        let mut made = 0_u64;
        loop {
            match ended.recv_timeout(PATIENCE) {
                Ok(true) => made += 1,
                Ok(false) => panic!("{}", tell(name, "failed", &begun)),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("{}", tell(name, "does not end", &begun)),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        assert!(made > 0, "{name}: nothing was made");
        println!("{name}: {made} inputs from seed {first}");
    }
}

/// Keeps the input and says how to have it again.
fn tell(target: &str, what: &str, begun: &Mutex<(u64, Vec<u8>)>) -> String {
    let (seed, bytes) = begun.lock().unwrap().clone();
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{target}-{seed}"));
    fs::write(&path, bytes).unwrap();
    format!("{target}: input {seed} {what}: {}", path.display())
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: {text}")))
}
