//! Starts trials, so many at a time, until all are done or somebody says stop.

use std::sync::Arc;

use proctor_store::{StoreError, TrialState};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{EngineEvent, Host, Plan, RunClock, TrialSpec, trial};

/// How a run is stopped early.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// No new trials are started.
    pub drain: CancellationToken,
    /// Running trials are frozen, collected, and cancelled.
    pub cancel: CancellationToken,
}

/// Runs every trial of `plan` that has no outcome yet, and tells `events` about it. Returns when all are done; a
/// stopped run returns early and is continued by running the same plan again.
pub async fn run(plan: Plan, host: Arc<Host>, stop: Stop, events: mpsc::UnboundedSender<EngineEvent>) {
    let clock = RunClock::start();
    let slots = Arc::new(Semaphore::new(plan.concurrency));
    let mut running = JoinSet::new();
    for spec in plan.trials {
        let folder = host.run.trial(&spec.id);
        if folder.state() == TrialState::Done {
            send(&events, EngineEvent::Skipped { trial: spec.id });
            continue;
        }
        let slot = tokio::select! {
            biased;
            () = stop.drain.cancelled() => break,
            slot = Arc::clone(&slots).acquire_owned() => slot,
        };
        let Ok(slot) = slot else { break };
        let (host, events, cancel) = (Arc::clone(&host), events.clone(), stop.cancel.clone());
        let retry = plan.retry;
        running.spawn(async move {
            run_one(&spec, &host, &trial::Setting { clock, retry, cancel, events: &events }).await;
            drop(slot);
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a trial broke off");
        }
    }
    if let Err(error) = host.run.tidy() {
        tracing::warn!(%error, "folders of rooms stay behind");
    }
}

async fn run_one(spec: &TrialSpec, host: &Host, setting: &trial::Setting<'_>) {
    let folder = host.run.trial(&spec.id);
    let trial = spec.id.clone();
    let event = match folder.lease(&host.owner) {
        Ok(lease) => {
            let result = trial::run(spec, host, &folder, setting).await;
            drop(lease);
            match result {
                Ok(Some(outcome)) => EngineEvent::Finished(Box::new(outcome)),
                Ok(None) => EngineEvent::Cancelled { trial },
                Err(error) => EngineEvent::Failed { trial, message: error.chain() },
            }
        }
        Err(StoreError::AlreadyDone { .. }) => EngineEvent::Skipped { trial },
        Err(StoreError::Busy { owner, .. }) => EngineEvent::Busy { trial, owner },
        Err(error) => EngineEvent::Failed { trial, message: crate::EngineError::from(error).chain() },
    };
    send(setting.events, event);
}

/// Whoever shows the run may have stopped looking; the run goes on.
pub(crate) fn send(events: &mpsc::UnboundedSender<EngineEvent>, event: EngineEvent) {
    let _ = events.send(event);
}
