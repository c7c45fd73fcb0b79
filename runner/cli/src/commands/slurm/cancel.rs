//! `proctor slurm cancel`: end the array tasks of a run.

use std::collections::BTreeSet;
use std::process::ExitCode;

use proctor_store::RunDir;

use super::script::job_name;
use super::submission::{Jobs, folder};
use super::{CancelArgs, programs};
use crate::failure::Failure;
use crate::laboratory::absolute;

pub(super) async fn cancel(args: &CancelArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&absolute(&args.run)?)?;
    let jobs = Jobs::read(&folder(&run))?;
    let states = programs::states(&jobs, &job_name(&run.record()?.name)).await?;
    let at_work: BTreeSet<u64> =
        states.iter().filter(|(_, it)| it.is_at_work()).map(|(task, _)| task.job).collect();
    let jobs = jobs.only(|job| at_work.contains(&job));
    if jobs.is_empty() {
        println!("nothing waits or runs, nothing is cancelled");
        return Ok(ExitCode::SUCCESS);
    }
    programs::scancel(&jobs).await?;
    for job in jobs.ids() {
        println!("job {job} cancelled; its running trials are collected first, and can be continued");
    }
    Ok(ExitCode::SUCCESS)
}
