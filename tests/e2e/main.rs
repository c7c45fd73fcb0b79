//! End-to-end tests: the real binary, real Docker, the real toolchain image, the real agent CLIs.
//!
//! They need what `make test` sets up: an engine that answers, the image, the CLIs in the cache, and the program
//! itself beside this one (`cargo build -p proctor`). What is missing makes them fail, never pass.
//!
//! Map: [`support`] runs the binary and reads what it leaves · one module per concern.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how a failure shows"
)]

mod agents;
mod blind;
mod controls;
mod crashes;
mod deadline;
mod endings;
mod errors;
mod full_disk;
mod hostile;
mod joined;
mod judged;
mod labeller;
mod live;
mod more_agents;
mod pictures;
mod plans;
mod preflight;
mod rendered;
mod replay;
mod resume;
mod retries;
mod sealing;
mod secrecy;
mod streams;
mod support;
mod tracks;
