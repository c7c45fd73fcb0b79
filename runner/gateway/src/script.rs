//! `script.toml`: what a scripted model plays.
//!
//! A script is a list of steps for each user prompt. A step with `n` calls consumes `n` tool results, a step without
//! calls ends the turn; so the position in the script follows from what a request itself holds.

mod file;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use proctor_traces::Usage;
use serde_json::{Map, Value};

/// A parsed script. It holds all it plays: files that it names are read when it is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    steps: Vec<Step>,
    answers: Vec<PlainAnswer>,
    workspace: PathBuf,
}

/// What is answered to a request that offers no tools: that of a judge, a labeller, or a track without an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainAnswer {
    /// It is given to requests with all of these in their texts.
    pub contains: Vec<String>,
    /// To how many of them; to all if not given. The next answer that fits takes over.
    pub times: Option<u32>,
    /// What is said and how.
    pub step: Step,
}

/// One response of the scripted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The user prompt it belongs to, from 1.
    pub prompt: u32,
    /// Reasoning shown before the answer.
    pub reasoning: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// The picture that it answers with, to a request for one.
    pub picture: Option<Bytes>,
    /// Tool calls, issued together in this order.
    pub calls: Vec<Call>,
    /// Time before the first byte of the response.
    pub delay: Duration,
    /// Time between two pieces of a streamed response.
    pub chunk_delay: Duration,
    /// Tokens that the response claims.
    pub usage: Usage,
    /// What goes wrong here.
    pub fault: Option<Fault>,
}

/// A tool call by its meaning, to be mapped onto whatever tools a request declares.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// Run a command line.
    Shell {
        /// The command line.
        command: String,
        /// How long the tool may take, where the tool can be told.
        timeout: Option<Duration>,
    },
    /// Look at a picture.
    ViewImage {
        /// Path, relative to the workspace.
        path: String,
    },
    /// Write a file, a new one or over an old one.
    Write {
        /// Path, relative to the workspace.
        path: String,
        /// All of its new content.
        content: String,
    },
    /// A named tool with these arguments, as they are.
    Tool {
        /// Name of the tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
}

/// A fault of the scripted server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// At how many of the first requests that reach this step; at every one if not given.
    pub times: Option<u32>,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An HTTP error instead of an answer.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// Value of the `retry-after` header, rounded up to seconds.
        retry_after: Option<Duration>,
        /// The body; an error in the wire format's shape if not given.
        body: Option<String>,
    },
    /// The connection is closed before any header.
    Drop,
    /// The request is taken and never answered.
    Hang,
    /// The connection is closed inside the body.
    Truncate {
        /// After this many bytes of it.
        after_bytes: u64,
    },
    /// The body stops, and the connection stays open.
    Stall {
        /// After this many bytes of it.
        after_bytes: u64,
    },
}

/// A script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The script, or a file it names, cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The script says something that cannot be.
    #[error("line {line}, column {column}: {message}")]
    Invalid {
        /// What is wrong, with what would be right.
        message: String,
        /// Bytes of the text that it is about.
        span: Range<usize>,
        /// Line of the beginning of `span`, from 1.
        line: usize,
        /// Column of it in characters, from 1.
        column: usize,
    },
}

/// Where a request stands in a script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place<'a> {
    /// Index among all steps.
    pub(crate) index: usize,
    /// The step.
    pub(crate) step: &'a Step,
    /// How many of its calls have their results already (a client that cut a response short may send such requests).
    pub(crate) answered: usize,
}

