//! Printing that survives its reader. The standard macros panic when a pipe is closed or a disk is full, and would take
//! a run with them that nobody looks at any more: `proctor run … | head`, a terminal that was closed, a full log.

use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that was asked for could not be printed.
static LOST: AtomicBool = AtomicBool::new(false);

/// [`std::println`] that never panics.
macro_rules! println {
    () => { $crate::printing::out(format_args!("")) };
    ($($argument:tt)*) => { $crate::printing::out(format_args!($($argument)*)) };
}

/// [`std::eprintln`] that never panics.
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::printing::err(format_args!($($argument)*)) };
}

/// Prints a line to stdout. A reader that has left has seen enough; any other failure shows in the exit code.
pub(crate) fn out(line: fmt::Arguments<'_>) {
    let written = writeln!(io::stdout().lock(), "{line}");
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Prints a line to stderr, if anybody is there.
pub(crate) fn err(line: fmt::Arguments<'_>) {
    // There is no place left to say that it failed.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether a line of stdout was lost.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// A path as it can be typed into a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=@:,%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        for (path, expected) in [
            ("runs/a", "runs/a"),
            ("sp ace", "'sp ace'"),
            ("$x", "'$x'"),
            ("it's", r"'it'\''s'"),
            ("Größe", "'Größe'"),
        ] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }
}
