//! Runs a program of the host (pip, mmdebstrap) and passes on what it says.

use std::ffi::OsStr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::ImageError;

/// Longest line that is passed on, and how many of the last lines an error quotes.
const LINE: usize = 500;
const TAIL: usize = 15;

/// A program of the host, and what to tell a person whose machine lacks it or where it fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tool {
    /// The executable's name.
    pub(super) program: &'static str,
    /// Said when it is not installed.
    pub(super) when_missing: &'static str,
    /// Said when it fails.
    pub(super) when_failing: &'static str,
}

impl Tool {
    /// Runs it with `args` until it ends; each line of its standard error goes to `line`. Dropping the future kills it.
    pub(super) async fn run(
        self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        line: &mut (impl FnMut(String) + Send),
    ) -> Result<(), ImageError> {
        let failed = |status: String, tail: Vec<String>| ImageError::Tool {
            program: self.program,
            status,
            tail: tail.join("\n"),
            hint: self.when_failing,
        };
        let mut child = Command::new(self.program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    ImageError::Missing { program: self.program, hint: self.when_missing }
                }
                _ => failed(error.to_string(), Vec::new()),
            })?;
        let mut tail = Vec::new();
        if let Some(stderr) = child.stderr.take() {
            let mut reader = BufReader::new(stderr);
            let mut raw = Vec::new();
            // A line may be endless: what is beyond the cap arrives as further lines.
            while matches!((&mut reader).take(64 * 1024).read_until(b'\n', &mut raw).await, Ok(1..)) {
                remember(&mut tail, &raw, line);
                raw.clear();
            }
        }
        match child.wait().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(status.to_string(), tail)),
            Err(error) => Err(failed(error.to_string(), tail)),
        }
    }
}

/// Makes a line readable, keeps it among the last ones and passes it on; empty ones are dropped.
fn remember(tail: &mut Vec<String>, raw: &[u8], line: &mut impl FnMut(String)) {
    let Some(text) = readable(&String::from_utf8_lossy(raw)) else { return };
    if tail.len() == TAIL {
        tail.remove(0);
    }
    tail.push(text.clone());
    line(text);
}

/// The line without control characters (colours, carriage returns) and cut to a sensible length; `None` if nothing is left.
pub(super) fn readable(line: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // A colour: ESC [ digits letter.
            let _letter = chars.by_ref().find(char::is_ascii_alphabetic);
        } else if !c.is_control() || c == '\t' {
            text.push(c);
        }
    }
    let text: String = text.trim_end().chars().take(LINE).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Tool = Tool { program: "sh", when_missing: "install sh", when_failing: "look at sh" };

    #[tokio::test]
    async fn a_failing_tool_is_quoted() {
        let mut lines = Vec::new();
        let script = "for i in $(seq 40); do echo line $i >&2; done; exit 3";
        let error = SHELL.run(["-c", script], &mut |line| lines.push(line)).await.unwrap_err();
        assert_eq!(lines.len(), 40);
        assert_eq!(error.hint(), "look at sh");
        let ImageError::Tool { tail, status, .. } = error else { panic!("{error}") };
        assert!(tail.starts_with("line 26\n") && tail.ends_with("line 40"), "{tail}");
        assert!(status.contains('3'), "{status}");
    }

    #[tokio::test]
    async fn a_missing_tool_says_how_to_get_it() {
        let tool = Tool { program: "no-such-program-here", ..SHELL };
        let error = tool.run([""; 0], &mut |_| ()).await.unwrap_err();
        assert!(matches!(error, ImageError::Missing { .. }));
        assert_eq!(error.hint(), "install sh");
    }

    #[test]
    fn colours_and_returns_are_dropped() {
        assert_eq!(readable("\u{1b}[91mMoving\u{1b}[0m\r\n").as_deref(), Some("Moving"));
        assert_eq!(readable("\u{1b}[0m\n"), None);
        assert_eq!(readable(&"x".repeat(9000)).map(|line| line.len()), Some(LINE));
    }
}
