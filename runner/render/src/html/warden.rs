//! What a page may and may not do while its frames are drawn: it gets itself and its assets, and nothing else.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::Page;
use chromiumoxide::cdp::browser_protocol::fetch::{
    ContinueRequestParams, EventRequestPaused, FailRequestParams, FulfillRequestParams, HeaderEntry,
};
use chromiumoxide::cdp::browser_protocol::inspector::EventTargetCrashed;
use chromiumoxide::cdp::browser_protocol::network::{ErrorReason, ResourceType};
use chromiumoxide::cdp::browser_protocol::page::{
    EventJavascriptDialogOpening, HandleJavaScriptDialogParams,
};
use chromiumoxide::error::CdpError;
use chromiumoxide::listeners::EventStream;
use futures_util::StreamExt as _;

use crate::Asset;
use crate::tool::is_plain;

/// Where pages believe to be: not at a `file:` address, which may show other files, but at a local name, which gives a
/// page the same interfaces (those of a "secure context"). Nothing of it is ever asked of a network.
pub(crate) const ORIGIN: &str = "http://artifact.localhost/";

/// How many refused addresses are kept, and how much of each.
const MAX_REQUESTS: usize = 100;
const MAX_ADDRESS: usize = 200;
/// The largest asset that is served.
const MAX_ASSET_BYTES: u64 = 16 << 20;

/// Watches one page.
pub(crate) struct Warden<'a> {
    page: Page,
    document: &'a [u8],
    assets: &'a [Asset],
    served: bool,
    /// Addresses that were refused.
    pub(crate) external_requests: Vec<String>,
    /// Dialogs that were dismissed.
    pub(crate) dialogs: u32,
    requests: EventStream<EventRequestPaused>,
    openings: EventStream<EventJavascriptDialogOpening>,
    crashes: EventStream<EventTargetCrashed>,
}

impl<'a> Warden<'a> {
    /// Listens to `page`, which has not navigated yet.
    pub(crate) async fn new(page: Page, document: &'a [u8], assets: &'a [Asset]) -> Result<Self, CdpError> {
        let requests = page.event_listener().await?;
        let openings = page.event_listener().await?;
        let crashes = page.event_listener().await?;
        Ok(Self {
            page,
            document,
            assets,
            served: false,
            external_requests: Vec::new(),
            dialogs: 0,
            requests,
            openings,
            crashes,
        })
    }

    /// Answers whatever the page asks, until it crashes or cannot be reached; returns what happened.
    pub(crate) async fn watch(&mut self) -> String {
        loop {
            let answered = tokio::select! {
                Some(request) = self.requests.next() => self.answer(request).await,
                Some(_) = self.openings.next() => {
                    self.dialogs = self.dialogs.saturating_add(1);
                    self.page.execute(HandleJavaScriptDialogParams::new(false)).await.map(drop)
                }
                Some(_) = self.crashes.next() => return "the page's process crashed".to_owned(),
                else => return "the page is gone".to_owned(),
            };
            // A request or dialog that went away meanwhile needs no answer.
            if let Err(error) = answered {
                tracing::debug!(%error, "the page did not wait for an answer");
            }
        }
    }

    async fn answer(&mut self, event: Arc<EventRequestPaused>) -> Result<(), CdpError> {
        let id = event.request_id.clone();
        let url = event.request.url.as_str();
        if url.starts_with("data:") || url.starts_with("blob:") {
            return self.page.execute(ContinueRequestParams::new(id)).await.map(drop);
        }
        let document = event.resource_type == ResourceType::Document;
        let found = if document && url == ORIGIN && !self.served {
            self.served = true;
            Some((self.document.to_vec(), page_type(self.document)))
        } else {
            self.asset(url)
        };
        if let Some((body, media_type)) = found {
            let answer = FulfillRequestParams::builder()
                .request_id(id)
                .response_code(200)
                .response_header(HeaderEntry::new("Content-Type", media_type))
                .body(STANDARD.encode(body))
                .build()
                .map_err(CdpError::msg)?;
            return self.page.execute(answer).await.map(drop);
        }
        self.note(url);
        // An aborted navigation leaves the document where it is; a blocked one would show an error page in its place.
        let reason = if document { ErrorReason::Aborted } else { ErrorReason::BlockedByClient };
        self.page.execute(FailRequestParams::new(id, reason)).await.map(drop)
    }

    fn note(&mut self, url: &str) {
        let address: String = url.chars().filter(|c| !c.is_control()).take(MAX_ADDRESS).collect();
        if self.external_requests.len() < MAX_REQUESTS && !self.external_requests.contains(&address) {
            self.external_requests.push(address);
        }
    }

    fn asset(&self, url: &str) -> Option<(Vec<u8>, &'static str)> {
        let name = url.strip_prefix(ORIGIN)?.split(['?', '#']).next()?;
        let name = percent_decoded(name)?;
        let asset = self.assets.iter().find(|asset| asset.name == name && is_plain(&asset.name))?;
        let details = std::fs::metadata(&asset.source).ok()?;
        if details.len() > MAX_ASSET_BYTES {
            return None;
        }
        Some((std::fs::read(&asset.source).ok()?, media_type(&name)))
    }
}

/// The page's type. A file that says nothing of its encoding is read as UTF-8 if it is: browsers do that for local files
/// but not for served ones.
fn page_type(document: &[u8]) -> &'static str {
    let head = String::from_utf8_lossy(&document[..document.len().min(1024)]).to_ascii_lowercase();
    if head.contains("charset") || std::str::from_utf8(document).is_err() {
        "text/html"
    } else {
        "text/html; charset=utf-8"
    }
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "txt" => "text/plain",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "ttf" => "font/ttf",
        "otf" => "font/otf",
        _ => "application/octet-stream",
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_of_its_encoding_is_utf8_if_it_can_be() {
        assert_eq!(page_type("<p>é".as_bytes()), "text/html; charset=utf-8");
        assert_eq!(page_type(b"<META charset=latin1><p>"), "text/html");
        assert_eq!(page_type(b"<p>\xe9"), "text/html");
    }

    #[test]
    fn names_in_addresses_are_decoded() {
        assert_eq!(percent_decoded("public/a%20b.png").as_deref(), Some("public/a b.png"));
        assert_eq!(percent_decoded("%C3%A9").as_deref(), Some("é"));
        for bad in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(percent_decoded(bad), None, "{bad}");
        }
    }
}
