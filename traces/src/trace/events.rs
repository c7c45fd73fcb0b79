//! A trace as lines of a journal.

use std::collections::BTreeMap;

use crate::{
    Call, EventKind, ExchangeEnd, Meta, Moment, Nesting, OffsetMs, SaidKind, Source, Timestamp, ToolCall,
    ToolDetail, ToolResult, ToolStatus, Trace, TraceEvent, WireFormat, Witness,
};

/// An event that waits for its time.
struct Waiting {
    ms: i64,
    turn: u32,
    source: Source,
    kinds: Vec<EventKind>,
}

impl Trace {
    /// The trace as events of a `trace.jsonl`, in an order that keeps the causal order of calls and words; reading them
    /// again gives the same trace, but for what files say of themselves.
    pub fn to_events(&self) -> Vec<TraceEvent> {
        let mut waiting: BTreeMap<(i64, usize), Waiting> =
            self.aside().into_iter().enumerate().map(|(index, it)| ((it.ms, index), it)).collect();
        let asides = waiting.len();
        let mut out = Out { zero: self.zero, events: Vec::new() };
        let Meta { session, version, model, cwd, .. } = self.meta.clone();
        out.push(None, 1, EventKind::Imported { agent: self.agent.clone(), version, model, session, cwd });
        let mut calls = self.calls.iter().peekable();
        let mut said = self.said.iter().peekable();
        let mut turn = 0;
        loop {
            let call_is_next = match (calls.peek(), said.peek()) {
                (Some(call), Some(said)) => call.seq < said.seq,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            let (at, its_turn) = if call_is_next {
                calls.peek().map_or((None, 1), |call| (call.start, call.turn))
            } else {
                said.peek().map_or((None, 1), |said| (said.at, said.turn))
            };
            if let Some(at) = at {
                while let Some(due) = waiting.first_entry().filter(|it| it.key().0 < at.ms) {
                    out.push_waiting(due.remove());
                }
            }
            if its_turn > turn {
                turn = its_turn;
                out.push(at, turn, EventKind::TurnStarted);
            }
            if call_is_next {
                if let Some(call) = calls.next() {
                    out.push(call.start, call.turn, started(call));
                    match call.end.filter(|_| call.status != ToolStatus::Unfinished) {
                        Some(end) => {
                            let place = (end.ms, asides + waiting.len() + out.events.len());
                            waiting.insert(place, end_of(call, end));
                        }
                        None => out.push_finish(call),
                    }
                }
            } else if let Some(said) = said.next() {
                let text = said.text.clone();
                let kind = match said.kind {
                    SaidKind::Prompt => EventKind::Prompt { text },
                    SaidKind::Text => EventKind::AgentText { text },
                    SaidKind::Reasoning => EventKind::Reasoning { text },
                    SaidKind::Notice => EventKind::Notice { text },
                    SaidKind::Raw => EventKind::Raw { text },
                };
                out.push(said.at, said.turn, kind);
            }
        }
        for due in waiting.into_values() {
            out.push_waiting(due);
        }
        let end = self.end_ms.map(|ms| Moment { ms, by: Witness::Guest });
        out.push(end, turn.max(1), EventKind::TurnFinished { usage: self.usage.agent() });
        out.events
    }

    /// What has a time of its own and no place in the causal order.
    fn aside(&self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for span in &self.exchanges {
            let request = EventKind::ModelRequest {
                exchange: span.exchange,
                wire: span.wire.unwrap_or(WireFormat::OpenaiChat),
                model: span.model.clone(),
                bytes: 0,
            };
            waiting.push(Waiting {
                ms: span.start_ms,
                turn: 1,
                source: Source::Gateway,
                kinds: vec![request],
            });
            let Some(ms) = span.end_ms else { continue };
            let response = EventKind::ModelResponse {
                exchange: span.exchange,
                status: span.status,
                end: span.end.unwrap_or(ExchangeEnd::Deadline),
                usage: span.usage,
            };
            waiting.push(Waiting { ms, turn: 1, source: Source::Gateway, kinds: vec![response] });
        }
        for version in &self.versions {
            let kind = EventKind::ArtifactChanged { digest: version.digest, bytes: version.bytes };
            waiting.push(Waiting { ms: version.ms, turn: 1, source: Source::Watcher, kinds: vec![kind] });
        }
        waiting
    }
}

struct Out {
    zero: Option<Timestamp>,
    events: Vec<TraceEvent>,
}

impl Out {
    fn push(&mut self, at: Option<Moment>, turn: u32, kind: EventKind) {
        let ms = at.map_or(0, |it| it.ms);
        let zero = self.zero.map_or(0, Timestamp::as_millis);
        self.events.push(TraceEvent {
            seq: self.events.len() as u64,
            at: Timestamp::from_millis(zero.saturating_add(ms)),
            offset_ms: OffsetMs(ms),
            turn,
            source: at.map_or(Source::SessionFile, |it| source(it.by)),
            untimed: at.is_none(),
            kind,
        });
    }

    fn push_waiting(&mut self, due: Waiting) {
        let turn = due.turn;
        for kind in due.kinds {
            let seq = self.events.len() as u64;
            let zero = self.zero.map_or(0, Timestamp::as_millis);
            let at = Timestamp::from_millis(zero.saturating_add(due.ms));
            let (offset_ms, source) = (OffsetMs(due.ms), due.source);
            self.events.push(TraceEvent { seq, at, offset_ms, turn, source, untimed: false, kind });
        }
    }

    /// The end of a call that has none, or whose end has no time.
    fn push_finish(&mut self, call: &Call) {
        self.push(None, call.turn, finished(call));
        if let Some(detail) = detail(call) {
            self.push(None, call.turn, detail);
        }
    }
}

/// The end of a call; it waits until its time, and never comes before the call itself.
fn end_of(call: &Call, end: Moment) -> Waiting {
    let kinds = [Some(finished(call)), detail(call)].into_iter().flatten().collect();
    Waiting { ms: end.ms, turn: call.turn, source: source(end.by), kinds }
}

fn source(witness: Witness) -> Source {
    match witness {
        Witness::Stream | Witness::StreamRecord => Source::AgentStream,
        Witness::SessionFile => Source::SessionFile,
        Witness::Gateway => Source::Gateway,
        Witness::Watcher => Source::Watcher,
        Witness::Guest => Source::Runner,
    }
}

fn started(call: &Call) -> EventKind {
    EventKind::ToolStarted(ToolCall {
        id: call.id.clone(),
        name: call.name.clone(),
        input: call.input.clone(),
        parent: call.parent.clone(),
    })
}

fn finished(call: &Call) -> EventKind {
    EventKind::ToolFinished(ToolResult {
        id: call.id.clone(),
        status: call.status,
        exit_code: call.exit_code,
        output: call.output.clone(),
        output_bytes: call.output_bytes,
        truncated: call.truncated,
    })
}

fn detail(call: &Call) -> Option<EventKind> {
    let offset = |at: Option<Moment>| at.map(|it| OffsetMs(it.ms));
    let cut_off = call.end.filter(|_| call.status == ToolStatus::Unfinished);
    let detail = ToolDetail {
        id: call.id.clone(),
        nesting: Some(call.nesting).filter(|it| *it != Nesting::Top),
        agent: call.agent.clone(),
        polls: call.polls.clone(),
        issued_ms: offset(call.issued),
        returned_ms: offset(call.returned),
        cut_off_ms: offset(cut_off),
        images: call.images.clone(),
    };
    let says_nothing = ToolDetail { id: call.id.clone(), ..ToolDetail::default() };
    (detail != says_nothing).then_some(EventKind::ToolDetail(detail))
}
