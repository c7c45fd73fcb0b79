//! One trial: its tries, until one of them is final.

mod ending;
mod exchanges;
mod leavings;
mod prepare;
mod sitting;
mod streams;

use proctor_store::{Outcome, TrialDir, TryDir, TryRecord};
use proctor_traces::{Ending, Millis, Timestamp};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::dispatch::send;
use crate::{EngineError, EngineEvent, Host, RetryPolicy, RunClock, TrialSpec};

/// What all trials of a run share.
pub(crate) struct Setting<'a> {
    /// When the run began.
    pub(crate) clock: RunClock,
    /// What is done when our side fails.
    pub(crate) retry: RetryPolicy,
    /// The run is being cancelled.
    pub(crate) cancel: CancellationToken,
    /// Who is told.
    pub(crate) events: &'a mpsc::UnboundedSender<EngineEvent>,
}

/// Tries until a try is final and returns its outcome, which is then on disk; none if the run was cancelled.
pub(crate) async fn run(
    spec: &TrialSpec,
    host: &Host,
    folder: &TrialDir,
    setting: &Setting<'_>,
) -> Result<Option<Outcome>, EngineError> {
    let mut backoff = Millis(0);
    for failed in 0.. {
        let one = folder.new_try()?;
        let mut outcome = sitting::sit(spec, host, &one, setting).await;
        outcome.timing.backoff_ms = backoff;
        let retry = outcome.ending.is_retried() && failed < setting.retry.retries;
        if !retry && outcome.ending != Ending::Cancelled {
            return finish(folder.clone(), one, outcome).await.map(Some);
        }
        let ending = outcome.ending.clone();
        one.close(&TryRecord {
            r#try: one.number(),
            ending: ending.clone(),
            ended_at: Timestamp::now(),
            outcome: Some(Box::new(outcome)),
        })?;
        if ending == Ending::Cancelled {
            return Ok(None);
        }
        let after = setting.retry.backoff;
        let retrying =
            EngineEvent::Retrying { trial: spec.id.clone(), ending, failed_try: one.number(), after };
        send(setting.events, retrying);
        tokio::select! {
            () = setting.cancel.cancelled() => return Ok(None),
            () = tokio::time::sleep(after) => backoff = backoff + after.into(),
        }
    }
    Ok(None)
}

/// Writes the outcome, on a thread of its own: it waits for the disk, and the deadlines of other trials must not.
async fn finish(folder: TrialDir, one: TryDir, outcome: Outcome) -> Result<Outcome, EngineError> {
    let write = move || folder.finish(&one, &outcome).map(|()| outcome);
    let written = tokio::task::spawn_blocking(write).await;
    Ok(written.map_err(|_| EngineError::Broken { part: "the writer of the outcome" })??)
}
