//! How a run stands: while it goes on, from another terminal, and when nobody runs it any more.

use std::collections::{BTreeMap, HashMap};

use proctor_store::{LeaseTerms, PresenceState, RunDir, StoreError};
use proctor_traces::{Millis, Timestamp};
use serde::Serialize;

use crate::accounting::{Class, Coverage, Open, ProviderErrors, Recover, Verdict};
use crate::left_out::{LeftOut, left_out};
use crate::read::Depth;
use crate::report::{Control, control, judge};
use crate::row::{Row, RowState, Rows, float};
use crate::sheet::{Line, Sheet, wrapped};
use crate::words::{agreeing, counted};

/// How many of the last failures are told.
const TOLD: usize = 5;

/// Throughput is that of so many trials that ended last.
const WINDOW: usize = 100;

/// How a run stands.
#[derive(Clone, Debug, Serialize)]
pub struct RunStatus {
    /// Name of the run.
    pub run: String,
    /// When this was looked at.
    pub at: Timestamp,
    /// The methods, in the order of the plan.
    pub methods: Vec<MethodStatus>,
    /// Who is at work on it, and who was when they died.
    pub workers: Vec<WorkerStatus>,
    /// Trials that ended per hour, of late.
    pub per_hour: Option<f64>,
    /// Seconds until all is done, from the times measured so far; none if nobody is at work.
    pub eta_s: Option<f64>,
    /// The last failures, latest first.
    pub last_failures: Vec<Recent>,
    /// What is wrong with the files.
    pub problems: Vec<String>,
}

/// Trials of a method. Planned = done + running + pending.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodStatus {
    /// Its name.
    pub method: String,
    /// Whether it is a control.
    pub control: Option<Control>,
    /// Trials in the plan.
    pub planned: u64,
    /// With an outcome.
    pub done: u64,
    /// At work now.
    pub running: u64,
    /// Neither.
    pub pending: u64,
    /// Of those pending: begun, and left by a process that is gone.
    pub interrupted: u64,
    /// Of those pending: left out, since another trial has not left what they need.
    pub left_out_needs: u64,
    /// Of those pending: left out, since the method or the run has used what the plan allows.
    pub left_out_ceiling: u64,
    /// Of those done: completed within budget, and rendered.
    pub completed: u64,
    /// Of those done: timed out.
    pub timed_out: u64,
    /// Of those timed out: left something that renders.
    pub recovered: u64,
    /// Of those done: other failures.
    pub failed: u64,
    /// Of those done: not to be counted yet, or a failure of ours or the provider's.
    pub unresolved: u64,
    /// Of those done or pending: needed, or have had, more than one try.
    pub retried: u64,
}

/// A process that holds leases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// Its machine.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// The batch job that it is part of.
    pub job: Option<String>,
    /// Whether it is at work.
    pub state: WorkerState,
    /// Seconds since its last sign of life, by the clock of this machine.
    pub silence_s: f64,
    /// Trials that it holds.
    pub trials: Vec<String>,
}

/// Whether a process is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// It gives signs of life.
    Alive,
    /// It runs elsewhere, if at all.
    Silent,
    /// It is gone.
    Gone,
}

/// A failure that happened of late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recent {
    /// The trial.
    pub trial: String,
    /// When it ended.
    pub at: Option<Timestamp>,
    /// How.
    pub ending: String,
    /// What was said about it: an agent's or a server's own words, without what a terminal would obey.
    pub message: String,
}

/// A trial without outcome that somebody has a lease on.
struct Held {
    place: usize,
    state: PresenceState,
    /// Milliseconds since the lease was taken.
    age_ms: u64,
}

