//! The routes of a model server, and what an error looks like on each of them.

use axum::http::Method;
use proctor_traces::WireFormat;
use serde_json::{Value, json};

/// What a request line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A generation in one of the three wire formats.
    Generate(WireFormat),
    /// Anthropic's token counting.
    CountTokens,
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
        let tail = path.strip_prefix("/v1").unwrap_or(path);
        match (method.as_str(), tail) {
            ("POST", "/responses") => Some(Self::Generate(WireFormat::OpenaiResponses)),
            ("POST", "/chat/completions") => Some(Self::Generate(WireFormat::OpenaiChat)),
            ("POST", "/messages") => Some(Self::Generate(WireFormat::AnthropicMessages)),
            ("POST", "/messages/count_tokens") => Some(Self::CountTokens),
            ("GET", "/models") => Some(Self::Models),
            ("GET" | "HEAD", "/" | "/api/hello") if path == tail => Some(Self::Alive),
            _ => None,
        }
    }

    /// The wire format spoken on it, where it is one format's own.
    pub(crate) fn wire(self) -> Option<WireFormat> {
        match self {
            Self::Generate(wire) => Some(wire),
            Self::CountTokens => Some(WireFormat::AnthropicMessages),
            Self::Models | Self::Alive => None,
        }
    }

    /// The path below a provider's base URL, which already holds its version.
    pub(crate) fn upstream_tail(self) -> Option<&'static str> {
        match self {
            Self::Generate(WireFormat::OpenaiResponses) => Some("/responses"),
            Self::Generate(WireFormat::OpenaiChat) => Some("/chat/completions"),
            Self::Generate(WireFormat::AnthropicMessages) => Some("/messages"),
            Self::CountTokens => Some("/messages/count_tokens"),
            Self::Models | Self::Alive => None,
        }
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
        _ => json!({"error": {"message": message, "type": kind, "param": null, "code": null}}),
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
        assert_eq!(route("POST", "/v1/messages/count_tokens"), Some(Route::CountTokens));
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
        ] {
            assert_eq!(route(method, path), None, "{method} {path}");
        }
    }
}
