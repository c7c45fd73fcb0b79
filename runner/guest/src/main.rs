//! `proctor-guest`: PID 1 of every container (`init`), and a bounded runner of one tool (`bounded`).

mod bounded;
mod bridge;
mod cgroup;
mod init;
mod processes;
mod stillness;

use std::process::ExitCode;

const USAGE: &str =
    "usage: proctor-guest init CONTROL_SOCKET\n       proctor-guest bounded MILLISECONDS PROGRAM [ARGUMENT]…";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["init", socket] => init::serve(socket).map(|()| ExitCode::SUCCESS),
        ["bounded", millis, program, rest @ ..] => bounded::run(millis, program, rest),
        _ => Err(std::io::Error::other(USAGE)),
    };
    result.unwrap_or_else(|error| {
        complain(&error.to_string());
        ExitCode::from(125)
    })
}

/// The guest has nobody to report to but the container's error output.
fn complain(message: &str) {
    use std::io::Write as _;
    // Nothing can be done when even that is closed.
    let _ = writeln!(std::io::stderr(), "proctor-guest: {message}");
}
