//! From what a tool did to a status. Pure, because the order of the questions is what matters.

use std::sync::LazyLock;

use proctor_sandbox::ExitStatus;
use proctor_tasks::RenderMode;
use regex::Regex;

use crate::RenderStatus;
use crate::picture::{Fault, Picture};

/// A status with what a person should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) status: RenderStatus,
    pub(crate) message: Option<String>,
    pub(crate) line: Option<u32>,
}

/// What a tool did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// How its last step ended; absent when the room had to be taken down.
    pub(crate) exit: Option<ExitStatus>,
    /// The limit passed, by the driver's clock or by ours.
    pub(crate) timed_out: bool,
    /// Processes that the kernel killed for memory.
    pub(crate) oom_kills: u64,
    /// Forks that the limit on processes refused.
    pub(crate) forks_refused: u64,
    /// It printed more than there was room for.
    pub(crate) log_full: bool,
    /// What it printed, the end of both streams.
    pub(crate) log: &'a str,
    /// What its picture is.
    pub(crate) picture: Result<&'a Picture, &'a Fault>,
}

/// Exit statuses of the driver: 128 and the signal.
const KILLED: i32 = 128 + 9;
const FILE_TOO_LARGE: i32 = 128 + 25;

/// Longest message that is kept.
const MAX_MESSAGE: usize = 500;

/// Answers in the order that [`RenderStatus`] documents.
pub(crate) fn classify(mode: RenderMode, evidence: Evidence<'_>) -> Verdict {
    let Evidence { exit, timed_out, oom_kills, forks_refused, log_full, log, picture } = evidence;
    if timed_out {
        return plain(RenderStatus::Timeout, "the time limit passed");
    }
    let code = exit.map(|exit| match exit {
        ExitStatus::Code(code) => code,
        ExitStatus::Signal(signal) => 128 + signal,
    });
    if code == Some(0) && oom_kills == 0 {
        match picture {
            Ok(Picture { blank: false, .. }) => {
                return Verdict { status: RenderStatus::Rendered, message: note(mode, log), line: None };
            }
            Ok(_) => return plain(RenderStatus::Blank, "every pixel has the same colour"),
            Err(Fault::TooLarge(why)) => return plain(RenderStatus::TooLarge, why),
            Err(Fault::Missing | Fault::Broken(_)) => {}
        }
    }
    if oom_kills > 0 || code == Some(KILLED) {
        return plain(RenderStatus::OutOfMemory, "the memory limit was hit");
    }
    if forks_refused > 0
        || ["Resource temporarily unavailable", "can't fork", "Cannot fork"].iter().any(|it| log.contains(it))
    {
        return plain(RenderStatus::PidsLimit, "the limit on processes was hit");
    }
    if log_full
        || code == Some(FILE_TOO_LARGE)
        || log.contains("No space left on device")
        || log.contains("File too large")
    {
        return plain(RenderStatus::DiskLimit, "the limit on file space was hit");
    }
    match code {
        Some(code @ 129..=159) => {
            plain(RenderStatus::Crash, &format!("the tool died by signal {}", code - 128))
        }
        Some(0) => match picture {
            Err(Fault::Broken(why)) => {
                plain(RenderStatus::NoOutput, &format!("the picture cannot be decoded: {why}"))
            }
            _ => plain(RenderStatus::NoOutput, "the tool left no picture"),
        },
        Some(code) => {
            if was_set(mode, log) {
                return plain(RenderStatus::NoOutput, "the document has no page that can be drawn");
            }
            let (message, line) = complaint(mode, log);
            let message = message.unwrap_or_else(|| format!("the tool ended with status {code}"));
            Verdict { line, ..plain(RenderStatus::ArtifactError, &message) }
        }
        None => plain(RenderStatus::Crash, "the room ended under the tool"),
    }
}

fn plain(status: RenderStatus, message: &str) -> Verdict {
    Verdict { status, message: Some(message.chars().take(MAX_MESSAGE).collect()), line: None }
}

/// Whether LaTeX itself was content, so that only drawing its page has failed: there is none, or it has no extent.
fn was_set(mode: RenderMode, log: &str) -> bool {
    matches!(mode, RenderMode::Tikz | RenderMode::Circuitikz)
        && (log.contains("\nNo pages of output.") || log.contains("\nOutput written on artifact.pdf"))
}

/// What should be known beside a good picture.
fn note(mode: RenderMode, log: &str) -> Option<String> {
    if !matches!(mode, RenderMode::Tikz | RenderMode::Circuitikz) {
        return None;
    }
    let pages = PAGES.as_ref()?.captures(log)?;
    Some(format!("the document has {} pages; the picture is the first", &pages[1]))
}