impl RunStatus {
    /// Looks at a run.
    pub fn read(run: &RunDir) -> Result<Self, StoreError> {
        let rows = Rows::read(run, Depth::Outcomes)?;
        let (_, verdicts) = judge(&rows, ProviderErrors::Unresolved, Recover::Timeouts);
        let now = Timestamp::now();
        let (held, workers) = leases(run, &rows, now);
        let mut methods: Vec<MethodStatus> =
            rows.record.methods.iter().map(|it| MethodStatus::new(it.id.as_str(), &it.harness)).collect();
        let states: HashMap<usize, PresenceState> = held.iter().map(|it| (it.place, it.state)).collect();
        let mut out = left_out(run, &rows);
        for (place, (row, verdict)) in rows.rows.iter().zip(&verdicts).enumerate() {
            let held = states.get(&place).copied();
            if held == Some(PresenceState::Alive) {
                // Somebody has another plan.
                out[place] = None;
            }
            methods[row.method].count(row, *verdict, held, out[place]);
        }
        Ok(Self {
            run: rows.record.name.clone(),
            at: now,
            workers,
            per_hour: per_hour(&rows),
            eta_s: eta(&rows, &held, &out),
            last_failures: last_failures(&rows, &verdicts),
            problems: rows.problems,
            methods,
        })
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let head = [
            "method",
            "done",
            "running",
            "pending",
            "completed",
            "timed\nout",
            "recovered",
            "failed",
            "open",
        ];
        let mut sheet = Sheet::new(&format!("Run {}", self.run), &head);
        for it in &self.methods {
            let control = if it.control.is_some() { " (control)" } else { "" };
            let counts =
                [it.running, it.pending, it.completed, it.timed_out, it.recovered, it.failed, it.unresolved];
            let mut cells = vec![format!("{}/{}", it.done, it.planned)];
            cells.extend(counts.map(|count| count.to_string()));
            sheet.lines.push(Line::Cells(format!("{}{control}", it.method), cells));
        }
        if self.methods.iter().any(|it| it.unresolved > 0) {
            sheet.notes.push(
                "open: done and unresolved: a failure of ours or the provider's, or not rendered yet.".into(),
            );
        }
        let mut parts = vec![sheet.text(), self.pace()];
        parts.extend(self.workers.iter().map(WorkerStatus::text));
        parts.extend(self.last_failures.iter().map(|it| {
            let at = it.at.map(|at| format!("{at} ")).unwrap_or_default();
            let message: String = it.message.chars().take(200).collect();
            // A provider's words must not begin a line of their own.
            let message = message.replace(['\n', '\r'], " ");
            format!("{at}{}: {}{}{message}", it.trial, it.ending, if message.is_empty() { "" } else { ": " })
        }));
        parts.extend(self.problems.iter().map(|it| wrapped(&format!("PROBLEM  {it}"), "")));
        parts.join("\n")
    }

    fn pace(&self) -> String {
        let sum = |of: fn(&MethodStatus) -> u64| self.methods.iter().map(of).sum::<u64>();
        let (needs, ceiling) = (sum(|it| it.left_out_needs), sum(|it| it.left_out_ceiling));
        let left = sum(|it| it.pending + it.running) - needs - ceiling;
        let interrupted = sum(|it| it.interrupted);
        let pace = self.per_hour.map_or_else(String::new, |n| format!(", {n:.0} an hour of late"));
        let rest = match (left, self.eta_s) {
            (0, _) if needs + ceiling > 0 => "nothing more will be started".to_owned(),
            (0, _) => "all trials are done".to_owned(),
            (_, Some(seconds)) => format!("about {} to go", span(seconds)),
            (_, None) if self.workers.iter().any(|it| it.state != WorkerState::Gone) => {
                "no estimate yet".to_owned()
            }
            (_, None) => "nobody is at work on it: the same command again continues".to_owned(),
        };
        let begun =
            if interrupted > 0 { format!(", {interrupted} of them begun and left") } else { String::new() };
        format!("{} left{begun}{pace}; {rest}{}", counted(left, "trial"), left_out_text(needs, ceiling))
    }
}

