//! One gateway: a Unix socket, a backend behind it, and the record of all that goes through.

use std::future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use proctor_traces::{ExchangeEnd, WireFormat};
use serde::Deserialize;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::accounting::short;
use crate::answer::{Answer, Outcome};
use crate::body::{recorded, whole};
use crate::client::PictureEndpoint;
use crate::listener::{Connection, CuttableListener};
use crate::multipart;
use crate::player::Player;
use crate::record::{ExchangeSink, Recorder, Ticket};
use crate::redact::Redactor;
use crate::replay::{Replay, ReplayTally, Replayer};
use crate::script::Script;
use crate::upstream::Upstream;
use crate::wire::{GeminiPath, Route};

/// Who answers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// A scripted model.
    Script(Arc<Script>),
    /// The recording of an earlier trial.
    Replay(Replay),
    /// A real model server.
    Live(Arc<Upstream>),
}

/// What a gateway needs.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Where its socket is made: a path of at most 107 bytes, in a directory that exists.
    pub socket: PathBuf,
    /// Who answers.
    pub backend: Backend,
    /// Largest request body taken, and most of a response body kept in its record, in bytes.
    pub body_cap: usize,
    /// Whether pictures may be asked for. An agent that must draw may not.
    pub pictures: bool,
}

impl GatewayConfig {
    /// The usual [`Self::body_cap`], 64 MiB: a request carries all its pictures in base64, again and again.
    pub const BODY_CAP: usize = 64 << 20;

    /// A configuration with the usual cap.
    pub fn new(socket: impl Into<PathBuf>, backend: Backend) -> Self {
        Self { socket: socket.into(), backend, body_cap: Self::BODY_CAP, pictures: false }
    }
}

/// A gateway that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The path does not fit into a socket address.
    #[error("the socket path {} is longer than {} bytes", path.display(), SOCKET_PATH_CAP)]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("cannot make the socket {}", path.display())]
    Bind {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// `sun_path` on Linux holds 108 bytes with its final NUL.
const SOCKET_PATH_CAP: usize = 107;

/// What a gateway looked back on when it closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayClosed {
    /// Exchanges that were still open and ended as [`ExchangeEnd::Deadline`].
    pub exchanges_cut: u64,
    /// Response bytes that came after the freeze and were dropped.
    pub late_bytes: u64,
    /// What a replay came to, if it was one.
    pub replay: Option<ReplayTally>,
}

/// An open gateway. Dropping it closes it too, without a report.
pub struct Gateway {
    socket: PathBuf,
    recorder: Arc<Recorder>,
    replay: Option<Arc<Replayer>>,
    token: CancellationToken,
    server: JoinHandle<()>,
}

struct Shared {
    recorder: Arc<Recorder>,
    backend: Running,
    body_cap: usize,
    pictures: bool,
}

enum Running {
    Script(Player),
    Replay(Arc<Replayer>),
    Live(Arc<Upstream>),
}

