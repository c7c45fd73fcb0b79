//! Proxies, certificates, and servers that are not there.

use std::sync::Arc;
use std::time::Duration;

use proctor_gateway::NetSettings;
use proctor_traces::ExchangeEnd;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::support::{Room, live, soon};

async fn room(url: &str, net: NetSettings) -> Room {
    live(&format!("base_url = \"{url}\"\nwire = [\"openai_responses\"]"), net).await
}

/// Reads one HTTP request from `stream` and answers it.
async fn answer_once(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"{}") {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "a whole request");
        request.extend_from_slice(&buffer[..count]);
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok").await.unwrap();
    String::from_utf8(request).unwrap()
}

#[tokio::test]
async fn a_proxy_is_used_when_given_and_not_for_exceptions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://user:word@{}", listener.local_addr().unwrap());
    let (sender, mut seen) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            sender.send(answer_once(&mut stream).await).await.unwrap();
        }
    });
    let net = NetSettings { proxy: Some(proxy), ..NetSettings::default() };
    let through = room("http://model.invalid/v1", net.clone()).await;
    let response = through.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "ok");
    let request = soon(seen.recv()).await.unwrap();
    assert!(request.starts_with("POST http://model.invalid/v1/responses HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("proxy-authorization: basic"), "{request}");

    let around =
        room("http://model.invalid/v1", NetSettings { no_proxy: Some(".invalid".into()), ..net }).await;
    let response = around.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!(response.status(), 502, "a name that does not exist, asked for directly");
    assert!(seen.try_recv().is_err());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_bad_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let room = room(&url, NetSettings::default()).await;
    let response = room.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!(response.status(), 502);
    let message = response.json::<Value>().await.unwrap()["error"]["message"].to_string();
    assert!(message.contains("refused"), "{message}");
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.status), (ExchangeEnd::UpstreamBroke, Some(502)));
}

#[tokio::test]
async fn a_silent_server_breaks_at_the_read_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
        std::future::pending::<()>().await;
    });
    let net = NetSettings { read_timeout: Some(Duration::from_millis(200)), ..NetSettings::default() };
    let room = room(&url, net).await;
    let response = room.post("/v1/responses", &json!({})).send().await.unwrap();
    assert!(soon(response.bytes()).await.is_err());
    let record = room.memory.record(0).await;
    assert_eq!((record.end, record.response.as_ref()), (ExchangeEnd::UpstreamBroke, b"half".as_slice()));
}

/// An HTTPS server for `localhost`, and the PEM of the authority that vouches for it.
async fn https_server() -> (String, Vec<u8>) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            // A client that does not trust us ends the handshake.
            if let Ok(mut stream) = acceptor.accept(stream).await {
                answer_once(&mut stream).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (url, authority.pem().into_bytes())
}

#[tokio::test]
async fn certificates_are_checked_and_own_authorities_can_be_added() {
    let (url, pem) = https_server().await;
    let trusting = room(&url, NetSettings { ca_pem: vec![pem], ..NetSettings::default() }).await;
    let response = trusting.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.text().await.unwrap().as_str()), (200, "ok"));

    let other = rcgen::generate_simple_self_signed(vec!["elsewhere".to_owned()]).unwrap();
    let net = NetSettings { ca_pem: vec![other.cert.pem().into_bytes()], ..NetSettings::default() };
    let room = room(&url, net).await;
    let response = room.post("/v1/responses", &json!({})).send().await.unwrap();
    assert_eq!(response.status(), 502);
    let record = room.memory.record(0).await;
    assert_eq!(record.end, ExchangeEnd::UpstreamBroke);
    assert!(record.error.unwrap().contains("certificate"));
}
