//! One browser in one room: started, reached, and asked after its health.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use chromiumoxide::Browser;
use chromiumoxide::handler::HandlerConfig;
use futures_util::StreamExt as _;
use proctor_sandbox::{Bridge, Command, Endpoint, Mount, ProcessEnd, Sandbox, Tmpfs};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::relay::Relay;
use crate::room::{self, Furniture, RenderRoom};
use crate::{RenderError, RendererOptions};

/// Where the shared folder is in the room.
const SHARED: &str = "/run/browser";
const SOCKET: &str = "devtools";
/// The browser's own port; the room has a network of its own.
const PORT: u16 = 9222;

/// How long a browser may take to come up on a loaded machine.
const UP: Duration = Duration::from_secs(30);
/// Longer than any rendering: deadlines are kept elsewhere.
const COMMAND: Duration = Duration::from_secs(3600);

/// Everything that decides on pixels is fixed: scale, text rendering, colour profile, and who begins a frame.
const ARGUMENTS: &[&str] = &[
    "chromium-headless-shell",
    // The room is the sandbox: it lends no user namespaces to a second one.
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--deterministic-mode",
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-image-animation-resync",
    "--block-new-web-contents",
    "--user-data-dir=/tmp/profile",
    "--remote-debugging-port=9222",
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
];

/// A browser that is up.
pub(crate) struct WarmBrowser {
    /// The client.
    pub(crate) client: Browser,
    /// The way to it.
    pub(crate) relay: Relay,
    /// Pages it was given.
    pub(crate) pages: u32,
    /// Device pixels per CSS pixel: a property of the whole browser, for frames of our own have no other.
    pub(crate) scale: u32,
    /// Turns true when the connection has ended.
    pub(crate) ended: watch::Receiver<bool>,
    room: RenderRoom,
    process: oneshot::Receiver<ProcessEnd>,
    driver: JoinHandle<()>,
    oom_kills: u64,
}

impl WarmBrowser {
    /// Starts a browser in a new room and connects to it.
    pub(crate) async fn open(
        sandbox: &dyn Sandbox,
        options: &RendererOptions,
        label: &str,
        scale: u32,
    ) -> Result<Self, RenderError> {
        let folder = room::folder(options)?;
        // The parent is closed to others; the room's user must make a socket in it.
        let shared = room::subfolder(folder.path(), "s", 0o777)?;
        let furniture = Furniture {
            label,
            mounts: vec![Mount::writable(&shared, SHARED)],
            tmpfs: vec![Tmpfs { inside: "/tmp".to_owned(), bytes: 512 << 20 }],
        };
        let mut room = room::open(sandbox, options, folder, furniture).await?;
        // The guest's remarks about a browser that is not up yet; unread, they would hold it back one day.
        let (_, empty) = mpsc::channel(1);
        let mut remarks = std::mem::replace(&mut room.output, empty);
        tokio::spawn(async move { while remarks.recv().await.is_some() {} });
        // From here on the room closes itself if this fails.
        let process = start(&room, scale).await?;
        let socket = shared.join(SOCKET);
        let address = tokio::time::timeout(UP, address(&socket))
            .await
            .map_err(|_| RenderError::browser(format!("did not start within {} s", UP.as_secs())))?;
        let relay =
            Relay::open(socket).await.map_err(RenderError::io("opening a loopback port for", &shared))?;
        let url = format!("ws://127.0.0.1:{}{address}", relay.port);
        let config = HandlerConfig { request_timeout: COMMAND, ..HandlerConfig::default() };
        let (client, mut handler) = tokio::time::timeout(UP, Browser::connect_with_config(url, config))
            .await
            .map_err(|_| RenderError::browser("did not accept a connection"))?
            .map_err(|error| RenderError::browser(format!("did not accept a connection: {error}")))?;
        close_folder(&shared)?;
        let (told, ended) = watch::channel(false);
        let driver = tokio::spawn(async move {
            // After its first error the handler would wait forever.
            while let Some(Ok(())) = handler.next().await {}
            drop(handler);
            // Nobody listening is fine.
            let _ = told.send(true);
        });
        Ok(Self { client, relay, pages: 0, scale, ended, room, process, driver, oom_kills: 0 })
    }

