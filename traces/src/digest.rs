//! Content digests. One algorithm everywhere, so that a user can check any of them with `sha256sum`.

use std::fmt::{self, Write as _};
use std::io::Read;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// SHA-256 of some bytes, written `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// A text that is not `sha256:<64 hex digits>`.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a digest of the form sha256:<64 hex digits>")]
pub struct DigestError(String);

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything that `reader` yields, and how many bytes that was.
    pub fn of_reader(mut reader: impl Read) -> std::io::Result<(Self, u64)> {
        let mut hasher = Sha256::new();
        let bytes = std::io::copy(&mut reader, &mut hasher)?;
        Ok((Self(hasher.finalize().into()), bytes))
    }

    /// The digest of a list of named parts. Names and lengths are hashed too, so that moving a byte from one part to
    /// the next changes the result.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut hasher = Sha256::new();
        for (name, bytes) in parts {
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        Self(hasher.finalize().into())
    }

    /// The 64 hex digits without the prefix: the name of a content-addressed file.
    pub fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// The first 12 hex digits: enough to name a thing for a person, and to tag an image.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let wrong = || DigestError(text.chars().take(100).collect());
        let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?;
        if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
            return Err(wrong());
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(digest))
    }
}

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_what_sha256sum_prints() {
        let digest = Digest::of(b"abc");
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), expected);
        assert_eq!(expected.parse::<Digest>().unwrap(), digest);
        assert_eq!(digest.short(), "ba7816bf8f01");
    }

    #[test]
    fn moving_a_byte_between_parts_changes_it() {
        let one = Digest::of_parts([("a", b"xy".as_slice()), ("b", b"")]);
        let other = Digest::of_parts([("a", b"x".as_slice()), ("b", b"y")]);
        assert_ne!(one, other);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "abc",
            "sha256:",
            "sha256:zz",
            &format!("sha256:{}", "A".repeat(64)),
            &format!("sha256:{}", "é".repeat(32)),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
