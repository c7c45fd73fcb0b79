//! `proctor slurm submit`: as many array tasks as are missing.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use proctor_report::counted;
use proctor_store::{RunDir, RunRecord, TrialId};
use proctor_traces::Timestamp;

use super::queue::Tasks;
use super::script::{Script, job_name};
use super::standing::{Counts, State, of_run};
use super::submission::{Jobs, Submission, folder, keep_script};
use super::{SubmitArgs, programs};
use crate::environment::this_program;
use crate::failure::Failure;
use crate::laboratory::absolute;

pub(super) async fn submit(args: &SubmitArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&absolute(&args.run)?)?;
    let record = run.record()?;
    let name = job_name(&record.name);
    let jobs = Jobs::read(&folder(&run))?;
    let states = match programs::states(&jobs, &name).await {
        // Somebody who only wants to see the script may be anywhere.
        Err(_) if args.dry_run => Tasks::new(),
        states => states?,
    };
    let stands = of_run(&run, &record, &states)?;
    let counts = Counts::of(&stands);
    let at_work = states.values().filter(|it| it.is_at_work()).count();
    let tasks = wanted(counts.missing, args.tasks, args.per_task_jobs, at_work);
    if counts.missing == 0 {
        println!("nothing is missing, nothing is submitted ({counts})");
        return Ok(ExitCode::SUCCESS);
    }
    if tasks == 0 {
        let there = array_tasks(at_work);
        println!("{there} at work already, which is enough; nothing is submitted ({counts})");
        return Ok(ExitCode::SUCCESS);
    }
    let script = Script {
        run: run.root(),
        program: &program()?,
        tasks,
        per_task_jobs: args.per_task_jobs,
        budget: longest_budget(&record),
        partition: args.partition.as_deref(),
        time: args.time.as_deref(),
        more: &args.sbatch_args,
    };
    let text = script.text()?;
    if args.dry_run {
        println!("{}", text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let missing = stands.into_iter().filter(|it| matches!(it.state, State::Open | State::Interrupted));
    let submission = hand_in(args, &run, &name, tasks, &text, missing.map(|it| it.trial).collect()).await?;
    let (job, script) = (submission.job, folder(&run).join(submission.script));
    println!("job {job}: {} submitted ({counts})", array_tasks(tasks));
    println!("script: {}", script.display());
    println!("`proctor slurm status {}` says what they do", args.run.display());
    Ok(ExitCode::SUCCESS)
}

/// Hands the script in, and writes down what came of it.
async fn hand_in(
    args: &SubmitArgs,
    run: &RunDir,
    name: &str,
    tasks: u32,
    text: &str,
    missing: Vec<TrialId>,
) -> Result<Submission, Failure> {
    programs::find_sbatch().await?;
    let path = keep_script(&folder(run), text)?;
    let (job, cluster) = programs::sbatch(&path, name, tasks).await?;
    let submission = Submission {
        schema: Submission::SCHEMA,
        job,
        cluster,
        job_name: name.to_owned(),
        tasks,
        per_task_jobs: args.per_task_jobs,
        script: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        submitted_at: Timestamp::now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        missing,
    };
    Jobs::record(&folder(run), &submission)?;
    Ok(submission)
}

/// How many array tasks are to be submitted: with those that are there `asked`, and no more than the missing trials can
/// keep busy.
fn wanted(missing: usize, asked: u32, per_task_jobs: u16, at_work: usize) -> u32 {
    let useful = missing.div_ceil(usize::from(per_task_jobs.max(1)));
    let asked = usize::try_from(asked).unwrap_or(usize::MAX);
    u32::try_from(asked.min(useful).saturating_sub(at_work)).unwrap_or(u32::MAX)
}

/// This very program, which must be where every node sees it.
fn program() -> Result<PathBuf, Failure> {
    let program =
        this_program().map_err(|error| Failure::internal(format!("finding this program: {error}")))?;
    if program.is_file() {
        return Ok(program);
    }
    Err(Failure::internal(format!("{} is not there any more", program.display()))
        .hint("it was built anew while it ran: give the command again"))
}

fn longest_budget(record: &RunRecord) -> Duration {
    let longest = record.methods.iter().map(|it| it.budget_ms.0).max().unwrap_or(0);
    Duration::from_millis(longest)
}

fn array_tasks(count: impl TryInto<u64>) -> String {
    counted(count, "array task")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_submitted() {
        // missing trials, tasks asked for, trials at a time in each, tasks at work
        for ((missing, asked, jobs, at_work), expected) in [
            ((0, 4, 1, 0), 0),
            ((10, 4, 1, 0), 4),
            ((2, 4, 1, 0), 2),
            ((10, 8, 4, 0), 3),
            ((10, 4, 1, 3), 1),
            ((10, 4, 1, 4), 0),
            ((10, 4, 1, 9), 0),
            ((1, 4, 1, 1), 0),
        ] {
            let found = wanted(missing, asked, jobs, at_work);
            assert_eq!(found, expected, "{missing} {asked} {jobs} {at_work}");
        }
    }
}
