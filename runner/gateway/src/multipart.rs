//! Forms as `multipart/form-data` (RFC 7578), as far as requests for pictures need them.

use proctor_traces::Digest;

/// A part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The field's name.
    pub(crate) name: String,
    /// The file's name, if it is one.
    pub(crate) file: Option<String>,
    /// The media type, if one is said.
    pub(crate) media_type: Option<String>,
    /// The content.
    pub(crate) content: &'a [u8],
}

/// The body of a form with these parts, and its content type. The boundary is made of the content: the same form is the
/// same request.
pub(crate) fn form(parts: &[Part<'_>]) -> (String, Vec<u8>) {
    let digest = Digest::of_parts(parts.iter().map(|part| (part.name.as_str(), part.content)));
    let boundary = format!("proctor-{}", &digest.hex()[..40]);
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
        let file =
            part.file.as_ref().map(|file| format!("; filename=\"{}\"", plain(file))).unwrap_or_default();
        let head = format!("Content-Disposition: form-data; name=\"{}\"{file}\r\n", plain(&part.name));
        body.extend_from_slice(head.as_bytes());
        if let Some(media_type) = &part.media_type {
            body.extend_from_slice(format!("Content-Type: {media_type}\r\n").as_bytes());
        }
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A name without what would end it.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect()
}

/// Most parts of a form that is read.
const MOST_PARTS: usize = 64;

/// The parts of a form; none if it is not whole, or has something before its first boundary.
pub(crate) fn parts(body: &[u8]) -> Option<Vec<Part<'_>>> {
    let line = body.iter().position(|byte| *byte == b'\r').filter(|end| (3..=72).contains(end))?;
    let boundary = body.get(..line).filter(|it| it.starts_with(b"--"))?;
    let between = [b"\r\n", boundary].concat();
    let mut rest = body.get(line..)?;
    let mut found = Vec::new();
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let end = find(part, &between)?;
        found.push(read(part.get(..end)?)?);
        rest = part.get(end + between.len()..)?;
        if found.len() > MOST_PARTS {
            return None;
        }
    }
    (rest == b"--\r\n" || rest == b"--").then_some(found)
}

/// The text of the field `name`.
pub(crate) fn text(body: &[u8], name: &str) -> Option<String> {
    let parts = parts(body)?;
    let part = parts.iter().find(|part| part.name == name && part.file.is_none())?;
    std::str::from_utf8(part.content).ok().map(str::to_owned)
}

fn read(part: &[u8]) -> Option<Part<'_>> {
    let end = find(part, b"\r\n\r\n").filter(|end| *end <= 4096)?;
    let head = std::str::from_utf8(part.get(..end)?).ok()?;
    let (mut name, mut file, mut media_type) = (None, None, None);
    for line in head.split("\r\n") {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        match key.to_ascii_lowercase().as_str() {
            "content-disposition" => {
                let rest = value.strip_prefix("form-data")?;
                name = quoted(rest, "name");
                file = quoted(rest, "filename");
            }
            "content-type" => media_type = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(Part { name: name?, file, media_type, content: part.get(end + 4..)? })
}

/// The value of `key` in `; key="value"; …`.
fn quoted(text: &str, key: &str) -> Option<String> {
    text.split(';').find_map(|pair| {
        let value = pair.trim().strip_prefix(key)?.strip_prefix('=')?;
        Some(value.strip_prefix('"')?.strip_suffix('"')?.to_owned())
    })
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(name: &str, content: &'a [u8]) -> Part<'a> {
        Part { name: name.to_owned(), file: None, media_type: None, content }
    }

    #[test]
    fn a_form_is_read_as_it_was_written() {
        let picture = Part {
            file: Some("source.png".to_owned()),
            media_type: Some("image/png".to_owned()),
            ..field("image", b"\x89PNG\r\n\x1a\n\r\n--\r\n\r\nrest")
        };
        let written = [field("model", b"m/1"), field("prompt", "Zeile\r\n\r\nü".as_bytes()), picture];
        let (media_type, body) = form(&written);
        assert_eq!(parts(&body).unwrap(), written);
        assert_eq!(text(&body, "model").as_deref(), Some("m/1"));
        assert_eq!(text(&body, "image"), None);
        let boundary = media_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert!(body.starts_with(format!("--{boundary}\r\n").as_bytes()));
        assert_eq!(form(&written), (media_type, body), "the same form is the same request");
    }

    #[test]
    fn halves_and_rubbish_are_no_forms() {
        let (_, body) = form(&[field("model", b"m"), field("prompt", b"p")]);
        for end in 0..body.len() - 2 {
            assert_eq!(parts(&body[..end]), None, "{end}");
        }
        for rubbish in
            [&b"{}"[..], b"--\r\n", b"--x\r\nno head\r\n--x--\r\n", b"--x\r\nA: b\r\n\r\nc\r\n--x--\r\n"]
        {
            assert_eq!(parts(rubbish), None);
        }
    }
}
