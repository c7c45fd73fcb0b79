//! The routes of a model server, and what an error looks like on each of them.
//!
//! Three of the four wire formats say in the body which model is asked and whether the answer is to be a stream.
//! Gemini's says both in the path, so what hangs on that takes the path too.

use axum::http::Method;
use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::client::PictureEndpoint;

/// Where our own client asks for the file of a picture.
pub(crate) const FETCH: &str = "/proctor/picture";

/// What a request line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A generation in one of the wire formats.
    Generate(WireFormat),
    /// Token counting, by Anthropic's or Gemini's rules.
    CountTokens(WireFormat),
    /// A picture.
    Picture(PictureEndpoint),
    /// The file of a picture that an answer has named: a route of ours, for our own client.
    Fetch,
    /// The list of models.
    Models,
    /// A sign of life: `GET` or `HEAD` of the root, or of what Claude Code looks at before its first request.
    Alive,
}

impl Route {
    /// The allow-list. `path` is without the query.
    ///
    /// Every route exists with and without `/v1`: `OpenAI` clients are given a base URL that ends in `/v1` and
    /// Anthropic clients one that does not, and a harness that mixes them up means the same thing.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        if let Some(asked) = GeminiPath::of(path).filter(|_| method == Method::POST) {
            return Some(match asked.verb {
                GeminiVerb::Generate | GeminiVerb::Stream => Self::Generate(WireFormat::GeminiGenerate),
                GeminiVerb::CountTokens => Self::CountTokens(WireFormat::GeminiGenerate),
            });
        }
        let tail = path.strip_prefix("/v1").unwrap_or(path);
        match (method.as_str(), tail) {
            ("POST", "/responses") => Some(Self::Generate(WireFormat::OpenaiResponses)),
            ("POST", "/chat/completions") => Some(Self::Generate(WireFormat::OpenaiChat)),
            ("POST", "/messages") => Some(Self::Generate(WireFormat::AnthropicMessages)),
            ("POST", "/messages/count_tokens") => Some(Self::CountTokens(WireFormat::AnthropicMessages)),
            ("POST", "/images/edits") => Some(Self::Picture(PictureEndpoint::Edits)),
            ("POST", "/images/generations") => Some(Self::Picture(PictureEndpoint::Generations)),
            ("POST", FETCH) if path == tail => Some(Self::Fetch),
            ("GET", "/models") => Some(Self::Models),
            ("GET" | "HEAD", "/" | "/api/hello") if path == tail => Some(Self::Alive),
            _ => None,
        }
    }

    /// The wire format spoken on it, where it is one format's own.
    pub(crate) fn wire(self) -> Option<WireFormat> {
        match self {
            Self::Generate(wire) | Self::CountTokens(wire) => Some(wire),
            Self::Picture(_) | Self::Fetch => Some(WireFormat::OpenaiImages),
            Self::Models | Self::Alive => None,
        }
    }

    /// Whether it is for those who ask for pictures, and for nobody else: an agent is to draw by itself.
    pub(crate) fn is_of_pictures(self) -> bool {
        self.wire() == Some(WireFormat::OpenaiImages)
    }

    /// The path below a provider's base URL, which already holds its version. `path` is the one that was asked.
    pub(crate) fn upstream_tail(self, path: &str) -> Option<&str> {
        match self {
            Self::Generate(WireFormat::GeminiGenerate) | Self::CountTokens(WireFormat::GeminiGenerate) => {
                GeminiPath::of(path).map(|asked| asked.tail)
            }
            Self::Generate(WireFormat::OpenaiResponses) => Some("/responses"),
            Self::Generate(WireFormat::OpenaiChat) => Some("/chat/completions"),
            Self::Generate(WireFormat::AnthropicMessages) => Some("/messages"),
            Self::CountTokens(_) => Some("/messages/count_tokens"),
            Self::Picture(PictureEndpoint::Edits) => Some("/images/edits"),
            Self::Picture(PictureEndpoint::Generations) => Some("/images/generations"),
            Self::Generate(WireFormat::OpenaiImages) | Self::Fetch | Self::Models | Self::Alive => None,
        }
    }
}

/// A path of Gemini's API, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GeminiPath<'a> {
    /// The model asked for.
    pub(crate) model: &'a str,
    /// What is asked of it.
    pub(crate) verb: GeminiVerb,
    /// The path behind the version.
    tail: &'a str,
}

/// What is asked of a model of Gemini's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeminiVerb {
    /// An answer as one object.
    Generate,
    /// An answer in pieces.
    Stream,
    /// The number of tokens of a request.
    CountTokens,
}