/// What a tool's own words say is wrong, and in which line of the artifact.
fn complaint(mode: RenderMode, log: &str) -> (Option<String>, Option<u32>) {
    match mode {
        RenderMode::Dot => dot_complaint(log),
        RenderMode::Python => python_complaint(log),
        RenderMode::Tikz | RenderMode::Circuitikz => tex_complaint(log),
        RenderMode::Html => (None, None),
    }
}

fn pattern(text: &str) -> Option<Regex> {
    // The patterns are constants; a test compiles each.
    Regex::new(text).ok()
}

static DOT: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^Error: (.*?(?:in line (\d+).*)?)$"));
static TEX_AT: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^(?:\./)?[^:\s]+\.\w+:(\d+): (.+)$"));
static PAGES: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?m)^Output written on artifact\.pdf \((\d+) pages, "));
static TEX: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^! (.+)$"));
static TEX_LINE: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^l\.(\d+) "));
static FRAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"(?m)^ *File "[^"\n]*artifact\.py", line (\d+)"#));
static PYTHON: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^[A-Za-z_][\w.]*(?:: .*)?$"));

fn number(capture: Option<regex::Match<'_>>) -> Option<u32> {
    capture.and_then(|digits| digits.as_str().parse().ok())
}

fn dot_complaint(log: &str) -> (Option<String>, Option<u32>) {
    let found = DOT.as_ref().and_then(|it| it.captures(log));
    (found.as_ref().map(|it| it[1].to_owned()), found.and_then(|it| number(it.get(2))))
}

fn tex_complaint(log: &str) -> (Option<String>, Option<u32>) {
    // Most complaints have their place in front of them; one about a missing file has not, and is followed by a placed
    // one that says nothing.
    let placed = TEX_AT.as_ref().and_then(|it| it.captures(log));
    let bare = TEX.as_ref().and_then(|it| it.captures(log));
    let start = |found: &regex::Captures<'_>| found.get(0).map_or(usize::MAX, |it| it.start());
    let line = placed.as_ref().and_then(|it| number(it.get(1)));
    let line =
        line.or_else(|| TEX_LINE.as_ref().and_then(|it| it.captures(log)).and_then(|it| number(it.get(1))));
    let message = match (&placed, &bare) {
        (Some(placed), Some(bare)) if start(bare) < start(placed) => Some(bare[1].to_owned()),
        (Some(placed), _) => Some(placed[2].to_owned()),
        (None, bare) => bare.as_ref().map(|it| it[1].to_owned()),
    };
    (message, line)
}

fn python_complaint(log: &str) -> (Option<String>, Option<u32>) {
    let traceback = log.rfind("Traceback (most recent call last)").map_or(log, |at| &log[at..]);
    let line =
        FRAME.as_ref().and_then(|it| it.captures_iter(traceback).last()).and_then(|it| number(it.get(1)));
    // The last line that begins at the margin is the exception; its message may have more lines.
    let message = PYTHON.as_ref().and_then(|it| it.find_iter(traceback).last());
    (message.map(|it| it.as_str().to_owned()), line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RenderStatus as S;

    const GOOD: Picture = Picture { width: 2, height: 2, blank: false };

    fn evidence<'a>(code: i32, log: &'a str, picture: Result<&'a Picture, &'a Fault>) -> Evidence<'a> {
        Evidence {
            exit: Some(ExitStatus::Code(code)),
            timed_out: false,
            oom_kills: 0,
            forks_refused: 0,
            log_full: false,
            log,
            picture,
        }
    }

    fn status(evidence: Evidence<'_>) -> S {
        classify(RenderMode::Dot, evidence).status
    }

    #[test]
    fn a_picture_alone_is_not_enough_and_a_zero_alone_is_not_either() {
        let blank = Picture { blank: true, ..GOOD };
        let (broken, large) = (Fault::Broken("x".into()), Fault::TooLarge("x".into()));
        assert_eq!(status(evidence(0, "", Ok(&GOOD))), S::Rendered);
        assert_eq!(status(evidence(0, "", Ok(&blank))), S::Blank);
        assert_eq!(status(evidence(0, "", Err(&large))), S::TooLarge);
        assert_eq!(status(evidence(0, "", Err(&Fault::Missing))), S::NoOutput);
        assert_eq!(status(evidence(0, "", Err(&broken))), S::NoOutput);
        assert_eq!(status(evidence(1, "", Ok(&GOOD))), S::ArtifactError);
        assert_eq!(status(evidence(139, "", Ok(&GOOD))), S::Crash);
        assert_eq!(status(Evidence { oom_kills: 1, ..evidence(0, "", Ok(&GOOD)) }), S::OutOfMemory);
        assert_eq!(status(Evidence { timed_out: true, ..evidence(0, "", Ok(&GOOD)) }), S::Timeout);
    }

    #[test]
    fn limits_are_told_apart_in_order() {
        let nothing = Err(&Fault::Missing);
        assert_eq!(status(evidence(137, "No space left on device", nothing)), S::OutOfMemory);
        assert_eq!(
            status(evidence(1, "BlockingIOError: [Errno 11] Resource temporarily unavailable", nothing)),
            S::PidsLimit
        );
        assert_eq!(status(Evidence { forks_refused: 3, ..evidence(1, "", nothing) }), S::PidsLimit);
        assert_eq!(status(Evidence { forks_refused: 3, ..evidence(0, "", Ok(&GOOD)) }), S::Rendered);
        assert_eq!(status(evidence(1, "OSError: [Errno 28] No space left on device", nothing)), S::DiskLimit);
        assert_eq!(status(evidence(153, "", nothing)), S::DiskLimit);
        assert_eq!(status(Evidence { log_full: true, ..evidence(1, "", nothing) }), S::DiskLimit);
        assert_eq!(status(evidence(134, "", nothing)), S::Crash);
        assert_eq!(status(Evidence { exit: None, ..evidence(0, "", nothing) }), S::Crash);
    }

    #[track_caller]
    fn complains(mode: RenderMode, log: &str, message: &str, line: Option<u32>) {
        assert_eq!(complaint(mode, log), (Some(message.to_owned()), line));
    }

    #[test]
    fn tools_are_understood() {
        let log = "Error: artifact.dot: syntax error in line 2 near '-'\n";
        complains(RenderMode::Dot, log, "artifact.dot: syntax error in line 2 near '-'", Some(2));
        complains(RenderMode::Dot, "Error: no layout\n", "no layout", None);

        let log = "(./artifact.tex\n./artifact.tex:7: Undefined control sequence.\nl.7 \\foo\n";
        complains(RenderMode::Tikz, log, "Undefined control sequence.", Some(7));
        let log = "! LaTeX Error: File `x.sty' not found.\n\nl.3 \\begin\n";
        complains(
            RenderMode::Tikz,
            &format!("{log}./artifact.tex:4: Emergency stop.\n"),
            "LaTeX Error: File `x.sty' not found.",
            Some(4),
        );
        complains(RenderMode::Circuitikz, log, "LaTeX Error: File `x.sty' not found.", Some(3));

        let log = "Traceback (most recent call last):\n  File \"/x/draw.py\", line 9, in <module>\n  \
                   File \"/work/artifact.py\", line 3, in <module>\n    f()\n  File \"/work/artifact.py\", line 2, in f\n    \
                   1/0\n    ~^~\nZeroDivisionError: division by zero\n";
        complains(RenderMode::Python, log, "ZeroDivisionError: division by zero", Some(2));
        let log =
            "  File \"/work/artifact.py\", line 4\n    x = (\n        ^\nSyntaxError: '(' was never closed\n";
        complains(RenderMode::Python, log, "SyntaxError: '(' was never closed", Some(4));
    }

    #[test]
    fn further_pages_are_mentioned() {
        let log = "Output written on artifact.pdf (3 pages, 12 bytes).\n";
        let verdict = classify(RenderMode::Tikz, evidence(0, log, Ok(&GOOD)));
        assert_eq!(verdict.message.as_deref(), Some("the document has 3 pages; the picture is the first"));
        let verdict = classify(RenderMode::Tikz, evidence(0, &log.replace("3 pages", "1 page"), Ok(&GOOD)));
        assert_eq!(verdict, Verdict { status: S::Rendered, message: None, line: None });
    }

    #[test]
    fn a_document_without_a_page_is_no_error_of_its_language() {
        for last in ["No pages of output.", "Output written on artifact.pdf (1 page, 12 bytes)."] {
            let log = format!("(./artifact.aux) )\n{last}\nSyntax Error: x\n");
            assert_eq!(
                classify(RenderMode::Tikz, evidence(2, &log, Err(&Fault::Missing))).status,
                S::NoOutput
            );
        }
    }

    #[test]
    fn silence_is_said_to_be_silence() {
        let verdict = classify(RenderMode::Dot, evidence(3, "", Err(&Fault::Missing)));
        assert_eq!(verdict.message.as_deref(), Some("the tool ended with status 3"));
    }
}
