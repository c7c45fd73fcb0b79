//! Several sources into one trace.

use std::collections::{BTreeMap, HashMap};

use super::clock::{ClockEstimate, estimate};
use super::matching::pair;
use super::merge::{drop_copies, make_unique, sessions_as_one, with_stream};
use super::order::{elements, number};
use super::{SourceReport, Trace, UsageDifference, UsageReport};
use crate::sources::lines;
use crate::{Exchange, Format, Moment, Records, SourceClock, Timestamp, Usage};

impl Trace {
    /// Joins sources that tell of the same trial. Of several streams the first counts, of journal and stream the journal.
    pub fn join(sources: Vec<(String, Records)>) -> Self {
        let reports = sources.iter().map(|(name, records)| report(name, records)).collect();
        let agent = sources
            .iter()
            .find_map(|(_, it)| it.format.agent().map(str::to_owned).or_else(|| it.imported_from.clone()));
        // What OpenCode prints comes when a call is over, and holds when it began: beside a journal, which holds the
        // arrivals, it is what session files are of other agents.
        let has_journal = sources.iter().any(|(_, it)| it.format == Format::Proctor);
        let (mut streams, mut sessions): (Vec<_>, Vec<_>) = sources.into_iter().partition(|(_, it)| {
            it.format == Format::Proctor
                || (it.format.is_stream() && !(has_journal && it.format == Format::Opencode))
        });
        streams.sort_by_key(|(_, it)| it.format != Format::Proctor);
        // The agent's own session before those of its sub-agents, earlier ones before later ones.
        sessions.sort_by_key(|(_, it)| (it.meta.agent.is_some(), first_ms(it)));
        let stream = (!streams.is_empty()).then(|| streams.swap_remove(0).1);
        let usage = usage(stream.as_ref(), &sessions);
        let mut trace = Self {
            schema: Self::SCHEMA,
            agent,
            meta: sessions.first().map(|(_, it)| it.meta.clone()).unwrap_or_default(),
            zero: None,
            end_ms: None,
            turns: 0,
            calls: Vec::new(),
            said: Vec::new(),
            exchanges: Vec::new(),
            versions: Vec::new(),
            usage,
            clocks: Vec::new(),
            sources: reports,
        };
        if let Some(stream) = &stream {
            let meta = &mut trace.meta;
            meta.model = meta.model.take().or_else(|| stream.meta.model.clone());
            meta.version = meta.version.take().or_else(|| stream.meta.version.clone());
            meta.session = meta.session.take().or_else(|| stream.meta.session.clone());
            meta.cwd = meta.cwd.take().or_else(|| stream.meta.cwd.clone());
            trace.turns = stream.turns;
            trace.exchanges.clone_from(&stream.exchanges);
            trace.versions.clone_from(&stream.versions);
        }
        trace.turns = sessions
            .iter()
            .filter(|(_, it)| it.meta.agent.is_none())
            .map(|(_, it)| it.turns)
            .max()
            .unwrap_or(0)
            .max(trace.turns);
        trace.fill(stream, sessions);
        trace.difference();
        trace
    }

    fn fill(&mut self, stream: Option<Records>, mut sessions: Vec<(String, Records)>) {
        drop_copies(&mut sessions);
        let mut stream = stream;
        let zero = zero(stream.as_ref(), &sessions);
        self.zero = zero.map(Timestamp::from_millis);
        // On one clock: the stream's, which is the host's.
        if let Some(stream) = &mut stream {
            shift_epoch(stream, zero, 0);
        }
        let first_asked = self.exchanges.first().map(|it| it.start_ms);
        for (name, records) in &mut sessions {
            let clock = clock(name, records, stream.as_ref(), zero, first_asked);
            shift_epoch(records, zero, clock.offset_ms);
            if records.clock == SourceClock::Epoch && stream.is_some() {
                self.clocks.push(clock);
            }
        }
        let last = |records: &Records| records.last.map(|it| it.ms);
        let lasts = stream.iter().filter_map(last).chain(sessions.iter().filter_map(|(_, it)| last(it)));
        self.end_ms = lasts.chain(self.exchanges.iter().filter_map(|it| it.end_ms)).max();
        let elements = if sessions.is_empty() {
            stream.map(|it| elements(it.calls, it.said)).unwrap_or_default()
        } else {
            let mut links = super::merge::Links::default();
            for (_, records) in &sessions {
                links.agents.extend(records.agents.clone());
            }
            let base = sessions_as_one(sessions, &links);
            match stream {
                Some(stream) => with_stream(base, stream),
                None => base.elements,
            }
        };
        let (mut calls, said) = number(elements);
        make_unique(&mut calls);
        (self.calls, self.said) = (calls, said);
    }

    /// Takes in what `model/exchanges.jsonl` knows beyond the journal.
    pub(super) fn add_exchanges(&mut self, bytes: &[u8]) {
        let read = lines::lines(bytes).filter_map(|line| serde_json::from_slice::<Exchange>(line.bytes).ok());
        let mut by_id: BTreeMap<u64, _> = self.exchanges.drain(..).map(|it| (it.exchange, it)).collect();
        by_id.extend(read.map(|it| (it.id, (&it).into())));
        self.exchanges = by_id.into_values().collect();
        self.end_ms = self.end_ms.max(self.exchanges.iter().filter_map(|it| it.end_ms).max());
        self.difference();
    }