impl<'a> GeminiPath<'a> {
    /// Longest name of a model, in bytes.
    const NAME_CAP: usize = 128;

    /// `path` without the query, if it is one of the three that exist. The name of the model goes into the upstream's
    /// URL, so it holds nothing that could lead elsewhere: no slash, no escape, no dot at its beginning.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let tail = path.strip_prefix("/v1beta").or_else(|| path.strip_prefix("/v1"))?;
        let (model, verb) = tail.strip_prefix("/models/")?.split_once(':')?;
        let verb = match verb {
            "generateContent" => GeminiVerb::Generate,
            "streamGenerateContent" => GeminiVerb::Stream,
            "countTokens" => GeminiVerb::CountTokens,
            _ => return None,
        };
        let is_name = (1..=Self::NAME_CAP).contains(&model.len())
            && !model.starts_with('.')
            && model.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
        is_name.then_some(Self { model, verb, tail })
    }
}

/// An error body as clients of `wire` expect it; without a format, `OpenAI`'s shape.
pub(crate) fn error_body(wire: Option<WireFormat>, status: u16, message: &str) -> Value {
    let kind = match status {
        400 | 413 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    match wire {
        Some(WireFormat::AnthropicMessages) => {
            json!({"type": "error", "error": {"type": kind, "message": message}})
        }
        Some(WireFormat::GeminiGenerate) => {
            json!({"error": {"code": status, "message": message, "status": gemini_status(status)}})
        }
        _ => json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
    }
}

/// Google's word for an HTTP status.
fn gemini_status(status: u16) -> &'static str {
    match status {
        400 | 413 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allow_list_is_short() {
        let route = |method: &str, path: &str| Route::of(&method.parse().unwrap(), path);
        assert_eq!(route("POST", "/v1/responses"), Some(Route::Generate(WireFormat::OpenaiResponses)));
        assert_eq!(route("POST", "/chat/completions"), Some(Route::Generate(WireFormat::OpenaiChat)));
        assert_eq!(
            route("POST", "/v1/messages/count_tokens"),
            Some(Route::CountTokens(WireFormat::AnthropicMessages))
        );
        assert_eq!(route("HEAD", "/"), Some(Route::Alive));
        assert_eq!(route("HEAD", "/api/hello"), Some(Route::Alive));
        for (method, path) in [
            ("GET", "/v1/responses"),
            ("POST", "/v1/files"),
            ("POST", "/v1/responses/../files"),
            ("POST", "/v1/v1/responses"),
            ("POST", "//v1/responses"),
            ("GET", "/v1/"),
            ("DELETE", "/v1/models"),
            ("CONNECT", "/"),
            ("GET", "/v1beta/models/gemini-2.5-pro:generateContent"),
            ("POST", "/v1beta/models/gemini-2.5-pro:embedContent"),
            ("POST", "/v1beta/models/../files:generateContent"),
            ("POST", "/v1beta/models/a%2fb:generateContent"),
            ("POST", "/v1beta/models/.:generateContent"),
            ("POST", "/v1beta/models/:generateContent"),
            ("POST", "/models/gemini:generateContent"),
        ] {
            assert_eq!(route(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn geminis_paths_name_the_model_and_what_is_asked_of_it() {
        let generate = Some(Route::Generate(WireFormat::GeminiGenerate));
        for (path, verb, route) in [
            ("/v1beta/models/gemini-2.5-pro:generateContent", GeminiVerb::Generate, generate),
            ("/v1/models/gemini-2.5-pro:streamGenerateContent", GeminiVerb::Stream, generate),
            (
                "/v1beta/models/gemini-2.5-pro:countTokens",
                GeminiVerb::CountTokens,
                Some(Route::CountTokens(WireFormat::GeminiGenerate)),
            ),
        ] {
            let asked = GeminiPath::of(path).unwrap();
            assert_eq!((asked.model, asked.verb), ("gemini-2.5-pro", verb));
            let found = Route::of(&Method::POST, path);
            assert_eq!(found, route, "{path}");
            let tail = found.and_then(|route| route.upstream_tail(path)).unwrap();
            assert!(tail.starts_with("/models/gemini-2.5-pro:") && path.ends_with(tail), "{tail}");
        }
        let body = error_body(Some(WireFormat::GeminiGenerate), 429, "slow down");
        assert_eq!(body["error"]["status"], "RESOURCE_EXHAUSTED");
        assert_eq!(body["error"]["code"], 429);
    }
}
