//! One trial: its tries, until one of them is final.

mod alone;
mod carry;
mod describe;
mod ending;
mod exchanges;
mod leavings;
mod prepare;
mod sitting;
mod streams;
mod tally;

use proctor_store::{Outcome, TrialDir, TryDir, TryRecord};
use proctor_traces::{Ending, Millis, Timestamp};

use crate::dispatch::send;
use crate::executor::{Executor, Setting, Step};
use crate::{EngineError, EngineEvent, TrialSpec, disk};

/// Tries until a try is final and returns its outcome, which is then on disk; none if the run was cancelled.
pub(crate) async fn run(
    spec: &TrialSpec,
    executor: &dyn Executor,
    folder: &TrialDir,
    setting: &Setting<'_>,
) -> Result<Option<Outcome>, EngineError> {
    let mut backoff = Millis(0);
    for failed in 0.. {
        let one = folder.new_try()?;
        setting.steps.reached(Step::TryBegun);
        let mut outcome = executor.execute(spec, &one, setting).await;
        outcome.timing.backoff_ms = backoff;
        if let Some(error) = for_want_of_room(folder, &mut outcome) {
            // It says nothing about the trial: that stays open, and this try is kept if it can be.
            let _ = close(&one, outcome);
            return Err(error);
        }
        let retry = outcome.ending.is_retried() && failed < setting.retry.retries;
        if !retry && outcome.ending != Ending::Cancelled {
            return finish(folder, one, outcome, setting).await.map(Some);
        }
        let (ending, number) = (outcome.ending.clone(), one.number());
        close(&one, outcome)?;
        if ending == Ending::Cancelled {
            return Ok(None);
        }
        let after = setting.retry.backoff;
        let trial = spec.id.clone();
        send(setting.events, EngineEvent::Retrying { trial, ending, failed_try: number, after });
        tokio::select! {
            () = setting.cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(after) => backoff = backoff + after.into(),
        }
    }
    Ok(None)
}

/// Whether a try is worthless because the disk was full: ours failed for it, or so little is free that the agent's own
/// writes may have failed, whatever it said then.
fn for_want_of_room(folder: &TrialDir, outcome: &mut Outcome) -> Option<EngineError> {
    let said = match &outcome.ending {
        Ending::InfraError { message, .. } if disk::is_full(message) => Some(message.clone()),
        _ => None,
    };
    let scarce = disk::enough(folder.path()).err();
    let message = said.or_else(|| scarce.map(|error| error.chain()))?;
    if outcome.ending != Ending::Cancelled {
        let stage = "keeping the evidence".to_owned();
        outcome.ending = Ending::InfraError { stage, message: message.clone() };
    }
    Some(EngineError::DiskFull { message })
}

/// Keeps a try that is not the last.
fn close(one: &TryDir, outcome: Outcome) -> Result<(), EngineError> {
    Ok(one.close(&TryRecord {
        r#try: one.number(),
        ending: outcome.ending.clone(),
        ended_at: Timestamp::now(),
        outcome: Some(Box::new(outcome)),
    })?)
}

/// Writes the outcome, on a thread of its own: it waits for the disk, and the deadlines of other trials must not.
async fn finish(
    folder: &TrialDir,
    one: TryDir,
    outcome: Outcome,
    setting: &Setting<'_>,
) -> Result<Outcome, EngineError> {
    let (folder, steps) = (folder.clone(), setting.steps.clone());
    let write = move || {
        folder.finish(&one, &outcome)?;
        steps.reached(Step::OutcomeWritten);
        folder.settle(one.number())?;
        steps.reached(Step::Settled);
        Ok(outcome)
    };
    let written = tokio::task::spawn_blocking(write).await;
    written.map_err(|_| EngineError::Broken { part: "the writer of the outcome" })?
}
