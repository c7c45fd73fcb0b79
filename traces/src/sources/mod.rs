//! Readers of what agents leave behind, one module per family of formats. Each is a pure function from bytes to
//! [`Records`]: it never panics, keeps and counts what it does not know, and calls a file without any record it knows an
//! error (DESIGN §3.11).

mod claude;
mod claude_stream;
mod claude_transcript;
mod codex_exec;
mod codex_rollout;
mod content;
mod detect;
mod gemini;
mod journal;
mod json;
pub(crate) mod lines;
mod opencode;
mod pi;
mod qwen;
mod records;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use lines::Arrivals;
pub use records::{
    AgentUsage, ArtifactVersion, Counts, Meta, ModelSpan, Records, Said, SaidKind, SourceClock,
};

use self::json::Object;
use self::records::Builder;

/// The name of a tool whose call is known by its result alone.
pub(crate) const ORPHAN: &str = Builder::ORPHAN;

use crate::{Moment, Timestamp, Witness};

/// A format of agent records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// What `codex exec --json` prints.
    CodexExec,
    /// Codex's session file, of any generation.
    CodexRollout,
    /// What `claude -p --output-format stream-json` prints.
    ClaudeStream,
    /// Claude Code's session file, or that of one of its sub-agents.
    ClaudeTranscript,
    /// What `opencode run --format json` prints.
    Opencode,
    /// What `gemini -o stream-json` prints.
    GeminiStream,
    /// Gemini CLI's session file.
    GeminiSession,
    /// What `qwen -o stream-json` prints.
    QwenStream,
    /// Qwen Code's session file.
    QwenSession,
    /// What `pi --mode json` prints.
    PiStream,
    /// pi's session file.
    PiSession,
    /// Our own `trace.jsonl`.
    Proctor,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::CodexExec,
        Self::CodexRollout,
        Self::ClaudeStream,
        Self::ClaudeTranscript,
        Self::Opencode,
        Self::GeminiStream,
        Self::GeminiSession,
        Self::QwenStream,
        Self::QwenSession,
        Self::PiStream,
        Self::PiSession,
        Self::Proctor,
    ];

    /// The format that a file looks to have, judged by its first lines.
    pub fn detect(head: &[u8]) -> Option<Self> {
        detect::format(head).ok()
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CodexExec => "codex-exec",
            Self::CodexRollout => "codex-rollout",
            Self::ClaudeStream => "claude-stream",
            Self::ClaudeTranscript => "claude-transcript",
            Self::Opencode => "opencode",
            Self::GeminiStream => "gemini-stream",
            Self::GeminiSession => "gemini-session",
            Self::QwenStream => "qwen-stream",
            Self::QwenSession => "qwen-session",
            Self::PiStream => "pi-stream",
            Self::PiSession => "pi-session",
            Self::Proctor => "proctor",
        }
    }

    /// Name of the agent that writes it; ours is of any agent.
    pub fn agent(self) -> Option<&'static str> {
        match self {
            Self::CodexExec | Self::CodexRollout => Some("codex"),
            Self::ClaudeStream | Self::ClaudeTranscript => Some("claude-code"),
            Self::Opencode => Some("opencode"),
            Self::GeminiStream | Self::GeminiSession => Some("gemini"),
            Self::QwenStream | Self::QwenSession => Some("qwen"),
            Self::PiStream | Self::PiSession => Some("pi"),
            Self::Proctor => None,
        }
    }

    /// Whether it is what an agent prints, and not a file that it keeps.
    pub fn is_stream(self) -> bool {
        matches!(
            self,
            Self::CodexExec
                | Self::ClaudeStream
                | Self::Opencode
                | Self::GeminiStream
                | Self::QwenStream
                | Self::PiStream
        )
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == text);
        found.ok_or_else(|| SourceError::NoSuchFormat { name: text.to_owned() })
    }
}

/// A source that could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Something else than lines of text.
    #[error("it is {what}, not lines of JSON")]
    NotText {
        /// What it looks like.
        what: &'static str,
    },
    /// A compressed file that cannot be unpacked.
    #[error("it is packed with zstd, and unpacking failed: {message}")]
    Unpacking {
        /// Why.
        message: String,
    },
    /// Nothing in it.
    #[error("it is empty")]
    Empty,
    /// No known format looks like it.
    #[error("none of its {lines} lines looks like a record of a known agent")]
    UnknownFormat {
        /// Lines that hold anything.
        lines: u64,
    },
    /// It has lines, and not one of them is a record of the format.
    #[error("none of its {lines} lines is a record of {format}")]
    NothingRecognised {
        /// The format.
        format: Format,
        /// Lines that hold anything.
        lines: u64,
    },
    /// A name that is no format.
    #[error("`{name}` is no format; known are {}", names())]
    NoSuchFormat {
        /// What was asked for.
        name: String,
    },
}

fn names() -> String {
    Format::ALL.map(Format::as_str).join(", ")
}

