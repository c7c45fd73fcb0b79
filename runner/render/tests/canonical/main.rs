//! Real artifacts in real rooms: needs a container engine and the toolchain image, and says so when one is missing.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so"
)]

mod good;
mod hostile;
mod studio;
