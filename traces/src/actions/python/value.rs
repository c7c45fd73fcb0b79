//! What is known of a value, and of the text in it.

use crate::actions::ledger::{Pictures, Text};
use crate::actions::programs::Arg;

/// What is known of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Val {
    /// Pictures that went into it.
    pub(super) pics: Pictures,
    /// Whose text went into it.
    pub(super) text: Option<Text>,
    /// Whether that text was changed.
    pub(super) changed: bool,
    /// Whether it depends on what a loop goes through.
    pub(super) varies: bool,
    /// Strings it may be: literals, paths.
    pub(super) strs: Vec<String>,
    /// Words of a command line.
    pub(super) items: Vec<Arg>,
    /// It is a difference of pictures.
    pub(super) diff: bool,
    /// Single pixels went into it.
    pub(super) pixels: bool,
    /// A file that is open for writing.
    pub(super) writes: Option<String>,
}

impl Val {
    pub(super) const MOST_STRS: usize = 4;
    pub(super) const MOST_ITEMS: usize = 96;
    /// Longest text that is put together, in bytes.
    pub(super) const LONGEST: usize = 64 << 10;

    /// What a copy of it costs, in bytes.
    pub(super) fn weight(&self) -> usize {
        let items = self.items.iter().map(|it| it.text.len());
        self.strs.iter().map(String::len).chain(items).sum()
    }

    pub(super) fn of_str(text: String) -> Self {
        Self { strs: vec![text], ..Self::default() }
    }

    /// The same as [`Self::join`] with a value that is needed no more. Most expressions are one value.
    pub(super) fn absorb(&mut self, other: Self) {
        if *self != Self::default() {
            return self.join(&other);
        }
        *self = other;
        self.strs.truncate(Self::MOST_STRS);
        self.items.truncate(Self::MOST_ITEMS);
    }

    /// Takes in what another value knows.
    pub(super) fn join(&mut self, other: &Self) {
        self.pics |= other.pics;
        self.text = match (self.text, other.text) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.changed |= other.changed;
        self.varies |= other.varies;
        self.diff |= other.diff;
        self.pixels |= other.pixels;
        let room = Self::MOST_STRS.saturating_sub(self.strs.len());
        self.strs.extend(other.strs.iter().take(room).cloned());
        let room = Self::MOST_ITEMS.saturating_sub(self.items.len());
        self.items.extend(other.items.iter().take(room).cloned());
        if self.writes.is_none() {
            self.writes.clone_from(&other.writes);
        }
    }

    pub(super) fn first(&self) -> &str {
        self.strs.first().map_or("", String::as_str)
    }
}

/// A text, cut where it is longer than any that is put together.
pub(super) fn within_cap(mut text: String) -> String {
    if text.len() > Val::LONGEST {
        let end = (0..=Val::LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text
}

/// `a %d b` with a value put in, or a star.
pub(super) fn percent(text: &str, value: Option<&str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%').filter(|_| out.len() <= Val::LONGEST) {
        out.push_str(before);
        let spec: String = after.chars().take_while(|c| c.is_ascii_digit() || ".-+ ".contains(*c)).collect();
        let tail = &after[spec.len()..];
        match tail.chars().next() {
            Some('d' | 's' | 'f' | 'g' | 'i' | 'r' | 'x') => {
                out.push_str(value.filter(|_| spec.is_empty()).unwrap_or("*"));
                rest = &tail[1..];
            }
            Some('%') => {
                out.push('%');
                rest = &tail[1..];
            }
            _ => {
                out.push('%');
                rest = after;
            }
        }
    }
    out + rest
}

/// `a {} b` with a value put in, or a star.
pub(super) fn blank(text: &str, value: Option<&str>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{').filter(|_| out.len() <= Val::LONGEST) {
        out.push_str(before);
        out.push_str(value.filter(|it| !it.is_empty()).unwrap_or("*"));
        rest = after.split_once('}').map_or("", |(_, tail)| tail);
    }
    out + rest
}
