//! Expansion of words, as far as it can be known.

use super::run::{Run, Value};
use super::{Piece, Sink, Stream, Word};

impl Run<'_> {
    /// The words that expansion makes of words.
    pub(super) fn fields(&mut self, words: &[Word]) -> Vec<Value> {
        let mut all = Vec::new();
        for word in words {
            if !self.scene.spend() {
                break;
            }
            match word.as_slice() {
                // What may become several words: `$list`, `"$@"`, `$(seq 1 9)`.
                [Piece::Var { name, operation }] if operation.is_empty() || operation == "[@]" => {
                    if name == "@" || name == "*" {
                        all.extend(
                            self.args.iter().map(|it| Value { text: it.text.clone(), varies: it.varies }),
                        );
                    } else {
                        let value = self.variable(name);
                        all.extend(
                            value
                                .text
                                .split_whitespace()
                                .take(256)
                                .map(|it| Value { text: it.to_owned(), varies: value.varies }),
                        );
                    }
                }
                [Piece::Command(inner)] => {
                    let out = self.node(inner, &Stream::default(), &Sink::Shown);
                    match out.content.as_deref().filter(|it| !it.is_empty()) {
                        Some(text) => all.extend(
                            text.split_whitespace()
                                .take(256)
                                .map(|it| Value { text: it.to_owned(), varies: out.varies }),
                        ),
                        None => all.push(Value { text: "*".to_owned(), varies: false }),
                    }
                }
                _ => {
                    let value = self.expand(word);
                    all.extend(
                        braces(&value.text).into_iter().map(|text| Value { text, varies: value.varies }),
                    );
                }
            }
        }
        all
    }

    /// The one word that expansion makes of a word.
    pub(super) fn expand(&mut self, word: &Word) -> Value {
        let mut out = Value::default();
        for piece in word {
            match piece {
                Piece::Text(text) => out.text.push_str(text),
                Piece::Unknown => out.text.push('*'),
                Piece::Var { name, operation } => {
                    let value = self.variable(name);
                    out.varies |= value.varies;
                    out.text.push_str(&trimmed(&value.text, operation));
                }
                Piece::Command(inner) => {
                    let stream = self.node(inner, &Stream::default(), &Sink::Shown);
                    out.varies |= stream.varies;
                    out.text.push_str(stream.content.as_deref().map_or("*", |it| it.trim_end_matches('\n')));
                }
                Piece::Process(inner) => {
                    let stream = self.node(inner, &Stream::default(), &Sink::Piped);
                    let path = if stream.path.is_empty() { "/dev/fd/63".to_owned() } else { stream.path };
                    out.text.push_str(&path);
                }
            }
            if out.text.len() > Self::WORD_CAP && piece_is_open(piece) {
                break;
            }
        }
        out
    }

    pub(super) fn variable(&self, name: &str) -> Value {
        if let Ok(at) = name.parse::<usize>() {
            let arg = at.checked_sub(1).and_then(|at| self.args.get(at));
            return arg.map_or_else(Value::default, |it| Value { text: it.text.clone(), varies: it.varies });
        }
        match name {
            "@" | "*" => {
                let text = self.args.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
                Value { text, varies: self.args.iter().any(|it| it.varies) }
            }
            "PWD" => Value { text: ".".to_owned(), varies: false },
            "HOME" => Value { text: "~".to_owned(), varies: false },
            "?" | "#" | "$" | "!" | "-" | "RANDOM" | "SECONDS" => {
                Value { text: "0".to_owned(), varies: false }
            }
            name => self.vars.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// Only what a variable or command puts in may be without bound.
fn piece_is_open(piece: &Piece) -> bool {
    !matches!(piece, Piece::Text(_))
}

/// `${name%suffix}` and its like, as far as they shape names of files.
fn trimmed(value: &str, operation: &str) -> String {
    let star = |pattern: &str| pattern.trim_matches('*').to_owned();
    if let Some(pattern) = operation.strip_prefix("##").or_else(|| operation.strip_prefix('#')) {
        let stop = star(pattern);
        return value
            .rsplit_once(&stop)
            .filter(|_| !stop.is_empty())
            .map_or(value, |(_, rest)| rest)
            .to_owned();
    }
    if let Some(pattern) = operation.strip_prefix("%%").or_else(|| operation.strip_prefix('%')) {
        let stop = star(pattern);
        if let Some(rest) = value.strip_suffix(&stop) {
            return rest.to_owned();
        }
        return value
            .rsplit_once(&stop)
            .filter(|_| !stop.is_empty())
            .map_or(value, |(rest, _)| rest)
            .to_owned();
    }
    if let Some(default) = operation.strip_prefix(":-").or_else(|| operation.strip_prefix('-')) {
        return if value.is_empty() { default.to_owned() } else { value.to_owned() };
    }
    if let Some(replace) = operation.strip_prefix("//").or_else(|| operation.strip_prefix('/')) {
        let (from, to) = replace.split_once('/').unwrap_or((replace, ""));
        if !from.is_empty() && value.len() < 4096 {
            return value.replace(from, to);
        }
    }
    value.to_owned()
}

/// `{a,b}` and `{1..9}` in a word without blanks; the word itself if it has none.
fn braces(word: &str) -> Vec<String> {
    let plain = || vec![word.to_owned()];
    if word.len() > 512 || word.contains(char::is_whitespace) {
        return plain();
    }
    let Some((head, rest)) = word.split_once('{') else { return plain() };
    let Some((body, tail)) = rest.split_once('}') else { return plain() };
    if body.contains('{') || head.ends_with('$') {
        return plain();
    }
    let parts: Vec<String> = if let Some((from, to)) = body.split_once("..") {
        match (from.parse::<i64>(), to.parse::<i64>()) {
            (Ok(from), Ok(to)) if from <= to => (from..=to).take(8).map(|it| it.to_string()).collect(),
            _ => return plain(),
        }
    } else if body.contains(',') {
        body.split(',').take(16).map(str::to_owned).collect()
    } else {
        return plain();
    };
    parts.into_iter().map(|part| format!("{head}{part}{tail}")).collect()
}
