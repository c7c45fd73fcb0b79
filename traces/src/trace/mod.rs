//! A trace: all that is known of what an agent did, from every witness, as one.

mod clock;
mod events;
mod join;
mod matching;
mod merge;
mod order;
mod session;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clock::ClockEstimate;
pub use session::{Parties, Party};

use crate::sources::{self, SourceError};
use crate::{
    Arrivals, ArtifactVersion, Call, Counts, Format, Meta, ModelSpan, Records, Said, Timestamp, ToolCallId,
    ToolStatus, Usage,
};

/// What happened in one trial or session. All times are milliseconds since the agent was started, or since the first
/// record where that start is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Version of this form.
    pub schema: u32,
    /// Name of the agent CLI, where it is known.
    pub agent: Option<String>,
    /// What the agent's own records say of themselves.
    pub meta: Meta,
    /// Wall time of millisecond 0; none if no source has times.
    pub zero: Option<Timestamp>,
    /// The last moment that is known.
    pub end_ms: Option<i64>,
    /// Turns.
    pub turns: u32,
    /// Every tool call once, in causal order.
    pub calls: Vec<Call>,
    /// What was said, in causal order; it shares `seq` with the calls.
    pub said: Vec<Said>,
    /// Model requests, in order of arrival.
    pub exchanges: Vec<ModelSpan>,
    /// Versions of the artifact, in order.
    pub versions: Vec<ArtifactVersion>,
    /// Tokens.
    pub usage: UsageReport,
    /// How the clocks of the sources stand to that of the host.
    pub clocks: Vec<ClockEstimate>,
    /// The sources.
    pub sources: Vec<SourceReport>,
}

/// Tokens by each who counted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// As the agent's session files count them, each message once.
    pub session: Option<Usage>,
    /// As the agent printed them.
    pub stream: Option<Usage>,
    /// Whether the printed count is only a lower bound: the stream broke off.
    pub stream_is_lower_bound: bool,
    /// As the model server counted them, by the gateway's record.
    pub gateway: Option<Usage>,
    /// The agent's count (of its session, else of its stream) less the gateway's; none if one of the two is missing.
    pub difference: Option<UsageDifference>,
}

impl UsageReport {
    /// The count that stands for the trace wherever there is one number: the gateway's, which sees every request, where there
    /// was one; else the agent's.
    pub fn total(&self) -> Option<Usage> {
        self.gateway.or(self.agent())
    }

    /// The agent's own count: that of its session files, which also know of messages that it did not live to print.
    pub fn agent(&self) -> Option<Usage> {
        self.session.or(self.stream)
    }
}

/// A difference of two counts of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageDifference {
    /// Prompt tokens.
    pub input_tokens: i64,
    /// Cached prompt tokens.
    pub cached_input_tokens: i64,
    /// Generated tokens.
    pub output_tokens: i64,
    /// Generated tokens that were reasoning.
    pub reasoning_tokens: i64,
}

/// A source of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceReport {
    /// Its file.
    pub name: String,
    /// Its format; none if it could not be read.
    pub format: Option<Format>,
    /// What was met in it.
    pub counts: Counts,
    /// Calls that it tells of.
    pub calls: u64,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A file that tells of a trial.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name, for reports.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Its format, if that is not to be told from the content.
    pub format: Option<Format>,
    /// When its lines arrived.
    pub arrivals: Option<Arrivals>,
}

/// No trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A file that was asked for by name cannot be read.
    #[error("{name}: {source}")]
    Source {
        /// The file.
        name: String,
        /// Why.
        source: SourceError,
    },
    /// Files that were named together are of different sessions.
    #[error("these are of {} sessions, and a trace is of one: {parties}", parties.0.len())]
    Strangers {
        /// One file of each.
        parties: Parties,
    },
    /// Several files of one session are what its agent printed.
    #[error(
        "only one of these can be joined, as each is all that an agent printed or a trace of its own: {parties}"
    )]
    Streams {
        /// The files of the session.
        parties: Parties,
    },
    /// There is nothing to read.
    #[error("there is no record of what the agent did")]
    Nothing,
}

/// Files that could not be read, and why.
type Failed = Vec<(String, SourceError)>;

