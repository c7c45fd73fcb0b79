//! Trace events of Chrome (JSON object format), which Perfetto and `chrome://tracing` show. Times are microseconds. A lane
//! holds what does not overlap; more lanes are opened as calls run in parallel.

use serde_json::{Value, json};

use crate::{Call, SaidKind, Trace};

const PROCESS: u32 = 1;
/// Lanes of calls count from here; below are the others.
const CALLS: u32 = 10;
const INNER: u32 = 100;

pub(super) fn export(trace: &Trace, label: &str) -> Value {
    let mut events = vec![
        json!({"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": label}}),
        lane(1, "turns and words"),
        lane(2, "model"),
        lane(3, "artifact"),
    ];
    for said in trace.said.iter().filter(|it| it.kind != SaidKind::Raw) {
        let Some(at) = said.at else { continue };
        let name: String = said.text.chars().take(80).collect();
        let kind = serde_json::to_value(said.kind).unwrap_or_default();
        events.push(json!({"ph": "i", "s": "t", "pid": PROCESS, "tid": 1, "ts": micros(at.ms), "name": name, "cat": kind, "args": {"text": said.text}}));
    }
    for exchange in &trace.exchanges {
        let end = exchange.end_ms.or(trace.end_ms).unwrap_or(exchange.start_ms);
        let name = exchange.model.as_deref().unwrap_or("model");
        let args = json!({"exchange": exchange.exchange, "status": exchange.status, "usage": exchange.usage});
        events.push(span(2, exchange.start_ms, end, name, "model", &args));
    }
    for version in &trace.versions {
        let args = json!({"digest": version.digest, "bytes": version.bytes});
        events.push(json!({"ph": "i", "s": "p", "pid": PROCESS, "tid": 3, "ts": micros(version.ms), "name": "artifact changed", "cat": "artifact", "args": args}));
    }
    calls(trace, CALLS, true, &mut events);
    calls(trace, INNER, false, &mut events);
    json!({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"producer": "proctor", "zero": trace.zero}})
}

fn calls(trace: &Trace, first: u32, is_outer: bool, events: &mut Vec<Value>) {
    let mut free: Vec<i64> = Vec::new();
    let mut timed: Vec<(i64, i64, &Call)> = trace
        .calls
        .iter()
        .filter(|call| call.is_outer() == is_outer)
        .filter_map(|call| {
            let start = call.start?.ms;
            let end = call.end.map(|it| it.ms).or(trace.end_ms).unwrap_or(start).max(start);
            Some((start, end, call))
        })
        .collect();
    timed.sort_by_key(|(start, _, call)| (*start, call.seq));
    for (start, end, call) in timed {
        let found = free.iter().position(|until| *until <= start).unwrap_or(free.len());
        if found == free.len() {
            free.push(end);
        }
        free[found] = end;
        let tid = first + u32::try_from(found).unwrap_or(0);
        let title = call.command().or_else(|| call.path().map(str::to_owned)).unwrap_or_default();
        let title: String = format!("{} {title}", call.name).chars().take(100).collect();
        let args = json!({
            "id": call.id, "input": call.input, "status": call.status, "exit_code": call.exit_code, "output_bytes": call.output_bytes,
            "parent": call.parent, "agent": call.agent, "images": call.images,
        });
        events.push(span(tid, start, end, title.trim_end(), "tool", &args));
    }
    for index in 0..free.len() {
        let number = u32::try_from(index).unwrap_or(0);
        let name = if is_outer { "calls" } else { "operations of programs" };
        events.push(lane(first + number, &format!("{name} {}", number + 1)));
    }
}

fn lane(tid: u32, name: &str) -> Value {
    json!({"ph": "M", "pid": PROCESS, "tid": tid, "name": "thread_name", "args": {"name": name}})
}

fn span(tid: u32, start: i64, end: i64, name: &str, category: &str, args: &Value) -> Value {
    let lasted = micros(end.saturating_sub(start)).max(1);
    json!({"ph": "X", "pid": PROCESS, "tid": tid, "ts": micros(start), "dur": lasted, "name": name, "cat": category, "args": args})
}

fn micros(ms: i64) -> i64 {
    ms.saturating_mul(1000)
}
