//! What it takes to look at a large run: `proctor status` and `proctor report` over as many trials as ten methods make of
//! the whole benchmark.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::{Aim, Report, Row, Samples};
use crate::fixture::chance;
use crate::{Bench, Outcome, say};

const TASKS: usize = 1573;
const METHODS: usize = 10;
/// Most milliseconds and MB.
const MILLISECONDS: f64 = 2000.0;
const MEMORY_MB: f64 = 150.0;

pub(crate) fn measure(bench: &Bench, turns: u32, report: &mut Report) -> Outcome<()> {
    let trials = TASKS * METHODS;
    let folder = bench.folder("reading-")?;
    say(&format!("{trials} trial folders are made"));
    let run = chance(&folder.join("run"), TASKS, METHODS, 1, true);
    for verb in ["status", "report"] {
        let [mut milliseconds, mut memory] = <[Samples; 2]>::default();
        for turn in 1..=turns {
            say(&format!("proctor {verb}: turn {turn} of {turns}"));
            let (took, peak) = time(&bench.proctor, &[verb], run.root())?;
            milliseconds.push(took.as_secs_f64() * 1e3);
            memory.push(peak);
        }
        report.add(Row {
            what: format!("proctor {verb} over {trials} trials"),
            unit: "ms",
            bare: None,
            ours: milliseconds,
            aim: Some(Aim::Max(MILLISECONDS)),
            remark: String::new(),
        });
        report.add(Row {
            what: format!("its peak memory ({verb})"),
            unit: "MB",
            bare: None,
            ours: memory,
            aim: Some(Aim::Max(MEMORY_MB)),
            remark: String::new(),
        });
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// How long it takes, and its peak memory in MB, as last seen before it ended.
pub(crate) fn time(proctor: &Path, verb: &[&str], run: &Path) -> Outcome<(Duration, f64)> {
    let start = Instant::now();
    let mut child = Command::new(proctor)
        .args(verb)
        .arg(run)
        .args((!verb.contains(&"figure")).then_some("--json"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait()?.is_none() {
        let seen = fs::read_to_string(&status).unwrap_or_default();
        let line = seen.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        peak = line.and_then(|kib| kib.parse::<f64>().ok()).map_or(peak, |kib| kib * 1.024 / 1000.0);
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok((start.elapsed(), peak))
}