impl MethodStatus {
    fn new(method: &str, harness: &str) -> Self {
        Self {
            method: method.to_owned(),
            control: control(harness),
            planned: 0,
            done: 0,
            running: 0,
            pending: 0,
            interrupted: 0,
            left_out_needs: 0,
            left_out_ceiling: 0,
            completed: 0,
            timed_out: 0,
            recovered: 0,
            failed: 0,
            unresolved: 0,
            retried: 0,
        }
    }

    fn count(&mut self, row: &Row, verdict: Verdict, held: Option<PresenceState>, out: Option<LeftOut>) {
        self.planned += 1;
        match out {
            Some(LeftOut::Needs) => self.left_out_needs += 1,
            Some(LeftOut::Ceiling) => self.left_out_ceiling += 1,
            None => {}
        }
        let tries = match &row.state {
            RowState::Pending { tries } => {
                match held {
                    Some(PresenceState::Alive) => self.running += 1,
                    Some(_) => {
                        self.pending += 1;
                        self.interrupted += 1;
                    }
                    None => {
                        self.pending += 1;
                        self.interrupted += u64::from(*tries > 0);
                    }
                }
                self.retried += u64::from(*tries > 1);
                return;
            }
            RowState::Unreadable => 1,
            RowState::Ended(ended) => ended.tries,
        };
        self.done += 1;
        self.retried += u64::from(tries > 1);
        self.recovered += u64::from(verdict.class == Class::R);
        let place = match verdict.coverage {
            Coverage::Completed => &mut self.completed,
            Coverage::TimedOut => &mut self.timed_out,
            Coverage::Failed(_) => &mut self.failed,
            Coverage::Unresolved(_) => &mut self.unresolved,
        };
        *place += 1;
    }
}

impl WorkerStatus {
    fn text(&self) -> String {
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).take(64).collect::<String>();
        let job = self.job.as_deref().map(|job| format!(", job {}", plain(job))).unwrap_or_default();
        let state = match self.state {
            WorkerState::Alive => "at work",
            WorkerState::Silent => "silent",
            WorkerState::Gone => "gone",
        };
        let silence = span(self.silence_s);
        let trials = counted(self.trials.len(), "trial");
        format!(
            "process {} on {}{job}: {state}, {trials}, last sign of life {silence} ago",
            self.pid,
            plain(&self.host)
        )
    }
}

/// How many trials are left out, and why: a line of its own.
fn left_out_text(needs: u64, ceiling: u64) -> String {
    let mut why = Vec::new();
    if needs > 0 {
        why.push(format!("{needs} {} what another did not leave", agreeing(needs, "needs", "need")));
    }
    if ceiling > 0 {
        why.push(format!("{ceiling} {} over a ceiling of the plan", agreeing(ceiling, "is", "are")));
    }
    match why.as_slice() {
        [] => String::new(),
        why => format!("\n{} left out: {}", counted(needs + ceiling, "trial"), why.join(", ")),
    }
}

/// Who holds what, of the trials without outcome.
fn leases(run: &RunDir, rows: &Rows, now: Timestamp) -> (Vec<Held>, Vec<WorkerStatus>) {
    let expiry = LeaseTerms::default().expiry;
    let mut held = Vec::new();
    let mut workers: BTreeMap<(WorkerState, String, u32, Option<String>), WorkerStatus> = BTreeMap::new();
    for (place, row) in rows.rows.iter().enumerate() {
        let RowState::Pending { .. } = row.state else { continue };
        let Some(presence) = run.trial(&row.trial).presence(expiry) else { continue };
        let state = match presence.state {
            PresenceState::Alive => WorkerState::Alive,
            PresenceState::Silent => WorkerState::Silent,
            PresenceState::Gone => WorkerState::Gone,
        };
        let holder = presence.holder;
        let age_ms = u64::try_from(now.as_millis() - holder.since.as_millis()).unwrap_or(0);
        held.push(Held { place, state: presence.state, age_ms });
        let key = (state, holder.host.clone(), holder.pid, holder.job.clone());
        let silence_s = presence.silence.as_secs_f64();
        let worker = workers.entry(key).or_insert_with(|| WorkerStatus {
            host: holder.host,
            pid: holder.pid,
            job: holder.job,
            state,
            silence_s,
            trials: Vec::new(),
        });
        worker.silence_s = worker.silence_s.min(silence_s);
        worker.trials.push(row.trial.to_string());
    }
    (held, workers.into_values().collect())
}

