//! What one source holds, before it is joined with others.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Format;
use crate::event::cut;
use crate::{
    Call, Digest, Exchange, ExchangeEnd, Moment, Nesting, Timestamp, ToolCallId, ToolResult, ToolStatus,
    Usage, ViewedImage, WireFormat, Witness,
};

/// Everything that one file tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// The agent, where the format does not tell: that of the session that was imported.
    pub imported_from: Option<String>,
    /// Its format.
    pub format: Format,
    /// What its times count from.
    pub clock: SourceClock,
    /// What it says of itself.
    pub meta: Meta,
    /// Its calls, in the order in which they were issued.
    pub calls: Vec<Call>,
    /// What was said, in order.
    pub said: Vec<Said>,
    /// Tokens, as the agent counted them.
    pub usage: AgentUsage,
    /// Turns begun, at least 1 if there is anything.
    pub turns: u32,
    /// Model requests, if this is a journal of our own.
    pub exchanges: Vec<ModelSpan>,
    /// Versions of the artifact, if this is a journal of our own.
    pub versions: Vec<ArtifactVersion>,
    /// The last moment of any record.
    pub last: Option<Moment>,
    /// What was met on the way.
    pub counts: Counts,
    /// Calls that started a sub-agent, by its id.
    pub(crate) agents: BTreeMap<String, ToolCallId>,
    /// Other names under which a witness may know a call (Codex: ids of items).
    pub(crate) aliases: HashMap<String, ToolCallId>,
    /// Calls that changed files, in order, whatever tool it was.
    pub(crate) patched: Vec<ToolCallId>,
    /// Tokens by message: a sub-agent's may be told by two files.
    pub(crate) messages: HashMap<String, Usage>,
}

/// What the times of a source count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceClock {
    /// The Unix epoch, by the clock of the machine that wrote it.
    Epoch,
    /// The start of the agent, by the monotonic clock of the host.
    AgentStart {
        /// Wall time of that start, where it is known.
        zero: Option<Timestamp>,
    },
    /// It has no times.
    None,
}

/// What a source says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// Id of the session or thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Version of the agent CLI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The sub-agent whose file this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session that started it, or that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The prompt that a sub-agent was given.
    #[serde(skip)]
    pub(crate) prompt: Option<String>,
}

/// Tokens as an agent counted them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentUsage {
    /// All of the source, each message counted once; none if it does not say.
    pub total: Option<Usage>,
    /// Whether it is only a lower bound: a stream that broke off knows of its last messages only what they began with.
    pub is_lower_bound: bool,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Its place in the causal order that it shares with the calls.
    pub seq: u32,
    /// The turn, from 1.
    pub turn: u32,
    /// What it is.
    pub kind: SaidKind,
    /// The words, cut at 64 KiB.
    pub text: String,
    /// When.
    pub at: Option<Moment>,
    /// The sub-agent that said it; none for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// What was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaidKind {
    /// A message to the agent.
    Prompt,
    /// The agent's own words.
    Text,
    /// Reasoning that it showed.
    Reasoning,
    /// A warning, a retry, an interruption.
    Notice,
    /// A record that no rule knows.
    Raw,
}

/// A model request and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelSpan {
    /// Number of the exchange.
    pub exchange: u64,
    /// Arrival of the request, in milliseconds since the agent was started.
    pub start_ms: i64,
    /// First byte of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<i64>,
    /// Its end; none if the trial ended first.
    pub end_ms: Option<i64>,
    /// Wire format.
    pub wire: Option<WireFormat>,
    /// The model asked for.
    pub model: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// How it ended.
    pub end: Option<ExchangeEnd>,
    /// Tokens as the server counted them.
    pub usage: Option<Usage>,
}

impl From<&Exchange> for ModelSpan {
    fn from(exchange: &Exchange) -> Self {
        Self {
            exchange: exchange.id,
            start_ms: exchange.start_ms.0,
            first_byte_ms: exchange.first_byte_ms.map(|it| it.0),
            end_ms: Some(exchange.end_ms.0),
            wire: exchange.wire,
            model: exchange.model.clone(),
            status: exchange.status,
            end: Some(exchange.end),
            usage: exchange.usage,
        }
    }
}

