//! `providers.toml`: where models are served, and which variable names the key.

use std::collections::{BTreeMap, HashMap};

use axum::http::{HeaderName, HeaderValue};
use proctor_traces::WireFormat;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client::LimitField;

/// Providers by name.
#[derive(Clone, Debug, Default)]
pub struct Providers(BTreeMap<String, Provider>);

/// A model provider. It holds the *name* of the key's variable; a key is never written into a file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The URL below which `/responses`, `/chat/completions`, `/messages` and `/models/…:generateContent` lie; its version is part of it.
    pub base_url: String,
    /// Other base URLs for single wire formats.
    #[serde(default)]
    pub base_urls: HashMap<WireFormat, String>,
    /// The wire formats that it speaks, at least one.
    pub wire: Vec<WireFormat>,
    /// Name of the environment variable that holds the key.
    pub key_env: String,
    /// How the key is shown.
    #[serde(default)]
    pub auth: Auth,
    /// How it is shown on single wire formats, where that differs.
    #[serde(default)]
    pub auths: HashMap<WireFormat, Auth>,
    /// The field that bounds an answer in chat completions, for questions of our own.
    #[serde(default)]
    pub limit_field: LimitField,
    /// Fields to be merged into every generation request; only what is configured here is ever added (DESIGN §3.10).
    #[serde(default)]
    pub extra_body: Map<String, Value>,
    /// Hosts that pictures are fetched from which an answer only names: `cdn.example.com`, `*.example.com`, `127.0.0.1:8080`.
    #[serde(default)]
    pub picture_hosts: Vec<String>,
    /// Headers to be sent with every request. They are not secret: no key belongs here.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// How a key is shown to a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// `authorization: Bearer KEY`
    #[default]
    Bearer,
    /// `x-api-key: KEY`
    XApiKey,
    /// `x-goog-api-key: KEY`
    XGoogApiKey,
}

/// A `providers.toml` that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProvidersError {
    /// It is not TOML of the right shape; the message shows the place.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A provider says something that cannot be.
    #[error("provider `{provider}`: {message}")]
    Invalid {
        /// Which one.
        provider: String,
        /// What is wrong.
        message: String,
    },
}

impl Providers {
    /// Parses the text of a `providers.toml`: one table for each provider.
    pub fn parse(toml: &str) -> Result<Self, ProvidersError> {
        let providers: BTreeMap<String, Provider> = toml::from_str(toml)?;
        for (name, provider) in &providers {
            provider
                .check()
                .map_err(|message| ProvidersError::Invalid { provider: name.clone(), message })?;
        }
        Ok(Self(providers))
    }

    /// The providers that are known without any file.
    pub fn builtin() -> Self {
        // Parsing a constant; a test holds that it parses.
        Self::parse(include_str!("../data/providers.toml")).unwrap_or_default()
    }

    /// These, and those of `other` over them.
    #[must_use]
    pub fn overridden_by(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The provider of that name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.0.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Provider {
    /// Whether it speaks `wire`.
    pub fn speaks(&self, wire: WireFormat) -> bool {
        self.wire.contains(&wire)
    }

    /// The base URL for `wire`, without a slash at its end.
    pub(crate) fn base_url(&self, wire: WireFormat) -> &str {
        self.base_urls.get(&wire).unwrap_or(&self.base_url).trim_end_matches('/')
    }

    /// How the key is shown on `wire`.
    pub(crate) fn auth(&self, wire: WireFormat) -> Auth {
        self.auths.get(&wire).copied().unwrap_or(self.auth)
    }

    fn check(&self) -> Result<(), String> {
        for url in self.base_urls.values().chain([&self.base_url]) {
            let parsed = reqwest::Url::parse(url).map_err(|error| format!("`{url}`: {error}"))?;
            if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
                return Err(format!("`{url}` is not an http or https URL"));
            }
            if !parsed.username().is_empty() || parsed.password().is_some() {
                return Err("a base URL must not hold credentials".to_owned());
            }
            if parsed.query().is_some() || parsed.fragment().is_some() {
                return Err(format!("`{url}` must end with its path"));
            }
        }
        if self.wire.is_empty() {
            return Err("`wire` names at least one wire format".to_owned());
        }
        if let Some(wire) = self.base_urls.keys().find(|wire| !self.speaks(**wire)) {
            return Err(format!("it has a base URL for {}, but does not speak it", wire_name(*wire)));
        }
        if let Some(wire) = self.auths.keys().find(|wire| !self.speaks(**wire)) {
            return Err(format!("it has an `auths` entry for {}, but does not speak it", wire_name(*wire)));
        }
        let name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.key_env.is_empty() || !self.key_env.chars().all(name_char) {
            // The text is not repeated: it may be a key that was written here by mistake.
            return Err("`key_env` is the name of an environment variable".to_owned());
        }
        let host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        let is_host = |host: &str| !host.is_empty() && host.chars().all(host_char);
        if let Some(host) =
            self.picture_hosts.iter().find(|host| !is_host(host.strip_prefix("*.").unwrap_or(host)))
        {
            return Err(format!("`{host}` in `picture_hosts` is no host: it has no scheme and no path"));
        }
        for (name, value) in &self.headers {
            if name.parse::<HeaderName>().is_err() || value.parse::<HeaderValue>().is_err() {
                return Err(format!("`{name}` is not a valid header"));
            }
            if SECRET_HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret)) {
                return Err(format!("`{name}` would carry a secret; `key_env` and `auth` are for that"));
            }
        }
        Ok(())
    }
}

