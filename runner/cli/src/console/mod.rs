//! What a run looks like while it goes on: on a terminal how far each method has come and a line per running trial, kept
//! up to date; elsewhere a plain line when a trial begins and ends, and once a minute how far all of it has come.

mod tally;

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proctor_engine::{EngineEvent, Phase, RunEnd};
use proctor_report::{agreeing, counted};
use proctor_store::{MethodId, Outcome, TrialId};
use proctor_traces::{Ending, Limit};
use tracing_subscriber::filter::LevelFilter;

use self::tally::Tally;
use crate::printing::{harmless, in_a_line};

/// How often a run that nobody watches says how far it has come.
const REPORT: Duration = Duration::from_secs(60);
/// Runs with more methods than this show them in one line.
const METHODS_SHOWN: usize = 12;

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
    /// The lines above those of the trials: all in one, then one per method.
    heads: Vec<ProgressBar>,
    quiet: bool,
    running: HashMap<TrialId, Line>,
    busy: HashSet<TrialId>,
    tally: Tally,
    /// Trials that were done before, and have not been told of yet.
    before: usize,
    /// Trials that were not started, and why.
    pub(crate) left_out: LeftOut,
    started: Instant,
    told: Instant,
}

/// Trials that are not started however often the run is continued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    /// What they need was not left by another.
    pub(crate) missing: usize,
    /// A ceiling was reached.
    pub(crate) ceiling: usize,
}