/// Each file by itself.
fn parsed(files: &[SourceFile]) -> (Vec<(String, Records)>, Failed) {
    let mut read = Vec::new();
    let mut failed = Vec::new();
    for file in files {
        match sources::read(&file.bytes, file.format, file.arrivals.as_ref()) {
            Ok(records) => read.push((file.name.clone(), records)),
            Err(error) => failed.push((file.name.clone(), error)),
        }
    }
    (read, failed)
}

impl Trace {
    /// Version of this form.
    pub const SCHEMA: u32 = 1;

    /// Reads and joins files. One that cannot be read is reported in [`Trace::sources`], unless none can.
    ///
    /// `exchanges` are the lines of `model/exchanges.jsonl`, which know more of a request than the journal does.
    pub fn read(files: &[SourceFile], exchanges: Option<&[u8]>) -> Result<Self, TraceError> {
        let (read, failed) = parsed(files);
        Self::of_parsed(read, failed, exchanges)
    }

    fn of_parsed(
        read: Vec<(String, Records)>,
        failed: Failed,
        exchanges: Option<&[u8]>,
    ) -> Result<Self, TraceError> {
        if read.is_empty() {
            let mut failed = failed.into_iter();
            return Err(match failed.next() {
                Some((name, source)) => TraceError::Source { name, source },
                None => TraceError::Nothing,
            });
        }
        let mut trace = Self::join(read);
        trace.sources.extend(failed.into_iter().map(|(name, error)| SourceReport {
            name,
            format: None,
            counts: Counts::default(),
            calls: 0,
            error: Some(error.to_string()),
        }));
        if let Some(lines) = exchanges {
            trace.add_exchanges(lines);
        }
        Ok(trace)
    }

    /// The trace of one source.
    pub fn of_records(name: &str, records: Records) -> Self {
        Self::join(vec![(name.to_owned(), records)])
    }

    /// The call of this name.
    pub fn call(&self, id: &ToolCallId) -> Option<&Call> {
        self.calls.iter().find(|call| call.id == *id)
    }

    /// The calls made inside `id`, in order.
    pub fn children<'a>(&'a self, id: &'a ToolCallId) -> impl Iterator<Item = &'a Call> {
        self.calls.iter().filter(move |call| call.parent.as_ref() == Some(id))
    }

    /// Calls of the agent and its sub-agents, without the operations of programs.
    pub fn outer_calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.is_outer())
    }

    /// Numbers of calls.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for call in &self.calls {
            if call.is_outer() {
                tally.outer += 1;
                *tally.by_tool.entry(call.name.clone()).or_default() += 1;
            } else {
                tally.inner += 1;
            }
            tally.unfinished += u64::from(call.status == ToolStatus::Unfinished);
            tally.failed += u64::from(call.status == ToolStatus::Failed);
            tally.images += u64::from(call.is_outer()) * call.images.len() as u64;
        }
        tally
    }

    /// Time in which at least one outer call was at work, in milliseconds.
    pub fn tool_time_ms(&self) -> u64 {
        let spans = self
            .outer_calls()
            .filter_map(|call| Some((call.start?.ms, call.end.map_or(self.end_ms, |it| Some(it.ms))?)));
        covered(spans.collect())
    }

    /// Time in which at least one model request was under way, in milliseconds.
    pub fn model_time_ms(&self) -> u64 {
        let spans = self.exchanges.iter().filter_map(|it| Some((it.start_ms, it.end_ms.or(self.end_ms)?)));
        covered(spans.collect())
    }
}

/// Numbers of calls in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Calls of the agent and its sub-agents.
    pub outer: u64,
    /// Operations of programs.
    pub inner: u64,
    /// Calls that were still at work when they were cut off.
    pub unfinished: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Pictures put before the model by outer calls.
    pub images: u64,
    /// Outer calls by tool.
    pub by_tool: BTreeMap<String, u64>,
}

/// Length of the union of spans.
fn covered(mut spans: Vec<(i64, i64)>) -> u64 {
    spans.sort_unstable();
    let mut total: u64 = 0;
    let mut reach = i64::MIN;
    for (start, end) in spans {
        let from = start.max(reach);
        total = total.saturating_add(u64::try_from(end.saturating_sub(from)).unwrap_or(0));
        reach = reach.max(end);
    }
    total
}
