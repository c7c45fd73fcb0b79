//! The gateway over real sockets: the client is `reqwest` on a Unix socket, the model server a local `axum`.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of a test fail by panicking, too")]

mod live;
mod network;
mod replay;
mod scripted;
mod support;
