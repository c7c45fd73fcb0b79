//! Content that may be one text or a list of parts: texts, pictures, and whatever comes next.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::json::{Object, Raw};
use crate::{Digest, ViewedImage};

/// Text and pictures of a result.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// All texts, a line break between them.
    pub(crate) text: String,
    /// Size of all parts in bytes.
    pub(crate) bytes: u64,
    pub(crate) images: Vec<ViewedImage>,
}

impl Content {
    /// Reads content of any of the agents' forms.
    pub(crate) fn read(raw: Option<Raw<'_>>) -> Self {
        let mut content = Self::default();
        if let Some(raw) = raw {
            content.add(raw);
        }
        content
    }

    fn add(&mut self, raw: Raw<'_>) {
        if let Some(text) = raw.text() {
            self.add_text(&text);
        } else if let Some(part) = raw.object() {
            self.add_part(&part, raw);
        } else if raw.as_written().starts_with('[') {
            for part in raw.array() {
                self.add(part);
            }
        } else {
            self.add_text(raw.as_written());
        }
    }

    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        self.bytes += text.len() as u64;
    }

    fn add_part(&mut self, part: &Object<'_>, raw: Raw<'_>) {
        match image(part) {
            Some(image) => {
                self.bytes += image.bytes;
                let media_type = image.media_type.as_deref().unwrap_or("image");
                let shown = format!("[{media_type}, {} bytes]", image.bytes);
                if !self.text.is_empty() && !self.text.ends_with('\n') {
                    self.text.push('\n');
                }
                self.text.push_str(&shown);
                self.images.push(image);
            }
            None => match ["text", "content", "output"].iter().find_map(|key| part.get(key)) {
                Some(inner) if inner.text().is_some() || inner.as_written().starts_with('[') => {
                    self.add(inner);
                }
                _ => self.add_text(raw.as_written()),
            },
        }
    }
}

/// A picture, if the part is one: Anthropic's `source`, `OpenAI`'s `image_url`, Google's `inlineData`, or plain `data`.
pub(crate) fn image(part: &Object<'_>) -> Option<ViewedImage> {
    if let Some(source) = part.object("source") {
        let media_type = source.text("media_type").map(Into::into);
        return match source.text("data") {
            Some(data) => Some(of_base64(&data, media_type)),
            None => {
                source.text("url").map(|_| ViewedImage { path: None, media_type, bytes: 0, digest: None })
            }
        };
    }
    if let Some(inline) = part.object("inlineData") {
        return Some(of_base64(&inline.text("data")?, inline.text("mimeType").map(Into::into)));
    }
    let kind = part.text_or_empty("type");
    if kind == "image" || kind == "input_image" || kind == "image_url" || kind == "file" {
        if let Some(url) = part.text("image_url").or_else(|| part.text("url")) {
            return of_url(&url);
        }
        let media_type = part.text("mimeType").or_else(|| part.text("mime")).map(Into::into);
        return Some(of_base64(&part.text("data")?, media_type));
    }
    None
}

/// A picture in a `data:` address.
fn of_url(url: &str) -> Option<ViewedImage> {
    let Some(rest) = url.strip_prefix("data:") else {
        return Some(ViewedImage {
            path: Some(url.chars().take(1_000).collect()),
            media_type: None,
            bytes: 0,
            digest: None,
        });
    };
    let (media_type, data) = rest.split_once(',')?;
    let media_type = media_type.split(';').next().filter(|it| !it.is_empty());
    Some(of_base64(data, media_type.map(str::to_owned)))
}

fn of_base64(data: &str, media_type: Option<String>) -> ViewedImage {
    if let Ok(bytes) = STANDARD.decode(data) {
        let digest = Some(Digest::of(&bytes));
        return ViewedImage { path: None, media_type, bytes: bytes.len() as u64, digest };
    }
    // Cut by somebody on the way.
    let bytes = data.trim_end_matches('=').len() as u64 * 3 / 4;
    ViewedImage { path: None, media_type, bytes, digest: None }
}
