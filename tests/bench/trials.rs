//! A trial in which nothing is done, beside the bare sequence create, start, wait, remove.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use bollard::Docker;
use proctor_store::{Outcome as TrialOutcome, RunDir};
use tokio::process::Command;

use crate::bare::{Errand, Settings};
use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say};

/// Most that a trial should cost, in bare sequences, and the runner, in MB.
const RATIO: f64 = 1.5;
const MEMORY_MB: f64 = 40.0;
const AT_ONCE: u32 = 4;

/// What one run of the program came to.
pub(crate) struct Ran {
    pub(crate) wall: Duration,
    /// Most memory that it had, in MB.
    pub(crate) peak_mb: f64,
    pub(crate) outcomes: Vec<TrialOutcome>,
}

/// Where the time of trials went.
#[derive(Default)]
struct Phases {
    prepare: Samples,
    agent: Samples,
    collect: Samples,
    teardown: Samples,
}

pub(crate) async fn measure(bench: &Bench, turns: u32, trials: u32, report: &mut Report) -> Outcome<()> {
    for at_once in [1, AT_ONCE] {
        let [mut bare_wall, mut lean_wall, mut wall] = <[Samples; 3]>::default();
        let mut single = Samples::default();
        let mut phases = Phases::default();
        let mut memory = Samples::default();
        // One of each beforehand: whatever is only done once is no trial's.
        bare(bench, Settings::Default, 1, 1).await?;
        nop(bench, 1, 1).await?;
        for turn in 1..=turns {
            say(&format!("trials, {at_once} at once: turn {turn} of {turns}"));
            bare_wall.push_ms(bare(bench, Settings::Default, at_once, trials).await? / trials);
            lean_wall.push_ms(bare(bench, Settings::Lean, at_once, trials).await? / trials);
            let ran = nop(bench, at_once, trials).await?;
            wall.push_ms(ran.wall / trials);
            memory.push(ran.peak_mb);
            for outcome in &ran.outcomes {
                let timing = outcome.timing;
                let parts = [timing.prepare_ms, timing.agent_ms, timing.collect_ms, timing.teardown_ms];
                let parts = parts.map(|part| Duration::from_millis(part.0));
                single.push_ms(parts.iter().sum());
                phases.push(parts);
            }
        }
        let remarks = ["network none", "network none, and no log and no network set-up either"];
        for (bare, remark) in [bare_wall, lean_wall].into_iter().zip(remarks) {
            report.add(Row {
                what: format!("wall time per trial, {at_once} at once"),
                unit: "ms",
                bare: Some(bare),
                ours: wall.clone(),
                aim: Some(Aim::Ratio(RATIO)),
                remark: format!("bare: {remark}"),
            });
        }
        report.add(Row {
            what: format!("one trial from start to end, {at_once} at once"),
            unit: "ms",
            bare: None,
            ours: single,
            aim: None,
            remark: phases.describe(),
        });
        report.add(Row {
            what: format!("peak memory of the runner, {at_once} at once"),
            unit: "MB",
            bare: None,
            ours: memory,
            aim: Some(Aim::Max(MEMORY_MB)),
            remark: String::new(),
        });
    }
    start_up(bench, report).await
}

impl Phases {
    fn push(&mut self, [prepare, agent, collect, teardown]: [Duration; 4]) {
        self.prepare.push_ms(prepare);
        self.agent.push_ms(agent);
        self.collect.push_ms(collect);
        self.teardown.push_ms(teardown);
    }

    fn describe(&self) -> String {
        format!(
            "prepare {:.0}, agent {:.0}, collect {:.0}, teardown {:.0}",
            self.prepare.median(),
            self.agent.median(),
            self.collect.median(),
            self.teardown.median()
        )
    }
}

/// The program itself, started and ended.
async fn start_up(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let mut ours = Samples::default();
    for _ in 0..20 {
        let start = Instant::now();
        Command::new(&bench.proctor).arg("--version").stdout(Stdio::null()).status().await?;
        ours.push_ms(start.elapsed());
    }
    report.add(Row {
        what: "proctor --version".to_owned(),
        unit: "ms",
        bare: None,
        ours,
        aim: None,
        remark: String::new(),
    });
    Ok(())
}

/// Bare sequences; the time of all of them.
async fn bare(bench: &Bench, settings: Settings, at_once: u32, count: u32) -> Outcome<Duration> {
    let docker = bench.sandbox.client();
    let start = Instant::now();
    let workers = (0..at_once).map(|worker| {
        let share = count / at_once + u32::from(worker < count % at_once);
        several(docker, &bench.image.id, settings, share)
    });
    futures_util::future::try_join_all(workers).await?;
    Ok(start.elapsed())
}

async fn several(docker: &Docker, image: &str, settings: Settings, count: u32) -> Outcome<()> {
    let errand = Errand { image, command: &["true"], settings, folder: None };
    for _ in 0..count {
        errand.run(docker).await?;
    }
    Ok(())
}

async fn nop(bench: &Bench, at_once: u32, count: u32) -> Outcome<Ran> {
    let method = ["--harness", "nop", "--attempts", &count.to_string()].map(str::to_owned);
    run(bench, at_once, &method).await
}

/// Runs one sample task by a method.
pub(crate) async fn run(bench: &Bench, at_once: u32, method: &[String]) -> Outcome<Ran> {
    let packages = bench.packages()?;
    let task = packages.first().ok_or("there is no task package")?;
    let out = bench.folder("run-")?;
    let mut command = Command::new(&bench.proctor);
    command.args(["run", "--no-render", "-j", &at_once.to_string(), "--task", task.id().as_str()]);
    command.arg("--tasks").arg(bench.tasks()).arg("--out").arg(&out).args(method);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let start = Instant::now();
    let child = command.spawn()?;
    let peak = tokio::spawn(watch_memory(child.id().unwrap_or_default()));
    let output = child.wait_with_output().await?;
    let wall = start.elapsed();
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("proctor run: {}: {errors}", output.status).into());
    }
    let outcomes = read(&out)?;
    std::fs::remove_dir_all(&out)?;
    Ok(Ran { wall, peak_mb: peak.await?, outcomes })
}

fn read(out: &Path) -> Outcome<Vec<TrialOutcome>> {
    let mut outcomes = Vec::new();
    for trial in RunDir::open(out)?.trials_on_disk()? {
        outcomes.push(trial.outcome()?.ok_or_else(|| format!("{} has no outcome", trial.id()))?);
    }
    Ok(outcomes)
}

/// The most memory that a process had, in MB, looked at until it is gone: the kernel keeps the mark itself, so only
/// what comes in the last hundredth of a second is missed.
async fn watch_memory(pid: u32) -> f64 {
    let path = format!("/proc/{pid}/status");
    let mut peak = 0.0;
    loop {
        let Ok(status) = std::fs::read_to_string(&path) else { return peak };
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        // A zombie has no such line any more.
        let Some(kilobytes) = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok())
        else {
            return peak;
        };
        peak = kilobytes * 1024.0 / 1e6;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
