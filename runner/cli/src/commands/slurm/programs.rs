//! Slurm's own programs.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::process::Command;

use super::queue::{self, Tasks};
use super::script::array;
use super::submission::Jobs;
use crate::failure::Failure;

/// How long one of them may take. A controller that is busy or away keeps them for a minute and more.
const PATIENCE: Duration = Duration::from_secs(180);

const NO_SLURM: &str = "run this where Slurm's programs are installed and on PATH, as on a cluster's login node; `--dry-run` works everywhere";

/// Runs one; a failure to start it names it.
async fn call(program: &str, arguments: &[String]) -> Result<Output, Failure> {
    let mut command = Command::new(program);
    // Without this, long lists of indices are cut short.
    command.args(arguments).env("SLURM_BITSTR_LEN", "0").stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(error)) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::missing(format!("there is no `{program}` on this machine")).hint(NO_SLURM))
        }
        Ok(Err(error)) => Err(Failure::internal(format!("starting {program}: {error}"))),
        Err(_) => {
            Err(Failure::missing(format!("{program} has not answered within {} s", PATIENCE.as_secs()))
                .hint("is the cluster's controller up? `scontrol ping` says so"))
        }
    }
}

/// What it had to say, without what stands before each line.
fn said(output: &Output, program: &str) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text.lines().filter_map(|line| {
        let line = line.strip_prefix(&format!("{program}: ")).unwrap_or(line);
        let line = line.strip_prefix("error: ").unwrap_or(line).trim();
        (!line.is_empty()).then(|| line.chars().take(500).collect::<String>())
    });
    let lines: Vec<String> = lines.take(6).collect();
    if lines.is_empty() { output.status.to_string() } else { lines.join("; ") }
}

/// Fails if there is no Slurm here, before anything is written.
pub(super) async fn find_sbatch() -> Result<(), Failure> {
    call("sbatch", &["--version".to_owned()]).await.map(drop)
}

/// Submits a script; returns the job, and its cluster where there are several.
pub(super) async fn sbatch(
    script: &Path,
    job_name: &str,
    tasks: u32,
) -> Result<(u64, Option<String>), Failure> {
    let arguments = [
        "--parsable".to_owned(),
        // The script says both too, but a variable of the environment would win over it.
        format!("--job-name={job_name}"),
        format!("--array={}", array(tasks)),
        script.to_string_lossy().into_owned(),
    ];
    let output = call("sbatch", &arguments).await?;
    if !output.status.success() {
        return Err(Failure::input(format!("sbatch refused: {}", said(&output, "sbatch")))
            .hint(format!("the script is {}", script.display())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    queue::submitted(&text).ok_or_else(|| {
        let begin: String = text.chars().take(200).collect();
        Failure::internal(format!("sbatch has submitted something, but its answer names no job: {begin:?}"))
    })
}

/// What Slurm knows of these jobs: of those that have ended long ago only where it keeps accounts.
pub(super) async fn states(jobs: &Jobs, job_name: &str) -> Result<Tasks, Failure> {
    let mut found = Tasks::new();
    for (cluster, ids) in jobs.by_cluster() {
        let mut accounts =
            options(&["--noheader", "--parsable2", "--allocations", "--array"], cluster, "jobs", &ids);
        accounts.push(format!("--format={}", queue::SACCT_FORMAT));
        // Many clusters keep none, and some let users not see them: then there is the queue alone.
        match call("sacct", &accounts).await {
            Ok(output) if output.status.success() => {
                found.extend(queue::sacct(&String::from_utf8_lossy(&output.stdout), job_name));
            }
            _ => {}
        }
        let mut waiting = options(&["--noheader", "--array", "--states=all"], cluster, "jobs", &ids);
        waiting.push(format!("--format={}", queue::SQUEUE_FORMAT));
        let output = call("squeue", &waiting).await?;
        let text = said(&output, "squeue");
        // So it says when all of them have been forgotten.
        if !output.status.success() && !text.contains("Invalid job id") {
            return Err(Failure::missing(format!("squeue does not say what runs: {text}"))
                .hint("is the cluster's controller up? `scontrol ping` says so"));
        }
        // The later word on a task that both know.
        found.extend(queue::squeue(&String::from_utf8_lossy(&output.stdout), job_name));
    }
    Ok(found)
}

/// Cancels these jobs, in two steps: a task that runs freezes and collects its trials when it is told twice.
pub(super) async fn scancel(jobs: &Jobs) -> Result<(), Failure> {
    for (cluster, ids) in jobs.by_cluster() {
        let mut first = vec!["--batch".to_owned(), "--signal=INT".to_owned(), "--state=RUNNING".to_owned()];
        let mut second = Vec::new();
        for arguments in [&mut first, &mut second] {
            arguments.extend(cluster.map(|it| format!("--clusters={it}")));
            arguments.extend(ids.iter().map(u64::to_string));
        }
        // It fails if none of them runs, which is fine.
        call("scancel", &first).await?;
        let output = call("scancel", &second).await?;
        let text = said(&output, "scancel");
        if !output.status.success() && !text.contains("Invalid job id") {
            return Err(Failure::internal(format!("scancel failed: {text}")));
        }
    }
    Ok(())
}

fn options(fixed: &[&str], cluster: Option<&str>, list: &str, ids: &[u64]) -> Vec<String> {
    let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
    let mut options: Vec<String> = fixed.iter().map(|&option| option.to_owned()).collect();
    options.extend(cluster.map(|it| format!("--clusters={it}")));
    options.push(format!("--{list}={}", ids.join(",")));
    options
}
