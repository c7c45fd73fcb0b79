//! The words of a command, taken apart into flags and operands.

use super::Arg;

/// The words of one command.
pub(crate) struct Words<'a> {
    argv: &'a [Arg],
}

impl<'a> Words<'a> {
    pub(crate) fn new(argv: &'a [Arg]) -> Self {
        Self { argv }
    }

    pub(crate) fn all(&self) -> &'a [Arg] {
        self.argv
    }

    /// The words after the name.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &'a str> {
        self.argv.iter().skip(1).map(|it| it.text.as_str())
    }

    /// The word at a place after the name.
    pub(crate) fn plain(&self, at: usize) -> Option<&'a str> {
        self.argv.get(at + 1).map(|it| it.text.as_str())
    }

    /// What is no flag.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &'a str> {
        self.rest().filter(|it| !it.starts_with('-') || *it == "-")
    }

    /// Whether one of the words is this.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.rest().any(|it| it == flag)
    }

    /// Whether a bundle of short flags has this letter: `-rn` has `n`.
    pub(crate) fn short(&self, letter: char) -> bool {
        self.rest()
            .any(|it| it.len() < 8 && it.starts_with('-') && !it.starts_with("--") && it.contains(letter))
    }

    /// All words in one line, for reasons.
    pub(crate) fn line(&self) -> String {
        self.argv
            .iter()
            .take(12)
            .map(|it| it.text.chars().take(60).collect::<String>())
            .collect::<Vec<_>>()
            .join(" ")
    }
}
