//! A recording, read whole and checked before it is played: it is a file like any other that somebody handed over.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use bytes::Bytes;
use proctor_traces::{Digest, Exchange, ExchangeEnd, WireFormat};

use super::normal::Normal;

/// Most exchanges of a recording.
const EXCHANGES: usize = 20_000;
/// Longest line of `exchanges.jsonl`, in bytes.
const LINE: usize = 1 << 20;
/// Largest body, in bytes: more is never kept.
const BODY: u64 = 64 << 20;
/// Most that a recording takes up in memory, in bytes: its responses, and its requests without their pictures.
const TOTAL: usize = 1 << 30;
/// What older records say, which have no field for it, of a response that was not kept whole.
const NOT_KEPT_WHOLE: &str = "only the first ";

/// The recorded exchanges of a trial, in order of arrival.
#[derive(Debug)]
pub struct Cassette {
    digest: Digest,
    pub(super) tape: Vec<Recorded>,
    wires: Vec<WireFormat>,
    model: Option<String>,
}

/// One recorded exchange.
#[derive(Debug)]
pub(super) struct Recorded {
    /// Its number in the recording.
    pub(super) id: u64,
    /// Method and path, as [`route`] makes them.
    pub(super) route: String,
    /// What was asked, as JSON in its normal form.
    pub(super) asked: String,
    /// The names that its harness made up in it.
    pub(super) names: Vec<String>,
    /// What came of it.
    pub(super) reply: Recording,
}

/// What came of a recorded request.
#[derive(Debug)]
pub(super) enum Recording {
    /// A response.
    Response {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
        /// The server broke off, and what was said of it.
        broke: Option<String>,
    },
    /// The connection ended without one.
    Dropped,
    /// The trial ended first.
    Unanswered,
}

/// A recording that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// A file of it cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is not of the form that it should have.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A response was longer than what was kept of it.
    #[error("{}: of the response of exchange {id} only the first {kept} bytes were kept, so it cannot be replayed", path.display())]
    Truncated {
        /// The record.
        path: PathBuf,
        /// Number of the exchange.
        id: u64,
        /// How much of it there is.
        kept: u64,
    },
    /// It is larger than what can be held.
    #[error("{}: the recording is larger than {cap} {unit}", path.display())]
    TooLarge {
        /// The record.
        path: PathBuf,
        /// How much is taken.
        cap: usize,
        /// Of what.
        unit: &'static str,
    },
    /// No model was asked anything in it.
    #[error("{}: no model request was recorded", path.display())]
    Empty {
        /// The record.
        path: PathBuf,
    },
}

impl Cassette {
    /// Reads the recording in a trial's `model` folder: `exchanges.jsonl` and the bodies in `blobs`, each checked
    /// against its digest.
    pub fn load(folder: &Path) -> Result<Self, CassetteError> {
        let path = folder.join("exchanges.jsonl");
        let (mut exchanges, digest) = exchanges(&path)?;
        exchanges.sort_by_key(|exchange| exchange.id);
        let mut cassette = Self { digest, tape: Vec::new(), wires: Vec::new(), model: None };
        let mut size = 0;
        for exchange in exchanges {
            // The gateway itself refused it, and will again.
            if exchange.end == ExchangeEnd::Refused && matches!(exchange.status, None | Some(403 | 413)) {
                continue;
            }
            if let Some(wire) = exchange.wire.filter(|wire| !cassette.wires.contains(wire)) {
                cassette.wires.push(wire);
            }
            let recorded = recorded(folder, &path, &exchange)?;
            size += recorded.asked.len();
            if let Recording::Response { body, .. } = &recorded.reply {
                size += body.len();
            }
            if size > TOTAL {
                return Err(CassetteError::TooLarge { path, cap: TOTAL, unit: "bytes" });
            }
            cassette.model = cassette.model.or(exchange.model);
            cassette.tape.push(recorded);
        }
        if cassette.wires.is_empty() {
            return Err(CassetteError::Empty { path });
        }
        Ok(cassette)
    }

    /// Digest of its `exchanges.jsonl`, which names all bodies by theirs.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many exchanges it has.
    pub fn len(&self) -> usize {
        self.tape.len()
    }

    /// Whether it has none; one that was loaded has some.
    pub fn is_empty(&self) -> bool {
        self.tape.is_empty()
    }

    /// The wire formats in which models were asked.
    pub fn wires(&self) -> &[WireFormat] {
        &self.wires
    }

