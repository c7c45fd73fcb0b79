//! DOT, LaTeX and Python: a fresh room per artifact, a tool or two run in it, one picture read out of it.

mod gather;
mod plan;

use std::time::{Duration, Instant};

use proctor_sandbox::{Command, ExitStatus, Mount, ProcessEnd, Room, Sandbox, SandboxError, Tmpfs};

use crate::classify::{Evidence, classify};
use crate::renderer::{Finding, examine};
use crate::room::{self, Furniture, GUEST, RenderRoom, WORK};
use crate::{RenderError, RenderJob, RendererOptions};

use gather::Gathered;
use plan::Plan;

/// How much later than the driver inside we stop waiting.
const GRACE: Duration = Duration::from_secs(5);
/// Exit status of the driver when it stopped the tool for its time.
const TIMED_OUT: ExitStatus = ExitStatus::Code(124);

/// Bytes of the memory file systems. They count against the room's memory.
const WORK_BYTES: u64 = 256 << 20;
const TMP_BYTES: u64 = 512 << 20;

/// Renders `source` in a room of its own.
pub(crate) async fn render(
    sandbox: &dyn Sandbox,
    options: &RendererOptions,
    job: &RenderJob,
    source: &[u8],
) -> Result<Finding, RenderError> {
    let plan = Plan::of(job.mode, &job.settings);
    let mut room = open(sandbox, options, job, source, &plan).await?;
    let told = work(&mut room, &plan, job.settings.timeout()).await;
    // Close first: whatever it told, nothing of it may live on.
    room.close().await?;
    finding(job, told?).await
}

async fn open(
    sandbox: &dyn Sandbox,
    options: &RendererOptions,
    job: &RenderJob,
    source: &[u8],
    plan: &Plan,
) -> Result<RenderRoom, RenderError> {
    let folder = room::folder(options)?;
    let files = room::subfolder(folder.path(), "in", 0o755)?;
    let artifact = job.mode.artifact_name();
    let mut mounts =
        vec![Mount::read_only(room::file(&files, artifact, source)?, format!("{WORK}/{artifact}"))];
    if let Some((name, content)) = plan.driver {
        mounts.push(Mount::read_only(room::file(&files, name, content)?, format!("/opt/proctor/{name}")));
    }
    for asset in &job.assets {
        if !is_plain(&asset.name) {
            return Err(RenderError::AssetName { name: asset.name.clone() });
        }
        mounts.push(Mount::read_only(&asset.source, format!("{WORK}/{}", asset.name)));
    }
    let tmpfs = [(WORK, WORK_BYTES), ("/tmp", TMP_BYTES), (gather::LOGS, gather::LOG_BYTES)]
        .map(|(inside, bytes)| Tmpfs { inside: inside.to_owned(), bytes });
    let furniture = Furniture { label: &job.label, mounts, tmpfs: tmpfs.into() };
    room::open(sandbox, options, folder, furniture).await
}

/// Whether a name can be mounted below the working directory: relative, no way up, nothing that the engine would read
/// as a separator.
pub(crate) fn is_plain(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.len() <= 200
        && name.split('/').all(part)
        && !name.contains([':', ',', '\\'])
        && !name.contains(char::is_control)
}

/// How the steps of a plan went.
struct Told {
    end: Option<ExitStatus>,
    timed_out: bool,
    oom_kills: u64,
    gathered: Gathered,
}

/// Runs the steps until one fails, stops whatever they left running, and reads the results.
async fn work(room: &mut RenderRoom, plan: &Plan, limit: Duration) -> Result<Told, RenderError> {
    let deadline = Instant::now() + limit;
    let mut told = Told { end: None, timed_out: false, oom_kills: 0, gathered: Gathered::default() };
    for (step, streams) in plan.steps.iter().zip(gather::STREAMS) {
        let left = deadline.saturating_duration_since(Instant::now());
        match run(room.room()?.as_ref(), plan, step, streams, left).await? {
            Ended::Late => return Ok(Told { timed_out: true, ..told }),
            Ended::RoomGone => {
                let oom = room.room()?.post_mortem().await?.oom_killed;
                return Ok(Told { oom_kills: u64::from(oom), ..told });
            }
            Ended::Normally(end) => {
                told.end = Some(end.status);
                told.oom_kills = end.oom_kills.unwrap_or(0);
                // A tool may itself end with the driver's status; only the clock tells them apart.
                told.timed_out = end.status == TIMED_OUT && end.at >= deadline;
            }
        }
        if told.timed_out || told.end != Some(ExitStatus::Code(0)) {
            break;
        }
    }
    if told.oom_kills == 0 {
        // Where the kernel's count cannot be read from inside, the engine's flag is what there is.
        told.oom_kills = u64::from(room.room()?.post_mortem().await?.oom_killed);
    }
    room.room()?.signal(nix::libc::SIGKILL).await?;
    told.gathered = gather::gather(room, plan.picture).await?;
    Ok(told)
}

enum Ended {
    Normally(ProcessEnd),
    Late,
    RoomGone,
}

async fn run(
    room: &dyn Room,
    plan: &Plan,
    step: &[String],
    [stdout, stderr]: [&str; 2],
    left: Duration,
) -> Result<Ended, RenderError> {
    let mut argv = vec![GUEST.to_owned(), "bounded".to_owned(), left.as_millis().to_string()];
    argv.extend_from_slice(step);
    let command = Command {
        argv,
        env: plan.environment(),
        cwd: WORK.to_owned(),
        // Files, not the container's output: what a tool prints without end then fills its own small disk.
        stdout: Some(stdout.to_owned()),
        stderr: Some(stderr.to_owned()),
        ..Command::default()
    };
    let running = match room.run(command).await {
        Ok(running) => running,
        Err(SandboxError::Guest { .. }) if !room.post_mortem().await?.running => return Ok(Ended::RoomGone),
        Err(error) => return Err(error.into()),
    };
    Ok(match tokio::time::timeout(left + GRACE, running.end).await {
        Err(_) => Ended::Late,
        Ok(Err(_)) => Ended::RoomGone,
        Ok(Ok(end)) => Ended::Normally(end),
    })
}

async fn finding(job: &RenderJob, told: Told) -> Result<Finding, RenderError> {
    let Told { end, timed_out, oom_kills, gathered } = told;
    let Gathered { log, picture, forks_refused, log_full } = gathered;
    let (png, examined) = match picture {
        Ok(png) => examine(png).await,
        Err(fault) => (Vec::new(), Err(fault)),
    };
    let evidence = Evidence {
        exit: end,
        timed_out,
        oom_kills,
        forks_refused,
        log_full,
        log: &log,
        picture: examined.as_ref(),
    };
    let verdict = classify(job.mode, evidence);
    let picture = examined.ok().map(|picture| (png, picture));
    Ok(Finding { verdict, picture, log, external_requests: Vec::new(), dialogs: 0 })
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn asset_names_stay_below_the_working_directory() {
        for good in ["public/logo.png", "data.csv", "public/a b/é.json"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../x", "a//b", "./a", "a:rw", "a\\b", "a\nb"] {
            assert!(!is_plain(bad), "{bad}");
        }
    }
}