/// A version of the artifact, as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactVersion {
    /// When it was seen complete, in milliseconds since the agent was started.
    pub ms: i64,
    /// Digest; its bytes are in `history/`.
    pub digest: Digest,
    /// Size in bytes.
    pub bytes: u64,
}

/// Records met in a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Lines that hold anything.
    pub read: u64,
    /// Those that a rule knows.
    pub recognised: u64,
    /// Well-formed ones that no rule knows, by type; the rarest types beyond 100 are counted as `…`.
    pub unknown: BTreeMap<String, u64>,
    /// Those that are no records.
    pub malformed: u64,
    /// Whether the last line is torn: it is one of the malformed.
    pub torn: bool,
    /// Lines that were read although some of their bytes are no text.
    pub mended: u64,
}

impl Counts {
    /// Well-formed records that no rule knows.
    pub fn unknown_total(&self) -> u64 {
        self.unknown.values().sum()
    }
}

/// What came of a call.
pub(crate) struct Finish {
    pub(crate) status: ToolStatus,
    pub(crate) exit_code: Option<i32>,
    pub(crate) output: String,
    /// Size of what it gave back; that of `output` if that is all.
    pub(crate) bytes: Option<u64>,
    pub(crate) images: Vec<ViewedImage>,
    pub(crate) at: Option<Moment>,
}

/// Puts the records of a source together.
pub(crate) struct Builder {
    pub(crate) records: Records,
    pub(crate) turn: u32,
    pub(crate) witness: Witness,
    seq: u32,
    by_key: HashMap<String, usize>,
    asked: HashMap<String, u32>,
    raw_kept: u32,
    usage_by_message: HashMap<String, Usage>,
}

impl Builder {
    /// Unknown records of which the text is kept.
    const RAW_KEPT: u32 = 1_000;
    const TYPES_KEPT: usize = 100;

    pub(crate) fn new(format: Format, witness: Witness) -> Self {
        let records = Records {
            imported_from: None,
            format,
            clock: SourceClock::None,
            meta: Meta::default(),
            calls: Vec::new(),
            said: Vec::new(),
            usage: AgentUsage::default(),
            turns: 0,
            exchanges: Vec::new(),
            versions: Vec::new(),
            last: None,
            counts: Counts::default(),
            agents: BTreeMap::new(),
            aliases: HashMap::new(),
            patched: Vec::new(),
            messages: HashMap::new(),
        };
        Self {
            records,
            turn: 1,
            witness,
            seq: 0,
            by_key: HashMap::new(),
            asked: HashMap::new(),
            raw_kept: 0,
            usage_by_message: HashMap::new(),
        }
    }

    /// A moment of this source.
    pub(crate) fn moment(&self, ms: Option<i64>) -> Option<Moment> {
        ms.map(|ms| Moment { ms, by: self.witness })
    }

    /// A new turn begins.
    pub(crate) fn next_turn(&mut self) {
        self.records.turns += 1;
        self.turn = self.records.turns;
    }

    fn next_seq(&mut self) -> u32 {
        self.seq += 1;
        self.seq - 1
    }

    /// Notes a call that was issued, and returns it. A key that is in use already is that of another call, under another
    /// name: a model may use an id twice, a trace must not.
    pub(crate) fn start(&mut self, key: &str, name: &str, input: Value, at: Option<Moment>) -> &mut Call {
        let asked = self.asked.entry(key.to_owned()).or_default();
        *asked += 1;
        let id = if *asked == 1 { key.to_owned() } else { format!("{key}#{asked}") };
        let seq = self.next_seq();
        let index = self.records.calls.len();
        self.by_key.insert(key.to_owned(), index);
        self.records.calls.push(Call {
            id: ToolCallId(id),
            seq,
            turn: self.turn,
            name: name.to_owned(),
            input,
            parent: None,
            nesting: Nesting::Top,
            agent: None,
            polls: None,
            issued: None,
            start: at,
            end: None,
            returned: None,
            status: ToolStatus::Unfinished,
            exit_code: None,
            output: String::new(),
            output_bytes: 0,
            truncated: false,
            images: Vec::new(),
            seen_by: vec![self.witness],
        });
        &mut self.records.calls[index]
    }

