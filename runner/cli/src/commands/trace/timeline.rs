//! A trace for people: one line for each thing, no wider than 100 columns, and nothing in it that a terminal would obey.

use proctor_report::counted;
use proctor_traces::{Call, ExchangeEnd, ModelSpan, Nesting, Said, SaidKind, ToolKind, ToolStatus, Trace};
use unicode_width::UnicodeWidthChar as _;

use crate::printing::in_a_line;

const WIDTH: usize = 100;
/// Columns of time, mark and tool, and what stands behind the text.
const HEAD: usize = 30;
const TAIL: usize = 10;

/// A line with its place: time for what has no place in the causal order, else that place.
struct Line {
    ms: Option<i64>,
    text: String,
}

/// The timeline of a trace, with a head and a sum.
pub(super) fn lines(trace: &Trace, with_model: bool) -> Vec<String> {
    let mut in_order: Vec<(u32, Line)> = Vec::new();
    for call in &trace.calls {
        let ms = call.issued.or(call.start).map(|it| it.ms);
        in_order.push((call.seq, Line { ms, text: of_call(trace, call) }));
    }
    for said in &trace.said {
        in_order.push((said.seq, Line { ms: said.at.map(|it| it.ms), text: of_said(said) }));
    }
    in_order.sort_by_key(|(seq, _)| *seq);
    let mut aside: Vec<Line> = trace
        .versions
        .iter()
        .map(|version| {
            let text = format!("artifact {}, {} bytes", version.digest.short(), version.bytes);
            Line { ms: Some(version.ms), text: line(Some(version.ms), '◆', "artifact", 0, &text, "") }
        })
        .collect();
    if with_model {
        aside.extend(trace.exchanges.iter().map(|it| Line { ms: Some(it.start_ms), text: of_exchange(it) }));
    }
    aside.sort_by_key(|line| line.ms);
    let mut aside = aside.into_iter().peekable();
    let mut all = head(trace);
    for (_, line) in in_order {
        if line.ms.is_some() {
            while let Some(before) = aside.next_if(|it| it.ms < line.ms) {
                all.push(before.text);
            }
        }
        all.push(line.text);
    }
    all.extend(aside.map(|line| line.text));
    all
}

fn head(trace: &Trace) -> Vec<String> {
    let tally = trace.tally();
    let mut who = vec![trace.agent.clone().unwrap_or_else(|| "agent".to_owned())];
    who.extend(trace.meta.version.clone());
    who.extend(trace.meta.model.clone());
    let mut counts = vec![counted(tally.outer, "call")];
    let some = |number: u64, text: String| (number > 0).then_some(text);
    counts.extend(some(tally.inner, format!("{} of programs", counted(tally.inner, "operation"))));
    counts.extend(some(tally.failed, format!("{} failed", tally.failed)));
    counts.extend(some(tally.unfinished, format!("{} unfinished", tally.unfinished)));
    counts.extend(some(tally.images, format!("{} seen", counted(tally.images, "picture"))));
    let mut times = Vec::new();
    if let Some(end) = trace.end_ms {
        times.push(format!("{} in all", seconds(end)));
        times.push(format!("{} tools", seconds(i64::try_from(trace.tool_time_ms()).unwrap_or(i64::MAX))));
    }
    if !trace.exchanges.is_empty() {
        times.push(format!("{} model", seconds(i64::try_from(trace.model_time_ms()).unwrap_or(i64::MAX))));
    }
    if let Some(usage) = trace.usage.total() {
        let by = if trace.usage.gateway.is_some() { "gateway" } else { "agent" };
        times.push(format!("{} + {} tokens by the {by}'s count", usage.input_tokens, usage.output_tokens));
    }
    let lines = [who.join(" · "), counts.join(", "), times.join(", ")];
    let lines = lines.iter().filter(|line| !line.is_empty());
    lines.map(|line| fit(&printable(line), WIDTH)).chain([String::new()]).collect()
}

fn of_call(trace: &Trace, call: &Call) -> String {
    let mark = match call.status {
        ToolStatus::Ok => '✓',
        ToolStatus::Failed => '✗',
        ToolStatus::Declined => '⊘',
        ToolStatus::Unfinished => '…',
    };
    let mut text = call.command().or_else(|| call.path().map(str::to_owned)).unwrap_or_else(|| summary(call));
    if let Some(code) = call.exit_code.filter(|code| *code != 0) {
        text = format!("[exit {code}] {text}");
    }
    if let Some(polled) = &call.polls {
        text = format!("(waits for {}) {text}", polled.0);
    }
    let tail = match (call.duration_ms(), call.status) {
        (Some(ms), _) => seconds(i64::try_from(ms).unwrap_or(i64::MAX)),
        (None, ToolStatus::Unfinished) => "unfinished".to_owned(),
        (None, _) => String::new(),
    };
    line(call.start.map(|it| it.ms), mark, &call.name, depth(trace, call), &text, &tail)
}

/// What stands for the arguments of a call that names no command and no file.
fn summary(call: &Call) -> String {
    let keys = ["input", "prompt", "description", "query", "pattern", "chars"];
    let named = keys.iter().find_map(|key| call.input.get(*key)?.as_str());
    match (named, call.kind()) {
        (Some(text), _) => text.to_owned(),
        (None, ToolKind::Edit) => match call.input.get("changes") {
            Some(serde_json::Value::Array(changes)) => {
                let paths = changes.iter().filter_map(|it| it.get("path")?.as_str());
                paths.collect::<Vec<_>>().join(" ")
            }
            _ => call.input.to_string(),
        },
        (None, _) if call.input.is_null() => String::new(),
        (None, _) => call.input.to_string(),
    }
}