impl Script {
    /// Reads `script.toml`, and the files beside it that it names.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path.parent().unwrap_or(Path::new(".")))
    }

    /// Parses the text of a script; files that it names are looked for in `dir`.
    pub fn parse(text: &str, dir: &Path) -> Result<Self, ScriptError> {
        let (steps, answers) = file::read(text, dir)?;
        Ok(Self { steps, answers, workspace: PathBuf::from("/work") })
    }

    /// The same script for an agent that sees its workspace at `workspace` (`/work` unless told otherwise): the place
    /// that relative paths are relative to, for tools that want absolute ones.
    #[must_use]
    pub fn in_workspace(self, workspace: impl Into<PathBuf>) -> Self {
        Self { workspace: workspace.into(), ..self }
    }

    /// All steps, in the order of the file.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What is answered to requests without tools, in the order of the file.
    pub fn answers(&self) -> &[PlainAnswer] {
        &self.answers
    }

    /// `path` as an absolute path inside the room.
    pub(crate) fn absolute(&self, path: &str) -> String {
        self.workspace.join(path).to_string_lossy().into_owned()
    }

    /// The step for a request that holds `results` tool results since user prompt number `prompt`; none when the
    /// script is exhausted.
    pub(crate) fn place(&self, prompt: u32, results: u32) -> Option<Place<'_>> {
        let mut left = usize::try_from(results).unwrap_or(usize::MAX);
        for (index, step) in self.steps.iter().enumerate().filter(|(_, step)| step.prompt == prompt) {
            if step.calls.is_empty() || left < step.calls.len() {
                let answered = left.min(step.calls.len());
                return Some(Place { index, step, answered });
            }
            left -= step.calls.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, ScriptError> {
        Script::parse(text, Path::new("/nowhere"))
    }

    #[test]
    fn a_step_with_n_calls_consumes_n_results() {
        let script = parse(
            r#"
            [[step]]
            text = "a"
            calls = [{ shell = "1" }, { shell = "2" }]
            [[step]]
            prompt = 2
            text = "second prompt"
            [[step]]
            calls = [{ view_image = "x.png" }]
            [[step]]
            text = "end"
            "#,
        )
        .unwrap();
        let place =
            |prompt, results| script.place(prompt, results).map(|place| (place.index, place.answered));
        assert_eq!(place(1, 0), Some((0, 0)));
        assert_eq!(place(1, 1), Some((0, 1)), "in the middle of a step");
        assert_eq!(place(1, 2), Some((2, 0)));
        assert_eq!(place(1, 3), Some((3, 0)));
        assert_eq!(place(1, 9), Some((3, 0)), "a step without calls ends the turn whatever came before");
        assert_eq!(place(2, 0), Some((1, 0)));
        assert_eq!(place(3, 0), None);
        assert_eq!(place(0, 0), None);
        assert_eq!(parse("").unwrap().place(1, 0), None);
    }

    #[test]
    fn defaults_and_overrides() {
        let script = parse(
            r#"
            [defaults]
            delay = "1.5s"
            chunk_delay = "20ms"
            usage = { input = 7, cached = 5, output = 3 }
            [[step]]
            calls = [{ shell = "make", timeout = "2m" }, { write = "a/b.html", content = "<p>" }]
            [[step]]
            delay = "0ms"
            fault = { kind = "status", status = 429, retry_after = "900ms", times = 1 }
            "#,
        )
        .unwrap();
        let [first, second] = script.steps() else { panic!("two steps") };
        assert_eq!(first.delay, Duration::from_millis(1500));
        assert_eq!(first.chunk_delay, Duration::from_millis(20));
        assert_eq!(first.usage.cached_input_tokens, 5);
        assert_eq!(
            first.calls,
            [
                Call::Shell { command: "make".into(), timeout: Some(Duration::from_secs(120)) },
                Call::Write { path: "a/b.html".into(), content: "<p>".into() },
            ]
        );
        assert_eq!(second.delay, Duration::ZERO);
        let kind =
            FaultKind::Status { status: 429, retry_after: Some(Duration::from_millis(900)), body: None };
        assert_eq!(second.fault, Some(Fault { kind, times: Some(1) }));
    }

    #[test]
    fn errors_point_at_their_place() {
        for (text, line, says) in [
            ("[[step]]\ntxt = \"a\"", 2, "unknown field"),
            ("[[step]]\nprompt = 0", 2, "from 1"),
            ("[[step]]\n\ndelay = \"soon\"", 3, "200ms"),
            ("[[step]]\ndelay = \"-1s\"", 2, "200ms"),
            ("[[step]]\ncalls = [{ shell = \"a\", view_image = \"b\" }]", 2, "exactly one"),
            ("[[step]]\ncalls = [{ timeout = \"1s\" }]", 2, "exactly one"),
            (
                "[[step]]\ncalls = [{ view_image = \"a\", timeout = \"1s\" }]",
                2,
                "`timeout` belongs to `shell`",
            ),
            ("[[step]]\ncalls = [{ write = \"a\" }]", 2, "`from` or `content`"),
            ("[[step]]\ncalls = [{ write = \"a\", from = \"../b\" }]", 2, "beside"),
            ("[[step]]\ncalls = [{ write = \"a\", from = \"/etc/passwd\" }]", 2, "beside"),
            ("[[step]]\ntext = \"a\"\n[[step]]\ntext = \"b\"", 3, "never reached"),
            ("[[step]]\nfault = { kind = \"status\", status = 200 }", 2, "400 to 599"),
            ("[[step]]\nfault = { kind = \"burn\" }", 2, "burn"),
            ("[[step]]\nfault = { kind = \"truncate\" }", 2, "after_bytes"),
            ("[[step]]\nfault = { kind = \"drop\", status = 500 }", 2, "`status`"),
            ("[[step\n", 1, ""),
        ] {
            match parse(text) {
                Err(ScriptError::Invalid { message, line: found, .. }) => {
                    assert_eq!(found, line, "{text}: {message}");
                    assert!(message.contains(says), "{text}: {message}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn files_beside_the_script_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("draft.html"), "<h1>").unwrap();
        let text = "[[step]]\ncalls = [{ write = \"a.html\", from = \"draft.html\" }]";
        let path = dir.path().join("script.toml");
        std::fs::write(&path, text).unwrap();
        let script = Script::load(&path).unwrap();
        assert_eq!(script.steps()[0].calls, [Call::Write { path: "a.html".into(), content: "<h1>".into() }]);
        assert!(matches!(parse(text), Err(ScriptError::Read { path, .. }) if path.ends_with("draft.html")));
    }
}
