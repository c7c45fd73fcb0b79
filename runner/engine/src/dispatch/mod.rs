//! Starts trials, so many at a time, until all are done or there is a reason to stop. Any number of processes may do
//! this to the same run at once: who has the lease of a trial runs it.

mod health;
mod queue;
mod spending;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_store::{
    Attempt, Holder, LeaseTerms, MethodId, Outcome, RunDir, Sightings, StoreError, Survey, TrialDir, TrialId,
    current, resume,
};
use proctor_traces::Limit;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use self::health::{Health, Illness};
use self::queue::{Caps, Next, Place, Queue, Share};
use self::spending::Spending;
use crate::executor::{Executor, Input, Setting, Step, Steps};
use crate::need::Met;
use crate::{EngineError, EngineEvent, OnMissing, Plan, RunClock, TrialSpec, trial};

/// How often a trial that another process runs, or whose input is not there yet, is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a run is stopped early.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// No new trials are started.
    pub drain: CancellationToken,
    /// Running trials are frozen, collected, and cancelled.
    pub cancel: CancellationToken,
}

/// Where a run is kept, and who we are in it.
#[derive(Clone)]
pub struct Site {
    /// The results directory.
    pub run: RunDir,
    /// This process, as its leases name it.
    pub holder: Holder,
    /// How long leases last.
    pub terms: LeaseTerms,
    /// Told at each step of each trial.
    pub steps: Steps,
}

/// Why the dispatcher returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// There was nothing left to start.
    Finished,
    /// The user stopped it.
    Stopped,
    /// The disk is full, or nearly: trials would fail for it.
    DiskFull {
        /// Bytes that are free.
        free: u64,
    },
    /// One trial after the other failed on our side.
    Failing {
        /// How many in a row.
        trials: u32,
        /// What the last one said.
        message: String,
    },
}

/// What came of one trial.
enum Verdict {
    Ended(Box<Outcome>),
    /// Another process was faster.
    Elsewhere,
    Busy(String),
    NotYet(TrialId),
    Missing(TrialId),
    Cancelled,
    Failed(String),
    DiskFull(String),
}

/// Runs every trial of `plan` that has no outcome yet, and tells `events` about it. Whatever is left when it returns is
/// continued by running the same plan again.
pub async fn run(
    plan: Plan,
    site: Arc<Site>,
    executor: Arc<dyn Executor>,
    stop: Stop,
    events: mpsc::UnboundedSender<EngineEvent>,
) -> Result<RunEnd, EngineError> {
    let sightings = Sightings::default();
    let trials = open_trials(&plan, &site, &sightings, &events)?;
    let (shares, caps) = shares_of(&plan);
    let waiting = trials.iter().filter_map(|spec| shares.get(&spec.method.id)).cloned().collect();
    let dispatcher = Dispatcher {
        queue: Queue::new(waiting, caps),
        shares,
        out: BTreeSet::new(),
        spending: Spending::new(&plan, &site)?,
        health: Health::new(&site.run, plan.schedule.jobs),
        running: JoinSet::new(),
        places: HashMap::new(),
        shared: Arc::new(Shared {
            clock: RunClock::start(),
            sightings,
            plan,
            site,
            executor,
            cancel: stop.cancel.clone(),
            events,
        }),
        trials,
        drain: stop.drain,
    };
    dispatcher.run().await
}

/// The trials without an outcome, each as the attempt that stands for it now. The others are told of, and put in order
/// where a runner was killed between its last two steps.
fn open_trials(
    plan: &Plan,
    site: &Site,
    sightings: &Sightings,
    events: &mpsc::UnboundedSender<EngineEvent>,
) -> Result<Vec<Arc<TrialSpec>>, EngineError> {
    let survey: Survey = site.run.survey()?;
    let planned: Vec<TrialId> = plan.trials.iter().map(|spec| spec.id.clone()).collect();
    let open: BTreeSet<TrialId> = resume(&planned, &survey).into_iter().collect();
    let mut specs = Vec::new();
    for spec in &plan.trials {
        let id = current(&spec.id, &survey);
        if open.contains(&id) {
            specs.push(Arc::new(TrialSpec { id, ..spec.clone() }));
        } else {
            site.run.trial(&id).tidy(&site.holder, site.terms, sightings)?;
            send(events, EngineEvent::Skipped { trial: id });
        }
    }
    Ok(specs)
}