fn depth(trace: &Trace, call: &Call) -> usize {
    let mut depth = usize::from(call.nesting != Nesting::Top);
    let mut parent = call.parent.as_ref().and_then(|id| trace.call(id));
    while let Some(outer) = parent.filter(|outer| outer.nesting != Nesting::Top && depth < 5) {
        depth += 1;
        parent = outer.parent.as_ref().and_then(|id| trace.call(id));
    }
    depth
}

fn of_said(said: &Said) -> String {
    let (mark, name) = match said.kind {
        SaidKind::Prompt => ('»', "prompt"),
        SaidKind::Text => (' ', "says"),
        SaidKind::Reasoning => (' ', "thinks"),
        SaidKind::Notice => ('!', "notice"),
        SaidKind::Raw => ('?', "unknown"),
    };
    line(said.at.map(|it| it.ms), mark, name, usize::from(said.agent.is_some()), &said.text, "")
}

fn of_exchange(exchange: &ModelSpan) -> String {
    let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let tokens = exchange.usage.map(|it| format!(", {} + {} tokens", it.input_tokens, it.output_tokens));
    let end = match exchange.end {
        Some(ExchangeEnd::Complete) | None => String::new(),
        Some(end) => serde_json::to_value(end)
            .ok()
            .and_then(|it| Some(format!(", {}", it.as_str()?)))
            .unwrap_or_default(),
    };
    let model = exchange.model.as_deref().unwrap_or_default();
    let text = format!("#{} {status}{}{end} {model}", exchange.exchange, tokens.unwrap_or_default());
    let lasted =
        exchange.end_ms.map(|end| seconds(end.saturating_sub(exchange.start_ms))).unwrap_or_default();
    line(Some(exchange.start_ms), '~', "model", 0, &text, &lasted)
}

fn line(ms: Option<i64>, mark: char, name: &str, depth: usize, text: &str, tail: &str) -> String {
    let indent = "  ".repeat(depth);
    let time = ms.map_or_else(|| "–".to_owned(), clock);
    let name = fit(&printable(name), HEAD - 14);
    let head = format!("{time:>10} {mark} {}", pad(&format!("{indent}{name}"), HEAD - 14));
    let room = WIDTH - HEAD - TAIL;
    let text = pad(&fit(&printable(text), room), room);
    format!("{} {text}{tail:>TAIL$}", fit(&head, HEAD - 1)).trim_end().to_owned()
}

/// `1:02.345`, or `-0.123` before the start.
fn clock(ms: i64) -> String {
    let sign = if ms < 0 { "-" } else { "" };
    let ms = ms.unsigned_abs();
    let (minutes, seconds, millis) = (ms / 60_000, ms / 1000 % 60, ms % 1000);
    if minutes > 0 {
        format!("{sign}{minutes}:{seconds:02}.{millis:03}")
    } else {
        format!("{sign}{seconds}.{millis:03}")
    }
}

fn seconds(ms: i64) -> String {
    let ms = ms.max(0);
    match ms {
        0..10_000 => format!("{}.{:03} s", ms / 1000, ms % 1000),
        _ => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

/// On one line, harmless, and not much longer than what is shown.
pub(super) fn printable(text: &str) -> String {
    in_a_line(&text.trim_start().chars().take(4 * WIDTH).collect::<String>())
}

/// Cut to `columns`, with a mark where it was cut.
fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(1);
            used <= columns
        })
        .collect();
    kept + "…"
}

fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(1)).sum()
}

#[cfg(test)]
mod tests {
    use proctor_traces::{Format, sources};

    use super::*;

    #[test]
    fn no_line_is_wider_than_it_may_be_nor_holds_what_a_terminal_obeys() {
        let hostile = "\u{1b}]0;owned\u{7}\u{202e}desrever\u{9b}31m\\n漢字漢字漢字 ".repeat(40);
        let command = serde_json::to_string(&hostile).unwrap();
        let lines = format!(
            "{{\"type\":\"item.started\",\"item\":{{\"id\":\"item_0\",\"type\":\"command_execution\",\"command\":{command}}}}}\n\
             {{\"type\":\"item.completed\",\"item\":{{\"id\":\"i\",\"type\":\"mcp_tool_call\",\"tool\":{command},\"status\":\"failed\"}}}}\n\
             {{\"type\":\"error\",\"message\":{command}}}\n"
        );
        let records = sources::read(lines.as_bytes(), Some(Format::CodexExec), None).unwrap();
        let shown = super::lines(&Trace::of_records("x", records), true);
        assert_eq!(shown.iter().filter(|it| it.contains("owned")).count(), 3);
        for line in shown {
            assert!(width(&line) <= WIDTH, "{line}");
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }

    #[test]
    fn times_read_like_a_clock() {
        assert_eq!(
            (clock(62_345), clock(960), clock(-123)),
            ("1:02.345".into(), "0.960".into(), "-0.123".into())
        );
        assert_eq!((seconds(7), seconds(12_345)), ("0.007 s".into(), "12.3 s".into()));
    }
}
