//! Builds the guest as a static program and hands its path to `guest.rs`, which embeds it: an installed `proctor` is
//! one file. The nested cargo has a target directory of its own, so it never waits for the outer one.

#![expect(clippy::panic, reason = "a build script has no other way to fail with a message")]

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let guest = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../guest");
    for part in ["src", "Cargo.toml"] {
        println!("cargo::rerun-if-changed={}", guest.join(part).display());
    }

    let target = variable("TARGET");
    let target_dir = PathBuf::from(variable("OUT_DIR")).join("guest");
    let status = Command::new(variable("CARGO"))
        .args(["build", "--release", "--bin", "proctor-guest", "--target", &target])
        .arg("--manifest-path")
        .arg(guest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        // With --target given these flags reach the guest and its dependencies, but no procedural macro.
        .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .status();
    match status {
        Ok(status) if status.success() => {}
        other => panic!("building proctor-guest for {target} failed: {other:?}"),
    }
    let program = target_dir.join(target).join("release/proctor-guest");
    println!("cargo::rustc-env=PROCTOR_GUEST={}", program.display());
}
