//! What the evidence of a preflight proves: a pure function of the trace, the exchanges and the request bodies.

use std::collections::HashMap;
use std::path::Path;

use proctor_traces::{
    Digest, EventKind, Exchange, ExchangeEnd, JournalReader, ToolCallId, ToolStatus, TraceEvent, Usage,
};
use serde::Serialize;
use serde_json::Value;

use super::package::{LAST_LINE, LINES, NUMBER, PRINTED};
use crate::failure::Failure;

/// Request bodies beyond this are not looked into; no preflight comes near it.
const BODY_CAP: u64 = 64 << 20;

/// One of the four things, and whether it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Proof {
    /// Which.
    pub(super) name: &'static str,
    /// Whether it holds.
    pub(super) good: bool,
    /// What was seen, or what was not.
    pub(super) seen: String,
}

/// What a preflight leaves behind that matters here.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    events: Vec<TraceEvent>,
    exchanges: Vec<Exchange>,
    pictures: Vec<SentPicture>,
}

/// A picture in the body of a model request.
#[derive(Clone, Debug)]
struct SentPicture {
    exchange: u64,
    media_type: String,
    bytes: usize,
}

/// How quickly and by whom requests were answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Service {
    /// Requests for a generation.
    pub(super) requests: usize,
    /// From the arrival of a request to the first byte of its response, in milliseconds: the median.
    pub(super) first_byte_ms_median: Option<i64>,
    /// The longest.
    pub(super) first_byte_ms_max: Option<i64>,
    /// Names of the models that the server said had answered, in order of appearance.
    pub(super) served_models: Vec<String>,
    /// Tokens as the server counted them.
    pub(super) tokens: Usage,
}

impl Evidence {
    /// Reads the evidence in the folder of a trial; what was never written is empty.
    pub(super) fn read(trial: &Path) -> Result<Self, Failure> {
        let trace = trial.join("trace.jsonl");
        let events = if trace.exists() {
            JournalReader::read(&trace).map_err(|error| Failure::internal(error.to_string()))?.0
        } else {
            Vec::new()
        };
        let text = std::fs::read_to_string(trial.join("model/exchanges.jsonl")).unwrap_or_default();
        let exchanges: Vec<Exchange> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(is_generation).collect();
        let mut pictures = Vec::new();
        for exchange in &exchanges {
            let Some(body) = body(trial, exchange.request) else { continue };
            find_pictures(&body, &mut |media_type, bytes| {
                let media_type = media_type.to_owned();
                pictures.push(SentPicture { exchange: exchange.id, media_type, bytes });
            });
        }
        Ok(Self { events, exchanges, pictures })
    }

    /// The four proofs, in the order of the instruction.
    pub(super) fn proofs(&self) -> [Proof; 4] {
        [self.text(), self.tool_call(), self.picture(), self.long_output()]
    }

    /// How the requests were served.
    pub(super) fn service(&self) -> Service {
        let mut waits: Vec<i64> =
            self.exchanges.iter().filter_map(|it| Some(it.first_byte_ms?.0 - it.start_ms.0)).collect();
        waits.sort_unstable();
        let mut served_models: Vec<String> = Vec::new();
        let mut tokens = Usage::default();
        for exchange in &self.exchanges {
            tokens += exchange.usage.unwrap_or_default();
            if let Some(name) = exchange.served_model.as_ref().filter(|name| !served_models.contains(name)) {
                served_models.push(name.clone());
            }
        }
        Service {
            requests: self.exchanges.len(),
            first_byte_ms_median: waits.get(waits.len() / 2).copied(),
            first_byte_ms_max: waits.last().copied(),
            served_models,
            tokens,
        }
    }

