//! One question to a model, through an open gateway: for judges, labellers, and the tracks without an agent.
//!
//! A client never holds a key: it speaks to a [`crate::Gateway`] over its socket, which puts the key in and records the
//! exchange. So whatever answers an agent (a script, a cassette, a provider) can answer here as well.

mod picture;
mod reply;
mod request;

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use proctor_traces::{Usage, WireFormat};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::{Map, Value};

use crate::upstream::trusting;

pub use picture::{PictureEndpoint, PictureQuestion, PictureReply};
pub use reply::Stop;

/// Largest response that is taken, in bytes.
const RESPONSE_CAP: usize = 64 << 20;

/// The longest that a server can ask us to wait before another request.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Most of an error body that goes into a message, in characters.
const ERROR_CAP: usize = 400;

/// Most tokens of an answer of Anthropic's, where nobody says.
pub const ANTHROPIC_OUTPUT: u32 = 64_000;

/// A way to ask.
#[derive(Debug)]
pub struct ModelClient {
    http: reqwest::Client,
    wire: WireFormat,
    patience: Patience,
}

/// How long an answer is waited for, and how often asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Longest time of one request (VAO-Bench, B.3: 900 s).
    pub timeout: Duration,
    /// Requests after the first, when the server or the way to it failed for the moment (B.3: 3).
    pub retries: u32,
    /// Pause before the first of them; it doubles from one to the next. A server that asks for more gets more.
    pub backoff: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(900), retries: 3, backoff: Duration::from_secs(5) }
    }
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The model, as its provider calls it.
    pub model: String,
    /// What it is told beforehand; none sends nothing.
    pub system: Option<String>,
    /// The question itself, in order.
    pub parts: Vec<Part>,
    /// Most tokens of the answer, reasoning included. None leaves it to the server; Anthropic's messages must have one, and
    /// get [`ANTHROPIC_OUTPUT`].
    pub max_output_tokens: Option<u32>,
    /// Level of reasoning (`low` … `xhigh`), as the provider calls it; none sends nothing.
    pub reasoning: Option<String>,
    /// The form that the answer must have, for servers that can see to it.
    pub form: Option<Form>,
    /// Which field carries [`Self::max_output_tokens`] in chat completions.
    pub limit_field: LimitField,
    /// More fields of the request body: sampling parameters that somebody configured (DESIGN §3.10).
    pub extra: Map<String, Value>,
}

/// A piece of a question.
#[derive(Clone, Debug)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Picture {
        /// `image/png`, ….
        media_type: &'static str,
        /// The file.
        bytes: Bytes,
    },
}

/// A JSON schema by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its name, of letters, digits, `_` and `-`.
    pub name: String,
    /// The schema.
    pub schema: Value,
}

/// The field that bounds the answer in chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitField {
    /// What nearly all servers know.
    #[default]
    MaxTokens,
    /// What `OpenAI`'s reasoning models ask for.
    MaxCompletionTokens,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the model said, without its reasoning.
    pub text: String,
    /// Why it stopped.
    pub stop: Stop,
    /// Tokens, as the server counted them.
    pub usage: Option<Usage>,
    /// The model that answered, by its own words.
    pub served_model: Option<String>,
    /// Time from the first request to the end of the answer, pauses included.
    pub took: Duration,
    /// Failures on the way, one line each.
    pub failures: Vec<String>,
}

/// No answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The gateway's socket cannot be used.
    #[error("the gateway cannot be reached")]
    Client(#[source] reqwest::Error),
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The server does not want this request, now or ever.
    #[error("the server refused the request with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What it said, shortened.
        message: String,
    },
    /// The server did not let the question through, or the answer, for what it says.
    #[error("moderation refused: {message}")]
    Moderated {
        /// What it said, shortened.
        message: String,
    },
    /// It failed for the moment, again and again.
    #[error("no answer after {attempts} attempts: {last}")]
    Exhausted {
        /// Requests made.
        attempts: u32,
        /// What was the matter with the last.
        last: String,
    },
    /// It answered in no form that we know.
    #[error("the response is not one of this wire format: {0}")]
    Unreadable(String),
}

/// What became of one request.
enum Attempt {
    Body(Bytes),
    /// It may go better next time; not before so long.
    Again(String, Option<Duration>),
    Never(u16, String),
    /// What it was asked is not answered.
    Moderated(String),
}

