//! Our own `trace.jsonl`, as a source among others.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::Object;
use super::records::{ArtifactVersion, Builder, Finish, Meta, ModelSpan};
use super::{Grammar, SaidKind, SourceClock, Unknown};
use crate::{
    Digest, EventKind, ExchangeEnd, Moment, Nesting, OffsetMs, Source, Timestamp, ToolCall, ToolCallId,
    ToolResult, ToolStatus, TraceEvent, Usage, WireFormat, Witness,
};

pub(crate) struct Journal;

impl Grammar for Journal {
    const WITNESS: Witness = Witness::Stream;

    fn line(&mut self, text: &str, out: &mut Builder) -> bool {
        event(text).map(|event| take(event, out)).is_some()
    }

    fn record(&mut self, record: &Object<'_>, _: Option<Moment>, out: &mut Builder) -> Result<(), Unknown> {
        let unknown = || Unknown(record.text_or_empty("kind").into_owned());
        take(record.to().ok_or_else(unknown)?, out);
        Ok(())
    }
}

/// A line of the kinds of which there are many, with the fields of all of them.
#[derive(Deserialize)]
struct Line<'a> {
    seq: u64,
    #[serde(borrow)]
    at: Cow<'a, str>,
    offset_ms: OffsetMs,
    turn: u32,
    source: Source,
    #[serde(default)]
    untimed: bool,
    kind: Kind,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    input: Option<Value>,
    #[serde(borrow)]
    parent: Option<Text<'a>>,
    /// Of a call a word, of an exchange a number.
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    exit_code: Option<i32>,
    #[serde(borrow)]
    output: Option<Text<'a>>,
    output_bytes: Option<u64>,
    truncated: Option<bool>,
    exchange: Option<u64>,
    wire: Option<WireFormat>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    bytes: Option<u64>,
    end: Option<ExchangeEnd>,
    usage: Option<Usage>,
    digest: Option<Digest>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

/// Text, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl From<Text<'_>> for String {
    fn from(text: Text<'_>) -> Self {
        text.0.into_owned()
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    ToolStarted,
    ToolFinished,
    ModelRequest,
    ModelResponse,
    AgentText,
    Reasoning,
    ArtifactChanged,
    #[serde(other)]
    Another,
}

/// The event, if it is one of those of which there are many, and just as we write it. It is the same that the general reader
/// comes to, which takes several times as long.
fn event(text: &str) -> Option<TraceEvent> {
    let line: Line<'_> = serde_json::from_str(text).ok()?;
    let kind = match line.kind {
        Kind::ToolStarted => EventKind::ToolStarted(ToolCall {
            id: ToolCallId(line.id?.into()),
            name: line.name?.into(),
            input: line.input?,
            parent: line.parent.map(|it| ToolCallId(it.into())),
        }),
        Kind::ToolFinished => EventKind::ToolFinished(ToolResult {
            id: ToolCallId(line.id?.into()),
            status: serde_json::from_str(line.status?.get()).ok()?,
            exit_code: line.exit_code,
            output: line.output?.into(),
            output_bytes: line.output_bytes?,
            truncated: line.truncated?,
        }),
        Kind::ModelRequest => EventKind::ModelRequest {
            exchange: line.exchange?,
            wire: line.wire?,
            model: line.model.map(String::from),
            bytes: line.bytes?,
        },
        Kind::ModelResponse => EventKind::ModelResponse {
            exchange: line.exchange?,
            status: line.status.map(|it| serde_json::from_str(it.get())).transpose().ok()?,
            end: line.end?,
            usage: line.usage,
        },
        Kind::AgentText => EventKind::AgentText { text: line.text?.into() },
        Kind::Reasoning => EventKind::Reasoning { text: line.text?.into() },
        Kind::ArtifactChanged => EventKind::ArtifactChanged { digest: line.digest?, bytes: line.bytes? },
        Kind::Another => return None,
    };
    Some(TraceEvent {
        seq: line.seq,
        at: super::fast_epoch_ms(line.at.as_bytes())
            .map(Timestamp::from_millis)
            .or_else(|| Timestamp::parse(&line.at))?,
        offset_ms: line.offset_ms,
        turn: line.turn,
        source: line.source,
        untimed: line.untimed,
        kind,
    })
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
        EventKind::Imported { agent, version, model, session, cwd } => {
            out.records.imported_from = agent;
            out.records.meta = Meta { session, version, model, cwd, ..Meta::default() };
        }
        EventKind::TurnStarted => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_comes_to_the_same_as_the_general_one() {
        let head = r#""seq":3,"at":"2026-11-30T10:00:00.123Z","offset_ms":-5,"turn":1"#;
        let kinds = [
            r#""source":"agent_stream","kind":"tool_started","id":"c1","name":"Bash","input":{"command":"a\nb","n":[1.5,null]}"#,
            r#""source":"session_file","kind":"tool_started","id":"c\u00e9","name":"x","input":null,"parent":"p"}"#,
            r#""source":"agent_stream","untimed":true,"kind":"tool_finished","id":"c1","status":"failed","exit_code":-1,"output":"é\"","output_bytes":3,"truncated":true"#,
            r#""source":"agent_stream","kind":"tool_finished","id":"c1","status":"ok","exit_code":null,"output":"","output_bytes":0,"truncated":false"#,
            r#""source":"agent_stream","kind":"tool_finished","id":"c1","status":"declined","output":"","output_bytes":0,"truncated":false"#,
            r#""source":"gateway","kind":"model_request","exchange":7,"wire":"anthropic_messages","model":null,"bytes":9"#,
            r#""source":"gateway","kind":"model_response","exchange":7,"status":200,"end":"complete","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3,"reasoning_tokens":4}"#,
            r#""source":"gateway","kind":"model_response","exchange":7,"status":null,"end":"deadline","usage":null"#,
            r#""source":"agent_stream","kind":"agent_text","text":"hello"#,
            r#""source":"agent_stream","kind":"agent_text","text":"hello""#,
            r#""source":"watcher","kind":"artifact_changed","digest":"DIGEST","bytes":4"#,
            r#""source":"watcher","kind":"artifact_changed","digest":"sha256:beef","bytes":4"#,
            // What neither of them takes.
            r#""source":"agent_stream","kind":"agent_text","text":7"#,
            r#""source":"nobody","kind":"agent_text","text":"x""#,
            r#""source":"agent_stream","kind":"tool_started","id":7,"name":"x","input":{}"#,
            r#""source":"agent_stream","kind":"tool_finished","id":"c1","status":"ok","exit_code":1.5,"output":"","output_bytes":0,"truncated":false"#,
            r#""source":"agent_stream","kind":"tool_finished","id":"c1","status":"ok","output":"\ud800","output_bytes":-1,"truncated":false"#,
            r#""source":"gateway","kind":"model_request","exchange":7,"wire":"morse","model":null,"bytes":9"#,
        ];
        let mut short = 0;
        for kind in kinds {
            let kind = kind.replace("DIGEST", &Digest::of(b"x").to_string());
            let line = format!("{{{head},{kind}}}");
            let Some(record) = Object::parse(&line) else { continue };
            let general: Option<TraceEvent> = record.to();
            if let Some(event) = event(&line) {
                assert_eq!(Some(event), general, "{line}");
                short += 1;
            }
        }
        // All but the one without input, and what is no event at all.
        assert_eq!(short, 9);
    }
}
