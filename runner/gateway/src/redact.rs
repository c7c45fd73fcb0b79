//! The key must not come back: not into a record, and not into the container either.

use bytes::{Bytes, BytesMut};
use secrecy::{ExposeSecret, SecretString};

/// Blanks every occurrence of a secret with as many asterisks, so that lengths stay what headers promised.
#[derive(Clone, Debug, Default)]
pub(crate) struct Redactor {
    secret: Option<SecretString>,
}

impl Redactor {
    /// Blanks `secret`; an empty one occurs everywhere and so is none.
    pub(crate) fn new(secret: SecretString) -> Self {
        Self { secret: (!secret.expose_secret().is_empty()).then_some(secret) }
    }

    fn secret(&self) -> &[u8] {
        self.secret.as_ref().map_or(&[], |secret| secret.expose_secret().as_bytes())
    }

    /// `bytes` without the secret.
    pub(crate) fn bytes(&self, bytes: Bytes) -> Bytes {
        let secret = self.secret();
        if find(&bytes, secret).is_none() {
            return bytes;
        }
        let mut copy = BytesMut::from(bytes.as_ref());
        blank(&mut copy, secret);
        copy.freeze()
    }

    /// `text` without the secret.
    pub(crate) fn text(&self, text: String) -> String {
        match self.secret.as_ref().map(ExposeSecret::expose_secret) {
            Some(secret) if text.contains(secret) => text.replace(secret, &"*".repeat(secret.len())),
            _ => text,
        }
    }

    /// Whether `bytes` hold the secret.
    pub(crate) fn occurs_in(&self, bytes: &[u8]) -> bool {
        find(bytes, self.secret()).is_some()
    }
}

/// Redacts a stream: holds back only such a tail as might be the beginning of the secret.
#[derive(Debug)]
pub(crate) struct StreamRedactor {
    redactor: Redactor,
    held: BytesMut,
}

impl StreamRedactor {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: BytesMut::new() }
    }

    /// What may be handed on of everything so far; may be empty.
    pub(crate) fn push(&mut self, chunk: Bytes) -> Bytes {
        let secret = self.redactor.secret();
        if self.held.is_empty() && find(&chunk, secret).is_none() && tail_match(&chunk, secret) == 0 {
            return chunk;
        }
        self.held.extend_from_slice(&chunk);
        blank(&mut self.held, secret);
        let ready = self.held.len() - tail_match(&self.held, secret);
        self.held.split_to(ready).freeze()
    }

    /// What was still held back when the stream ended.
    pub(crate) fn finish(&mut self) -> Bytes {
        self.held.split().freeze()
    }
}

fn blank(bytes: &mut BytesMut, secret: &[u8]) {
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], secret) {
        bytes[from + at..from + at + secret.len()].fill(b'*');
        from += at + secret.len();
    }
}

fn find(bytes: &[u8], secret: &[u8]) -> Option<usize> {
    let first = *secret.first()?;
    let last_start = bytes.len().checked_sub(secret.len())?;
    (0..=last_start).find(|&at| bytes[at] == first && bytes[at..].starts_with(secret))
}

/// Length of the longest proper beginning of `secret` that `bytes` end with.
fn tail_match(bytes: &[u8], secret: &[u8]) -> usize {
    let longest = secret.len().saturating_sub(1).min(bytes.len());
    (1..=longest).rev().find(|&length| bytes.ends_with(&secret[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn redactor(secret: &str) -> Redactor {
        Redactor::new(SecretString::from(secret.to_owned()))
    }

    #[test]
    fn blanks_in_place() {
        let redactor = redactor("sk-1");
        assert_eq!(redactor.bytes(Bytes::from_static(b"a sk-1sk-1 b sk-")), "a ******** b sk-".as_bytes());
        assert_eq!(redactor.text("?key=sk-1".into()), "?key=****");
        assert!(redactor.occurs_in(b"xxsk-1") && !redactor.occurs_in(b"sk-"));
    }

    #[test]
    fn no_secret_changes_nothing() {
        for none in [Redactor::default(), redactor("")] {
            assert_eq!(none.bytes(Bytes::from_static(b"abc")), "abc".as_bytes());
            assert_eq!(none.text("abc".into()), "abc");
            assert_eq!(StreamRedactor::new(none).push(Bytes::from_static(b"abc")), "abc".as_bytes());
        }
    }

    #[test]
    fn nothing_is_held_back_without_need() {
        let mut stream = StreamRedactor::new(redactor("sk-1"));
        assert_eq!(stream.push(Bytes::from_static(b"data: x\n\n")), "data: x\n\n".as_bytes());
        assert_eq!(stream.push(Bytes::from_static(b"ends in sk")), "ends in ".as_bytes());
        assert_eq!(stream.push(Bytes::from_static(b"y")), "sky".as_bytes());
        assert_eq!(stream.push(Bytes::from_static(b"s")), "".as_bytes());
        assert_eq!(stream.finish(), "s".as_bytes());
    }

    proptest! {
        #[test]
        fn a_stream_is_redacted_as_a_whole(text in "[ab]{0,40}", secret in "[ab]{1,4}", size in 1usize..6) {
            let whole = redactor(&secret).bytes(Bytes::from(text.clone()));
            let mut stream = StreamRedactor::new(redactor(&secret));
            let mut out = BytesMut::new();
            for chunk in text.as_bytes().chunks(size) {
                out.extend_from_slice(&stream.push(Bytes::copy_from_slice(chunk)));
            }
            out.extend_from_slice(&stream.finish());
            prop_assert_eq!(out.freeze(), whole);
        }
    }
}
