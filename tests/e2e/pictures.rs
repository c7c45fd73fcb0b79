//! Models that return a picture: the scripted one, and a server on loopback that takes forms for what they are.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use image::{ImageFormat, RgbImage};
use proctor_store::RunDir;
use proctor_traces::{ArtifactState, Ending, ExchangeEnd, ModelCause};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Package, Run, Trial, proctor, sample, unique};

const TASK: &str = "flow-approval";

fn target() -> Vec<u8> {
    fs::read(sample(TASK).join("hidden/target.png")).unwrap()
}

/// The reference target in another format.
fn target_as(format: ImageFormat) -> Vec<u8> {
    let picture = image::load_from_memory(&target()).unwrap().to_rgb8();
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

/// A trial's rendering: its status, and the picture if there is one.
fn rendering(trial: &Trial) -> (String, Option<RgbImage>) {
    let record: Value = serde_json::from_slice(&trial.bytes("render/render.json")).unwrap();
    let picture = fs::read(trial.path("render/output.png")).ok();
    let picture =
        picture.map(|png| image::load_from_memory_with_format(&png, ImageFormat::Png).unwrap().to_rgb8());
    (record["status"].as_str().unwrap().to_owned(), picture)
}

#[test]
fn a_returned_picture_is_the_output_and_is_judged_like_any_other() {
    let script = "[[answer]]\ncontains = [\"Edit this picture\"]\nimage = \"hidden/target.png\"\nusage = { input = 300, output = 4000 }";
    let package = Package::of(TASK).with("script.toml", script);
    let run = Run::over(&[package.path()]).args(["--track", "direct", "--model", "script"]);
    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.artifact()), ("completed", target()));
    assert_eq!(trial.outcome.artifacts[0].name, "artifact.png");
    assert_eq!((trial.outcome.exchanges, trial.outcome.tokens.output_tokens), (1, 4000));
    let (status, picture) = rendering(&trial);
    assert_eq!(status, "rendered");
    assert!(picture.unwrap() == image::load_from_memory(&target()).unwrap().to_rgb8());
    let mut judge = proctor();
    let output = judge.arg("judge").arg(run.out()).arg("--tasks").arg(package.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record = RunDir::open(&run.out()).unwrap();
    let score = record.trial(&trial.outcome.trial).score().unwrap().unwrap();
    assert!(score.points.iter().all(|point| point.satisfied != Some(false)));
    assert_eq!(record.record().unwrap().methods[0].track, "direct");
    assert!(!trial.path("render/artifact.html").exists());
    let output = proctor().arg("report").arg(run.out()).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("direct-script"));
}

#[test]
fn a_model_that_only_talks_leaves_no_picture() {
    let package = Package::of(TASK).with("script.toml", "[[answer]]\ntext = \"I would rather not.\"");
    let run = Run::over(&[package.path()]).args(["--track", "direct", "--model", "script", "--no-render"]);
    let trial = run.go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.state()), ("no_artifact", &ArtifactState::Missing));
    assert!(trial.notices().contains(&"there is no picture in the answer".to_owned()));
}

/// A request as the server understood it.
#[derive(Clone, Debug)]
struct Request {
    path: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A field of a form.
type Field = (String, Option<String>, Vec<u8>);

impl Request {
    fn of(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 4096];
        let end = loop {
            if let Some(end) = find(&bytes, b"\r\n\r\n") {
                break end;
            }
            let length = stream.read(&mut chunk).ok().filter(|length| *length > 0)?;
            bytes.extend_from_slice(&chunk[..length]);
        };
        let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let mut lines = head.split("\r\n");
        let path = lines.next()?.split(' ').nth(1)?.to_owned();
        let headers: BTreeMap<String, String> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let length: usize = headers.get("content-length").map_or(0, |it| it.parse().unwrap());
        let mut body = bytes[end + 4..].to_vec();
        while body.len() < length {
            let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
            body.extend_from_slice(&chunk[..read]);
        }
        Some(Self { path, headers, body })
    }

