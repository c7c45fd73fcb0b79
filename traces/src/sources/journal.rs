//! Our own `trace.jsonl`, as a source among others.

use super::json::Object;
use super::records::{ArtifactVersion, Builder, Finish, ModelSpan};
use super::{Grammar, SaidKind, SourceClock, Unknown};
use crate::{EventKind, Moment, Nesting, OffsetMs, Source, Timestamp, ToolStatus, TraceEvent, Witness};

pub(crate) struct Journal;

impl Grammar for Journal {
    const WITNESS: Witness = Witness::Stream;

    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        let unknown = || Unknown(record.text_or_empty("kind").into_owned());
        let event: TraceEvent = record.to().ok_or_else(unknown)?;
        take(event, out);
        Ok(())
    }
}

fn witness(source: Source) -> Witness {
    match source {
        Source::AgentStream => Witness::Stream,
        Source::SessionFile => Witness::SessionFile,
        Source::Gateway => Witness::Gateway,
        Source::Watcher => Witness::Watcher,
        Source::Guest | Source::Runner => Witness::Guest,
    }
}

fn take(event: TraceEvent, out: &mut Builder) {
    let ms = event.offset_ms.0;
    let is_unset = matches!(out.records.clock, SourceClock::None | SourceClock::AgentStart { zero: None });
    if is_unset && !event.untimed {
        let zero = event.at.as_millis().saturating_sub(ms);
        out.records.clock = SourceClock::AgentStart { zero: Some(Timestamp::from_millis(zero)) };
    }
    let moment = Moment { ms, by: witness(event.source) };
    let at = Some(moment).filter(|_| !event.untimed);
    out.touch(at);
    out.turn = event.turn;
    out.records.turns = out.records.turns.max(event.turn);
    match event.kind {
        EventKind::AgentText { text } => out.say(SaidKind::Text, &text, at, None),
        EventKind::Reasoning { text } => out.say(SaidKind::Reasoning, &text, at, None),
        EventKind::Prompt { text } => out.say(SaidKind::Prompt, &text, at, None),
        EventKind::Notice { text } => out.say(SaidKind::Notice, &text, at, None),
        EventKind::Raw { text } => out.say(SaidKind::Raw, &text, at, None),
        EventKind::ToolStarted(started) => {
            let key = started.id.0;
            let call = out.start(&key, &started.name, started.input, at);
            call.seen_by = vec![moment.by];
            call.parent = started.parent;
            if call.parent.is_some() {
                call.nesting = Nesting::SubAgent;
            }
        }
        EventKind::ToolFinished(result) => {
            let is_over = result.status != ToolStatus::Unfinished;
            let finish = Finish {
                status: result.status,
                exit_code: result.exit_code,
                output: result.output,
                bytes: Some(result.output_bytes),
                images: Vec::new(),
                // What was still at work at the end had none.
                at: at.filter(|_| is_over),
            };
            let call = out.finish(&result.id.0, finish);
            call.truncated |= result.truncated;
        }
        EventKind::ToolDetail(detail) => {
            let moment = |ms: Option<OffsetMs>| ms.map(|ms| Moment { ms: ms.0, ..moment });
            let Some(call) = out.call(&detail.id.0) else { return };
            call.nesting = detail.nesting.unwrap_or(call.nesting);
            call.agent = detail.agent;
            call.polls = detail.polls;
            call.issued = moment(detail.issued_ms);
            call.returned = moment(detail.returned_ms);
            call.end = call.end.or(moment(detail.cut_off_ms));
            call.images = detail.images;
        }
        EventKind::ModelRequest { exchange, wire, model, .. } => {
            out.records.exchanges.push(ModelSpan {
                exchange,
                start_ms: ms,
                first_byte_ms: None,
                end_ms: None,
                wire: Some(wire),
                model,
                status: None,
                end: None,
                usage: None,
            });
        }
        EventKind::ModelResponse { exchange, status, end, usage } => {
            let spans = &mut out.records.exchanges;
            if let Some(span) = spans.iter_mut().rev().find(|span| span.exchange == exchange) {
                span.end_ms = Some(ms);
                span.status = status;
                span.end = Some(end);
                span.usage = usage;
            }
        }
        EventKind::ArtifactChanged { digest, bytes } => {
            out.records.versions.push(ArtifactVersion { ms, digest, bytes });
        }
        EventKind::TurnFinished { usage } => {
            if let Some(usage) = usage {
                *out.records.usage.total.get_or_insert_default() += usage;
            }
        }
        EventKind::TurnStarted => {}
    }
}