/// Headers that hold keys, which a file must not (they would be neither hidden nor blanked).
const SECRET_HEADERS: [&str; 6] =
    ["authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"];

/// The name of a wire format as it is written in files.
pub fn wire_name(wire: WireFormat) -> &'static str {
    match wire {
        WireFormat::OpenaiResponses => "openai_responses",
        WireFormat::OpenaiChat => "openai_chat",
        WireFormat::AnthropicMessages => "anthropic_messages",
        WireFormat::GeminiGenerate => "gemini_generate",
        WireFormat::OpenaiImages => "openai_images",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_ones_are_there() {
        let providers = Providers::builtin();
        for name in ["openai", "anthropic", "openrouter", "deepseek", "litellm"] {
            assert!(providers.get(name).is_some(), "{name}");
        }
        let anthropic = providers.get("anthropic").unwrap();
        assert_eq!(anthropic.auth, Auth::XApiKey);
        assert!(anthropic.speaks(WireFormat::AnthropicMessages) && !anthropic.speaks(WireFormat::OpenaiChat));
        let gemini = providers.get("gemini").unwrap();
        assert_eq!(gemini.auth(WireFormat::GeminiGenerate), Auth::XGoogApiKey);
        assert_eq!(gemini.auth(WireFormat::OpenaiChat), Auth::Bearer);
        assert!(gemini.base_url(WireFormat::GeminiGenerate).ends_with("/v1beta"));
        let deepseek = providers.get("deepseek").unwrap();
        assert_ne!(
            deepseek.base_url(WireFormat::AnthropicMessages),
            deepseek.base_url(WireFormat::OpenaiChat)
        );
    }

    #[test]
    fn files_override_and_add() {
        let file = "[openai]\nbase_url = \"http://127.0.0.1:1/v1/\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nextra_body = { provider = { order = [\"a\"] } }\nheaders = { x-title = \"t\" }";
        let providers = Providers::builtin().overridden_by(Providers::parse(file).unwrap());
        let openai = providers.get("openai").unwrap();
        assert_eq!(openai.base_url(WireFormat::OpenaiChat), "http://127.0.0.1:1/v1");
        assert_eq!(openai.extra_body["provider"]["order"][0], "a");
        assert!(providers.names().any(|name| name == "anthropic"));
    }

    #[test]
    fn nonsense_is_refused_and_keys_are_not_repeated() {
        for (lines, says) in [
            ("base_url = \"ftp://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"", "http or https"),
            ("base_url = \"http://u:p@x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"", "credentials"),
            ("base_url = \"http://x\"\nwire = []\nkey_env = \"K\"", "at least one"),
            ("base_url = \"http://x\"\nwire = [\"soap\"]\nkey_env = \"K\"", "soap"),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nkey = \"1\"",
                "unknown field",
            ),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nheaders = { Authorization = \"sk-secret\" }",
                "carry a secret",
            ),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"sk-secret\"",
                "name of an environment",
            ),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nheaders = { \"a b\" = \"\" }",
                "header",
            ),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nbase_urls = { openai_responses = \"http://y\" }",
                "does not speak",
            ),
            (
                "base_url = \"http://x\"\nwire = [\"openai_chat\"]\nkey_env = \"K\"\nauths = { gemini_generate = \"x-goog-api-key\" }",
                "does not speak",
            ),
        ] {
            let error = Providers::parse(&format!("[p]\n{lines}")).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(!error.contains("sk-secret"), "{error}");
        }
    }
}