/// Reads a source. Without `format` it is told from the content; `arrivals` are the times at which its lines arrived, if
/// it is a stream and somebody wrote them down.
pub fn read(
    bytes: &[u8],
    format: Option<Format>,
    arrivals: Option<&Arrivals>,
) -> Result<Records, SourceError> {
    let bytes = lines::unpack(bytes)?;
    if bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == 0) {
        return Err(SourceError::Empty);
    }
    let document = detect::as_lines(&bytes);
    let bytes = document.as_deref().unwrap_or(&bytes);
    let format = match format {
        Some(format) => format,
        None => detect::format(bytes)?,
    };
    let records = match format {
        Format::CodexExec => run(bytes, arrivals, format, codex_exec::CodexExec::default()),
        Format::CodexRollout => run(bytes, None, format, codex_rollout::Rollout::default()),
        Format::ClaudeStream => run(bytes, arrivals, format, claude_stream::ClaudeStream::new(false)),
        Format::ClaudeTranscript => run(bytes, None, format, claude_transcript::Transcript::default()),
        Format::Opencode => run(bytes, arrivals, format, opencode::Opencode::default()),
        Format::GeminiStream => run(bytes, arrivals, format, gemini::GeminiStream::default()),
        Format::GeminiSession => run(bytes, None, format, gemini::GeminiSession::default()),
        Format::QwenStream => run(bytes, arrivals, format, claude_stream::ClaudeStream::new(true)),
        Format::QwenSession => run(bytes, None, format, qwen::QwenSession::default()),
        Format::PiStream => run(bytes, arrivals, format, pi::PiStream::default()),
        Format::PiSession => run(bytes, None, format, pi::PiSession),
        Format::Proctor => run(bytes, None, format, journal::Journal),
    };
    match records.counts {
        Counts { recognised: 0, read, .. } => Err(SourceError::NothingRecognised { format, lines: read }),
        _ => Ok(records),
    }
}

/// A record that no rule knows, by the name of its type.
struct Unknown(String);

/// What one format makes of its records.
trait Grammar {
    /// Whose times the records hold.
    const WITNESS: Witness = Witness::SessionFile;

    /// Takes in a line in one go, if it is one that a shorter way than that over [`Object`] is known for; whether it was.
    fn line(&mut self, text: &str, out: &mut Builder) -> bool {
        let _ = (text, out);
        false
    }

    /// Takes in a record; `arrival` is when its line arrived, where that is known.
    fn record(
        &mut self,
        record: &Object<'_>,
        arrival: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown>;

    /// The end of the file.
    fn end(self, out: &mut Builder)
    where
        Self: Sized,
    {
        let _ = out;
    }
}

fn run<G: Grammar>(bytes: &[u8], arrivals: Option<&Arrivals>, format: Format, mut grammar: G) -> Records {
    let mut out = Builder::new(format, G::WITNESS);
    if arrivals.is_some() {
        out.records.clock = SourceClock::AgentStart { zero: None };
    }
    for line in lines::lines(bytes) {
        if line.bytes.is_empty() {
            continue;
        }
        out.records.counts.read += 1;
        let arrival = arrivals.and_then(|it| it.of(&line)).map(|ms| Moment { ms, by: Witness::Stream });
        out.touch(arrival);
        let text = lines::text(line.bytes);
        if matches!(text, Cow::Borrowed(_)) && grammar.line(&text, &mut out) {
            out.records.counts.recognised += 1;
            continue;
        }
        let mended;
        let record = if let Some(record) = Object::parse(&text) {
            Some((record, &*text))
        } else {
            mended = lines::without_controls(&text);
            mended.as_deref().and_then(|mended| Some((Object::parse(mended)?, mended)))
        };
        let Some((record, readable)) = record else {
            out.records.counts.torn |= !line.is_whole;
            out.malformed(&text, arrival);
            continue;
        };
        let was_mended = !std::ptr::eq(readable.as_bytes(), line.bytes);
        out.records.counts.mended += u64::from(was_mended);
        match grammar.record(&record, arrival, &mut out) {
            Ok(()) => out.records.counts.recognised += 1,
            Err(Unknown(kind)) => out.unknown(&kind, readable, arrival),
        }
    }
    grammar.end(&mut out);
    out.build()
}

/// Milliseconds since the epoch of an RFC 3339 time.
fn epoch_ms(text: &str) -> Option<i64> {
    fast_epoch_ms(text.as_bytes()).or_else(|| Timestamp::parse(text).map(Timestamp::as_millis))
}

/// The one form that all agents write, `2026-11-30T11:27:33.255Z`, without a general parser.
fn fast_epoch_ms(text: &[u8]) -> Option<i64> {
    let [y @ .., b'Z'] = text else { return None };
    if y.len() != 23
        || y[4] != b'-'
        || y[7] != b'-'
        || y[10] != b'T'
        || y[13] != b':'
        || y[16] != b':'
        || y[19] != b'.'
    {
        return None;
    }
    let number = |range: std::ops::Range<usize>| {
        y.get(range)?
            .iter()
            .try_fold(0i64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second, ms) = (number(11..13)?, number(14..16)?, number(17..19)?, number(20..23)?);
    if !(1..=12).contains(&month)
        || !(1..=28).contains(&day) && !(29..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    if day > 28 {
        // Whether the month has such a day is left to the general parser.
        return None;
    }
    // Days since 1970-01-01, counting years from March (H. Hinnant, "chrono-compatible low-level date algorithms").
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + ms)
}

#[cfg(test)]
mod tests;
