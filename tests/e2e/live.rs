//! A model provider, as the runner sees one: a server on loopback that asks for a key. It plays a script behind a plain
//! TCP port, so that a live run is as certain as a scripted one.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proctor_gateway::{
    Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayConfig, Script,
};
use proctor_traces::WireFormat;
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::runtime::Runtime;

use crate::support::{Ended, Run, Trial, sample, unique, world};

/// Searches the room from inside, as an agent could: every process's environment and arguments, every file that it may
/// read. The pattern does not match its own text. Then it lingers, so that the room can be looked at from outside too.
const SEARCH: &str = r#"
[[step]]
text = "I look for what I should not find."
calls = [{ shell = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' > seen.txt; grep -rlsI 'sk-live[-]' seen.txt /home /etc /run /tmp /work/TASK.md > found.txt; touch searched; sleep 3", timeout = "60s" }]

[[step]]
calls = [{ write = "artifact.dot", content = "graph { a -- b }" }]

[[step]]
text = "Done."
"#;

/// A provider on loopback.
pub(crate) struct Provider {
    port: u16,
    /// All that clients sent: heads and bodies of their requests.
    received: Arc<Mutex<Vec<u8>>>,
    _runtime: Runtime,
    _folder: TempDir,
}

struct Nobody;

impl ExchangeSink for Nobody {
    fn started(&self, _: &ExchangeStarted) {}

    fn finished(&self, _: ExchangeRecord) {}
}

impl Provider {
    /// One that plays this script to whoever asks.
    pub(crate) fn playing(script: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let folder = tempfile::Builder::new().prefix("prov-").tempdir().unwrap();
        let script = Script::parse(script, Path::new("")).unwrap();
        let config = GatewayConfig::new(folder.path().join("s"), Backend::Script(Arc::new(script)));
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let port = runtime.block_on(async move {
            let gateway = Gateway::open(config, Arc::new(Nobody)).await.unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(async move {
                while let Ok((outside, _)) = listener.accept().await {
                    let inside = UnixStream::connect(gateway.socket()).await.unwrap();
                    tokio::spawn(pass(outside, inside, Arc::clone(&log)));
                }
            });
            port
        });
        Self { port, received, _runtime: runtime, _folder: folder }
    }

    /// A `providers.toml` with it under the name `mylab`.
    pub(crate) fn file(&self, auth: &str) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        let port = self.port;
        write!(
            file,
            "[mylab]\nbase_url = \"http://127.0.0.1:{port}/v1\"\nkey_env = \"TEST_KEY\"\nauth = \"{auth}\"\n\
             wire = [\"openai_responses\", \"anthropic_messages\"]\n"
        )
        .unwrap();
        file
    }

    fn has_received(&self, text: &str) -> bool {
        holds(&self.received.lock().unwrap(), text)
    }
}

/// Carries one connection, and notes what the client says.
async fn pass(outside: TcpStream, inside: UnixStream, log: Arc<Mutex<Vec<u8>>>) {
    let (mut from_client, mut to_client) = outside.into_split();
    let (mut from_server, mut to_server) = inside.into_split();
    let back = tokio::spawn(async move {
        // Whoever hangs up first ends it.
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    let mut chunk = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from_client.read(&mut chunk).await {
        log.lock().unwrap().extend_from_slice(&chunk[..length]);
        if to_server.write_all(&chunk[..length]).await.is_err() {
            break;
        }
    }
    drop(to_server);
    let _ = back.await;
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A key that nothing else on this machine has.
fn key() -> String {
    unique("sk-live-")
}

fn run_with(provider: &Provider, file: &NamedTempFile, harness: &str, model: &str, key: &str) -> Run {
    let file = file.path().to_string_lossy().into_owned();
    assert!(provider.port > 0);
    Run::over(&[&sample("arch-replicas")])
        .args([
            "--harness",
            harness,
            "--model",
            model,
            "--providers",
            &file,
            "--no-render",
            "--budget",
            "120s",
        ])
        .env("TEST_KEY", key)
        .env("NO_PROXY", "127.0.0.1")
}

/// Runs it, looks for the key everywhere while it goes on and afterwards, and returns the trial.
fn searched(run: &Run, key: &str) -> Trial {
    let mut live = run.start();
    live.workspace_with("searched");
    assert_eq!(world::processes_with(key), Vec::<u32>::new(), "the key is in a command line");
    let containers = world::containers_of(&run.out());
    assert_eq!(containers.len(), 1);
    assert!(
        !world::docker(&["inspect", &containers[0]]).contains(key),
        "the key is in the container's description"
    );
    let ended: Ended = live.end().with_code(0);
    assert!(!ended.stdout().contains(key) && !run.stderr().contains(key), "the key was printed");

    let mut files = 0;
    for entry in walkdir::WalkDir::new(run.out()).into_iter().map(Result::unwrap) {
        assert!(!entry.path().to_string_lossy().contains(key));
        if entry.file_type().is_file() {
            files += 1;
            assert!(
                !holds(&std::fs::read(entry.path()).unwrap(), key),
                "the key is in {}",
                entry.path().display()
            );
        }
    }
    assert!(files > 10, "there was something to search");
    let trial = ended.trial();
    assert_eq!(trial.bytes("artifacts/workspace/found.txt"), b"", "the agent found the key");
    let seen = trial.bytes("artifacts/workspace/seen.txt");
    assert!(holds(&seen, "PROCTOR_DEADLINE="), "the agent saw its own environment");
    trial
}

#[test]
fn codex_with_a_provider_and_the_key_stays_outside() {
    let (provider, key) = (Provider::playing(SEARCH), key());
    let file = provider.file("bearer");
    let run = run_with(&provider, &file, "codex", "mylab/gpt-5.5", &key);
    let trial = searched(&run, &key);
    assert_eq!(trial.ending(), "completed");
    assert!(provider.has_received(&format!("Bearer {key}")), "the provider was shown the key");
    let exchanges = trial.exchanges();
    assert_eq!(exchanges.len(), 3);
    assert!(
        exchanges.iter().all(|it| it.wire == Some(WireFormat::OpenaiResponses) && it.status == Some(200))
    );
    assert!(exchanges.iter().all(|it| it.served_model.as_deref() == Some("gpt-5.5") && it.usage.is_some()));
    // A live gateway knows of no script.
    assert!(exchanges.iter().all(|it| it.step.is_none()));
}

#[test]
fn claude_code_with_a_provider_and_the_key_stays_outside() {
    let (provider, key) = (Provider::playing(SEARCH), key());
    let file = provider.file("x-api-key");
    let run = run_with(&provider, &file, "claude-code", "mylab/claude-opus-5-5", &key);
    let trial = searched(&run, &key);
    assert_eq!(trial.ending(), "completed");
    assert!(provider.has_received(&key), "the provider was shown the key");
    assert!(!provider.has_received("Bearer"), "and nothing of what the agent showed");
    let exchanges = trial.exchanges();
    assert!(exchanges.iter().filter(|it| it.wire == Some(WireFormat::AnthropicMessages)).count() >= 3);
}

#[test]
fn a_provider_that_refuses_is_a_model_error_and_not_retried() {
    let fault = "[[step]]\ntext = \"never\"\nfault = { kind = \"status\", status = 401, body = \"no\" }";
    let (provider, key) = (Provider::playing(fault), key());
    let file = provider.file("bearer");
    let run = run_with(&provider, &file, "codex", "mylab/gpt-5.5", &key);
    let trial = run.go().with_code(0).trial();
    assert_eq!(trial.ending(), "model_error");
    assert_eq!(trial.outcome.r#try, 1);
}

#[test]
fn without_its_key_nothing_is_begun() {
    let provider = Provider::playing(SEARCH);
    let file = provider.file("bearer");
    let run = run_with(&provider, &file, "codex", "mylab/gpt-5.5", "");
    run.go().with_code(3);
    assert!(run.stderr().contains("TEST_KEY"), "{}", run.stderr());
    assert!(!run.out().exists(), "nothing half-made");
    assert!(!provider.has_received("POST"));
}