    fn difference(&mut self) {
        let mut gateway: Option<Usage> = None;
        for usage in self.exchanges.iter().filter_map(|it| it.usage) {
            *gateway.get_or_insert_default() += usage;
        }
        self.usage.gateway = gateway;
        let less = |a: u64, b: u64| i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX);
        self.usage.difference = self.usage.agent().zip(gateway).map(|(agent, gateway)| UsageDifference {
            input_tokens: less(agent.input_tokens, gateway.input_tokens),
            cached_input_tokens: less(agent.cached_input_tokens, gateway.cached_input_tokens),
            output_tokens: less(agent.output_tokens, gateway.output_tokens),
            reasoning_tokens: less(agent.reasoning_tokens, gateway.reasoning_tokens),
        });
    }
}

/// How the clock of a session file stands to the host's.
fn clock(
    name: &str,
    records: &Records,
    stream: Option<&Records>,
    zero: Option<i64>,
    first_asked: Option<i64>,
) -> ClockEstimate {
    let (Some(stream), Some(zero), SourceClock::Epoch) = (stream, zero, records.clock) else {
        return estimate(name, &[], None);
    };
    // Only arrivals are times of the host's clock.
    let is_host = matches!(stream.clock, SourceClock::AgentStart { zero: Some(_) });
    if !is_host {
        return estimate(name, &[], None);
    }
    let mut pairs = Vec::new();
    let matches = pair(&stream.calls, &records.calls, records.format, &records.patched);
    for (seen, index) in stream.calls.iter().zip(matches) {
        let Some(written) = index.and_then(|index| records.calls.get(index)) else { continue };
        let both = [(written.issued.or(written.start), seen.start), (written.end, seen.end)];
        pairs.extend(
            both.into_iter()
                .filter_map(|(written, arrived)| Some((written?.ms, arrived?.ms.saturating_add(zero)))),
        );
    }
    let first_call = records.calls.iter().find_map(|call| call.issued.or(call.start)).map(|it| it.ms);
    let first = first_call.zip(first_asked.map(|it| it.saturating_add(zero)));
    estimate(name, &pairs, first.filter(|_| records.meta.agent.is_none()))
}

fn report(name: &str, records: &Records) -> SourceReport {
    SourceReport {
        name: name.to_owned(),
        format: Some(records.format),
        counts: records.counts.clone(),
        calls: records.calls.len() as u64,
        error: None,
    }
}

pub(super) fn first_ms(records: &Records) -> Option<i64> {
    let of_calls = records.calls.iter().find_map(|it| it.issued.or(it.start)).map(|it| it.ms);
    let of_words = records.said.iter().find_map(|it| it.at).map(|it| it.ms);
    of_calls.into_iter().chain(of_words).min()
}

/// Tokens of the stream, and of all sessions with each message counted once.
fn usage(stream: Option<&Records>, sessions: &[(String, Records)]) -> UsageReport {
    let mut by_message: HashMap<&str, Usage> = HashMap::new();
    let mut session: Option<Usage> = None;
    for (_, records) in sessions {
        if records.messages.is_empty() {
            if let Some(total) = records.usage.total {
                *session.get_or_insert_default() += total;
            }
        }
        by_message.extend(records.messages.iter().map(|(id, usage)| (id.as_str(), *usage)));
    }
    for usage in by_message.into_values() {
        *session.get_or_insert_default() += usage;
    }
    UsageReport {
        session,
        stream: stream.and_then(|it| it.usage.total),
        stream_is_lower_bound: stream.is_some_and(|it| it.usage.is_lower_bound),
        gateway: None,
        difference: None,
    }
}

/// Milliseconds since the epoch of the start of the agent, or of the first record.
fn zero(stream: Option<&Records>, sessions: &[(String, Records)]) -> Option<i64> {
    if let Some(stream) = stream {
        if let SourceClock::AgentStart { zero } = stream.clock {
            return match zero {
                Some(zero) => Some(zero.as_millis()),
                // Arrivals without a wall time: the start is where no line arrives before it was written.
                None => zero_by_pairs(stream, sessions),
            };
        }
    }
    let epoch = |records: &&Records| records.clock == SourceClock::Epoch;
    let all = stream.into_iter().chain(sessions.iter().map(|(_, it)| it));
    all.filter(epoch).filter_map(first_ms).min()
}

fn zero_by_pairs(stream: &Records, sessions: &[(String, Records)]) -> Option<i64> {
    let mut best = None;
    for (_, records) in sessions.iter().filter(|(_, it)| it.clock == SourceClock::Epoch) {
        let matches = pair(&stream.calls, &records.calls, records.format, &records.patched);
        for (seen, index) in stream.calls.iter().zip(matches) {
            let Some(written) = index.and_then(|index| records.calls.get(index)) else { continue };
            for (written, arrived) in
                [(written.issued.or(written.start), seen.start), (written.end, seen.end)]
            {
                best = best.max(
                    written.zip(arrived).map(|(written, arrived)| written.ms.saturating_sub(arrived.ms)),
                );
            }
        }
    }
    best.or_else(|| sessions.iter().filter_map(|(_, it)| first_ms(it)).min())
}

/// Brings times since the epoch to times since the start.
fn shift_epoch(records: &mut Records, zero: Option<i64>, offset: i64) {
    if records.clock != SourceClock::Epoch {
        return;
    }
    let by = offset.saturating_sub(zero.unwrap_or(0));
    let shift = |moment: &mut Option<Moment>| {
        if let Some(moment) = moment {
            moment.ms = moment.ms.saturating_add(by);
        }
    };
    for call in &mut records.calls {
        shift(&mut call.issued);
        shift(&mut call.start);
        shift(&mut call.end);
        shift(&mut call.returned);
    }
    for said in &mut records.said {
        shift(&mut said.at);
    }
    shift(&mut records.last);
}
