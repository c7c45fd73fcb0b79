use std::collections::BTreeMap;

use proctor_traces::{OffsetMs, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A recording on disk.
pub(crate) struct Tape {
    folder: TempDir,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Tape {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("blobs")).unwrap();
        Self { folder, exchanges: Vec::new() }
    }

    pub(crate) fn blob(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        fs::write(self.folder.path().join("blobs").join(digest.hex()), bytes).unwrap();
        digest
    }

    /// With one more exchange, which `change` may make another.
    pub(crate) fn with(mut self, asked: &Value, response: &str, change: impl FnOnce(&mut Exchange)) -> Self {
        let asked = asked.to_string();
        let mut exchange = Exchange {
            id: self.exchanges.len() as u64,
            wire: Some(WireFormat::OpenaiResponses),
            method: "POST".into(),
            path: "/v1/responses".into(),
            started_at: Timestamp::from_millis(0),
            start_ms: OffsetMs(0),
            first_byte_ms: None,
            end_ms: OffsetMs(1),
            status: Some(200),
            end: ExchangeEnd::Complete,
            error: None,
            model: Some("m".into()),
            served_model: None,
            fingerprint: None,
            usage: None,
            step: None,
            divergence: None,
            headers: BTreeMap::new(),
            truncated: false,
            request: self.blob(asked.as_bytes()),
            request_bytes: asked.len() as u64,
            response: self.blob(response.as_bytes()),
            response_bytes: response.len() as u64,
        };
        change(&mut exchange);
        self.exchanges.push(exchange);
        self
    }

    fn write(&self, text: &str) {
        fs::write(self.folder.path().join("exchanges.jsonl"), text).unwrap();
    }

    pub(crate) fn load(&self) -> Result<Cassette, CassetteError> {
        let lines = self.exchanges.iter().map(|it| serde_json::to_string(it).unwrap() + "\n");
        self.write(&lines.collect::<String>());
        Cassette::load(self.folder.path())
    }

    fn refused(&self) -> String {
        self.load().unwrap_err().to_string()
    }
}

fn asks(text: &str) -> Value {
    json!({"model": "m", "input": [{"type": "message", "content": text}]})
}

#[test]
fn exchanges_in_order_of_arrival_with_what_is_known_of_them() {
    let tape = Tape::new()
        .with(&asks("b"), "data: {}\n\n", |it| it.id = 5)
        .with(&asks("a"), "{}", |it| {
            it.id = 2;
            it.headers = BTreeMap::from([
                ("retry-after".to_owned(), "3".to_owned()),
                ("content-length".to_owned(), "900".to_owned()),
                ("bad name".to_owned(), "x".to_owned()),
            ]);
        })
        // Refused by the gateway, so never asked of anybody.
        .with(&asks("c"), "no", |it| {
            it.end = ExchangeEnd::Refused;
            it.status = Some(403);
        });
    let cassette = tape.load().unwrap();
    assert_eq!(cassette.tape.iter().map(|it| it.id).collect::<Vec<_>>(), [2, 5]);
    assert_eq!((cassette.len(), cassette.model()), (2, Some("m")));
    assert_eq!(cassette.wires(), [WireFormat::OpenaiResponses]);
    let head = |index: usize| match &cassette.tape[index].reply {
        Recording::Response { headers, .. } => headers.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        head(0),
        HeaderMap::from_iter([
            (header::RETRY_AFTER, HeaderValue::from_static("3")),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ])
    );
    assert_eq!(head(1)[header::CONTENT_TYPE], "text/event-stream");
    let before = cassette.digest();
    assert_ne!(tape.with(&asks("d"), "", |_| {}).load().unwrap().digest(), before);
}

#[test]
fn a_response_that_was_cut_is_refused_by_name() {
    for change in [(|it| it.truncated = true) as fn(&mut Exchange), |it| {
        it.error = Some("only the first 64 bytes of the response are kept".into());
    }] {
        let tape = Tape::new().with(&asks("a"), "data", |_| {}).with(&asks("b"), "data", change);
        assert!(tape.refused().contains("of the response of exchange 1 only the first 4 bytes were kept"));
    }
}

#[test]
fn what_is_no_recording_is_one_clear_error() {
    let one = || Tape::new().with(&asks("a"), "data", |_| {});
    assert!(Tape::new().refused().contains("no model request was recorded"));

    let tape = one();
    fs::remove_file(tape.folder.path().join("blobs").join(tape.exchanges[0].response.hex())).unwrap();
    assert!(tape.refused().starts_with("cannot read "));

    let tape = one();
    fs::write(tape.folder.path().join("blobs").join(tape.exchanges[0].request.hex()), "{}").unwrap();
    assert!(tape.refused().contains("not what its name"));

    let tape = one();
    let blob = tape.folder.path().join("blobs").join(tape.exchanges[0].request.hex());
    fs::remove_file(&blob).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &blob).unwrap();
    assert!(tape.refused().contains("not a plain file"));

    let tape = one();
    for (text, says) in [
        ("{\n", "line 1 is not an exchange"),
        ("null\n", "line 1 is not an exchange"),
        ("\u{0}\u{0}", "line 1 is not an exchange"),
        (&"[".repeat(900_000), "line 1 is not an exchange"),
        (&" ".repeat(LINE + 1), "line 1 is longer"),
    ] {
        tape.write(text);
        let error = Cassette::load(tape.folder.path()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    fs::write(tape.folder.path().join("exchanges.jsonl"), [0xff, 0xfe, b'\n']).unwrap();
    assert!(Cassette::load(tape.folder.path()).is_err());
}

#[test]
fn requests_that_are_not_json_are_kept_as_text() {
    let mut tape = Tape::new().with(&asks("a"), "data", |_| {});
    let deep = "[".repeat(5000);
    for bytes in [&b"\xff\xfe{"[..], b"", deep.as_bytes()] {
        tape.exchanges[0].request = tape.blob(bytes);
        assert_eq!(tape.load().unwrap().len(), 1);
    }
}

#[test]
fn endings_and_what_they_are_played_as() {
    let reply = |status: Option<u16>, end: ExchangeEnd| {
        let tape = Tape::new().with(&asks("a"), "data", |it| {
            it.status = status;
            it.end = end;
            it.error = Some("why".into());
        });
        match tape.load().unwrap().tape.remove(0).reply {
            Recording::Response { status, broke, .. } => format!("{status} {broke:?}"),
            Recording::Dropped => "dropped".to_owned(),
            Recording::Unanswered => "unanswered".to_owned(),
        }
    };
    assert_eq!(reply(Some(200), ExchangeEnd::Complete), "200 None");
    assert_eq!(reply(Some(200), ExchangeEnd::ClientGone), "200 None");
    assert_eq!(reply(Some(200), ExchangeEnd::UpstreamBroke), "200 Some(\"why\")");
    assert_eq!(reply(Some(502), ExchangeEnd::UpstreamBroke), "502 None");
    assert_eq!(reply(Some(429), ExchangeEnd::Complete), "429 None");
    assert_eq!(reply(None, ExchangeEnd::UpstreamBroke), "dropped");
    assert_eq!(reply(None, ExchangeEnd::ClientGone), "dropped");
    assert_eq!(reply(Some(200), ExchangeEnd::Deadline), "unanswered");
    assert_eq!(reply(Some(400), ExchangeEnd::Diverged), "unanswered");
}