    /// Whether there is a call under `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// The last call under `key`.
    pub(crate) fn call(&mut self, key: &str) -> Option<&mut Call> {
        let index = *self.by_key.get(key)?;
        self.records.calls.get_mut(index)
    }

    /// The call under `key`; one without a beginning is put in if there is none: its record was before the file began.
    pub(crate) fn call_or_orphan(&mut self, key: &str) -> &mut Call {
        if !self.has(key) {
            self.start(key, Self::ORPHAN, Value::Null, None);
        }
        let index = self.by_key.get(key).copied().unwrap_or_default();
        &mut self.records.calls[index]
    }

    /// The name of a tool whose call is known by its result alone.
    pub(crate) const ORPHAN: &str = "unknown";

    /// Notes what came of a call.
    pub(crate) fn finish(&mut self, key: &str, finish: Finish) -> &mut Call {
        let call = self.call_or_orphan(key);
        call.status = finish.status;
        call.exit_code = finish.exit_code.or(call.exit_code);
        let bytes = finish.bytes.unwrap_or(finish.output.len() as u64);
        call.set_output(finish.output, bytes);
        let path = call.path().map(str::to_owned);
        call.images.extend(
            finish
                .images
                .into_iter()
                .map(|image| ViewedImage { path: image.path.or_else(|| path.clone()), ..image }),
        );
        call.end = finish.at;
        call
    }

    /// Notes something said; empty words are nothing.
    pub(crate) fn say(&mut self, kind: SaidKind, text: &str, at: Option<Moment>, agent: Option<String>) {
        if text.trim().is_empty() {
            return;
        }
        let seq = self.next_seq();
        let text = cut(text, ToolResult::OUTPUT_CAP).to_owned();
        self.records.said.push(Said { seq, turn: self.turn, kind, text, at, agent });
    }

    /// Tokens of one message; what is said later of the same message replaces it.
    pub(crate) fn count_tokens(&mut self, message: &str, usage: Usage) {
        self.usage_by_message.insert(message.to_owned(), usage);
    }

    /// Keeps and counts a record that no rule knows.
    pub(crate) fn unknown(&mut self, kind: &str, text: &str, at: Option<Moment>) {
        let kind = cut(kind, 100);
        let known = &mut self.records.counts.unknown;
        let kind = if known.len() < Self::TYPES_KEPT || known.contains_key(kind) { kind } else { "…" };
        *known.entry(kind.to_owned()).or_default() += 1;
        self.keep(text, at);
    }

    /// Keeps and counts a line that is no record.
    pub(crate) fn malformed(&mut self, text: &str, at: Option<Moment>) {
        self.records.counts.malformed += 1;
        self.keep(text, at);
    }

    fn keep(&mut self, text: &str, at: Option<Moment>) {
        self.raw_kept += 1;
        if self.raw_kept <= Self::RAW_KEPT {
            self.say(SaidKind::Raw, text, at, None);
        }
    }

    /// Notes that something happened at `at`.
    pub(crate) fn touch(&mut self, at: Option<Moment>) {
        if at.map(|it| it.ms) > self.records.last.map(|it| it.ms) {
            self.records.last = at;
        }
    }

    /// All that was read.
    pub(crate) fn build(mut self) -> Records {
        if self.records.usage.total.is_none() && !self.usage_by_message.is_empty() {
            let mut total = Usage::default();
            for usage in self.usage_by_message.values() {
                total += *usage;
            }
            self.records.usage.total = Some(total);
        }
        self.records.messages = self.usage_by_message;
        let any = !self.records.calls.is_empty() || !self.records.said.is_empty();
        self.records.turns = self.records.turns.max(u32::from(any));
        self.records
    }
}
