//! The shell command language (POSIX.1-2017, XCU 2, with what bash adds that agents use): a parser that makes a tree of
//! any text, and a dry run of that tree which tells what programs it would start with which words.
//!
//! Why our own: what agents write is often torn, refused or wrong, and all of it has to be read, in linear time and with a
//! bound on the depth. The grammars to be had stop at the first error, and recurse as deep as their input does.

mod expand;
mod parse;
mod run;
mod word;

pub(crate) use parse::parse;
pub(crate) use run::{Run, Sink, Stream};

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Assignments, words, redirections.
    Simple { assigns: Vec<(String, Vec<Word>)>, words: Vec<Word>, redirects: Vec<Redirect> },
    /// `a | b`.
    Pipe(Vec<Node>),
    /// One after the other, whatever stands between: branches of `if` and `case` too.
    List(Vec<Node>),
    /// `( … )` or `{ … }`.
    Group { body: Box<Node>, subshell: bool, redirects: Vec<Redirect> },
    /// `for`, `while`, `until`.
    Loop {
        var: Option<String>,
        over: Vec<Word>,
        condition: Box<Node>,
        body: Box<Node>,
        redirects: Vec<Redirect>,
    },
    /// `f() …`.
    Function { name: String, body: Box<Node> },
}

/// A word before expansion.
pub(crate) type Word = Vec<Piece>;

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// As it stands.
    Text(String),
    /// A variable, and what `${name…}` does with it.
    Var { name: String, operation: String },
    /// `$(…)`.
    Command(Box<Node>),
    /// `<(…)`, `>(…)`.
    Process(Box<Node>),
    /// Arithmetic, and what else cannot be known before it runs.
    Unknown,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Redirect {
    /// The descriptor; 1 or 0 where none is written, 3 for both outputs.
    pub(crate) fd: u32,
    /// What is done.
    pub(crate) kind: RedirectKind,
}

/// What a redirection does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedirectKind {
    /// `< file`.
    Read(Word),
    /// `> file`.
    Write(Word),
    /// `>> file`.
    Append(Word),
    /// `>&n`.
    Duplicate,
    /// A here-document or here-string.
    Text(Word),
}
