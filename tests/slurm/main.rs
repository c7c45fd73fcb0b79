//! `proctor slurm` on a real Slurm: controller and node daemon of Debian's packages, on this machine and without systemd,
//! over real trials in real containers. `make test-slurm`; not part of `make test`, since it needs root to install Slurm.
//!
//! Map: [`cluster`] starts and stops Slurm · [`campaign`] and [`restart`] have the tests · [`support`] is that of the end-to-end tests.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test that is how a failure shows"
)]

mod campaign;
mod cluster;
mod restart;
#[expect(dead_code, unused_imports, reason = "the end-to-end tests use all of it")]
#[path = "../e2e/support/mod.rs"]
mod support;