/// What was read of an answer, and how it was come by.
struct Kept<T> {
    said: T,
    took: Duration,
    failures: Vec<String>,
}

impl ModelClient {
    /// A client for the gateway whose socket is at `socket`, which is asked in `wire`.
    pub fn new(socket: &Path, wire: WireFormat, patience: Patience) -> Result<Self, AskError> {
        let http = reqwest::Client::builder()
            // A socket needs no TLS, but the library wants to know of one, and would look for one of the whole process.
            .tls_backend_preconfigured(trusting(rustls::RootCertStore::empty())?)
            .unix_socket(socket)
            .no_proxy()
            .retry(reqwest::retry::never())
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(AskError::Client)?;
        Ok(Self { http, wire, patience })
    }

    /// Asks, again if need be, and waits for the whole answer.
    pub async fn ask(&self, question: &Question) -> Result<Reply, AskError> {
        let (path, body) = request::build(self.wire, question);
        let Kept { said, took, failures } =
            self.attempts(&path, "application/json", body, |bytes| reply::read(self.wire, bytes)).await?;
        Ok(Reply {
            text: said.text,
            stop: said.stop,
            usage: said.account.usage,
            served_model: said.account.served_model,
            took,
            failures,
        })
    }

    /// Posts `body`, again if need be, until an answer can be read.
    async fn attempts<T>(
        &self,
        path: &str,
        media_type: &str,
        body: Bytes,
        read: impl Fn(&Bytes) -> Result<T, reply::Fault>,
    ) -> Result<Kept<T>, AskError> {
        let start = Instant::now();
        let mut failures = Vec::new();
        let mut pause = self.patience.backoff;
        for attempt in 0..=self.patience.retries {
            let posted = self.post(path, media_type, &body);
            let (failure, wanted) = match tokio::time::timeout(self.patience.timeout, posted).await {
                Ok(Attempt::Body(bytes)) => match read(&bytes) {
                    Ok(said) => return Ok(Kept { said, took: start.elapsed(), failures }),
                    Err(reply::Fault::Broken(message)) => (message, None),
                    Err(reply::Fault::Foreign(message)) => return Err(AskError::Unreadable(message)),
                },
                Ok(Attempt::Again(message, wait)) => (message, wait),
                Ok(Attempt::Never(status, message)) => return Err(AskError::Refused { status, message }),
                Ok(Attempt::Moderated(message)) => return Err(AskError::Moderated { message }),
                Err(_) => (format!("no answer within {} s", self.patience.timeout.as_secs()), None),
            };
            failures.push(failure);
            if attempt < self.patience.retries {
                tokio::time::sleep(wanted.unwrap_or(pause).max(pause).min(LONGEST_WAIT)).await;
                pause = pause.saturating_mul(2);
            }
        }
        let last = failures.pop().unwrap_or_default();
        Err(AskError::Exhausted { attempts: self.patience.retries + 1, last })
    }

    async fn post(&self, path: &str, media_type: &str, body: &Bytes) -> Attempt {
        let request = self.http.post(format!("http://gateway{path}"));
        let mut request = request.header(CONTENT_TYPE, media_type).body(body.clone());
        if self.wire == WireFormat::AnthropicMessages {
            request = request.header("anthropic-version", "2023-06-01");
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => return Attempt::Again(error.without_url().to_string(), None),
        };
        let status = response.status();
        let wait = response.headers().get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
        let mut bytes = BytesMut::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(chunk) if bytes.len() + chunk.len() <= RESPONSE_CAP => bytes.extend_from_slice(&chunk),
                Ok(_) => return Attempt::Never(status.as_u16(), "its body is too large".to_owned()),
                Err(error) => return Attempt::Again(error.without_url().to_string(), None),
            }
        }
        if status.is_success() {
            return Attempt::Body(bytes.freeze());
        }
        let said: String = reply::error_message(&bytes).chars().take(ERROR_CAP).collect();
        if reply::is_moderation(&bytes) {
            return Attempt::Moderated(said);
        }
        if is_transient(status) {
            Attempt::Again(format!("status {}: {said}", status.as_u16()), wait.map(Duration::from_secs))
        } else {
            Attempt::Never(status.as_u16(), said)
        }
    }
}

/// Whether the same request may be answered later.
fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error()
}

#[cfg(test)]
mod tests;