    /// The model that the first request asked for.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }
}

/// What a request is told from others by, beside its content. The version in front of a path says nothing
/// (`wire.rs`), and the query only which features of the client are on.
pub(super) fn route(method: &str, path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    format!("{method} {}", path.strip_prefix("/v1").unwrap_or(path))
}

fn exchanges(path: &Path) -> Result<(Vec<Exchange>, Digest), CassetteError> {
    let file = open(path)?;
    let malformed = |message: String| CassetteError::Malformed { path: path.to_owned(), message };
    let failed = |source| CassetteError::Read { path: path.to_owned(), source };
    let mut reader = BufReader::new(file);
    let (mut exchanges, mut whole) = (Vec::new(), Vec::new());
    loop {
        let from = whole.len();
        let read = (&mut reader).take(LINE as u64 + 1).read_until(b'\n', &mut whole).map_err(failed)?;
        let line = whole.get(from..).unwrap_or_default();
        if read == 0 {
            break;
        }
        let number = exchanges.len() + 1;
        if read > LINE {
            return Err(malformed(format!("line {number} is longer than {LINE} bytes")));
        }
        if number > EXCHANGES || whole.len() > TOTAL {
            return Err(CassetteError::TooLarge { path: path.to_owned(), cap: EXCHANGES, unit: "exchanges" });
        }
        let exchange = serde_json::from_slice(line)
            .map_err(|error| malformed(format!("line {number} is not an exchange: {error}")))?;
        exchanges.push(exchange);
    }
    Ok((exchanges, Digest::of(&whole)))
}

fn recorded(folder: &Path, path: &Path, exchange: &Exchange) -> Result<Recorded, CassetteError> {
    let said = exchange.error.as_deref().unwrap_or_default();
    if exchange.truncated || said.starts_with(NOT_KEPT_WHOLE) {
        let (id, kept) = (exchange.id, exchange.response_bytes);
        return Err(CassetteError::Truncated { path: path.to_owned(), id, kept });
    }
    let Normal { value, names } = Normal::of(&blob(folder, exchange.request)?);
    let reply = match (exchange.status, exchange.end) {
        (_, ExchangeEnd::Deadline | ExchangeEnd::Diverged) => Recording::Unanswered,
        (None, _) => Recording::Dropped,
        (Some(status), end) => {
            let body = blob(folder, exchange.response)?;
            // An outage that the gateway put into words is a whole response.
            let broke = end == ExchangeEnd::UpstreamBroke && status < 500;
            Recording::Response {
                status,
                headers: headers(exchange, &body),
                broke: broke.then(|| said.to_owned()),
                body,
            }
        }
    };
    Ok(Recorded {
        id: exchange.id,
        route: route(&exchange.method, &exchange.path),
        asked: value.to_string(),
        names,
        reply,
    })
}

/// The headers that were kept. Older records have none: then a body shows what it is.
fn headers(exchange: &Exchange, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &exchange.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    if !headers.contains_key(header::CONTENT_TYPE) {
        let kind = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => "application/json",
            _ if exchange.status == Some(200) => "text/event-stream",
            _ => "text/plain",
        };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    // How long a body is, and how it is cut up, is told anew.
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONNECTION);
    headers
}

fn blob(folder: &Path, digest: Digest) -> Result<Bytes, CassetteError> {
    let path = folder.join("blobs").join(digest.hex());
    let mut bytes = Vec::new();
    let read = open(&path)?.take(BODY + 1).read_to_end(&mut bytes);
    read.map_err(|source| CassetteError::Read { path: path.clone(), source })?;
    if bytes.len() as u64 > BODY {
        let message = format!("a body of more than {BODY} bytes");
        return Err(CassetteError::Malformed { path, message });
    }
    if Digest::of(&bytes) != digest {
        let message = "it is not what its name, its digest, says".to_owned();
        return Err(CassetteError::Malformed { path, message });
    }
    Ok(bytes.into())
}

/// Opens a plain file; a pipe would be waited for.
fn open(path: &Path) -> Result<File, CassetteError> {
    let failed = |source| CassetteError::Read { path: path.to_owned(), source };
    if !fs::symlink_metadata(path).map_err(failed)?.is_file() {
        let message = "it is not a plain file".to_owned();
        return Err(CassetteError::Malformed { path: path.to_owned(), message });
    }
    File::open(path).map_err(failed)
}

#[cfg(test)]
pub(super) mod tests;
