//! Stopping everything, and seeing to it that it has stopped.
//!
//! SIGSTOP takes effect on the way out of the kernel. A call that is under way is finished first: a rename that waits
//! for the disk, or whose process the CPU limit keeps from running, changes files long after the signal was sent.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::processes::signal_all;

/// How long stillness is waited for; the runner waits a little longer for the answer.
const PATIENCE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

/// What came of stopping everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// There was nothing to stop.
    pub(crate) alone: bool,
    /// Every thread of every process has come to rest, and nobody is left to wake one.
    pub(crate) still: bool,
}

/// Sends SIGSTOP to every process but this one, until all have come to rest or patience ends.
pub(crate) fn stop_all() -> Stop {
    let end = Instant::now() + PATIENCE;
    loop {
        // Again each time: of a process group whose last other member ends, the kernel itself continues what is
        // stopped.
        if !signal_all(Signal::SIGSTOP) {
            return Stop { alone: true, still: true };
        }
        let still = all_still(end);
        if still || Instant::now() >= end {
            return Stop { alone: false, still };
        }
        thread::sleep(PAUSE);
    }
}

/// Whether no thread can run any more. All processes were there before the look round began: one with a pending
/// SIGSTOP cannot fork.
fn all_still(end: Instant) -> bool {
    let own = std::process::id().to_string();
    let Some(processes) = numbers("/proc") else { return false };
    processes.iter().filter(|process| **process != own).all(|process| {
        // One that is gone meanwhile does nothing any more.
        let threads = numbers(&format!("/proc/{process}/task")).unwrap_or_default();
        let still = |thread: &String| {
            let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
            stat.map_or(true, |stat| at_rest(&stat))
        };
        Instant::now() < end && threads.iter().all(still)
    })
}

fn numbers(folder: &str) -> Option<Vec<String>> {
    let names = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Some(names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect())
}

/// Whether a thread with this `stat` is stopped, traced or dead. Its name in parentheses may hold anything.
fn at_rest(stat: &str) -> bool {
    let state = stat.rfind(") ").and_then(|at| stat[at + 2..].chars().next());
    matches!(state, Some('T' | 't' | 'Z' | 'X' | 'x'))
}

#[cfg(test)]
mod tests {
    use super::at_rest;

    #[test]
    fn the_state_is_behind_the_name_whatever_that_is() {
        for (stat, expected) in [
            ("7 (bash) T 1 7", true),
            ("7 (a) T b) S 1 7", false),
            ("7 (a) S b) T 1 7", true),
            ("7 (x) Z 1", true),
            ("7 (x) D 1", false),
            ("7 (x) R 1", false),
            ("", false),
        ] {
            assert_eq!(at_rest(stat), expected, "{stat}");
        }
    }
}
