//! Serves a script on a loopback port, for trying it with an agent CLI by hand:
//!
//! `cargo run -p proctor-gateway --example play_script -- SCRIPT.toml 8080 [WORKSPACE]`
//!
//! Prints one line for each exchange.
#![expect(clippy::print_stdout, reason = "an example talks to a person")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use proctor_gateway::{
    Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayConfig, Script,
};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};

struct Printer;

impl ExchangeSink for Printer {
    fn started(&self, exchange: &ExchangeStarted) {
        println!(
            "{:3} > {} {} {:?} {} bytes",
            exchange.id, exchange.method, exchange.path, exchange.model, exchange.request_bytes
        );
    }

    fn finished(&self, exchange: ExchangeRecord) {
        let ExchangeRecord { id, status, end, step, usage, error, response, started, ended, .. } = exchange;
        println!(
            "{id:3} < {status:?} {end:?} step {step:?} {usage:?} {} bytes in {:?} {}",
            response.len(),
            ended - started,
            error.unwrap_or_default()
        );
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(script), Some(port)) = (args.next(), args.next()) else {
        return Err("usage: play_script SCRIPT.toml PORT [WORKSPACE]".into());
    };
    let script = Script::load(Path::new(&script))?;
    let script = match args.next() {
        Some(workspace) => script.in_workspace(workspace),
        None => script,
    };
    let directory = std::env::temp_dir().join(format!("play-script-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let config = GatewayConfig::new(directory.join("model.sock"), Backend::Script(Arc::new(script)));
    let gateway = Gateway::open(config, Arc::new(Printer)).await?;
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    loop {
        let (mut outside, _) = listener.accept().await?;
        let socket = gateway.socket().to_owned();
        tokio::spawn(async move {
            let mut inside = UnixStream::connect(socket).await?;
            copy_bidirectional(&mut outside, &mut inside).await
        });
    }
}
