//! Files as lines: unpacking, odd bytes, and the times at which lines arrived.

use std::borrow::Cow;
use std::io::Read as _;

use super::SourceError;

/// The most that a compressed file may unpack to.
const UNPACKED_CAP: u64 = 1 << 30;

/// The bytes of a source as they were before packing; refused by name if they are something else than text.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, SourceError> {
    let refused = |what| Err(SourceError::NotText { what });
    match bytes {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => unzstd(bytes).map(Cow::Owned),
        [0x1f, 0x8b, ..] => refused("packed with gzip"),
        [b'P', b'K', 3, 4, ..] => refused("a zip archive"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => refused("UTF-16 text"),
        [b'P', b'A', b'R', b'1', ..] => refused("a Parquet file"),
        _ if bytes.starts_with(b"SQLite format 3\0") => refused("an SQLite database"),
        _ => Ok(Cow::Borrowed(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))),
    }
}

fn unzstd(bytes: &[u8]) -> Result<Vec<u8>, SourceError> {
    let broken = |message: String| SourceError::Unpacking { message };
    let mut unpacked = Vec::new();
    let mut rest = bytes;
    // A file that was appended to holds several frames.
    while !rest.is_empty() {
        let mut decoder =
            ruzstd::decoding::StreamingDecoder::new(&mut rest).map_err(|error| broken(error.to_string()))?;
        let room = UNPACKED_CAP + 1 - unpacked.len() as u64;
        decoder.by_ref().take(room).read_to_end(&mut unpacked).map_err(|error| broken(error.to_string()))?;
        if unpacked.len() as u64 > UNPACKED_CAP {
            return Err(broken(format!("it unpacks to more than {UNPACKED_CAP} bytes")));
        }
    }
    Ok(unpacked)
}

/// A line and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// Without its end, and without blanks and NULs around it.
    pub(crate) bytes: &'a [u8],
    /// Position of its first byte.
    pub(crate) at: usize,
    /// Number, from 0.
    pub(crate) number: usize,
    /// Whether it ends as a line does.
    pub(crate) is_whole: bool,
}

/// The lines of a file.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut at = 0;
    let mut number = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let (length, is_whole) = match memchr::memchr(b'\n', rest) {
            Some(end) => (end + 1, true),
            None => (rest.len(), false),
        };
        let line = Line { bytes: trim(&rest[..length]), at, number, is_whole };
        at += length;
        number += 1;
        Some(line)
    })
}

/// A crash of the machine leaves NULs where a file had grown and its data had not been written.
fn trim(line: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let start = line.iter().position(|byte| !is_blank(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !is_blank(byte)).map_or(start, |last| last + 1);
    &line[start..end]
}

/// The text of a line. Bytes that are no UTF-8 are replaced: one bad byte in a tool's output must not cost the call.
pub(crate) fn text(line: &[u8]) -> Cow<'_, str> {
    // Nearly all is whole, and that is found out several times faster.
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

/// A line that is no JSON because of raw control characters in it, with those replaced; none if there are none.
pub(crate) fn without_controls(text: &str) -> Option<String> {
    let is_control = |c: char| c.is_control() && c < ' ';
    text.contains(is_control).then(|| text.replace(is_control, "\u{fffd}"))
}

/// When the lines of a stream arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    /// (position of the line's first byte, milliseconds since the agent was started), by position.
    by_position: Vec<(usize, i64)>,
    /// By number of the line, where that is all that is known.
    by_number: Vec<i64>,
}

impl Arrivals {
    /// Reads `raw/stdout.times` (`<offset in ms>` TAB `<position>`), or a file whose lines begin with seconds and a blank.
    /// Lines that are neither are passed over.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut arrivals = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            let head = String::from_utf8_lossy(&line[..line.len().min(64)]).into_owned();
            let place = head
                .split_once('\t')
                .and_then(|(ms, at)| Some((at.trim().parse().ok()?, ms.trim().parse().ok()?)));
            if let Some(place) = place {
                arrivals.by_position.push(place);
            } else if let Some(seconds) = head.split(' ').next().and_then(|it| it.parse::<f64>().ok()) {
                #[expect(clippy::cast_possible_truncation, reason = "a cast from float saturates")]
                arrivals.by_number.push((seconds * 1000.0).round() as i64);
            }
        }
        arrivals.by_position.sort_by_key(|(at, _)| *at);
        arrivals
    }

    /// When `line` arrived.
    pub(crate) fn of(&self, line: &Line<'_>) -> Option<i64> {
        match self.by_position.binary_search_by_key(&line.at, |(at, _)| *at) {
            Ok(found) => self.by_position.get(found).map(|(_, ms)| *ms),
            Err(_) => self.by_number.get(line.number).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(bytes: &[u8]) -> Vec<(&[u8], usize, bool)> {
        lines(bytes).map(|line| (line.bytes, line.at, line.is_whole)).collect()
    }

    #[test]
    fn lines_lose_what_is_around_them() {
        assert_eq!(
            split(b"{}\r\n\n\0\0\0{\"a\":1}\n{\"to"),
            [(&b"{}"[..], 0, true), (b"", 4, true), (b"{\"a\":1}", 5, true), (b"{\"to", 16, false)]
        );
        assert!(split(b"").is_empty());
    }

    #[test]
    fn arrivals_are_found_by_position_or_by_number() {
        let ours = Arrivals::parse(b"808\t0\n948\t77\nnonsense\n");
        let line = |at, number| Line { bytes: b"", at, number, is_whole: true };
        assert_eq!((ours.of(&line(77, 1)), ours.of(&line(78, 1))), (Some(948), None));
        let seconds = Arrivals::parse(b"0.363 {\"type\":1}\n2.794 {\"a\tb\":1}\n");
        assert_eq!((seconds.of(&line(0, 0)), seconds.of(&line(5, 1))), (Some(363), Some(2794)));
    }

    #[test]
    fn packed_and_foreign_files_are_told_by_their_first_bytes() {
        assert_eq!(&*unpack(b"\xef\xbb\xbf{}").unwrap(), b"{}");
        assert!(matches!(unpack(b"\x1f\x8b\x08"), Err(SourceError::NotText { what: "packed with gzip" })));
        assert!(matches!(unpack(b"\xff\xfe{\0"), Err(SourceError::NotText { what: "UTF-16 text" })));
        assert!(matches!(unpack(b"\x28\xb5\x2f\xfd\x01\x02"), Err(SourceError::Unpacking { .. })));
    }
}
