//! OTLP JSON (OpenTelemetry protocol, JSON encoding): ids in hex, times as decimal strings of nanoseconds. Names of spans
//! and attributes are those of the semantic conventions for generative AI.

use serde_json::{Value, json};

use crate::{Call, Digest, ModelSpan, ToolStatus, Trace};

/// Kinds and codes of the protocol.
const INTERNAL: u32 = 1;
const CLIENT: u32 = 3;
const OK: u32 = 1;
const ERROR: u32 = 2;

pub(super) fn export(trace: &Trace, label: &str) -> Value {
    let ids = Ids { label };
    let agent = trace.agent.as_deref().unwrap_or("agent");
    let first = first_ms(trace);
    let last = trace.end_ms.unwrap_or(first).max(first);
    let mut attributes = vec![
        text("gen_ai.operation.name", "invoke_agent"),
        text("gen_ai.agent.name", agent),
        text("proctor.trial", label),
    ];
    if let Some(session) = &trace.meta.session {
        attributes.push(text("gen_ai.conversation.id", session));
    }
    if let Some(model) = &trace.meta.model {
        attributes.push(text("gen_ai.request.model", model));
    }
    if let Some(usage) = trace.usage.total() {
        attributes.push(number("gen_ai.usage.input_tokens", usage.input_tokens));
        attributes.push(number("gen_ai.usage.output_tokens", usage.output_tokens));
        attributes.push(number("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens));
    }
    let root = json!({
        "traceId": ids.trace(), "spanId": ids.span("root"), "name": format!("invoke_agent {agent}"), "kind": INTERNAL,
        "startTimeUnixNano": nanos(trace, first), "endTimeUnixNano": nanos(trace, last), "attributes": attributes,
        "events": versions(trace), "status": {},
    });
    let mut spans = vec![root];
    spans.extend(trace.exchanges.iter().map(|exchange| chat(trace, exchange, last, &ids)));
    let mut at = first;
    for call in &trace.calls {
        at = call.start.map_or(at, |it| it.ms);
        spans.push(tool(trace, call, at, last, &ids));
    }
    json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", agent)]},
        "scopeSpans": [{"scope": {"name": "proctor"}, "spans": spans}],
    }]})
}

fn first_ms(trace: &Trace) -> i64 {
    let calls = trace.calls.iter().filter_map(|it| it.start).map(|it| it.ms);
    let exchanges = trace.exchanges.iter().map(|it| it.start_ms);
    calls.chain(exchanges).chain([0]).min().unwrap_or(0)
}

fn chat(trace: &Trace, exchange: &ModelSpan, last: i64, ids: &Ids<'_>) -> Value {
    let model = exchange.model.as_deref().unwrap_or("unknown");
    let mut attributes = vec![text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", model)];
    if let Some(usage) = exchange.usage {
        attributes.push(number("gen_ai.usage.input_tokens", usage.input_tokens));
        attributes.push(number("gen_ai.usage.output_tokens", usage.output_tokens));
    }
    if let Some(status) = exchange.status {
        attributes.push(number("http.response.status_code", u64::from(status)));
    }
    let failed = exchange.status.is_none_or(|status| status >= 400);
    json!({
        "traceId": ids.trace(), "spanId": ids.span(&format!("exchange {}", exchange.exchange)), "parentSpanId": ids.span("root"),
        "name": format!("chat {model}"), "kind": CLIENT, "startTimeUnixNano": nanos(trace, exchange.start_ms),
        "endTimeUnixNano": nanos(trace, exchange.end_ms.unwrap_or(last).max(exchange.start_ms)), "attributes": attributes,
        "status": {"code": if failed { ERROR } else { OK }},
    })
}

/// A call; one whose time nobody knows stands where the call before it stands, and says so.
fn tool(trace: &Trace, call: &Call, at: i64, last: i64, ids: &Ids<'_>) -> Value {
    let status = serde_json::to_value(call.status).unwrap_or_default();
    let mut attributes = vec![
        text("gen_ai.operation.name", "execute_tool"),
        text("gen_ai.tool.name", &call.name),
        text("gen_ai.tool.call.id", &call.id.0),
        text("gen_ai.tool.type", "function"),
        text("gen_ai.tool.call.arguments", &call.input.to_string()),
        text("proctor.status", status.as_str().unwrap_or_default()),
        number("proctor.output_bytes", call.output_bytes),
    ];
    if let Some(code) = call.exit_code {
        attributes.push(json!({"key": "process.exit.code", "value": {"intValue": code.to_string()}}));
    }
    if call.start.is_none() {
        attributes.push(json!({"key": "proctor.untimed", "value": {"boolValue": true}}));
    }
    let end = match (call.end, call.start) {
        (Some(end), _) => end.ms,
        (None, Some(_)) => last,
        (None, None) => at,
    };
    let parent = call.parent.as_ref().filter(|parent| trace.call(parent).is_some());
    let parent = parent.map_or_else(|| ids.span("root"), |parent| ids.span(&parent.0));
    let code = match call.status {
        ToolStatus::Ok => json!({"code": OK}),
        ToolStatus::Failed => json!({"code": ERROR}),
        ToolStatus::Declined => json!({"code": ERROR, "message": "declined"}),
        ToolStatus::Unfinished => json!({"code": ERROR, "message": "unfinished"}),
    };
    json!({
        "traceId": ids.trace(), "spanId": ids.span(&call.id.0), "parentSpanId": parent,
        "name": format!("execute_tool {}", call.name), "kind": INTERNAL, "startTimeUnixNano": nanos(trace, at),
        "endTimeUnixNano": nanos(trace, end.max(at)), "attributes": attributes, "status": code,
    })
}

fn versions(trace: &Trace) -> Vec<Value> {
    let event = |ms, digest: &Digest, bytes| {
        json!({"timeUnixNano": nanos(trace, ms), "name": "artifact_changed",
            "attributes": [text("proctor.digest", &digest.to_string()), number("proctor.bytes", bytes)]})
    };
    trace.versions.iter().map(|it| event(it.ms, &it.digest, it.bytes)).collect()
}

fn nanos(trace: &Trace, ms: i64) -> String {
    let epoch = trace.zero.map_or(0, crate::Timestamp::as_millis).saturating_add(ms);
    (i128::from(epoch.max(0)) * 1_000_000).to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

/// Ids by digest, so that exporting twice gives the same.
struct Ids<'a> {
    label: &'a str,
}

impl Ids<'_> {
    fn trace(&self) -> String {
        Digest::of(self.label.as_bytes()).hex().chars().take(32).collect()
    }

    fn span(&self, name: &str) -> String {
        Digest::of(format!("{}\0{name}", self.label).as_bytes()).hex().chars().take(16).collect()
    }
}
