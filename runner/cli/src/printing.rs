//! Printing that survives its reader. The standard macros panic when a pipe is closed or a disk is full, and would take
//! a run with them that nobody looks at any more: `proctor run … | head`, a terminal that was closed, a full log.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
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
    let line = line.to_string();
    let written = writeln!(io::stdout().lock(), "{}", harmless(&line));
    if written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Prints a line to stderr, if anybody is there.
pub(crate) fn err(line: fmt::Arguments<'_>) {
    // There is no place left to say that it failed.
    let line = line.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", harmless(&line));
}

/// Prints what is coloured by ourselves to stderr: of what a terminal obeys, the colours stay.
pub(crate) fn styled(text: &str) {
    let mut clean = String::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    clean.push_str(&harmless(parts.next().unwrap_or_default()));
    for part in parts {
        let colour = part.strip_prefix('[').and_then(|it| it.split_once('m'));
        let is_colour = colour.is_some_and(|(it, _)| it.chars().all(|c| c.is_ascii_digit() || c == ';'));
        clean.push(if is_colour { '\u{1b}' } else { OBEYED });
        clean.push_str(&harmless(part));
    }
    let _ = writeln!(io::stderr().lock(), "{clean}");
}

/// What stands for what was taken out.
const OBEYED: char = '\u{fffd}';

/// Whether a terminal obeys it, or shows other things for it than are there: controls, marks that turn the direction of
/// writing, and what has no width.
pub(crate) fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{61c}' => true,
        c => c.is_control(),
    }
}

/// Without what a terminal would obey. Everything that is printed goes through this: names, paths and the words of agents
/// and providers may hold anything.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_obeyed) {
        Cow::Owned(text.chars().map(|c| if is_obeyed(c) { OBEYED } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// [`harmless`], and on one line: foreign words must not begin a line of their own, which could be taken for one of ours.
pub(crate) fn in_a_line(text: &str) -> String {
    let text = text.trim().replace("\r\n", "⏎").replace(['\n', '\r'], "⏎").replace('\t', " ");
    harmless(&text).into_owned()
}

/// JSON that is safe to print, and means the same: what a terminal obeys is written as an escape.
pub(crate) fn harmless_json(json: String) -> String {
    if !json.chars().any(is_obeyed) {
        return json;
    }
    let mut clean = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_obeyed(c) {
            // All of them are one unit of UTF-16. Writing to a string cannot fail.
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    clean
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
    fn nothing_that_is_printed_is_obeyed() {
        let evil = "a\u{1b}]0;t\u{7}\u{9b}31m\u{202e}b\u{200b}\r\nPROBLEM\tc";
        let clean = harmless(evil);
        assert!(
            !clean.chars().any(is_obeyed) && clean.contains('\n') && clean.contains("PROBLEM"),
            "{clean:?}"
        );
        assert_eq!(in_a_line(" a\r\nb\nc\td\u{7} "), "a⏎b⏎c d\u{fffd}");
        let json = serde_json::to_string(evil).unwrap();
        assert!(json.contains('\u{9b}'));
        let clean = harmless_json(json);
        assert!(!clean.chars().any(is_obeyed));
        assert_eq!(serde_json::from_str::<String>(&clean).unwrap(), evil);
    }

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
