//! The runner's end of the control socket.

use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use proctor_guest::{Command, Reply, Request};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::monotonic::instant_at;
use crate::{ProcessEnd, Running, SandboxError};

/// Name of the control socket in the control directory.
pub(crate) const SOCKET: &str = "control.sock";

/// How long the guest may take for an answer that needs nothing but itself.
const ANSWER: Duration = Duration::from_secs(10);

/// A control socket that waits for its one connection.
pub(crate) struct Waiting {
    listener: UnixListener,
    path: PathBuf,
}

impl Waiting {
    /// Binds the socket in `folder`. The room's uid differs from ours, hence the mode.
    pub(crate) fn bind(folder: &Path) -> Result<Self, SandboxError> {
        let path = folder.join(SOCKET);
        let bind = || {
            let listener = UnixListener::bind(&path)?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
            Ok(listener)
        };
        let listener = bind().map_err(|source| SandboxError::Io {
            action: "binding the control socket",
            path: path.clone(),
            source,
        })?;
        Ok(Self { listener, path })
    }

    /// Takes the guest's connection; after it the socket is closed and unlinked, so there is never a second.
    pub(crate) async fn accept(self, room: &str) -> Result<Control, SandboxError> {
        let accepted = self.listener.accept().await;
        drop(self.listener);
        // It is ours alone; a leftover would only be in the way of nobody.
        let _ = std::fs::remove_file(&self.path);
        let (stream, _) = accepted.map_err(|source| SandboxError::Io {
            action: "accepting the guest at",
            path: self.path,
            source,
        })?;
        Control::start(stream, room).await
    }
}

/// The connection to one guest.
pub(crate) struct Control {
    room: String,
    /// Held from a request to its answer, so that answers cannot be mixed up.
    channel: Mutex<Channel>,
    ends: Arc<Ends>,
}

struct Channel {
    requests: OwnedWriteHalf,
    answers: mpsc::Receiver<Reply>,
    next_id: u32,
}

/// Who waits for which process. Emptied when the connection ends: every waiter then learns that the room is gone.
#[derive(Default)]
struct Ends(SyncMutex<HashMap<u32, oneshot::Sender<ProcessEnd>>>);

impl Ends {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<u32, oneshot::Sender<ProcessEnd>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Control {
    async fn start(stream: UnixStream, room: &str) -> Result<Self, SandboxError> {
        let (replies, requests) = stream.into_split();
        let (answer, answers) = mpsc::channel(4);
        let ends = Arc::new(Ends::default());
        let waiting = Arc::clone(&ends);
        tokio::spawn(async move {
            let mut lines = BufReader::new(replies).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match serde_json::from_str(&line) {
                    Ok(Reply::Exited { id, status, at_ns, oom_kills }) => {
                        if let Some(waiter) = waiting.with(|ends| ends.remove(&id)) {
                            // Nobody waiting any more is fine.
                            let _ = waiter.send(ProcessEnd { status, at: instant_at(at_ns), oom_kills });
                        }
                    }
                    Ok(reply) => {
                        if answer.send(reply).await.is_err() {
                            break;
                        }
                    }
                    Err(error) => tracing::warn!(%error, line, "the guest said something unknown"),
                }
            }
            waiting.with(HashMap::clear);
        });
        let control = Self {
            room: room.to_owned(),
            channel: Mutex::new(Channel { requests, answers, next_id: 0 }),
            ends,
        };
        let greeting = control.answer(&mut *control.channel.lock().await, ANSWER).await?;
        if matches!(greeting, Reply::Ready { .. }) { Ok(control) } else { Err(control.unexpected(&greeting)) }
    }

    /// Starts a process.
    pub(crate) async fn run(&self, mut command: Command) -> Result<Running, SandboxError> {
        let mut channel = self.channel.lock().await;
        command.id = channel.next_id;
        channel.next_id += 1;
        let program = command.argv.first().cloned().unwrap_or_default();
        let (sender, end) = oneshot::channel();
        self.ends.with(|ends| ends.insert(command.id, sender));
        match self.ask(&mut channel, &Request::Run(command), ANSWER).await? {
            Reply::Started { at_ns, .. } => Ok(Running { at: instant_at(at_ns), end }),
            Reply::NotStarted { message, .. } => Err(SandboxError::NotStarted { program, message }),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Sends a request and waits for its answer, `patience` long.
    pub(crate) async fn request(&self, request: &Request, patience: Duration) -> Result<Reply, SandboxError> {
        let mut channel = self.channel.lock().await;
        self.ask(&mut channel, request, patience).await
    }

    /// Says that nothing more will be asked. The guest kills what is left, and leaves.
    pub(crate) async fn hang_up(&self) {
        // A guest that is gone already cannot be told.
        let _ = self.channel.lock().await.requests.shutdown().await;
    }

    async fn ask(
        &self,
        channel: &mut Channel,
        request: &Request,
        patience: Duration,
    ) -> Result<Reply, SandboxError> {
        // An answer that came too late for its own request must not pass for the answer to this one.
        while channel.answers.try_recv().is_ok() {}
        let mut line = serde_json::to_vec(request).map_err(|error| self.failed(error.to_string()))?;
        line.push(b'\n');
        let sent = tokio::time::timeout(patience, channel.requests.write_all(&line)).await;
        match sent {
            Ok(Ok(())) => self.answer(channel, patience).await,
            Ok(Err(error)) => Err(self.failed(format!("cannot be reached: {error}"))),
            Err(_) => Err(self.failed("does not listen".to_owned())),
        }
    }

    async fn answer(&self, channel: &mut Channel, patience: Duration) -> Result<Reply, SandboxError> {
        match tokio::time::timeout(patience, channel.answers.recv()).await {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(self.failed("is gone".to_owned())),
            Err(_) => Err(self.failed(format!("gave no answer within {} ms", patience.as_millis()))),
        }
    }

    /// For an answer that does not fit the request.
    pub(crate) fn unexpected(&self, reply: &Reply) -> SandboxError {
        self.failed(match reply {
            Reply::Failed { message } => message.clone(),
            other => format!("answered {other:?}"),
        })
    }

    fn failed(&self, message: String) -> SandboxError {
        SandboxError::Guest { room: self.room.clone(), message }
    }
}
