//! Fetching a picture that a provider's answer names: from hosts that its configuration lists, and from nowhere else.

use axum::http::header;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use proctor_traces::WireFormat;
use reqwest::Url;
use serde::Deserialize;

use super::{Upstream, describe};
use crate::answer::Answer;
use crate::body::Broken;

/// Largest picture that is fetched, in bytes.
const PICTURE_CAP: u64 = 32 << 20;

const WIRE: Option<WireFormat> = Some(WireFormat::OpenaiImages);

/// What a client asks for.
#[derive(Deserialize)]
struct Asked {
    url: String,
}

impl Upstream {
    /// Fetches the picture that `body` names. No key is shown, no redirect is followed.
    pub(crate) async fn fetch(&self, body: &Bytes) -> Answer {
        let refused = |message: String| Answer::refused(WIRE, 403, message);
        let Ok(Asked { url }) = serde_json::from_slice(body) else {
            return Answer::refused(WIRE, 400, "no address is named".to_owned());
        };
        let url = match self.allowed(&url) {
            Ok(url) => url,
            Err(message) => return refused(message),
        };
        let response = match self.client.get(url).header(header::ACCEPT_ENCODING, "identity").send().await {
            Ok(response) => response,
            Err(error) => return Answer::unreachable(WIRE, describe(error)),
        };
        if response.status().is_redirection() {
            return refused("the picture has moved: redirects are not followed".to_owned());
        }
        if response.content_length().is_some_and(|length| length > PICTURE_CAP) {
            return refused(format!("the picture has more than {PICTURE_CAP} bytes"));
        }
        let answer = self.passed_on(response);
        let body = stream::unfold((answer.body, PICTURE_CAP), |(mut body, left)| async move {
            let chunk = body.next().await?;
            let Ok(chunk) = chunk else { return Some((chunk, (stream::empty().boxed(), 0))) };
            Some(if let Some(left) = left.checked_sub(chunk.len() as u64) {
                (Ok(chunk), (body, left))
            } else {
                let broken = Broken(format!("the picture has more than {PICTURE_CAP} bytes"));
                (Err(broken), (stream::empty().boxed(), 0))
            })
        });
        Answer { body: body.boxed(), ..answer }
    }

    /// The address, if it may be asked.
    fn allowed(&self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text).map_err(|_| "the picture's address is no URL".to_owned())?;
        let own = Url::parse(self.provider.base_url(WireFormat::OpenaiImages)).ok();
        let scheme = own.as_ref().map_or("https", Url::scheme);
        if url.scheme() != "https" && url.scheme() != scheme {
            return Err(format!("the picture's address is no {scheme} URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the picture's address holds credentials".to_owned());
        }
        let host = url.host_str().unwrap_or_default();
        let place = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let listed = self.provider.picture_hosts.iter().any(|allowed| match allowed.strip_prefix("*.") {
            Some(domain) => place.strip_suffix(domain).is_some_and(|it| it.len() > 1 && it.ends_with('.')),
            None => *allowed == place,
        });
        if listed {
            Ok(url)
        } else {
            let shown: String = place.chars().take(200).collect();
            Err(format!("the picture lies on {shown}, which is not among the provider's `picture_hosts`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::{NetSettings, Providers};

    fn upstream(base: &str) -> Upstream {
        let text = format!(
            "[p]\nbase_url = \"{base}\"\nwire = [\"openai_images\"]\nkey_env = \"K\"\n\
             picture_hosts = [\"cdn.example.com\", \"*.files.example.com\", \"127.0.0.1:8080\"]"
        );
        let providers = Providers::parse(&text).unwrap();
        Upstream::new(providers.get("p").unwrap(), SecretString::from("k"), NetSettings::default()).unwrap()
    }

    #[test]
    fn only_listed_hosts_are_asked() {
        let ours = upstream("http://127.0.0.1:9/v1");
        for url in [
            "https://cdn.example.com/a.png?sig=1",
            "http://cdn.example.com/a.png",
            "https://eu.files.example.com/a",
            "http://127.0.0.1:8080/a",
        ] {
            assert!(ours.allowed(url).is_ok(), "{url}");
        }
        for url in [
            "https://example.com/a.png",
            "https://cdn.example.com.evil.org/a.png",
            "https://evilfiles.example.com/a",
            "https://files.example.com/a",
            "https://.files.example.com/a",
            "https://cdn.example.com:8443/a",
            "https://cdn.example.com@evil.org/a",
            "https://user:pw@cdn.example.com/a",
            "file:///etc/passwd",
            "http://127.0.0.1/a",
            "http://169.254.169.254/latest",
            "cdn.example.com/a",
        ] {
            assert!(ours.allowed(url).is_err(), "{url}");
        }
    }
}