    /// The fields of a form, by the letter of RFC 7578 and RFC 2046; an error for whatever else it is.
    fn form(&self) -> Result<Vec<Field>, String> {
        let media_type = self.headers.get("content-type").ok_or("no content type")?;
        let boundary = media_type.strip_prefix("multipart/form-data; boundary=").ok_or("not a form")?;
        if boundary.is_empty() || boundary.len() > 70 || boundary.contains(['"', ' ']) {
            return Err(format!("boundary {boundary}"));
        }
        let (open, between) = (format!("--{boundary}\r\n"), format!("\r\n--{boundary}"));
        let mut rest =
            self.body.strip_prefix(open.as_bytes()).ok_or("it does not begin with its boundary")?;
        let mut fields = Vec::new();
        loop {
            let end = find(rest, between.as_bytes()).ok_or("a part without end")?;
            let (part, after) = (&rest[..end], &rest[end + between.len()..]);
            let head_end = find(part, b"\r\n\r\n").ok_or("a part without head")?;
            let head = std::str::from_utf8(&part[..head_end]).map_err(|_| "a head that is no text")?;
            let mut lines = head.split("\r\n");
            let disposition = lines.next().and_then(|it| it.strip_prefix("Content-Disposition: form-data; "));
            let mut named: BTreeMap<&str, &str> = BTreeMap::new();
            for pair in disposition.ok_or("no disposition")?.split("; ") {
                let (key, value) = pair.split_once("=\"").ok_or("no value")?;
                named.insert(key, value.strip_suffix('"').ok_or("no quote")?);
            }
            let media_type =
                lines.next().map(|it| it.strip_prefix("Content-Type: ").unwrap_or_default().to_owned());
            if named.contains_key("filename") != media_type.is_some() || lines.next().is_some() {
                return Err(format!("a strange head: {head}"));
            }
            let name = named.get("name").ok_or("no name")?;
            fields.push(((*name).to_owned(), media_type, part[head_end + 4..].to_vec()));
            if after == b"--\r\n" {
                return Ok(fields);
            }
            rest = after.strip_prefix(b"\r\n").ok_or("text behind a boundary")?;
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// What the server answers: status, one more header, body.
type Answer = (u16, String, Vec<u8>);

fn json_answer(status: u16, value: &Value) -> Answer {
    (status, "Content-Type: application/json".to_owned(), value.to_string().into_bytes())
}

/// An answer with this file in it.
fn inline(file: &[u8]) -> Answer {
    let usage = json!({"input_tokens": 10, "output_tokens": 20, "total_tokens": 30});
    json_answer(200, &json!({"created": 1, "data": [{"b64_json": base64(file)}], "usage": usage}))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize] as char;
            text.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

/// A provider of pictures on loopback.
struct Server {
    port: u16,
    key: String,
    requests: Arc<Mutex<Vec<Request>>>,
    folder: TempDir,
}

impl Server {
    /// One that answers the `n`th request like this. It ends with the process.
    fn new(answer: impl Fn(usize, &Request, u16) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let Some(request) = Request::of(&mut stream) else { return };
                    let number = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        log.len() - 1
                    };
                    let (status, header, body) = answer(number, &request, port);
                    let head = format!(
                        "HTTP/1.1 {status} X\r\n{header}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    // A client may be gone by now: at its deadline, say.
                    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
                });
            }
        });
        Self { port, key: unique("sk-live-"), requests, folder: tempfile::tempdir().unwrap() }
    }

    /// A run of one trial that asks it; `method` is the rest of its table. The hosts of `picture_hosts` are those in `hosts`.
    fn run(&self, method: &str, hosts: &str) -> Run {
        let (folder, port) = (self.folder.path(), self.port);
        let providers = format!(
            "[mylab]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nkey_env = \"TEST_KEY\"\nwire = [\"openai_images\"]\n\
             picture_hosts = [{hosts}]\n"
        );
        fs::write(folder.join("p.toml"), providers).unwrap();
        let paths = sample(TASK);
        let experiment = format!(
            "tasks.paths = [\"{}\"]\n[retry]\nbackoff = \"1ms\"\n[[methods]]\nid = \"m\"\ntrack = \"direct\"\n\
             model = \"mylab/pix-1\"\nproviders = \"p.toml\"\n{method}",
            paths.display()
        );
        fs::write(folder.join("e.toml"), experiment).unwrap();
        Run::of_experiment(&folder.join("e.toml")).env("TEST_KEY", &self.key)
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

#[test]
fn a_form_with_the_picture_is_sent_and_a_jpeg_or_webp_taken() {
    for (format, name) in [(ImageFormat::Jpeg, "artifact.jpg"), (ImageFormat::WebP, "artifact.webp")] {
        let file = target_as(format);
        let answer = inline(&file);
        let server = Server::new(move |_, _, _| answer.clone());
        let run =
            server.run("ablation = \"c\"\nrequest = { size = \"1024x1024\", output_compression = 90 }", "");
        let trial = run.go().with_code(0).trial();
        assert_eq!((trial.ending(), trial.artifact()), ("completed", file.clone()));
        assert_eq!(trial.outcome.artifacts[0].name, name);
        assert_eq!(trial.outcome.tokens.output_tokens, 20);
        let (status, picture) = rendering(&trial);
        assert_eq!(status, "rendered");
        assert!(picture.unwrap() == image::load_from_memory(&file).unwrap().to_rgb8(), "{name}");

        let [request] = server.requests().try_into().unwrap();
        assert_eq!(request.path, "/v1/images/edits");
        assert_eq!(request.headers["authorization"], format!("Bearer {}", server.key));
        let fields = request.form().unwrap();
        let text = |name: &str| {
            let found: Vec<&Field> = fields.iter().filter(|field| field.0 == name).collect();
            assert!(found.len() == 1 && found[0].1.is_none(), "{name}");
            String::from_utf8(found[0].2.clone()).unwrap()
        };
        assert_eq!((text("model"), text("size")), ("pix-1".to_owned(), "1024x1024".to_owned()));
        assert_eq!(text("output_compression"), "90");
        assert!(text("prompt").contains("Linked updates:\n- "), "{}", text("prompt"));
        let source = fs::read(sample(TASK).join("source.png")).unwrap();
        assert!(fields.contains(&("image".to_owned(), Some("image/png".to_owned()), source)));
        assert_eq!(fields.len(), 5);
        let [exchange] = trial.exchanges().try_into().unwrap();
        assert_eq!((exchange.end, exchange.model.as_deref()), (ExchangeEnd::Complete, Some("pix-1")));
        for entry in
            walkdir::WalkDir::new(run.out()).into_iter().flatten().filter(|it| it.file_type().is_file())
        {
            let bytes = fs::read(entry.path()).unwrap();
            assert!(
                find(&bytes, server.key.as_bytes()).is_none(),
                "the key is in {}",
                entry.path().display()
            );
        }
    }
}

#[test]
fn a_picture_elsewhere_is_fetched_from_listed_hosts_without_the_key() {
    let answer = |_: usize, request: &Request, port: u16| match request.path.as_str() {
        "/files/a.png?sig=1" => (200, "Content-Type: image/png".to_owned(), target()),
        "/files/moved" => (302, format!("Location: http://127.0.0.1:{port}/files/a.png?sig=1"), Vec::new()),
        _ => {
            let asked: Value = serde_json::from_slice(&request.body).unwrap();
            let file = asked["file"].as_str().unwrap();
            json_answer(200, &json!({"data": [{"url": format!("http://127.0.0.1:{port}{file}")}]}))
        }
    };
    let method = |file: &str| format!("endpoint = \"generations\"\nrequest = {{ file = \"{file}\" }}");
    let server = Server::new(answer);
    let here = format!("\"127.0.0.1:{}\"", server.port);
    let trial = server.run(&method("/files/a.png?sig=1"), &here).go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.artifact()), ("completed", target()));
    let [asked, fetched] = server.requests().try_into().unwrap();
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    assert!(asked.path == "/v1/images/generations" && asked.headers.contains_key("authorization"));
    assert!(
        body["image"].as_str().unwrap().starts_with("data:image/png;base64,") && body["model"] == "pix-1"
    );
    assert!(!fetched.headers.contains_key("authorization"), "{:?}", fetched.headers);
    assert_eq!(trial.exchanges().len(), 2);

    for (file, hosts, says) in
        [("/files/a.png?sig=1", "\"cdn.example.com\"", "picture_hosts"), ("/files/moved", &here, "redirects")]
    {
        let server = Server::new(answer);
        let hosts = hosts.replace(&here, &format!("\"127.0.0.1:{}\"", server.port));
        let trial = server.run(&method(file), &hosts).go().with_code(0).trial();
        match &trial.outcome.ending {
            Ending::ModelError { cause: ModelCause::Request, message } => {
                assert!(message.contains(says), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert!(server.requests().iter().all(|it| it.path != "/files/a.png?sig=1"), "{file}");
    }
}

#[test]
fn what_a_server_says_decides_the_ending() {
    let moderated = json!({"error": {"code": "moderation_blocked", "message": "Your request was rejected."}});
    let broken = json!({"error": {"message": "out of order"}});
    let gif = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;";
    for (answer, ending, tries, code) in [
        (json_answer(200, &json!({"data": []})), "no_artifact", 1, 0),
        (inline(gif), "no_artifact", 1, 0),
        (json_answer(200, &json!({"data": [{"b64_json": "%%%"}]})), "no_artifact", 1, 0),
        (json_answer(400, &moderated), "agent_error", 1, 0),
        (json_answer(422, &broken), "model_error", 1, 0),
        (json_answer(500, &broken), "model_error", 3, 4),
        (json_answer(200, &json!({"created": 1})), "model_error", 3, 4),
        ((200, "X: y".to_owned(), b"{\"data\": [".to_vec()), "model_error", 3, 4),
    ] {
        let told = String::from_utf8_lossy(&answer.2).into_owned();
        let server = Server::new(move |_, _, _| answer.clone());
        let run = server.run("", "").args(["--retries", "2", "--no-render"]);
        let trial = run.go().with_code(code).trial();
        let outcome = &trial.outcome;
        assert_eq!((trial.ending(), outcome.r#try), (ending, tries), "{told}: {:?}", outcome.ending);
        assert_eq!(server.requests().len(), tries as usize, "{told}");
    }
}

#[test]
fn a_refusal_for_the_moment_is_asked_again() {
    let server = Server::new(|number, _, _| match number {
        0 => json_answer(429, &json!({"error": {"message": "slow down"}})),
        1 => json_answer(503, &json!({"error": {"message": "overloaded"}})),
        _ => inline(&target()),
    });
    let trial = server.run("", "").args(["--no-render"]).go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.outcome.r#try, trial.artifact()), ("completed", 3, target()));
    assert!(trial.path("tries/1/model/exchanges.jsonl").is_file(), "each try keeps its evidence");
}

#[test]
fn a_picture_that_is_late_is_none() {
    let server = Server::new(|_, _, _| {
        std::thread::sleep(std::time::Duration::from_secs(20));
        inline(&target())
    });
    let trial = server.run("budget = \"600ms\"", "").go().with_code(0).trial();
    assert_eq!((trial.ending(), trial.state()), ("timed_out", &ArtifactState::Missing));
    let [exchange] = trial.exchanges().try_into().unwrap();
    assert_eq!(exchange.end, ExchangeEnd::Deadline);
    assert!(trial.outcome.overrun_ms.is_some_and(|ms| ms >= 0));
}

#[test]
fn a_picture_that_cannot_be_unpacked_is_a_failed_rendering() {
    let whole = target();
    // A head that promises more than is ever unpacked; the checksum is right.
    let mut bomb = whole.clone();
    bomb[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let checksum = crc(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    let mut blank = Vec::new();
    RgbImage::new(40, 30).write_to(&mut Cursor::new(&mut blank), ImageFormat::Png).unwrap();
    for (file, status) in [
        (whole[..whole.len() / 2].to_vec(), "artifact_error"),
        (b"\xff\xd8\xff\xe0 no JPEG after that".to_vec(), "artifact_error"),
        (bomb, "too_large"),
        (blank, "blank"),
    ] {
        let answer = inline(&file);
        let server = Server::new(move |_, _, _| answer.clone());
        let trial = server.run("", "").go().with_code(0).trial();
        let (found, picture) = rendering(&trial);
        assert_eq!((trial.ending(), found.as_str(), picture.is_some()), ("completed", status, false));
    }
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1)))
    })
}
