//! A gateway with a memory for a sink, and a client for it.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_gateway::{
    Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayClosed, GatewayConfig,
    NetSettings, Providers, Script, Upstream,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) started: Mutex<Vec<ExchangeStarted>>,
    finished: Mutex<Vec<ExchangeRecord>>,
    changed: Notify,
}

impl ExchangeSink for Memory {
    fn started(&self, exchange: &ExchangeStarted) {
        self.started.lock().unwrap().push(exchange.clone());
        self.changed.notify_waiters();
    }

    fn finished(&self, exchange: ExchangeRecord) {
        let started = self.started.lock().unwrap();
        assert!(started.iter().any(|it| it.id == exchange.id), "finished before it was started");
        let mut finished = self.finished.lock().unwrap();
        assert!(finished.iter().all(|it| it.id != exchange.id), "finished twice");
        finished.push(exchange);
        self.changed.notify_waiters();
    }
}

/// Waits for `future`; only a hanging test ever sees the limit.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it never came")
}

impl Memory {
    /// The record of that exchange, once there is one.
    pub(crate) async fn record(&self, id: u64) -> ExchangeRecord {
        let find = || self.finished.lock().unwrap().iter().find(|it| it.id == id).cloned();
        self.wait(find).await
    }

    pub(crate) async fn has_started(&self, id: u64) -> ExchangeStarted {
        let find = || self.started.lock().unwrap().iter().find(|it| it.id == id).cloned();
        self.wait(find).await
    }

    async fn wait<T>(&self, find: impl Fn() -> Option<T>) -> T {
        soon(async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = find() {
                    return found;
                }
                changed.await;
            }
        })
        .await
    }
}

pub(crate) struct Room {
    pub(crate) gateway: Gateway,
    pub(crate) memory: Arc<Memory>,
    pub(crate) client: reqwest::Client,
    pub(crate) dir: TempDir,
}

pub(crate) async fn room(backend: Backend, body_cap: usize) -> Room {
    // Only for this test client; that the library needs no global provider is shown by its unit tests.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("model.sock");
    let memory = Arc::new(Memory::default());
    let config = GatewayConfig { body_cap, ..GatewayConfig::new(&socket, backend) };
    let gateway = Gateway::open(config, memory.clone()).await.unwrap();
    let client =
        reqwest::Client::builder().unix_socket(socket).retry(reqwest::retry::never()).build().unwrap();
    Room { gateway, memory, client, dir }
}

pub(crate) async fn scripted(script: &str) -> Room {
    let script = Script::parse(script, Path::new("")).unwrap();
    room(Backend::Script(Arc::new(script)), GatewayConfig::BODY_CAP).await
}

pub(crate) const KEY: &str = "sk-live-0123456789";

pub(crate) async fn live(provider: &str, net: NetSettings) -> Room {
    let providers = Providers::parse(&format!("[p]\nkey_env = \"KEY\"\n{provider}")).unwrap();
    let upstream = Upstream::new(providers.get("p").unwrap(), KEY.into(), net).unwrap();
    room(Backend::Live(Arc::new(upstream)), GatewayConfig::BODY_CAP).await
}

impl Room {
    pub(crate) fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.client
            .post(format!("http://gateway{path}"))
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) async fn close(self) -> (GatewayClosed, Arc<Memory>, TempDir) {
        (self.gateway.close().await, self.memory, self.dir)
    }
}

/// A request of a conversation with one prompt and `results` tool results, in the Messages format.
pub(crate) fn messages(results: usize) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for _ in 0..results {
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}));
    }
    json!({
        "model": "m", "stream": true, "messages": messages,
        "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}}}],
    })
}
