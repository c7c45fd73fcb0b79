//! What a model is asked that answers without an agent: one message, made from template files under version.
//!
//! Where an ablation gives away what is hidden (VAO-Bench, C.1 and C.2), it does so by a value that only that ablation has.

use minijinja::{Value, context};
use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TaskError;
use crate::explicit::explicit_instruction;
use crate::package::Language;
use crate::task::Task;
use crate::wording::{Facts, fill, values};

const NATIVE: (&str, &str) = ("vao/native.txt.j2", include_str!("../templates/vao/native.txt.j2"));
const DIRECT: (&str, &str) = ("vao/direct.txt.j2", include_str!("../templates/vao/direct.txt.j2"));

/// What a method is given otherwise than in the main experiment (VAO-Bench, C.1 and C.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ablation {
    /// The picture alone: its program is to be reconstructed.
    A1,
    /// The picture, the instruction, and what a method of `a1` made of the picture.
    A2,
    /// The picture, the instruction, and the true source program.
    B,
    /// The picture, and the instruction with all that follows from it spelled out.
    C,
}

impl Ablation {
    /// The word for it in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A1 => "a1",
            Self::A2 => "a2",
            Self::B => "b",
            Self::C => "c",
        }
    }
}

impl std::fmt::Display for Ablation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A source program that a model is given to edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenSource<'a> {
    /// Its text; empty if there was to be one, and is none.
    pub text: &'a str,
    /// Whether the picture was really drawn by it.
    pub is_true: bool,
}

/// The question of the track `native`: the picture that goes with it is the task's own.
pub fn native_question(
    task: &Task,
    ablation: Option<Ablation>,
    source: Option<GivenSource<'_>>,
) -> Result<String, TaskError> {
    let text = source.map(|source| match source.text {
        "" => String::new(),
        text => format!("{}\n", text.trim_end_matches('\n')),
    });
    let asked = context! {
        instruction => instruction(task, ablation),
        tag => code_tag(task.solver.language),
        fence => fence(text.as_deref().unwrap_or_default()),
        source => text,
        source_is_true => source.is_some_and(|source| source.is_true),
    };
    ask(NATIVE, task, asked)
}

/// The question of the track `direct`.
pub fn direct_question(task: &Task, ablation: Option<Ablation>) -> Result<String, TaskError> {
    ask(DIRECT, task, context! { instruction => instruction(task, ablation) })
}

/// Digest of the templates of both questions.
pub fn questions_digest() -> Digest {
    Digest::of_parts([NATIVE, DIRECT].map(|(name, text)| (name, text.as_bytes())))
}

/// The word that a code block in `language` is marked with.
const fn code_tag(language: Language) -> &'static str {
    language.as_str()
}

fn ask((name, template): (&'static str, &str), task: &Task, asked: Value) -> Result<String, TaskError> {
    let general = values(task, &Facts::default());
    fill(name, template, context! { ..asked, ..general })
}

/// What is asked for; nothing if the picture alone is.
fn instruction(task: &Task, ablation: Option<Ablation>) -> Option<String> {
    match ablation {
        Some(Ablation::A1) => None,
        Some(Ablation::C) => Some(explicit_instruction(task)),
        None | Some(Ablation::A2 | Ablation::B) => Some(task.solver.instruction.trim().to_owned()),
    }
}

/// A fence that does not occur in `text`.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Package;

    fn native(ablation: Option<Ablation>, source: Option<GivenSource<'_>>) -> String {
        native_question(&Package::new().load(), ablation, source).unwrap()
    }

    #[test]
    fn a_question_says_what_a_code_track_is_told_and_nothing_hidden() {
        let text = native(None, None);
        for part in
            ["> Change the threshold from 80 to 90.", "HTML", "viewport 1440 x 900", "d3", "marked `html`"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("\n\n\n") && !text.contains("```"), "{text}");
        for secret in
            ["falls from two to one", "canary", "The threshold is 90", "stay as they are", "TASK.md"]
        {
            assert!(!text.contains(secret), "{secret} is in\n{text}");
        }
        let direct = direct_question(&Package::new().load(), None).unwrap();
        assert!(
            direct.contains("Change the threshold from 80 to 90.") && !direct.contains("HTML"),
            "{direct}"
        );
    }

    #[test]
    fn a_reconstruction_is_not_told_the_instruction() {
        let text = native(Some(Ablation::A1), None);
        assert!(!text.contains("threshold") && text.contains("exactly as it is"), "{text}");
    }

    #[test]
    fn a_source_stands_in_a_fence_that_it_cannot_close() {
        let source = GivenSource { text: "<p>\n````\n</p>", is_true: true };
        let text = native(Some(Ablation::B), Some(source));
        assert!(text.contains("drawn with:\n\n`````html\n<p>\n````\n</p>\n`````\n"), "{text}");
        let broken = GivenSource { text: "<p", is_true: false };
        assert!(native(Some(Ablation::A2), Some(broken)).contains("broken:\n\n```html\n<p\n```\n"));
        let empty = GivenSource { text: "", is_true: false };
        let text = native(Some(Ablation::A2), Some(empty));
        assert!(text.contains("there is of it:\n\n```html\n```\n") && text.contains("> Change"), "{text}");
    }

    #[test]
    fn the_explicit_instruction_takes_the_place_of_the_concise_one_on_both_tracks() {
        let task = Package::new().load();
        let expected = "> Linked updates:\n> - The count of warnings falls from two to one.";
        let text = native_question(&task, Some(Ablation::C), None).unwrap();
        assert!(text.contains(expected), "{text}");
        let text = direct_question(&task, Some(Ablation::C)).unwrap();
        assert!(text.contains(&expected.replace("> ", "")), "{text}");
    }
}
