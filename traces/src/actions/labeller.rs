//! Labels by a model: the questions it is asked, and what its answers say. Asking is somebody else's work.
//!
//! A model sees what the rules see: the guide, and of each call its tool, arguments, the beginning of what came back, and how
//! it went. It is measured against hand labels as the rules are ([`super::measure`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::{Action, Session, session};
use crate::{Call, Digest, ToolCallId, event::cut};

/// The definitions, which are the only ones (`docs/strategy-actions.md`).
const GUIDE: &str = include_str!("../../../docs/strategy-actions.md");
/// The guide to what is labelled ends where it begins to speak of rules and measurements.
const GUIDE_ENDS_AT: &str = "## How the rules work";
/// How the model is to answer.
const ORDERS: &str = include_str!("labeller.md");

/// Calls in a question.
const CALLS: usize = 24;
/// Most of the arguments of a call that is shown, in bytes.
const INPUT_CAP: usize = 6 << 10;
/// Most of what came back that is shown, in bytes.
const OUTPUT_CAP: usize = 600;

/// A question about some calls of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelQuestion {
    /// What is asked.
    pub text: String,
    /// The calls, by the numbers that the question gives them, from 1.
    pub calls: Vec<ToolCallId>,
    /// Which calls of the session they are, as in `calls 25 to 48 of 60`.
    pub place: String,
}

/// An answer that cannot be used. Nothing of it is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelReplyError {
    /// It holds no such object.
    #[error("the reply holds no JSON object with `labels`")]
    NoLabels,
    /// A name is no action.
    #[error("the reply says `{0}`, which is no strategy action")]
    NoSuchAction(String),
    /// A call is left out, told twice, or not one of those asked for.
    #[error("the reply has {given} labels for call {call}")]
    Calls {
        /// Its number in the question.
        call: usize,
        /// How often it is told.
        given: usize,
    },
}

/// What the model is told before any question.
pub fn instructions() -> String {
    let guide = GUIDE.split(GUIDE_ENDS_AT).next().unwrap_or(GUIDE);
    format!("{ORDERS}\n\n{guide}")
}

/// The digest of [`instructions`]: labels by other instructions are not comparable.
pub fn instructions_digest() -> Digest {
    Digest::of(instructions().as_bytes())
}

/// The form of an answer, as JSON Schema.
pub fn answer_schema() -> Value {
    let names: Vec<&str> = Action::ALL.into_iter().map(Action::as_str).collect();
    json!({
        "type": "object",
        "properties": {"labels": {"type": "array", "items": {
            "type": "object",
            "properties": {
                "call": {"type": "integer"},
                "actions": {"type": "array", "items": {"type": "string", "enum": names}},
            },
            "required": ["call", "actions"],
            "additionalProperties": false,
        }}},
        "required": ["labels"],
        "additionalProperties": false,
    })
}

impl Session<'_> {
    /// The questions that cover every outer call, in order.
    pub fn label_questions(&self) -> Vec<LabelQuestion> {
        let artifact = self.artifact.clone().unwrap_or_else(|| session::artifact_of(&self.calls));
        let outer: Vec<&Call> = self.calls.iter().filter(|it| it.is_outer()).collect();
        let chunks = outer.chunks(CALLS).enumerate();
        chunks
            .map(|(at, calls)| {
                let (first, last) = (at * CALLS + 1, at * CALLS + calls.len());
                let place = format!("calls {first} to {last} of {}", outer.len());
                let mut text = format!(
                    "The designated file is `{artifact}`; the source is `source.png`. Calls {first} to {last} of {} follow.\n",
                    outer.len()
                );
                for (number, call) in (1..).zip(calls) {
                    describe(&mut text, number, call);
                }
                LabelQuestion { text, calls: calls.iter().map(|it| it.id.clone()).collect(), place }
            })
            .collect()
    }
}

fn describe(text: &mut String, number: usize, call: &Call) {
    let input = call.input.to_string();
    let pictures: Vec<&str> = call.images.iter().filter_map(|it| it.path.as_deref()).collect();
    let shown = json!({
        "call": number,
        "tool": call.name,
        "arguments": cut(&input, INPUT_CAP),
        "came_back": cut(&call.output, OUTPUT_CAP),
        "status": call.status,
        "pictures_shown": pictures,
    });
    let _ = writeln!(text, "{shown}");
}

