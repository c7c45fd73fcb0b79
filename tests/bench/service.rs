//! Rendering as a service: many artifacts, two at a time, beside the bare tools one by one; and what two hundred artifacts of
//! which every tenth means harm cost the others.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use proctor_render::{RenderJob, RenderStatus, Renderer};
use proctor_tasks::{RenderMode, RenderSettings, Task};

use crate::figures::{Aim, Report, Row, Samples};
use crate::rendering::{Idle, preview, renderer};
use crate::{Bench, Outcome, say};

const AT_A_TIME: usize = 2;
/// Artifacts of each mode.
const OF_A_MODE: usize = 24;
/// Artifacts of the mixed folder; every tenth means harm.
const MIXED: usize = 200;
/// Pages have to be done in half the time of a browser each.
const PAGE: f64 = 0.5;
/// Limit of those that never end.
const LIMIT_SECONDS: u32 = 6;

/// Artifacts that mean harm, and what they come to.
const HOSTILE: [(RenderMode, &str, RenderStatus); 10] = [
    (RenderMode::Html, "<!doctype html><script>alert(1); for (;;) {}</script>", RenderStatus::Timeout),
    (RenderMode::Html, "<!doctype html><body style='background: navy'>", RenderStatus::Blank),
    (
        RenderMode::Html,
        "<!doctype html><script>const all = []; for (;;) all.push(new Uint8Array(1 << 26).fill(1));</script>",
        RenderStatus::OutOfMemory,
    ),
    (RenderMode::Dot, "digraph { a -> ", RenderStatus::ArtifactError),
    (RenderMode::Python, "import os\nwhile True: os.fork()", RenderStatus::PidsLimit),
    (RenderMode::Python, "x = []\nwhile True: x.append(bytearray(1 << 24))", RenderStatus::OutOfMemory),
    (
        RenderMode::Python,
        "f = open('fill', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        RenderStatus::DiskLimit,
    ),
    (RenderMode::Python, "import ctypes\nctypes.string_at(0)", RenderStatus::Crash),
    (
        RenderMode::Tikz,
        "\\documentclass{standalone}\\begin{document}\\def\\x{\\relax\\x}\\x\\end{document}",
        RenderStatus::Timeout,
    ),
    (RenderMode::Circuitikz, "no document at all", RenderStatus::ArtifactError),
];

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> Outcome<()> {
    let tasks = bench.packages()?;
    let renderer = renderer(bench, AT_A_TIME)?;
    let measured = async {
        for mode in RenderMode::ALL {
            let of_mode: Vec<&Task> = tasks.iter().filter(|task| task.mode() == mode).collect();
            throughput(bench, &renderer, mode, &of_mode, report).await?;
        }
        mixed(bench, &renderer, &tasks.iter().collect::<Vec<_>>(), report).await
    };
    let measured = measured.await;
    renderer.close().await?;
    measured
}

fn good(task: &Task) -> RenderJob {
    RenderJob::new(&task.hidden.target_program, task.mode(), task.render.clone(), "bench")
}

/// Renders all, two at a time; each with its status and its own time, in their order, and the time of all.
async fn all(
    renderer: &Renderer,
    jobs: Vec<RenderJob>,
) -> Outcome<(Vec<(RenderStatus, Duration)>, Duration)> {
    let start = Instant::now();
    let work = stream::iter(jobs).map(|job| renderer.render(job)).buffered(AT_A_TIME);
    let records: Vec<_> = work.collect().await;
    let took = start.elapsed();
    let found = records.into_iter().map(|it| {
        let record = it?.record;
        Ok((record.status, Duration::from_millis(record.duration_ms)))
    });
    Ok((found.collect::<Outcome<_>>()?, took))
}

