//! Framing of server-sent events on bytes.
//!
//! Text is never decoded before an event is whole: a chunk may end in the middle of a character, of a line ending, or
//! of the byte order mark (the HTML Living Standard, section 9.2.6, is the rule).

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event:` field, empty if there was none.
    pub(crate) name: Vec<u8>,
    /// The `data:` lines, joined with line feeds.
    pub(crate) data: Vec<u8>,
}

/// Cuts a byte stream into events, however it was cut into chunks.
#[derive(Debug, Default)]
pub(crate) struct SseFramer {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a CR that ended a line: an LF right after it belongs to it.
    after_cr: bool,
    /// The first line is over, so no byte order mark can come any more.
    past_first_line: bool,
}

impl SseFramer {
    /// Takes the next bytes and appends the events that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) {
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => self.end_line(events),
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.past_first_line, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, rest) = line.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event.name = value.to_vec(),
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
            }
            // Comments (an empty field name), `id`, `retry` and unknown fields say nothing to us.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let mut framer = SseFramer::default();
        let mut events = Vec::new();
        for chunk in chunks {
            framer.push(chunk, &mut events);
        }
        events
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_end_at_blank_lines_in_any_convention() {
        let text = "\u{feff}: hi\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata:  x\r\rid: 7\n\nevent: lost\n\ndata\n\ndata: torn";
        assert_eq!(
            frame([text.as_bytes()]),
            [event("a", "1\n2"), event("", " x"), event("", "")],
            "an unfinished last event is no event"
        );
    }

    fn soup() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"event: e".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\n\n".to_vec()),
            Just("é{}\u{feff}".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn framing_does_not_depend_on_chunking(bytes in soup(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(frame(chunks), frame([bytes.as_slice()]));
            prop_assert_eq!(frame(bytes.chunks(1)), frame([bytes.as_slice()]));
        }
    }
}
