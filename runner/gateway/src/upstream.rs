//! The real model server behind a live gateway. The only place that holds a key.

mod fetch;

use std::collections::HashMap;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use bytes::Bytes;
use futures_util::StreamExt;
use proctor_traces::WireFormat;
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::body::Broken;
use crate::provider::{Auth, Provider, wire_name};
use crate::redact::Redactor;
use crate::wire::Route;

/// How the network is reached. This crate reads no environment: whoever does puts it here.
#[derive(Clone, Debug, Default)]
pub struct NetSettings {
    /// URL of an HTTP proxy for all requests (`http://host:port`, credentials allowed).
    pub proxy: Option<String>,
    /// Hosts that are reached without it, comma-separated as in `NO_PROXY`.
    pub no_proxy: Option<String>,
    /// Certificates in PEM, trusted besides those of the system.
    pub ca_pem: Vec<Vec<u8>>,
    /// Longest silence of the server before a response counts as broken; none waits for the trial's own end.
    pub read_timeout: Option<Duration>,
}

/// A provider with its key and a way to it.
#[derive(Debug)]
pub struct Upstream {
    client: Client,
    provider: Provider,
    headers: HeaderMap,
    /// How the key is shown, by wire format.
    credentials: HashMap<WireFormat, (HeaderName, HeaderValue)>,
    redactor: Redactor,
}

/// A provider that cannot be reached as described.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The key cannot stand in a header.
    #[error("the key holds characters that no HTTP header can carry")]
    Key,
    /// The proxy's URL is none.
    #[error("the proxy is not a URL that can be used")]
    Proxy(#[source] reqwest::Error),
    /// A certificate file holds no certificate.
    #[error("a file of trusted certificates holds no usable PEM certificate")]
    Certificate,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// Nobody is trusted, so nothing can be reached.
    #[error(
        "the system has no trusted certificates (on Debian: install ca-certificates), and none were given"
    )]
    NoTrust,
    /// The client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

impl Upstream {
    /// Gets ready to talk to `provider`; nothing is sent yet.
    pub fn new(provider: &Provider, key: SecretString, net: NetSettings) -> Result<Self, UpstreamError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &provider.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                headers.insert(name, value);
            }
        }
        let mut credentials = HashMap::new();
        for wire in &provider.wire {
            credentials.insert(*wire, credential(provider.auth(*wire), &key)?);
        }
        // Bodies are recorded and must be readable; a server that compresses all the same is passed on as it is.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(Self {
            client: client(provider, net)?,
            provider: provider.clone(),
            headers,
            credentials,
            redactor: Redactor::new(key),
        })
    }

    pub(crate) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }

    /// Passes a request on. `uri` is as it was asked.
    pub(crate) async fn answer(&self, route: Route, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Answer {
        let wire = route.wire();
        let (Some(tail), Some(format)) = (route.upstream_tail(uri.path()), wire) else {
            return match route {
                Route::Alive => Answer::json(200, &serde_json::json!({"status": "ok"})),
                _ => Answer::refused(wire, 404, "models are not listed here".to_owned()),
            };
        };
        if !self.provider.speaks(format) {
            let spoken: Vec<_> = self.provider.wire.iter().map(|wire| wire_name(*wire)).collect();
            let message = format!(
                "this provider speaks {}, not {}; wire formats are not translated (a LiteLLM proxy can do that)",
                spoken.join(", "),
                wire_name(format)
            );
            return Answer::refused(wire, 400, message);
        }
        let body = match route {
            Route::Generate(_) if !self.provider.extra_body.is_empty() => {
                match with_extra(&body, &self.provider.extra_body) {
                    Some(body) => body,
                    None => {
                        return Answer::refused(
                            wire,
                            400,
                            "the request body is not a JSON object".to_owned(),
                        );
                    }
                }
            }
            _ => body,
        };
        let mut url = format!("{}{tail}", self.provider.base_url(format));
        if let Some(query) = uri.query().map(without_key).filter(|query| !query.is_empty()) {
            url.push('?');
            url.push_str(&query);
        }
        let mut sent = forwarded(headers, &REQUEST_OWN);
        sent.extend(self.headers.clone());
        sent.extend(self.credentials.get(&format).cloned());
        match self.client.post(url).headers(sent).body(body).send().await {
            Ok(response) => self.passed_on(response),
            Err(error) => Answer::unreachable(wire, describe(error)),
        }
    }

    fn passed_on(&self, response: reqwest::Response) -> Answer {
        let mut headers = forwarded(response.headers(), &[header::SET_COOKIE]);
        let leaks: Vec<_> = headers
            .iter()
            .filter(|(_, value)| self.redactor.occurs_in(value.as_bytes()))
            .map(|(name, _)| name.clone())
            .collect();
        for name in leaks {
            headers.remove(name);
        }
        let length = headers.get(header::CONTENT_LENGTH);
        let length = match response.status().as_u16() {
            // These never have a body, whatever their head says.
            204 | 304 => Some(0),
            _ => length.and_then(|value| value.to_str().ok()?.parse().ok()),
        };
        Answer {
            status: response.status().as_u16(),
            headers,
            body: response.bytes_stream().map(|chunk| chunk.map_err(|error| Broken(describe(error)))).boxed(),
            length,
            failed: None,
        }
    }
}