    fn texts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.events.iter().filter_map(|event| match &event.kind {
            EventKind::AgentText { text } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        })
    }

    fn text(&self) -> Proof {
        let seen = self.texts().next().map(|text| format!("“{}”", shorten(text)));
        proof("text", seen.ok_or_else(|| "the agent said nothing".to_owned()))
    }

    fn tool_call(&self) -> Proof {
        let mut names: HashMap<&ToolCallId, &str> = HashMap::new();
        let mut finished = 0;
        let mut last = None;
        for event in &self.events {
            match &event.kind {
                EventKind::ToolStarted(call) => drop(names.insert(&call.id, &call.name)),
                EventKind::ToolFinished(result) => {
                    finished += 1;
                    let name = names.get(&result.id).copied().unwrap_or("a tool");
                    if result.output.contains(PRINTED) && result.status == ToolStatus::Ok {
                        return proof("tool call", Ok(format!("{name} printed “{PRINTED}”")));
                    }
                    last = Some(format!("the last, {name}, gave “{}”", shorten(&result.output)));
                }
                _ => {}
            }
        }
        let last = last.map(|last| format!("; {last}")).unwrap_or_default();
        let message = format!("{finished} tool calls returned, none of them printed “{PRINTED}”{last}");
        proof("tool call", Err(message))
    }

    /// The picture must have gone to the model *and* have been read: a provider may drop what it cannot take.
    fn picture(&self) -> Proof {
        let Some(sent) = self.pictures.first() else {
            let requests = self.exchanges.len();
            return proof("picture", Err(format!("none of the {requests} model requests holds a picture")));
        };
        let SentPicture { exchange, media_type, bytes } = sent;
        let sent = format!("{media_type} of {bytes} bytes went to the model in request {exchange}");
        if self.texts().any(|text| text.contains(NUMBER)) {
            proof("picture", Ok(format!("{sent}, and it read {NUMBER}")))
        } else {
            proof("picture", Err(format!("{sent}, but it never said what the picture shows, {NUMBER}")))
        }
    }

    fn long_output(&self) -> Proof {
        let Some(text) = self.texts().next_back() else {
            return proof("long output", Err("the agent said nothing".to_owned()));
        };
        let numbers = text.lines().filter_map(leading_number);
        let counted = numbers.fold(0, |next, number| if number == next + 1 { number } else { next });
        let ends = text.lines().rev().find(|line| !line.trim().is_empty());
        let ended = ends.is_some_and(|line| line.contains(LAST_LINE));
        // Agents may hang up once they have the event that ends a response, before the last bytes of the stream.
        let broken = [ExchangeEnd::UpstreamBroke, ExchangeEnd::Deadline];
        let whole = self.exchanges.last().is_some_and(|it| !broken.contains(&it.end));
        let lines =
            if counted == 0 { "no list".to_owned() } else { format!("lines 1 to {counted} of {LINES}") };
        let size = format!("{} characters, {lines}", text.chars().count());
        proof(
            "long output",
            match (counted == LINES, ended, whole) {
                (true, true, true) => Ok(format!("{size}, and the end")),
                (true, true, false) => Err(format!("{size}, but the last response was cut off")),
                (_, false, _) => Err(format!("{size}, without the last line")),
                (false, true, _) => Err(format!("{size}, then the last line")),
            },
        )
    }
}

fn proof(name: &'static str, seen: Result<String, String>) -> Proof {
    let good = seen.is_ok();
    Proof { name, good, seen: seen.unwrap_or_else(|missing| missing) }
}

/// Whether a text was asked for; counting tokens and listing models prove nothing.
fn is_generation(exchange: &Exchange) -> bool {
    exchange.wire.is_some() && !exchange.path.contains("count_tokens")
}

fn body(trial: &Path, digest: Digest) -> Option<Value> {
    let path = trial.join("model/blobs").join(digest.hex());
    if std::fs::symlink_metadata(&path).ok()?.len() > BODY_CAP {
        return None;
    }
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Calls `found` for each picture in a body of any of the wire formats, with media type and size.
fn find_pictures(value: &Value, found: &mut dyn FnMut(&str, usize)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| find_pictures(item, found)),
        Value::Object(fields) => {
            let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            let kind = fields.get("type").and_then(Value::as_str);
            let url = match kind {
                Some("input_image") => text(value, "image_url"),
                Some("image_url") => value.get("image_url").and_then(|image| text(image, "url")),
                Some("image") => value.get("source").and_then(|source| {
                    let media_type = text(source, "media_type")?;
                    text(source, "data").map(|data| format!("data:{media_type};base64,{data}"))
                }),
                // Gemini's parts have no type.
                _ => fields.get("inlineData").and_then(|part| {
                    let (media_type, data) = (text(part, "mimeType")?, text(part, "data")?);
                    Some(format!("data:{media_type};base64,{data}"))
                }),
            };
            if let Some((media_type, data)) = url.as_deref().and_then(data_url) {
                found(media_type, data.trim_end_matches('=').len() * 3 / 4);
            }
            fields.values().for_each(|field| find_pictures(field, found));
        }
        _ => {}
    }
}

fn data_url(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    (media_type.starts_with("image/") && !data.is_empty()).then_some((media_type, data))
}

/// The number that a line of a list begins with, whatever marks are around it.
fn leading_number(line: &str) -> Option<u32> {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '#' | '`' | '-'));
    let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    line[..end].parse().ok()
}

/// The first line of a text, cut to what fits beside a name.
fn shorten(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let kept: String = line.chars().filter(|c| !c.is_control()).take(60).collect();
    if kept.len() < line.len() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
#[path = "proofs_tests.rs"]
mod tests;
