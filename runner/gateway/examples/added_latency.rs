//! What a live gateway adds to an answer: the same streamed requests straight to a provider on loopback, and through a
//! gateway before it.
//!
//! `cargo run --release -p proctor-gateway --example added_latency -- [REQUESTS]`
#![expect(clippy::print_stdout, reason = "an example talks to a person")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use proctor_gateway::{
    Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayConfig, NetSettings, Providers,
    Script, Upstream,
};
use secrecy::SecretString;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Nobody;

impl ExchangeSink for Nobody {
    fn started(&self, _: &ExchangeStarted) {}

    fn finished(&self, _: ExchangeRecord) {}
}

/// An answer of some length, as events.
const SCRIPT: &str =
    "[[step]]\ntext = \"\"\"\n0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\"\"\"";

#[tokio::main]
async fn main() -> Outcome<()> {
    let requests: usize = std::env::args().nth(1).map_or(Ok(500), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("added-latency-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let result = measure(&folder, requests).await;
    std::fs::remove_dir_all(&folder)?;
    result
}

async fn measure(folder: &Path, requests: usize) -> Outcome<()> {
    // Only for this client; the library needs no provider for the whole process. It fails if there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let script = Arc::new(Script::parse(SCRIPT, Path::new(""))?);
    let provider = GatewayConfig::new(folder.join("provider.sock"), Backend::Script(script));
    let provider = Gateway::open(provider, Arc::new(Nobody)).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let inside = provider.socket().to_owned();
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            let inside = inside.clone();
            tokio::spawn(async move {
                let mut inside = UnixStream::connect(inside).await?;
                outside.set_nodelay(true)?;
                copy_bidirectional(&mut outside, &mut inside).await
            });
        }
    });

    let file = format!("[p]\nbase_url = \"{base_url}\"\nwire = [\"openai_responses\"]\nkey_env = \"K\"");
    let providers = Providers::parse(&file)?;
    let entry = providers.get("p").ok_or("it was just written")?;
    let upstream = Upstream::new(entry, SecretString::from("key"), NetSettings::default())?;
    let live = GatewayConfig::new(folder.join("live.sock"), Backend::Live(Arc::new(upstream)));
    let live = Gateway::open(live, Arc::new(Nobody)).await?;

    let straight = reqwest::Client::builder().no_proxy().build()?;
    let through = reqwest::Client::builder().no_proxy().unix_socket(live.socket()).build()?;
    // Taken in turns, so that whatever else the machine does falls on both.
    let (mut direct, mut gated) = (Vec::new(), Vec::new());
    for round in 0..requests + 10 {
        let one = ask(&straight, &base_url).await?;
        let other = ask(&through, "http://gateway/v1").await?;
        if round >= 10 {
            direct.push(one);
            gated.push(other);
        }
    }
    for (what, pick) in [("first byte", 0), ("whole answer", 1)] {
        let of = |times: &[[Duration; 2]]| {
            let mut times: Vec<Duration> = times.iter().map(|time| time[pick]).collect();
            times.sort_unstable();
            [times[times.len() / 2], times[times.len() * 9 / 10]].map(|time| time.as_secs_f64() * 1000.0)
        };
        let ([direct, direct90], [gated, gated90]) = (of(&direct), of(&gated));
        println!(
            "{what}: direct {direct:.2} ms (p90 {direct90:.2}), through the gateway {gated:.2} ms (p90 {gated90:.2}), \
             added {:.2} ms",
            gated - direct
        );
    }
    Ok(())
}

/// Time to the first byte of the body, and to its end.
async fn ask(client: &reqwest::Client, base: &str) -> Outcome<[Duration; 2]> {
    let body = r#"{"model": "m", "stream": true, "input": "go"}"#;
    let start = Instant::now();
    let request =
        client.post(format!("{base}/responses")).header("content-type", "application/json").body(body);
    let mut chunks = request.send().await?.error_for_status()?.bytes_stream();
    chunks.next().await.ok_or("an empty answer")??;
    let first = start.elapsed();
    while let Some(chunk) = chunks.next().await {
        chunk?;
    }
    Ok([first, start.elapsed()])
}