async fn throughput(
    bench: &Bench,
    renderer: &Renderer,
    mode: RenderMode,
    tasks: &[&Task],
    report: &mut Report,
) -> Outcome<()> {
    say(&format!("{OF_A_MODE} artifacts in {mode}"));
    let jobs = |count| tasks.iter().cycle().take(count).map(|task| good(task)).collect::<Vec<_>>();
    // Cold browsers are not counted.
    all(renderer, jobs(AT_A_TIME)).await?;
    let (found, took) = all(renderer, jobs(OF_A_MODE)).await?;
    if let Some((status, _)) = found.iter().find(|(status, _)| !status.is_rendered()) {
        return Err(format!("{mode}: {status:?}").into());
    }
    let mut ours = Samples::default();
    ours.push_ms(took / u32::try_from(OF_A_MODE)?);
    let bare = one_by_one(bench, renderer, mode, tasks).await?;
    let speed = |ms: f64| 1000.0 / ms;
    report.add(Row {
        what: format!("{mode}: {OF_A_MODE} artifacts, two at a time, beside the tool one by one; each"),
        unit: "ms",
        remark: format!("{:.1} a second, beside {:.1}", speed(ours.median()), speed(bare.median())),
        bare: Some(bare),
        ours,
        aim: (mode == RenderMode::Html).then_some(Aim::Ratio(PAGE)),
    });
    Ok(())
}

/// The bare tool, started for one artifact after the other.
async fn one_by_one(
    bench: &Bench,
    renderer: &Renderer,
    mode: RenderMode,
    tasks: &[&Task],
) -> Outcome<Samples> {
    let mut bare = Samples::default();
    if mode != RenderMode::Html {
        for task in tasks.iter().cycle().take(OF_A_MODE / 2) {
            bare.push_ms(preview(bench, task).await?.0);
        }
        return Ok(bare);
    }
    let docker = bench.sandbox.client();
    let folder = bench.folder("html-")?;
    fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
    let room = Idle::start(docker, &bench.image.id, &folder).await?;
    let measured = async {
        for task in tasks.iter().cycle().take(OF_A_MODE) {
            fs::copy(&task.hidden.target_program, folder.join("artifact.html"))?;
            let record = renderer.render(good(task)).await?.record;
            let size = record.width.zip(record.height).ok_or("a page without a size")?;
            bare.push_ms(room.screenshot(docker, &folder, size).await?.0);
        }
        Ok(bare)
    };
    let measured = measured.await;
    room.remove(docker).await?;
    measured
}

/// What every tenth artifact does to the others.
async fn mixed(bench: &Bench, renderer: &Renderer, tasks: &[&Task], report: &mut Report) -> Outcome<()> {
    let folder = bench.folder("hostile-")?;
    let limited = RenderSettings { timeout_seconds: LIMIT_SECONDS, ..RenderSettings::default() };
    let mut hostile = Vec::new();
    for (at, (mode, artifact, status)) in HOSTILE.iter().enumerate() {
        let path = folder.join(at.to_string());
        fs::write(&path, artifact)?;
        hostile.push((RenderJob::new(&path, *mode, limited.clone(), "hostile"), *status));
    }
    let [mut alone, mut among] = <[Samples; 2]>::default();
    let mut wrong = Vec::new();
    let mut walls = Vec::new();
    for with_hostile in [false, true] {
        say(&format!("{MIXED} artifacts{}", if with_hostile { ", every tenth hostile" } else { "" }));
        let mut jobs = Vec::new();
        let mut expected = Vec::new();
        for at in 0..MIXED {
            let (job, status) = if at % 10 == 9 {
                if !with_hostile {
                    continue;
                }
                hostile[at / 10 % hostile.len()].clone()
            } else {
                (good(tasks[at % tasks.len()]), RenderStatus::Rendered)
            };
            jobs.push(job);
            expected.push(status);
        }
        let (found, took) = all(renderer, jobs).await?;
        walls.push(took);
        let samples = if with_hostile { &mut among } else { &mut alone };
        for ((status, took), expected) in found.into_iter().zip(expected) {
            if status != expected {
                wrong.push(format!("{expected:?} was {status:?}"));
            } else if status.is_rendered() {
                samples.push_ms(took);
            }
        }
    }
    let right = if wrong.is_empty() { "all told apart rightly".to_owned() } else { wrong.join(", ") };
    let walls: Vec<String> = walls.iter().map(|it| format!("{:.0} s", it.as_secs_f64())).collect();
    report.add(Row {
        what: format!("a good artifact among {MIXED} of which every tenth is hostile, beside none hostile"),
        unit: "ms",
        bare: Some(alone),
        ours: among,
        aim: None,
        remark: format!("{right}; all in {} and {}", walls[1], walls[0]),
    });
    Ok(())
}