/// What the trials of each method of the plan take part in, and how many may at a time.
fn shares_of(plan: &Plan) -> (BTreeMap<MethodId, Share>, Caps) {
    let mut providers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut caps = Caps {
        rooms: plan.schedule.jobs.max(1),
        methods: BTreeMap::new(),
        providers: BTreeMap::new(),
        interval: plan.schedule.launch_interval,
        intervals: BTreeMap::new(),
    };
    let mut shares: BTreeMap<MethodId, Share> = BTreeMap::new();
    for spec in &plan.trials {
        let method = shares.len();
        if shares.contains_key(&spec.method.id) {
            continue;
        }
        caps.methods.extend(spec.method.jobs.map(|jobs| (method, jobs.max(1))));
        if !spec.method.launch_interval.is_zero() {
            caps.intervals.insert(method, spec.method.launch_interval);
        }
        let provider = spec.method.model.as_ref().map(|model| {
            let next = providers.len();
            let provider = *providers.entry(&model.provider).or_insert(next);
            caps.providers.extend(plan.schedule.provider_jobs.get(&model.provider).map(|it| (provider, *it)));
            provider
        });
        let room = spec.method.track.has_room();
        shares.insert(spec.method.id.clone(), Share { method, provider, room });
    }
    (shares, caps)
}

/// What all trials share.
struct Shared {
    plan: Plan,
    site: Arc<Site>,
    executor: Arc<dyn Executor>,
    cancel: CancellationToken,
    events: mpsc::UnboundedSender<EngineEvent>,
    clock: RunClock,
    sightings: Sightings,
}

struct Dispatcher {
    shared: Arc<Shared>,
    trials: Vec<Arc<TrialSpec>>,
    queue: Queue,
    shares: BTreeMap<MethodId, Share>,
    /// Trials that this process will not have an outcome of. Whoever needs one of them waits in vain.
    out: BTreeSet<TrialId>,
    spending: Spending,
    health: Health,
    running: JoinSet<Verdict>,
    places: HashMap<Id, Place>,
    drain: CancellationToken,
}