/// What there is to say about a run that ended before all was done.
pub(crate) fn why(end: &RunEnd) -> Option<String> {
    match end {
        RunEnd::Finished | RunEnd::Stopped => None,
        RunEnd::DiskFull { free } => Some(format!(
            "no more trials are started: the disk of the results directory is full ({} MiB are free now)\n\
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
    /// For so many trials of each method, `jobs` at a time; `quiet` shows no progress.
    pub(crate) fn new(planned: &[(MethodId, usize)], jobs: usize, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bars = terminal.then(MultiProgress::new);
        let methods = if (2..=METHODS_SHOWN).contains(&planned.len()) { planned.len() } else { 0 };
        let trials: usize = planned.iter().map(|(_, trials)| trials).sum();
        let heads = if trials > 1 { 1 + methods } else { 0 };
        let heads = bars.iter().flat_map(|bars| (0..heads).map(|_| new_bar(bars, "{msg}"))).collect();
        Self {
            bars,
            heads,
            quiet,
            running: HashMap::new(),
            busy: HashSet::new(),
            tally: Tally::new(planned, jobs),
            before: 0,
            left_out: LeftOut::default(),
            started: Instant::now(),
            told: Instant::now(),
        }
    }

    /// The artifact of a trial that timed out renders.
    pub(crate) fn recovered(&mut self, trial: &TrialId) {
        self.tally.recovered(trial.method());
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &EngineEvent) {
        self.count(event);
        match event {
            EngineEvent::Skipped { trial } => {
                if self.running.contains_key(trial) {
                    // We had been taken for dead.
                    self.end(trial);
                    self.say(&format!(
                        "{trial}: finished by another process meanwhile; our try is kept beside"
                    ));
                }
            }
            EngineEvent::Busy { trial, owner } => {
                // It is looked at again and again.
                if self.busy.insert(trial.clone()) {
                    self.say(&format!("{trial}: is being run by {owner}; waiting for it"));
                }
            }
            EngineEvent::Requested { trial } => {
                self.say(&format!("{trial}: was asked for meanwhile, and is made too"));
            }
            EngineEvent::Missing { trial, source } => {
                self.left_out.missing += 1;
                self.say(&format!("{trial}: left out, since {source} left nothing to start from"));
            }
            EngineEvent::CeilingReached { method, limit, left } => {
                self.left_out.ceiling += left;
                let who = method.as_ref().map_or("the run".to_owned(), |it| format!("method {it}"));
                let what = if *limit == Limit::Cost { "max_cost" } else { "max_tokens" };
                self.say(&format!(
                    "{who} has used up its {what}: {} {} not started",
                    counted(*left, "trial"),
                    agreeing(*left, "is", "are")
                ));
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
                self.end(&outcome.trial);
                let (done, planned) = (self.tally.done(), self.tally.planned());
                self.say(&format!("[{done}/{planned}] {}", describe(outcome)));
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

    /// Counts along.
    fn count(&mut self, event: &EngineEvent) {
        if !matches!(event, EngineEvent::Skipped { .. }) {
            self.tell_what_was_before();
        }
        match event {
            EngineEvent::Skipped { trial } => {
                if self.running.contains_key(trial) {
                    self.tally.stopped(trial.method());
                }
                self.tally.done_elsewhere(trial.method());
                // They come all at once, and may be thousands.
                self.before += 1;
            }
            EngineEvent::Requested { trial } => self.tally.requested(trial.method()),
            EngineEvent::Entered { trial, .. } if !self.running.contains_key(trial) => {
                self.tally.began(trial.method());
            }
            EngineEvent::Finished(outcome) => {
                self.tally.stopped(outcome.trial.method());
                self.tally.ended(outcome);
            }
            EngineEvent::Cancelled { trial } | EngineEvent::Failed { trial, .. } => {
                self.tally.stopped(trial.method());
            }
            _ => {}
        }
    }

    fn tell_what_was_before(&mut self) {
        match std::mem::take(&mut self.before) {
            0 => {}
            before => {
                let (done, planned) = (self.tally.done(), self.tally.planned());
                self.say(&format!(
                    "{} done before, or elsewhere: {done} of {planned} done",
                    counted(before, "trial")
                ));
            }
        }
    }

    /// Nothing more will come.
    pub(crate) fn finish(&mut self) {
        self.tell_what_was_before();
        self.heads.drain(..).for_each(|head| head.finish_and_clear());
    }

    /// Brings what is shown up to date.
    pub(crate) fn tick(&mut self) {
        let line = self.tally.line(self.started.elapsed());
        if self.bars.is_none() && !self.quiet && self.told.elapsed() >= REPORT {
            self.told = Instant::now();
            self.say(&line);
        }
        let lines = std::iter::once(line).chain(self.tally.lines());
        self.heads.iter().zip(lines).for_each(|(head, line)| head.set_message(line));
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
                let _ = bars.println(harmless(text));
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
                let bar = new_bar(bars, "{spinner} {msg}");
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
            None if phase == Phase::Prepare && !self.quiet => eprintln!("{trial}: begins"),
            None => {}
        }
    }

    fn end(&mut self, trial: &TrialId) {
        if let Some(Line { bar: Some(bar), .. }) = self.running.remove(trial) {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(bars: &MultiProgress, template: &str) -> ProgressBar {
    let bar = bars.add(ProgressBar::new_spinner());
    bar.set_style(
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    bar
}

impl Line {
    fn text(&self, trial: &TrialId) -> String {
        let elapsed = self.since.elapsed().as_secs();
        let time = match self.budget {
            Some(budget) => format!("{elapsed}/{} s", budget.as_secs()),
            None => format!("{elapsed} s"),
        };
        let (calls, tokens) = (counted(self.tool_calls, "tool call"), counted(self.tokens, "token"));
        format!("{trial}  {} {time}  {calls}  {tokens}", self.phase)
    }
}

fn describe(outcome: &Outcome) -> String {
    let seconds = outcome.timing.agent_ms.as_secs_f64();
    let calls = counted(outcome.tool_calls, "tool call");
    let overrun =
        outcome.overrun_ms.filter(|ms| *ms >= 0).map(|ms| format!(", frozen {ms} ms after the deadline"));
    let (ending, why) = (outcome.ending.name(), said(&outcome.ending));
    let limit = match outcome.ending {
        Ending::LimitExceeded { limit } => format!(" ({})", word(limit)),
        _ => String::new(),
    };
    format!(
        "{}: {ending}{limit} after {seconds:.1} s, {calls}{}{why}",
        outcome.trial,
        overrun.unwrap_or_default()
    )
}

fn word(limit: Limit) -> &'static str {
    match limit {
        Limit::DiskBytes => "disk",
        Limit::DiskInodes => "files",
        Limit::StreamBytes => "output",
        Limit::Tokens => "tokens",
        Limit::Cost => "cost",
    }
}

/// What was said about an ending, fit for a terminal: an agent's words may hold anything.
fn said(ending: &Ending) -> String {
    ending.message().map(|message| format!(": {}", plain(message))).unwrap_or_default()
}

/// Longest message shown, in characters: a few lines of a terminal.
const PLAIN: usize = 240;

fn plain(message: &str) -> String {
    in_a_line(message).chars().take(PLAIN).collect()
}