impl LabelQuestion {
    /// The actions of each call, in the order of [`Self::calls`].
    pub fn read(&self, reply: &str) -> Result<Vec<BTreeSet<Action>>, LabelReplyError> {
        let told = labels_in(reply).ok_or(LabelReplyError::NoLabels)?;
        let mut by_call: BTreeMap<usize, BTreeSet<Action>> = BTreeMap::new();
        for label in &told {
            let given = told.iter().filter(|it| it.call == label.call).count();
            if given > 1 || label.call == 0 || label.call > self.calls.len() {
                return Err(LabelReplyError::Calls { call: label.call, given });
            }
            let actions: Result<BTreeSet<Action>, _> = label.actions.iter().map(|it| it.parse()).collect();
            let actions = actions.map_err(|error: super::NoSuchAction| {
                LabelReplyError::NoSuchAction(error.0.chars().take(60).collect())
            })?;
            by_call.insert(label.call, actions);
        }
        (1..=self.calls.len())
            .map(|call| by_call.remove(&call).ok_or(LabelReplyError::Calls { call, given: 0 }))
            .collect()
    }
}

#[derive(Deserialize)]
struct Answer {
    labels: Vec<Given>,
}

#[derive(Deserialize)]
struct Given {
    #[serde(deserialize_with = "number")]
    call: usize,
    actions: Vec<String>,
}

/// A number, or the same as text, as some models write it.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(usize),
        Text(String),
    }
    match Either::deserialize(from)? {
        Either::Number(number) => Ok(number),
        Either::Text(text) => text.trim().parse().map_err(serde::de::Error::custom),
    }
}

/// The last whole object with labels in a reply, whatever stands around it: a model that thinks aloud corrects itself at
/// the end. It is looked for from there, so that the time does not grow with what was thought before.
fn labels_in(reply: &str) -> Option<Vec<Given>> {
    /// A longer reply is none, in bytes.
    const LONGEST: usize = 1 << 20;
    /// Braces that are looked at, from the end. From one of them no more is read than 128 levels of nesting hold.
    const MOST: usize = 1 << 14;
    if reply.len() > LONGEST {
        return None;
    }
    reply.rmatch_indices('{').take(MOST).find_map(|(start, _)| {
        let mut stream = serde_json::Deserializer::from_str(&reply[start..]).into_iter::<Answer>();
        Some(stream.next()?.ok()?.labels)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(calls: usize) -> LabelQuestion {
        let calls = (0..calls).map(|it| ToolCallId(format!("c{it}"))).collect();
        LabelQuestion { text: String::new(), calls, place: String::new() }
    }

    #[test]
    fn a_reply_is_read_with_what_stands_around_it() {
        let reply = "Sure {here}:\n```json\n{\"labels\": [{\"call\": 2, \"actions\": []},\n{\"call\": 1, \"actions\": [\"read_task\", \"crop_regions\"]}]}\n```";
        let read = question(2).read(reply).unwrap();
        assert_eq!(read[0], BTreeSet::from([Action::ReadTask, Action::CropRegions]));
        assert!(read[1].is_empty());
    }

    #[test]
    fn the_last_word_counts_however_much_was_thought_before() {
        let draft = r#"{"labels": [{"call": 1, "actions": ["read_task"]}]}"#;
        let last = r#"{"labels": [{"call": "1", "actions": ["crop_regions"]}]}"#;
        let thought = "{ a } ".repeat(5_000);
        for reply in [
            format!("{draft} no: {thought}{last}"),
            format!("{thought}{draft} no: {last} { }", "{done} {\"labels\": [{\"call\": 1, "),
        ] {
            assert_eq!(question(1).read(&reply).unwrap(), [BTreeSet::from([Action::CropRegions])]);
        }
        let wrong = r#"{"labels": [{"call": "first", "actions": []}]}"#;
        assert_eq!(question(1).read(wrong), Err(LabelReplyError::NoLabels));
    }

    #[test]
    fn what_is_left_out_or_made_up_is_an_error_and_never_a_guess() {
        let read = |reply: &str| question(2).read(reply).unwrap_err();
        assert_eq!(read("I cannot do that."), LabelReplyError::NoLabels);
        let one = r#"{"labels": [{"call": 1, "actions": ["read_task"]}]}"#;
        assert_eq!(read(one), LabelReplyError::Calls { call: 2, given: 0 });
        let twice = r#"{"labels": [{"call": 1, "actions": []}, {"call": 1, "actions": []}]}"#;
        assert_eq!(read(twice), LabelReplyError::Calls { call: 1, given: 2 });
        let third = r#"{"labels": [{"call": 3, "actions": []}]}"#;
        assert_eq!(read(third), LabelReplyError::Calls { call: 3, given: 1 });
        let made_up = r#"{"labels": [{"call": 1, "actions": ["think"]}, {"call": 2, "actions": []}]}"#;
        assert_eq!(read(made_up), LabelReplyError::NoSuchAction("think".into()));
    }

    #[test]
    fn the_guide_goes_along_without_what_is_said_of_the_rules() {
        let text = instructions();
        assert!(Action::ALL.iter().all(|it| text.contains(&format!("**`{it}`**"))));
        assert!(!text.contains("How the rules work"));
    }
}