impl Dispatcher {
    async fn run(mut self) -> Result<RunEnd, EngineError> {
        // What was used before may be all already.
        for reached in self.spending.reached() {
            self.give_up(reached);
        }
        let end = loop {
            let next = self.queue.next(Instant::now());
            let until = match next {
                _ if self.drain.is_cancelled() => break RunEnd::Stopped,
                Next::Start(place) => {
                    if let Some(illness) = self.health.before_a_start() {
                        break illness.into();
                    }
                    self.start(place);
                    continue;
                }
                Next::Until(at) => Some(at),
                Next::AnEnd => None,
                Next::Nothing if self.take_in_requests()? => continue,
                Next::Nothing => break RunEnd::Finished,
            };
            let wake = async {
                match until {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.drain.cancelled() => break RunEnd::Stopped,
                Some(ended) = self.running.join_next_with_id() => {
                    if let Some(illness) = self.ended(ended) {
                        break illness.into();
                    }
                }
                () = wake => {}
            }
        };
        while let Some(ended) = self.running.join_next_with_id().await {
            self.ended(ended);
        }
        if let Err(error) = self.shared.site.run.tidy() {
            tracing::warn!(%error, "folders of rooms stay behind");
        }
        Ok(if end == RunEnd::Finished && self.drain.is_cancelled() { RunEnd::Stopped } else { end })
    }

    fn start(&mut self, place: Place) {
        let (spec, shared) = (Arc::clone(&self.trials[place]), Arc::clone(&self.shared));
        let task = self.running.spawn(async move { shared.run_one(&spec).await });
        self.places.insert(task.id(), place);
    }

    /// Takes in what was asked for once more since this process began. Returns whether there is anything to start.
    fn take_in_requests(&mut self) -> Result<bool, EngineError> {
        let survey = self.shared.site.run.survey()?;
        let mut some = false;
        for place in 0..self.shared.plan.trials.len() {
            let id = current(&self.shared.plan.trials[place].id, &survey);
            // What is made for the first time was in the plan from the beginning.
            if id.attempt().rerun() > 0 && !survey.get(&id).is_some_and(|it| it.done) {
                some |= self.take_in(&id);
            }
        }
        Ok(some)
    }

    /// Takes in a trial that was asked for once more; returns whether it is new to this process, and is to be made.
    fn take_in(&mut self, trial: &TrialId) -> bool {
        let known = |spec: &Arc<TrialSpec>| spec.id == *trial;
        if self.out.contains(trial) || self.trials.iter().any(known) {
            return false;
        }
        let first = trial.at(Attempt::nth(trial.attempt().number()));
        let planned = self.shared.plan.trials.iter().find(|spec| spec.id == first);
        let Some(spec) = planned.map(|spec| TrialSpec { id: trial.clone(), ..spec.clone() }) else {
            return false;
        };
        let share = self.shares.get(&spec.method.id).cloned();
        if share.and_then(|share| self.queue.add(share)).is_none() {
            self.out.insert(trial.clone());
            return false;
        }
        self.trials.push(Arc::new(spec));
        send(&self.shared.events, EngineEvent::Requested { trial: trial.clone() });
        true
    }

    /// Takes note of what came of a trial; returns a reason to start no more.
    fn ended(&mut self, ended: Result<(Id, Verdict), JoinError>) -> Option<Illness> {
        let (id, verdict) = match ended {
            Ok(ended) => ended,
            Err(error) => (error.id(), Verdict::Failed(format!("a part of ours broke off: {error}"))),
        };
        let place = self.places.remove(&id)?;
        self.queue.ended(place);
        let spec = Arc::clone(&self.trials[place]);
        let trial = spec.id.clone();
        let mut illness = None;
        let event = match verdict {
            Verdict::Ended(outcome) => {
                illness = self.health.after(&outcome);
                self.spend(&spec, &outcome);
                EngineEvent::Finished(outcome)
            }
            Verdict::Elsewhere => {
                self.queue.was_no_start(place);
                if let Ok(Some(outcome)) = self.shared.site.run.trial(&trial).outcome() {
                    self.spend(&spec, &outcome);
                }
                EngineEvent::Skipped { trial }
            }
            Verdict::Busy(owner) => {
                self.queue.was_no_start(place);
                if self.shared.plan.schedule.linger {
                    self.queue.again(place, Instant::now() + LOOK_AGAIN);
                } else {
                    self.out.insert(trial.clone());
                }
                EngineEvent::Busy { trial, owner }
            }
            Verdict::NotYet(source) if self.out.contains(&source) => {
                self.queue.was_no_start(place);
                self.out.insert(trial.clone());
                EngineEvent::Missing { trial, source }
            }
            Verdict::NotYet(source) => {
                self.queue.was_no_start(place);
                // It may be one that was asked for meanwhile, and that nobody else knows of.
                self.take_in(&source);
                self.queue.again(place, Instant::now() + LOOK_AGAIN);
                return None;
            }
            Verdict::Missing(source) => {
                self.out.insert(trial.clone());
                EngineEvent::Missing { trial, source }
            }
            Verdict::Cancelled => {
                self.out.insert(trial.clone());
                EngineEvent::Cancelled { trial }
            }
            Verdict::Failed(message) => {
                self.out.insert(trial.clone());
                EngineEvent::Failed { trial, message }
            }
            Verdict::DiskFull(message) => {
                illness = Some(self.health.disk_is_full());
                EngineEvent::Failed { trial, message }
            }
        };
        send(&self.shared.events, event);
        illness
    }

    /// Counts what a trial has used; a method, or the run, that has used up what it may is given up.
    fn spend(&mut self, spec: &TrialSpec, outcome: &Outcome) {
        self.spending.count(&spec.method, outcome.tokens);
        for reached in self.spending.reached() {
            self.give_up(reached);
        }
    }

    fn give_up(&mut self, (method, limit): Reached) {
        let ours = self.shares.iter().filter(|(id, _)| method.as_ref().is_none_or(|it| it == *id));
        let places: Vec<Place> = ours.flat_map(|(_, share)| self.queue.give_up(share.method)).collect();
        let left = places.len();
        self.out.extend(places.into_iter().map(|place| self.trials[place].id.clone()));
        send(&self.shared.events, EngineEvent::CeilingReached { method, limit, left });
    }
}

impl Shared {
    async fn run_one(&self, spec: &TrialSpec) -> Verdict {
        let folder = self.site.run.trial(&spec.id);
        if folder.is_done() {
            return self.done_elsewhere(&folder);
        }
        let input = match spec.method.needs.as_ref().map(|need| (need, need.meet(&self.site.run, &spec.id))) {
            None => None,
            Some((_, Ok(Met::NotYet { trial }))) => return Verdict::NotYet(trial),
            Some((_, Ok(Met::Given(given)))) => Some(Input::Given(given)),
            Some((need, Ok(Met::Missing { trial }))) if need.on_missing == OnMissing::Skip => {
                return Verdict::Missing(trial);
            }
            Some((_, Ok(Met::Missing { trial }))) => Some(Input::Missing(trial)),
            Some((_, Err(error))) => return Verdict::Failed(error.chain()),
        };
        let lease = match folder.lease(&self.site.holder, self.site.terms, &self.sightings) {
            Ok(lease) => lease,
            Err(StoreError::AlreadyDone { .. }) => return self.done_elsewhere(&folder),
            Err(StoreError::Busy { owner, .. }) => return Verdict::Busy(owner),
            Err(error) if error.is_disk_full() => return Verdict::DiskFull(EngineError::from(error).chain()),
            Err(error) => return Verdict::Failed(EngineError::from(error).chain()),
        };
        self.site.steps.reached(Step::Leased);
        let setting = Setting {
            clock: self.clock,
            retry: self.plan.retry,
            cancel: self.cancel.clone(),
            events: &self.events,
            input,
            steps: &self.site.steps,
        };
        let beating = async {
            loop {
                tokio::time::sleep(self.site.terms.heartbeat).await;
                if !lease.beat() {
                    tracing::warn!(trial = %spec.id, "others took us for dead: whoever is first has the outcome");
                }
            }
        };
        let trial = trial::run(spec, &*self.executor, &folder, &setting);
        let result = tokio::select! {
            result = trial => result,
            () = beating => Err(EngineError::Broken { part: "the heartbeat" }),
        };
        drop(lease);
        match result {
            Ok(Some(outcome)) => Verdict::Ended(Box::new(outcome)),
            Ok(None) => Verdict::Cancelled,
            Err(EngineError::Store(StoreError::AlreadyDone { .. })) => Verdict::Elsewhere,
            Err(error) if error.is_disk_full() => Verdict::DiskFull(error.chain()),
            Err(error) => Verdict::Failed(error.chain()),
        }
    }

    /// Somebody else has finished it, and may have been killed before all was in its place.
    fn done_elsewhere(&self, folder: &TrialDir) -> Verdict {
        match folder.tidy(&self.site.holder, self.site.terms, &self.sightings) {
            Ok(()) => Verdict::Elsewhere,
            Err(error) => Verdict::Failed(EngineError::from(error).chain()),
        }
    }
}

/// Whoever shows the run may have stopped looking; the run goes on.
pub(crate) fn send(events: &mpsc::UnboundedSender<EngineEvent>, event: EngineEvent) {
    let _ = events.send(event);
}

/// The limit that a ceiling was reached by, for the whole run if no method is named.
type Reached = (Option<MethodId>, Limit);