/// Fewer than this say nothing of a rate.
const FEW: usize = 6;

/// Of the trials that ended last, how many in an hour.
fn per_hour(rows: &Rows) -> Option<f64> {
    let mut ends: Vec<i64> =
        rows.rows.iter().filter_map(|row| row.ended()?.ended_at).map(Timestamp::as_millis).collect();
    ends.sort_unstable();
    let last = &ends[ends.len().saturating_sub(WINDOW)..];
    if last.len() < FEW {
        return None;
    }
    let span = last.last()? - last.first()?;
    let between = float(last.len() as u64 - 1);
    (span > 0).then(|| between * 3_600_000.0 / float(span.unsigned_abs()))
}

/// The time that the rest takes if as many are at work as now, each as long as those of its method have taken so far.
fn eta(rows: &Rows, held: &[Held], out: &[Option<LeftOut>]) -> Option<f64> {
    let running = held.iter().filter(|it| it.state == PresenceState::Alive);
    let places = float(running.clone().count() as u64);
    if places == 0.0 {
        return None;
    }
    let mut sums = vec![(0.0, 0.0); rows.record.methods.len()];
    for ended in rows.rows.iter().filter_map(|row| Some((row.method, row.ended()?.place_ms))) {
        sums[ended.0].0 += float(ended.1.0);
        sums[ended.0].1 += 1.0;
    }
    let all = sums.iter().fold((0.0, 0.0), |all, it| (all.0 + it.0, all.1 + it.1));
    let takes = |method: usize| {
        let of = |(sum, count): (f64, f64)| (count > 0.0).then(|| sum / count);
        let Millis(budget) = rows.record.methods[method].budget_ms;
        // Nothing has been measured yet: at the worst it is the budget.
        of(sums[method]).or_else(|| of(all)).unwrap_or(float(budget))
    };
    let ages: HashMap<usize, u64> = running.map(|it| (it.place, it.age_ms)).collect();
    let open = rows.rows.iter().enumerate();
    let open = open.filter(|(at, row)| matches!(row.state, RowState::Pending { .. }) && out[*at].is_none());
    let left: f64 = open
        .map(|(place, row)| match ages.get(&place) {
            Some(age) => (takes(row.method) - float(*age)).max(0.0),
            None => takes(row.method),
        })
        .sum();
    Some(left / places / 1000.0)
}

fn last_failures(rows: &Rows, verdicts: &[Verdict]) -> Vec<Recent> {
    let failed = rows.rows.iter().zip(verdicts).filter(|(row, verdict)| {
        // What a control does not do is no news.
        if control(&rows.record.methods[row.method].harness).is_some() {
            return false;
        }
        let ours = matches!(verdict.open, Some(Open::Infra | Open::Provider));
        ours || matches!(verdict.coverage, Coverage::Failed(_))
    });
    let mut failed: Vec<Recent> = failed
        .filter_map(|(row, _)| {
            let ended = row.ended()?;
            let said = match &ended.render {
                crate::RenderState::Failed(why) if ended.ending.message().is_none() => {
                    format!("its artifact does not render ({why})")
                }
                _ => ended.ending.message().unwrap_or_default().to_owned(),
            };
            let message = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let ending = ended.ending.name().to_owned();
            Some(Recent { trial: row.trial.to_string(), at: ended.ended_at, ending, message })
        })
        .collect();
    failed.sort_by_key(|it| std::cmp::Reverse(it.at));
    failed.truncate(TOLD);
    failed
}

/// A time as people say it.
pub(crate) fn span(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time that people care about"
    )]
    let whole = seconds.clamp(0.0, 1e9).round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}
