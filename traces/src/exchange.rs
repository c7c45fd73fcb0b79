//! One model request and its response, as the gateway saw it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, OffsetMs, Timestamp, Usage};

/// The language spoken on a model route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// `OpenAI` Responses, `POST /v1/responses`.
    OpenaiResponses,
    /// `OpenAI` Chat Completions, `POST /v1/chat/completions`.
    OpenaiChat,
    /// Anthropic Messages, `POST /v1/messages`.
    AnthropicMessages,
    /// Gemini's `POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`.
    GeminiGenerate,
    /// `OpenAI`'s images, `POST /v1/images/edits` and `/v1/images/generations`; the answer is a picture.
    OpenaiImages,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExchangeEnd {
    /// The whole response was handed to the agent.
    Complete,
    /// The agent went away before the end of the response.
    ClientGone,
    /// The model server broke off, refused the connection, or could not be reached.
    UpstreamBroke,
    /// The trial ended first.
    Deadline,
    /// The route is not on the allow-list; nothing was asked of anybody.
    Refused,
    /// A replay has no recorded response to it.
    Diverged,
}

/// A line of `model/exchanges.jsonl`. Bodies are blobs in `model/blobs/`, named by digest; of headers only those of
/// responses are kept that mean something to a client; keys never are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Exchange {
    /// Number within the trial, from 0, in order of arrival.
    pub id: u64,
    /// Wire format of the route; none for a refused route.
    pub wire: Option<WireFormat>,
    /// HTTP method.
    pub method: String,
    /// Path and query as asked.
    pub path: String,
    /// Wall time of the request's arrival.
    pub started_at: Timestamp,
    /// Arrival of the request.
    pub start_ms: OffsetMs,
    /// First byte of the response body, as handed to the agent.
    pub first_byte_ms: Option<OffsetMs>,
    /// Last byte, or the moment it broke.
    pub end_ms: OffsetMs,
    /// HTTP status handed to the agent, if it came to that.
    pub status: Option<u16>,
    /// How it ended.
    pub end: ExchangeEnd,
    /// What broke, for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that the agent asked for.
    pub model: Option<String>,
    /// The model that the server says answered.
    pub served_model: Option<String>,
    /// The server's fingerprint of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Tokens as the server counted them.
    pub usage: Option<Usage>,
    /// The script's step that was played, as (user prompts, tool results since the last).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<(u32, u32)>,
    /// In a replay: how the request differs from the recorded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<String>,
    /// Headers of the response that a client reads: content type and encoding, retry times, rate limits, request id, model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether the response was longer than what is kept of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Digest of the request body.
    pub request: Digest,
    /// Size of the request body.
    pub request_bytes: u64,
    /// Digest of the response body as far as it was handed over.
    pub response: Digest,
    /// Size of that.
    pub response_bytes: u64,
}