impl Gateway {
    /// Makes the socket, connectable by everybody who can reach its directory, and serves it.
    ///
    /// `sink` is told of every exchange. Must be called within a Tokio runtime.
    #[expect(clippy::unused_async, reason = "opening may come to wait, and callers are async already")]
    pub async fn open(config: GatewayConfig, sink: Arc<dyn ExchangeSink>) -> Result<Self, GatewayError> {
        let GatewayConfig { socket, backend, body_cap, pictures } = config;
        let listener = bind(&socket)?;
        let (backend, redactor) = match backend {
            Backend::Script(script) => (Running::Script(Player::new(script)), Redactor::default()),
            Backend::Replay(replay) => {
                (Running::Replay(Arc::new(Replayer::new(replay))), Redactor::default())
            }
            Backend::Live(upstream) => {
                let redactor = upstream.redactor();
                (Running::Live(upstream), redactor)
            }
        };
        let replay = match &backend {
            Running::Replay(replayer) => Some(Arc::clone(replayer)),
            Running::Script(_) | Running::Live(_) => None,
        };
        let recorder = Recorder::new(sink, redactor, body_cap);
        let token = CancellationToken::new();
        let shared = Arc::new(Shared { recorder: recorder.clone(), backend, body_cap, pictures });
        let app = Router::new().fallback(handle).with_state(shared);
        let listener = CuttableListener { socket: listener, token: token.clone() };
        let app = app.into_make_service_with_connect_info::<Connection>();
        let server = tokio::spawn(async move {
            // Serving never ends by itself; it is aborted.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { socket, recorder, replay, token, server })
    }

    /// Where the socket is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Ends everything at once: open exchanges end as [`ExchangeEnd::Deadline`], their connections are cut, the
    /// socket is removed. Waits for nothing that an agent or a server could draw out.
    #[expect(clippy::unused_async, reason = "closing may come to wait, and callers are async already")]
    pub async fn close(self) -> GatewayClosed {
        let exchanges_cut = self.shut();
        let replay = self.replay.as_ref().map(|replayer| replayer.tally());
        GatewayClosed { exchanges_cut, late_bytes: self.recorder.late_bytes(), replay }
    }

    fn shut(&self) -> u64 {
        let cut = self.recorder.freeze();
        self.token.cancel();
        self.server.abort();
        // Gone already, or in a directory that goes next: neither is worth an error at the end of a trial.
        let _ = std::fs::remove_file(&self.socket);
        cut
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shut();
    }
}

fn bind(path: &Path) -> Result<UnixListener, GatewayError> {
    if path.as_os_str().len() > SOCKET_PATH_CAP {
        return Err(GatewayError::PathTooLong { path: path.to_owned() });
    }
    let failed = |source| GatewayError::Bind { path: path.to_owned(), source };
    let listener = UnixListener::bind(path).map_err(failed)?;
    // The agent has another uid than we do; its room is closed by the directory, not by the socket.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(failed)?;
    Ok(listener)
}

async fn handle(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    let route = Route::of(request.method(), request.uri().path());
    let route = route.filter(|route| shared.pictures || !route.is_of_pictures());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let wire = route.and_then(Route::wire);
    let Some(ticket) = shared.recorder.begin(wire, request.method().as_str(), path) else {
        // Frozen: the connection is about to be cut.
        return future::pending().await;
    };
    tokio::select! {
        response = respond(&shared, &connection, route, request, ticket) => response,
        () = connection.0.cancelled() => future::pending().await,
    }
}

async fn respond(
    shared: &Shared,
    connection: &Connection,
    route: Option<Route>,
    request: Request,
    ticket: Ticket,
) -> Response {
    let (head, body) = request.into_parts();
    let bare = head.method == Method::HEAD;
    let outcome = match read(body, shared.body_cap).await {
        Ok(body) => {
            ticket.request(asked_model(route, head.uri.path(), &body), body.clone());
            match (route, &shared.backend) {
                (None, _) => {
                    let message = format!("{} {} is not on the allow-list", head.method, head.uri.path());
                    Outcome::Answer(Answer::refused(None, 403, message))
                }
                (Some(route), Running::Script(player)) => {
                    player.answer(route, head.uri.path(), &body, &ticket).await
                }
                (Some(route), Running::Replay(replayer)) => {
                    replayer.answer(route, &head.method, &head.uri, &body, &ticket)
                }
                (Some(Route::Fetch), Running::Live(upstream)) => Outcome::Answer(upstream.fetch(&body).await),
                (Some(route), Running::Live(upstream)) => {
                    let answer = upstream.answer(route, &head.uri, &head.headers, body).await;
                    Outcome::Answer(answer)
                }
            }
        }
        Err(Unread::TooLarge(part)) => {
            ticket.request(None, part);
            let message = format!("the request body is larger than {} bytes", shared.body_cap);
            Outcome::Answer(Answer::refused(route.and_then(Route::wire), 413, message))
        }
        Err(Unread::Gone(part)) => {
            ticket.request(None, part);
            ticket.finish(ExchangeEnd::ClientGone, Some("the request body broke off".to_owned()));
            return future::pending().await;
        }
    };
    match outcome {
        Outcome::Answer(answer) => hand_over(answer, bare, ticket),
        Outcome::Hang => future::pending().await,
        Outcome::Drop => {
            let error = "the connection is dropped here, as scripted or recorded".to_owned();
            ticket.finish(ExchangeEnd::UpstreamBroke, Some(error));
            connection.0.cancel();
            future::pending().await
        }
    }
}

/// `bare`: the response has no body, as one to `HEAD`.
fn hand_over(answer: Answer, bare: bool, ticket: Ticket) -> Response {
    ticket.head(answer.status, &answer.headers);
    if let Some((end, error)) = answer.failed {
        ticket.will_end(end, error);
    }
    let body = if bare {
        recorded(whole(""), Some(0), ticket)
    } else {
        recorded(answer.body, answer.length, ticket)
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = answer.headers;
    response
}

/// A request body that did not come whole, with what came.
enum Unread {
    TooLarge(Bytes),
    Gone(Bytes),
}

async fn read(body: Body, cap: usize) -> Result<Bytes, Unread> {
    let mut chunks = body.into_data_stream();
    let mut whole = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let Ok(chunk) = chunk else { return Err(Unread::Gone(whole.freeze())) };
        if chunk.len() > cap - whole.len() {
            return Err(Unread::TooLarge(whole.freeze()));
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// The model that a request names; the rest of a large body is skipped, not built.
fn asked_model(route: Option<Route>, path: &str, body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        model: serde_json::Value,
    }
    if route == Some(Route::Picture(PictureEndpoint::Edits)) {
        return multipart::text(body, "model").and_then(|model| short(&model.into()));
    }
    if route?.wire()? == WireFormat::GeminiGenerate {
        return GeminiPath::of(path).map(|asked| asked.model.to_owned());
    }
    serde_json::from_slice::<Named>(body).ok().and_then(|named| short(&named.model))
}
