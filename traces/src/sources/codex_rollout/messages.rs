//! What is said in a rollout: each message is told once as an item for the model and once, in most generations, as an
//! event for people, in either order.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Rollout;
use crate::Moment;
use crate::sources::SaidKind;
use crate::sources::json::Object;
use crate::sources::records::Builder;

/// How often each text was told on either way.
#[derive(Default)]
pub(super) struct Echoes(HashMap<(SaidKind, u64), [u32; 2]>);

impl Echoes {
    /// Says a text that came as an item for the model, unless it is the echo of an event.
    pub(super) fn item(&mut self, kind: SaidKind, text: &str, at: Option<Moment>, out: &mut Builder) {
        self.say(0, kind, text, at, out);
    }

    /// Says a text that came as an event, unless it is the echo of an item.
    pub(super) fn event(&mut self, kind: SaidKind, text: &str, at: Option<Moment>, out: &mut Builder) {
        self.say(1, kind, text, at, out);
    }

    fn say(&mut self, way: usize, kind: SaidKind, text: &str, at: Option<Moment>, out: &mut Builder) {
        if self.is_news(way, kind, text) {
            out.say(kind, text, at, None);
        }
    }

    fn is_news(&mut self, way: usize, kind: SaidKind, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.trim().hash(&mut hasher);
        let told = self.0.entry((kind, hasher.finish())).or_default();
        told[way] += 1;
        told[way] > told[1 - way]
    }
}

impl Rollout {
    /// A prompt, told by an event.
    pub(super) fn prompt_event(&mut self, text: &str, at: Option<Moment>, out: &mut Builder) {
        self.prompt(1, text, at, out);
    }

    /// A prompt; it begins a turn where nothing else says so.
    fn prompt(&mut self, way: usize, text: &str, at: Option<Moment>, out: &mut Builder) {
        if text.trim().is_empty() || !self.echoes.is_news(way, SaidKind::Prompt, text) {
            return;
        }
        if !self.has_turn_marks {
            out.next_turn();
        }
        out.say(SaidKind::Prompt, text, at, None);
    }

    /// A message item: the model's words, or those of a user among much that Codex itself puts in.
    pub(super) fn message(&mut self, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        let role = payload.text_or_empty("role");
        if role == "assistant" {
            for part in payload.objects("content") {
                self.echoes.item(SaidKind::Text, &part.text_or_empty("text"), at, out);
            }
        } else if role == "user" {
            let mut words = Vec::new();
            for part in payload.objects("content") {
                let text = part.text_or_empty("text");
                if !is_put_in(&text) {
                    words.push(text.into_owned());
                }
            }
            self.prompt(0, &words.concat(), at, out);
        }
    }

    /// A reasoning item: the parts of the summary that is shown.
    pub(super) fn reasoning(&mut self, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        for part in payload.objects("summary") {
            self.echoes.item(SaidKind::Reasoning, &part.text_or_empty("text"), at, out);
        }
    }
}

/// Whether Codex itself puts such a text into the user's place.
fn is_put_in(text: &str) -> bool {
    let tags = [
        "<environment_context",
        "<user_instructions",
        "<turn_aborted",
        "<image name=",
        "</image>",
        "<skill",
        "<permissions",
        "<collaboration_mode",
        "<user_shell_command",
        "<subagent_notification",
        "<ENVIRONMENT_CONTEXT",
        "<INSTRUCTIONS",
        "# AGENTS.md instructions",
    ];
    let text = text.trim_start();
    tags.iter().any(|tag| text.starts_with(tag))
}
