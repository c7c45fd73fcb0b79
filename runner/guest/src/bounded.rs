//! Runs one tool for at most a given time. It is a process of its own, never PID 1: `wait-timeout` installs a SIGCHLD
//! handler, which must not meet a reaper.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitCode};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use wait_timeout::ChildExt as _;

/// Exit status when the time ran out, as `timeout(1)` has it.
const TIMED_OUT: u8 = 124;

/// Runs `program` and exits like it: with its code, with 128 + its signal, or with 124 when it was killed for its time.
pub(crate) fn run(millis: &str, program: &str, arguments: &[&str]) -> io::Result<ExitCode> {
    let limit = millis.parse().map(Duration::from_millis).map_err(io::Error::other)?;
    let mut child = Command::new(program).args(arguments).process_group(0).spawn()?;
    let group = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let status = child.wait_timeout(limit)?;
    // The tool's own children end with it, whether it finished or not. They may be gone already.
    let _ = killpg(group, Signal::SIGKILL);
    let code = if let Some(status) = status {
        status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(125)
    } else {
        child.wait()?;
        i32::from(TIMED_OUT)
    };
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}
