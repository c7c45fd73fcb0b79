//! What a run looks like while it goes on: on a terminal a line per running trial that is kept up to date, elsewhere
//! one plain line per change.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proctor_engine::{EngineEvent, Phase, RunEnd};
use proctor_store::{Outcome, TrialId};
use proctor_traces::{Ending, Limit};
use tracing_subscriber::filter::LevelFilter;

/// Sends the log to stderr: warnings, or more with `-v`.
pub(crate) fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false).init();
}

/// Shows the events of a run on stderr.
pub(crate) struct Console {
    bars: Option<MultiProgress>,
    running: HashMap<TrialId, Line>,
    busy: HashSet<TrialId>,
    total: usize,
    done: usize,
}

/// What there is to say about a run that ended before all was done.
pub(crate) fn why(end: &RunEnd) -> Option<String> {
    match end {
        RunEnd::Finished | RunEnd::Stopped => None,
        RunEnd::DiskFull { free } => Some(format!(
            "no more trials are started: the disk of the results directory is full ({} MiB are free)\n\
             make space, then give the same command again: it continues",
            free >> 20
        )),
        RunEnd::Failing { trials, message } => Some(format!(
            "no more trials are started: {trials} in a row failed on our side, the last one with: {}\n\
             mend that (`proctor doctor` may tell), then give the same command again; \
             `proctor rerun` repeats those that failed",
            plain(message)
        )),
    }
}

struct Line {
    bar: Option<ProgressBar>,
    phase: &'static str,
    since: Instant,
    budget: Option<Duration>,
    tool_calls: u64,
    tokens: u64,
}

impl Console {
    /// For `total` trials; `quiet` shows nothing.
    pub(crate) fn new(total: usize, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        Self {
            bars: terminal.then(MultiProgress::new),
            running: HashMap::new(),
            busy: HashSet::new(),
            total,
            done: 0,
        }
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &EngineEvent) {
        match event {
            EngineEvent::Skipped { trial } => {
                self.done += 1;
                self.say(&format!("{} {trial}: done before", self.count()));
            }
            EngineEvent::Busy { trial, owner } => {
                // It is looked at again and again.
                if self.busy.insert(trial.clone()) {
                    self.say(&format!("{trial}: is being run by {owner}; waiting for it"));
                }
            }
            EngineEvent::Missing { trial, source } => {
                self.say(&format!("{trial}: left out, since {source} left nothing to start from"));
            }
            EngineEvent::CeilingReached { method, limit, left } => {
                let who = method.as_ref().map_or("the run".to_owned(), |it| format!("method {it}"));
                let what = if *limit == Limit::Cost { "cost" } else { "use tokens" };
                self.say(&format!("{who} may {what} no more: {left} trials are not started"));
            }
            EngineEvent::Entered { trial, phase } => self.enter(trial, *phase),
            EngineEvent::Progress { trial, tool_calls, tokens } => {
                if let Some(line) = self.running.get_mut(trial) {
                    (line.tool_calls, line.tokens) = (*tool_calls, *tokens);
                }
                self.tick();
            }
            EngineEvent::Retrying { trial, ending, failed_try, after } => {
                let (after, why) = (after.as_secs_f64(), said(ending));
                self.say(&format!(
                    "{trial}: try {failed_try} ended {}, again in {after} s{why}",
                    ending.name()
                ));
            }
            EngineEvent::Finished(outcome) => {
                self.done += 1;
                self.end(&outcome.trial);
                self.say(&format!("{} {}", self.count(), describe(outcome)));
            }
            EngineEvent::Cancelled { trial } => {
                self.end(trial);
                self.say(&format!("{trial}: cancelled"));
            }
            EngineEvent::Failed { trial, message } => {
                self.end(trial);
                self.say(&format!("{trial}: could not be kept: {message}"));
            }
        }
    }

    /// Brings elapsed times up to date.
    pub(crate) fn tick(&self) {
        for (trial, line) in &self.running {
            if let Some(bar) = &line.bar {
                bar.set_message(line.text(trial));
            }
        }
    }

    /// Prints a line that stays.
    pub(crate) fn say(&self, text: &str) {
        match &self.bars {
            Some(bars) => {
                // A terminal that is gone shows nothing.
                let _ = bars.println(text);
            }
            None => eprintln!("{text}"),
        }
    }

    fn enter(&mut self, trial: &TrialId, phase: Phase) {
        let (name, budget) = match phase {
            Phase::Prepare => ("prepare", None),
            Phase::Agent { budget } => ("agent", Some(budget)),
            Phase::Collect => ("collect", None),
            Phase::Teardown => ("teardown", None),
        };
        let bars = self.bars.as_ref();
        let line = self.running.entry(trial.clone()).or_insert_with(|| Line {
            bar: bars.map(|bars| {
                let plain = ProgressStyle::with_template("{spinner} {msg}");
                let bar = bars.add(ProgressBar::new_spinner());
                bar.set_style(plain.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                bar.enable_steady_tick(Duration::from_millis(250));
                bar
            }),
            phase: name,
            since: Instant::now(),
            budget,
            tool_calls: 0,
            tokens: 0,
        });
        (line.phase, line.since, line.budget) = (name, Instant::now(), budget);
        match &line.bar {
            Some(bar) => bar.set_message(line.text(trial)),
            None => eprintln!("{trial}: {name}"),
        }
    }

    fn end(&mut self, trial: &TrialId) {
        if let Some(Line { bar: Some(bar), .. }) = self.running.remove(trial) {
            bar.finish_and_clear();
        }
    }

    fn count(&self) -> String {
        format!("[{}/{}]", self.done, self.total)
    }
}

impl Line {
    fn text(&self, trial: &TrialId) -> String {
        let elapsed = self.since.elapsed().as_secs();
        let time = match self.budget {
            Some(budget) => format!("{elapsed}/{} s", budget.as_secs()),
            None => format!("{elapsed} s"),
        };
        format!("{trial}  {} {time}  {} tool calls  {} tokens", self.phase, self.tool_calls, self.tokens)
    }
}

fn describe(outcome: &Outcome) -> String {
    let seconds = outcome.timing.agent_ms.as_secs_f64();
    let calls = outcome.tool_calls;
    let overrun =
        outcome.overrun_ms.filter(|ms| *ms >= 0).map(|ms| format!(", frozen {ms} ms after the deadline"));
    let (ending, why) = (outcome.ending.name(), said(&outcome.ending));
    format!(
        "{}: {ending} after {seconds:.1} s, {calls} tool calls{}{why}",
        outcome.trial,
        overrun.unwrap_or_default()
    )
}

/// What was said about an ending, fit for a terminal: an agent's words may hold anything.
fn said(ending: &Ending) -> String {
    ending.message().map(|message| format!(": {}", plain(message))).unwrap_or_default()
}

fn plain(message: &str) -> String {
    let plain: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(160).collect();
    plain.trim().to_owned()
}