/// The header that shows `key`.
fn credential(auth: Auth, key: &SecretString) -> Result<(HeaderName, HeaderValue), UpstreamError> {
    let (name, value) = match auth {
        Auth::Bearer => (header::AUTHORIZATION, format!("Bearer {}", key.expose_secret())),
        Auth::XApiKey => (HeaderName::from_static("x-api-key"), key.expose_secret().to_owned()),
        Auth::XGoogApiKey => (HeaderName::from_static("x-goog-api-key"), key.expose_secret().to_owned()),
    };
    let mut value = HeaderValue::try_from(value).map_err(|_| UpstreamError::Key)?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// `query` without `key=…`, in which clients of Google's may show the key that they were given.
fn without_key(query: &str) -> String {
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("key=")).collect();
    kept.join("&")
}

fn client(provider: &Provider, net: NetSettings) -> Result<Client, UpstreamError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(provider, &net.ca_pem)?)
        // A redirect could carry the key to another host, and a retry would be an exchange that nobody recorded.
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(Duration::from_secs(30));
    if let Some(proxy) = net.proxy {
        let exceptions = net.no_proxy.as_deref().and_then(NoProxy::from_string);
        builder = builder.proxy(Proxy::all(proxy).map_err(UpstreamError::Proxy)?.no_proxy(exceptions));
    }
    if let Some(timeout) = net.read_timeout {
        builder = builder.read_timeout(timeout);
    }
    builder.build().map_err(UpstreamError::Client)
}

/// TLS with a provider of cryptography of its own: this library installs nothing for the whole process.
fn tls(provider: &Provider, ca_pem: &[Vec<u8>]) -> Result<rustls::ClientConfig, UpstreamError> {
    let mut roots = rustls::RootCertStore::empty();
    for pem in ca_pem {
        let before = roots.len();
        let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        roots.add_parsable_certificates(certificates);
        if roots.len() == before {
            return Err(UpstreamError::Certificate);
        }
    }
    // A certificate of the system that cannot be read is the system's affair, as long as others can.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let urls = provider.base_urls.values().chain([&provider.base_url]);
    if roots.is_empty() && urls.into_iter().any(|url| url.starts_with("https:")) {
        return Err(UpstreamError::NoTrust);
    }
    let mut config = trusting(roots)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// TLS that trusts these.
pub(crate) fn trusting(roots: rustls::RootCertStore) -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = rustls::crypto::ring::default_provider();
    Ok(rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Of a request: what the client library sets itself, what we set instead, and every way to show a key.
const REQUEST_OWN: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::ACCEPT_ENCODING,
    header::EXPECT,
    header::AUTHORIZATION,
    header::COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

fn forwarded(headers: &HeaderMap, own: &[HeaderName]) -> HeaderMap {
    let mut kept = headers.clone();
    let named: Vec<_> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP).chain(own) {
        kept.remove(name);
    }
    kept
}

/// `body` with `extra` merged into it, objects deeply; none if it is no object.
fn with_extra(body: &[u8], extra: &Map<String, Value>) -> Option<Bytes> {
    let mut body: Map<String, Value> = serde_json::from_slice(body).ok()?;
    merge(&mut body, extra);
    serde_json::to_vec(&body).ok().map(Bytes::from)
}

fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            _ => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}

/// An error with its causes and without URLs, which may hold a proxy's credentials.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn extra_fields_are_merged_deeply_and_win() {
        let extra = json!({"provider": {"order": ["a"]}, "n": 2});
        let body = br#"{"n": 1, "provider": {"sort": "price"}, "model": "x/y:z"}"#;
        let merged: Value =
            serde_json::from_slice(&with_extra(body, extra.as_object().unwrap()).unwrap()).unwrap();
        assert_eq!(merged, json!({"n": 2, "provider": {"sort": "price", "order": ["a"]}, "model": "x/y:z"}));
        assert_eq!(with_extra(b"[]", extra.as_object().unwrap()), None);
    }

    #[test]
    fn connection_headers_and_keys_stay_behind() {
        let headers = HeaderMap::from_iter([
            (header::CONNECTION, HeaderValue::from_static("close, X-Own")),
            (HeaderName::from_static("x-own"), HeaderValue::from_static("1")),
            (header::AUTHORIZATION, HeaderValue::from_static("Bearer agent")),
            (HeaderName::from_static("x-api-key"), HeaderValue::from_static("agent")),
            (HeaderName::from_static("x-goog-api-key"), HeaderValue::from_static("agent")),
            (header::ACCEPT_ENCODING, HeaderValue::from_static("zstd")),
            (HeaderName::from_static("anthropic-beta"), HeaderValue::from_static("b")),
        ]);
        let kept = forwarded(&headers, &REQUEST_OWN);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept["anthropic-beta"], "b");
    }

    #[test]
    fn certificates_must_be_certificates() {
        let providers = crate::Providers::builtin();
        let net = NetSettings { ca_pem: vec![b"no certificate".to_vec()], ..NetSettings::default() };
        let error =
            Upstream::new(providers.get("openai").unwrap(), SecretString::from("k"), net).unwrap_err();
        assert!(matches!(error, UpstreamError::Certificate));
    }

    #[test]
    fn keys_are_not_shown() {
        let provider = crate::Providers::builtin().get("litellm").unwrap().clone();
        let upstream =
            Upstream::new(&provider, SecretString::from("sk-very-secret"), NetSettings::default()).unwrap();
        assert!(!format!("{upstream:?}").contains("very-secret"));
        let error = Upstream::new(&provider, SecretString::from("a\nb"), NetSettings::default()).unwrap_err();
        assert!(matches!(error, UpstreamError::Key));
    }
}