    /// Whether it can still be spoken to.
    pub(crate) fn is_alive(&self) -> bool {
        !*self.ended.borrow() && !self.driver.is_finished() && self.process.is_empty()
    }

    /// Whether the kernel has killed a process of the room for memory since this was last asked.
    pub(crate) async fn ran_out_of_memory(&mut self) -> bool {
        let before = self.oom_kills;
        let Ok(room) = self.room.room() else { return false };
        // The end of any process tells the count.
        let command =
            Command { argv: vec!["/bin/true".to_owned()], cwd: "/".to_owned(), ..Command::default() };
        if let Ok(running) = room.run(command).await {
            if let Ok(Ok(end)) = tokio::time::timeout(Duration::from_secs(5), running.end).await {
                self.oom_kills = end.oom_kills.unwrap_or(before);
                return self.oom_kills > before;
            }
        }
        room.post_mortem().await.is_ok_and(|it| it.oom_killed)
    }

    /// Removes the room, and everything with it.
    pub(crate) async fn close(self) -> Result<(), RenderError> {
        let Self { room, driver, .. } = self;
        driver.abort();
        Ok(room.close().await?)
    }
}

/// Takes the shared folder from the room's user, who has no more business in it: it lies on the host's disk. As another
/// user than root we are that user, and could not remove the folder ourselves.
fn close_folder(shared: &Path) -> Result<(), RenderError> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    std::fs::set_permissions(shared, Permissions::from_mode(0o555))
        .map_err(RenderError::io("closing the folder", shared))
}

async fn start(room: &RenderRoom, scale: u32) -> Result<oneshot::Receiver<ProcessEnd>, RenderError> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut argv: Vec<String> = ARGUMENTS.iter().map(|&word| word.to_owned()).collect();
    argv.push(format!("--force-device-scale-factor={scale}"));
    let command = Command {
        argv,
        env: ENVIRONMENT.iter().map(owned).collect(),
        cwd: "/tmp".to_owned(),
        // It has nothing to say that DevTools does not say better.
        stdout: Some("/dev/null".to_owned()),
        stderr: Some("/dev/null".to_owned()),
        ..Command::default()
    };
    let running = room.room()?.run(command).await?;
    let bridge =
        Bridge { listen: Endpoint::Unix(format!("{SHARED}/{SOCKET}")), connect: Endpoint::Loopback(PORT) };
    room.room()?.bridge(bridge).await?;
    Ok(running.end)
}

/// Asks until the browser answers; returns the path of its address.
async fn address(socket: &Path) -> String {
    loop {
        if let Ok(Some(path)) = ask(socket).await {
            return path;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ask(socket: &Path) -> std::io::Result<Option<String>> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(b"GET /json/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    // DevTools keeps the connection open whatever it is asked; its answer comes in one piece.
    let mut piece = [0; 4096];
    while answer.len() < 64 << 10 {
        let count = stream.read(&mut piece).await?;
        answer.extend_from_slice(&piece[..count]);
        if let Some(path) = path(&answer) {
            return Ok(Some(path));
        }
        if count == 0 {
            break;
        }
    }
    Ok(None)
}

/// The path in `"webSocketDebuggerUrl": "ws://localhost/devtools/browser/…"`, once its closing quote is there.
fn path(answer: &[u8]) -> Option<String> {
    const BEGIN: &str = "/devtools/browser/";
    let text = String::from_utf8_lossy(answer);
    let from = text.find(BEGIN)?;
    let rest = &text[from..];
    let end = rest.find('"')?;
    let id = &rest[BEGIN.len()..end];
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!id.is_empty() && id.chars().all(plain)).then(|| rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn an_address_is_taken_when_it_is_whole() {
        let answer =
            b"HTTP/1.1 200 OK\r\n\r\n{\"webSocketDebuggerUrl\": \"ws://localhost/devtools/browser/4a-7F\"}";
        assert_eq!(path(answer).as_deref(), Some("/devtools/browser/4a-7F"));
        assert_eq!(path(&answer[..answer.len() - 3]), None);
        assert_eq!(path(b"\"/devtools/browser/a b\""), None);
        assert_eq!(path(b"\"/devtools/browser/\""), None);
    }
}
