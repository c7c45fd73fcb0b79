//! What the runner itself costs per trial: pretended agents, but the real dispatcher and the real results directory, with
//! its leases and its fsyncs. The yardstick is the disk: one file per trial, written, forced to it, and linked.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use serde::Deserialize;
use tokio::process::Command;

use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say};

const TRIALS: u32 = 10_000;
/// As many as the paper compares, so that some share the folder of a task.
const METHODS: u32 = 10;
const AT_ONCE: u32 = 16;
/// Most microseconds per trial, which is 2,000 trials a second, and most memory in MB.
const MICROSECONDS: f64 = 500.0;
const MEMORY_MB: f64 = 100.0;

/// What the program with the pretended agents says at its end.
#[derive(Deserialize)]
struct Told {
    ended: u32,
    seconds: f64,
    peak_kib: u32,
}

pub(crate) async fn measure(bench: &Bench, turns: u32, report: &mut Report) -> Outcome<()> {
    let [mut bare, mut ours, mut with_files, mut memory] = <[Samples; 4]>::default();
    // Removed at the end: a disk that discards what is removed is busy with it for long, and slow for the next turn.
    let mut written = Vec::new();
    for turn in 1..=turns {
        say(&format!("{TRIALS} pretended trials: turn {turn} of {turns}"));
        let folder = bench.folder("disk-")?;
        let start = Instant::now();
        write_all(&folder)?;
        bare.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(TRIALS));
        written.push(folder);

        for (silent, samples) in [(true, &mut ours), (false, &mut with_files)] {
            let folder = bench.folder("campaign-")?;
            let told = pretend(bench, &folder.join("run"), silent).await?;
            if told.ended != TRIALS {
                return Err(format!("{} of {TRIALS} trials ended", told.ended).into());
            }
            samples.push(told.seconds * 1e6 / f64::from(TRIALS));
            memory.push(f64::from(told.peak_kib) * 1.024 / 1000.0);
            written.push(folder);
        }
    }
    for folder in written {
        fs::remove_dir_all(&folder)?;
    }
    report.add(Row {
        what: format!("a pretended trial, {AT_ONCE} at once"),
        unit: "µs",
        bare: Some(bare.clone()),
        remark: format!("{:.0} trials a second; bare: a forced and linked file each", 1e6 / ours.median()),
        ours,
        aim: Some(Aim::Max(MICROSECONDS)),
    });
    report.add(Row {
        what: "the same, with an artifact and what its agent printed".into(),
        unit: "µs",
        bare: Some(bare),
        remark: format!("{:.0} trials a second", 1e6 / with_files.median()),
        ours: with_files,
        aim: None,
    });
    report.add(Row {
        what: format!("peak memory over {TRIALS} pretended trials"),
        unit: "MB",
        bare: None,
        ours: memory,
        aim: Some(Aim::Max(MEMORY_MB)),
        remark: String::new(),
    });
    Ok(())
}

async fn pretend(bench: &Bench, out: &Path, silent: bool) -> Outcome<Told> {
    let program = std::env::current_exe()?.with_file_name("simulated");
    let package = bench.packages()?.into_iter().next().ok_or("there is no task package")?;
    let output = Command::new(program)
        .args(["--trials", &TRIALS.to_string(), "--methods", &METHODS.to_string()])
        .args(["--jobs", &AT_ONCE.to_string(), "--out"])
        .arg(out)
        .arg("--task")
        .arg(&package.dir)
        .args(silent.then_some("--silent"))
        .stderr(Stdio::inherit())
        .output()
        .await?;
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A file of the size of an outcome for each trial, each in a folder of its own, by as many threads as trials at once.
fn write_all(folder: &Path) -> Outcome<()> {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..AT_ONCE)
            .map(|writer| {
                scope.spawn(move || {
                    (writer..TRIALS)
                        .step_by(AT_ONCE as usize)
                        .try_for_each(|number| write(&folder.join(number.to_string())))
                })
            })
            .collect();
        for writer in writers {
            writer.join().map_err(|_| "a writer broke off")??;
        }
        Ok(())
    })
}

fn write(folder: &Path) -> std::io::Result<()> {
    fs::create_dir(folder)?;
    let temporary = folder.join("temporary");
    let mut file = File::create(&temporary)?;
    file.write_all(&[b'x'; 3000])?;
    file.sync_data()?;
    fs::hard_link(&temporary, folder.join("outcome.json"))?;
    fs::remove_file(&temporary)?;
    File::open(folder)?.sync_all()
}
