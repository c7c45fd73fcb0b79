//! What Codex writes above the output of a tool, in the forms of all generations.

use std::borrow::Cow;

use crate::sources::json::Object;
use crate::{ToolKind, ToolStatus};

/// An answer to the model.
#[derive(Debug, PartialEq)]
pub(super) struct Answer<'a> {
    /// The output itself.
    pub(super) body: Cow<'a, str>,
    pub(super) exit_code: Option<i32>,
    pub(super) outcome: Outcome,
    /// It was stopped from outside before its end.
    is_aborted: bool,
    is_declined: bool,
    is_failed: bool,
}

/// Whether the work is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Over,
    /// A command goes on, under this number.
    Runs {
        process: String,
    },
    /// A program goes on, under this number.
    ProgramRuns {
        cell: String,
    },
}

/// Whether Codex itself has cut an output, by what it puts into the gap.
pub(super) fn is_truncated(written: &str) -> bool {
    let has = |words: &str| memchr::memmem::find(written.as_bytes(), words.as_bytes()).is_some();
    has(" tokens truncated") || has("[... omitted ")
}

impl<'a> Answer<'a> {
    /// Reads the text of an answer. `text` may be JSON of `{output, metadata: {exit_code}}` (to 0.4x); headed by lines
    /// such as `Exit code: 0` or `Process exited with code 0` and then `Output:`; or plain.
    pub(super) fn read(text: &'a str) -> Self {
        let mut answer = Self {
            body: Cow::Borrowed(text),
            exit_code: None,
            outcome: Outcome::Over,
            is_aborted: false,
            is_declined: false,
            is_failed: false,
        };
        if text.starts_with('{') && answer.read_json(text) {
            return answer;
        }
        answer.read_head(text);
        let head = answer.body.trim_start();
        let says = |words: &[&str]| words.iter().any(|it| head.starts_with(it));
        let is_aborted = says(&["aborted", "command was aborted"]) && head.len() < 200;
        let is_declined =
            says(&["exec command rejected", "rejected by user", "patch rejected", "command rejected"]);
        let is_failed = says(&[
            "failed to parse function arguments",
            "failed to parse exec",
            "failed to spawn",
            "unsupported call",
            "unsupported custom tool call",
            "exec_command failed",
            "write_stdin failed",
            "apply_patch verification failed",
            "execution error",
            "tool call error",
            "unable to locate image",
            "unable to process image",
            "Script error",
        ]);
        answer.is_aborted |= is_aborted;
        answer.is_declined = is_declined;
        answer.is_failed |= is_failed;
        answer
    }

    fn read_json(&mut self, text: &'a str) -> bool {
        let Some(object) = Object::parse(text) else { return false };
        let Some(metadata) = object.object("metadata") else {
            self.is_failed = object.get("success").is_some_and(|it| it.as_written() == "false");
            return object.has("success");
        };
        self.exit_code = metadata.exit_code("exit_code");
        if let Some(output) = object.text("output") {
            self.body = output;
        }
        true
    }

    fn read_head(&mut self, text: &'a str) {
        let mut rest = text;
        let mut is_head = false;
        for _ in 0..8 {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            if line == "Output:" && is_head {
                self.body = Cow::Borrowed(after);
                return;
            }
            let Some(known) = self.head_line(line) else { break };
            is_head |= known;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        if is_head {
            self.body = Cow::Borrowed(rest);
        }
    }

    /// Takes in a line of the head; none if it is no such line.
    fn head_line(&mut self, line: &str) -> Option<bool> {
        let after = |words: &str| line.strip_prefix(words).map(str::trim);
        if let Some(code) = after("Process exited with code ").or_else(|| after("Exit code: ")) {
            self.exit_code = code.parse().ok();
        } else if let Some(process) = after("Process running with session ID ") {
            self.outcome = Outcome::Runs { process: process.to_owned() };
        } else if let Some(cell) = after("Script running with cell ID ") {
            self.outcome = Outcome::ProgramRuns { cell: cell.to_owned() };
        } else if line.starts_with("Script failed") {
            self.is_failed = true;
        } else if line.starts_with("Script terminated") {
            self.is_aborted = true;
        } else if [
            "Chunk ID: ",
            "Wall time",
            "Original token count: ",
            "Total output lines: ",
            "Script completed",
        ]
        .iter()
        .all(|words| !line.starts_with(words))
        {
            return None;
        }
        Some(true)
    }

    /// How a call of the tool `name` went.
    pub(super) fn status(&self, name: &str, without_pictures: bool) -> ToolStatus {
        let is_picture = ToolKind::of(name) == ToolKind::ViewImage;
        match (self.exit_code, &self.outcome) {
            _ if self.is_aborted => ToolStatus::Unfinished,
            _ if self.is_declined => ToolStatus::Declined,
            (_, Outcome::Runs { .. } | Outcome::ProgramRuns { .. }) => ToolStatus::Unfinished,
            (Some(0), _) => ToolStatus::Ok,
            (Some(_), _) => ToolStatus::Failed,
            (None, _) if self.is_failed => ToolStatus::Failed,
            // The oldest versions put the picture into the next message, and said so.
            (None, _) if is_picture && without_pictures && !self.body.starts_with("attached local image") => {
                ToolStatus::Failed
            }
            (None, _) => ToolStatus::Ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<i32>, ToolStatus) {
        let answer = Answer::read(text);
        (answer.body.to_string(), answer.exit_code, answer.status("shell", true))
    }

    #[test]
    fn heads_of_every_generation() {
        let ok = ToolStatus::Ok;
        assert_eq!(
            read(r#"{"output":"hi","metadata":{"exit_code":0,"duration_seconds":0.1}}"#),
            ("hi".into(), Some(0), ok)
        );
        assert_eq!(
            read("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nno\n"),
            ("no\n".into(), Some(2), ToolStatus::Failed)
        );
        assert_eq!(
            read(
                "Chunk ID: 04f86d\nWall time: 1.8517 seconds\nProcess exited with code 0\nOriginal token count: 1\nOutput:\nA\n"
            ),
            ("A\n".into(), Some(0), ok)
        );
        assert_eq!(
            read("Script completed\nWall time 0.0 seconds\nOutput:\n\nslept\n"),
            ("\nslept\n".into(), None, ok)
        );
        assert_eq!(read("Output:\nnot a head"), ("Output:\nnot a head".into(), None, ok));
        assert_eq!(read("Wall time: 4.2 seconds\naborted by user").2, ToolStatus::Unfinished);
        assert_eq!(read("exec command rejected by user").2, ToolStatus::Declined);
        assert_eq!(read("{\"a\": 1}"), ("{\"a\": 1}".into(), None, ok));
    }

    #[test]
    fn what_goes_on_is_known_by_its_number() {
        let answer =
            Answer::read("Wall time: 10.0 seconds\nProcess running with session ID 4711\nOutput:\npart\n");
        assert_eq!(answer.outcome, Outcome::Runs { process: "4711".into() });
        assert_eq!(answer.body, "part\n");
        let answer = Answer::read("Script running with cell ID 3\nWall time 10.0 seconds\nOutput:\n");
        assert_eq!(answer.outcome, Outcome::ProgramRuns { cell: "3".into() });
    }
}
