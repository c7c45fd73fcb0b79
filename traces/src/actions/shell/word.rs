//! Words, quotations, expansions, redirections and here-documents.

use super::parse::{DEEPEST, Parser, Waiting};
use super::{Node, Piece, Redirect, RedirectKind, Word};

/// Marks where the body of a here-document goes, until it is read.
pub(super) const HERE: &str = "\u{0}here";

pub(super) fn attach(node: &mut Node, bodies: &[Word]) {
    let fill = |redirects: &mut Vec<Redirect>| {
        for redirect in redirects {
            if let RedirectKind::Text(word) = &mut redirect.kind {
                if let [Piece::Var { name, operation }] = word.as_slice() {
                    if operation == HERE {
                        *word = name
                            .parse()
                            .ok()
                            .and_then(|at: usize| bodies.get(at))
                            .cloned()
                            .unwrap_or_default();
                    }
                }
            }
        }
    };
    match node {
        Node::Simple { words, redirects, assigns } => {
            fill(redirects);
            for word in words.iter_mut().chain(assigns.iter_mut().flat_map(|(_, words)| words)) {
                for piece in word {
                    if let Piece::Command(inner) | Piece::Process(inner) = piece {
                        attach(inner, bodies);
                    }
                }
            }
        }
        Node::Pipe(all) | Node::List(all) => all.iter_mut().for_each(|it| attach(it, bodies)),
        Node::Group { body, redirects, .. } => {
            fill(redirects);
            attach(body, bodies);
        }
        Node::Loop { condition, body, redirects, .. } => {
            fill(redirects);
            attach(condition, bodies);
            attach(body, bodies);
        }
        Node::Function { body, .. } => attach(body, bodies),
    }
}

impl Parser<'_> {
    pub(super) fn redirects(&mut self) -> Vec<Redirect> {
        let mut all = Vec::new();
        loop {
            self.blanks();
            match self.redirect() {
                Some(redirect) => all.push(redirect),
                None => break all,
            }
        }
    }

    pub(super) fn redirect(&mut self) -> Option<Redirect> {
        let from = self.pos;
        let mut at = self.pos;
        while self.src.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let number: Option<u32> = self.slice(from, at).parse().ok();
        let both = number.is_none() && self.src.get(at) == Some(&b'&') && self.src.get(at + 1) == Some(&b'>');
        at += usize::from(both);
        let sign = *self.src.get(at)?;
        let next = self.src.get(at + 1).copied();
        if !matches!(sign, b'<' | b'>') || (next == Some(b'(') && number.is_none()) {
            return None;
        }
        let fd = if both { 3 } else { number.unwrap_or(u32::from(sign == b'>')) };
        self.pos = at + 1;
        let kind = match (sign, next) {
            (b'<', Some(b'<')) if self.at(1) == Some(b'<') => {
                self.pos += 2;
                self.blanks();
                RedirectKind::Text(self.word().unwrap_or_default())
            }
            (b'<', Some(b'<')) => {
                self.pos += 1;
                self.here()
            }
            (_, Some(b'&')) => {
                self.pos += 1;
                let target = self.word().unwrap_or_default();
                match target.as_slice() {
                    [Piece::Text(text)] if text.bytes().all(|it| it.is_ascii_digit() || it == b'-') => {
                        RedirectKind::Duplicate
                    }
                    _ => RedirectKind::Write(target),
                }
            }
            (b'<', _) => {
                self.pos += usize::from(next == Some(b'>'));
                self.blanks();
                RedirectKind::Read(self.word().unwrap_or_default())
            }
            (_, Some(b'>')) => {
                self.pos += 1;
                self.blanks();
                RedirectKind::Append(self.word().unwrap_or_default())
            }
            _ => {
                self.pos += usize::from(next == Some(b'|'));
                self.blanks();
                RedirectKind::Write(self.word().unwrap_or_default())
            }
        };
        Some(Redirect { fd, kind })
    }

    pub(super) fn here(&mut self) -> RedirectKind {
        let strip_tabs = self.peek() == Some(b'-');
        self.pos += usize::from(strip_tabs);
        self.blanks();
        let from = self.pos;
        let word = self.word().unwrap_or_default();
        let quoted =
            self.src.get(from..self.pos).is_some_and(|raw| raw.iter().any(|it| b"'\"\\".contains(it)));
        let delimiter = word
            .iter()
            .filter_map(|it| if let Piece::Text(text) = it { Some(text.as_str()) } else { None })
            .collect();
        let index = self.bodies.len();
        self.bodies.push(Vec::new());
        self.waiting.push(Waiting { index, delimiter, strip_tabs, quoted });
        RedirectKind::Text(vec![Piece::Var { name: index.to_string(), operation: HERE.to_owned() }])
    }

    /// A word; none if an operator, a newline or the end comes first.
    pub(super) fn word(&mut self) -> Option<Word> {
        let mut word = Vec::new();
        let mut any = false;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'<' | b'>' if self.at(1) == Some(b'(') => {
                    self.pos += 2;
                    let inner = self.nested();
                    word.push(Piece::Process(Box::new(inner)));
                }
                b'<' | b'>' | b'(' => break,
                b'\'' => {
                    let end = memchr::memchr(b'\'', &self.src[self.pos + 1..])
                        .map_or(self.src.len(), |at| self.pos + 1 + at);
                    push(&mut word, &self.slice(self.pos + 1, end));
                    self.pos = (end + 1).min(self.src.len());
                }
                b'"' => {
                    self.pos += 1;
                    push(&mut word, "");
                    self.until(Some(b'"'), &mut word);
                }
                b'\\' => {
                    let from = self.pos + 1;
                    let end = (from + 1..self.src.len())
                        .find(|at| self.src[*at] & 0xC0 != 0x80)
                        .unwrap_or(self.src.len());
                    if self.at(1) != Some(b'\n') {
                        push(&mut word, &self.slice(from, end));
                    }
                    self.pos = end.max(from).min(self.src.len());
                }
                b'$' if self.at(1) == Some(b'\'') => self.pos += 1,
                b'$' | b'`' => self.dollar(&mut word),
                _ => {
                    let from = self.pos;
                    while self.peek().is_some_and(|it| !b" \t\r\n;&|()<>'\"\\$`".contains(&it)) {
                        self.pos += 1;
                    }
                    push(&mut word, &self.slice(from, self.pos));
                }
            }
            any = true;
        }
        any.then_some(word)
    }

    /// Text with expansions up to `end`, which is eaten.
    pub(super) fn until(&mut self, end: Option<u8>, word: &mut Word) {
        while let Some(byte) = self.peek() {
            if Some(byte) == end {
                self.pos += 1;
                return;
            }
            match byte {
                b'\\' if self.at(1).is_some_and(|it| b"$`\"\\\n".contains(&it)) => {
                    if self.at(1) != Some(b'\n') {
                        push(word, &self.slice(self.pos + 1, self.pos + 2));
                    }
                    self.pos += 2;
                }
                b'$' | b'`' => self.dollar(word),
                _ => {
                    let from = self.pos;
                    self.pos += 1;
                    while self.peek().is_some_and(|it| Some(it) != end && !b"\\$`".contains(&it)) {
                        self.pos += 1;
                    }
                    push(word, &self.slice(from, self.pos));
                }
            }
        }
    }

    pub(super) fn dollar(&mut self, word: &mut Word) {
        if self.peek() == Some(b'`') {
            let end = memchr::memchr(b'`', &self.src[self.pos + 1..])
                .map_or(self.src.len(), |at| self.pos + 1 + at);
            let inner = self.slice(self.pos + 1, end);
            self.pos = (end + 1).min(self.src.len());
            // Backquotes do not nest, so the text is read once more at most.
            if self.depth < DEEPEST {
                let mut parser = Parser {
                    src: inner.as_bytes(),
                    pos: 0,
                    depth: self.depth + 1,
                    waiting: Vec::new(),
                    bodies: Vec::new(),
                };
                let mut tree = parser.list(&[]);
                attach(&mut tree, &parser.bodies);
                word.push(Piece::Command(Box::new(tree)));
            }
            return;
        }
        match self.at(1) {
            Some(b'(') if self.at(2) == Some(b'(') => {
                let end = memchr::memmem::find(&self.src[self.pos..], b"))")
                    .map_or(self.src.len(), |at| self.pos + at + 2);
                self.pos = end;
                word.push(Piece::Unknown);
            }
            Some(b'(') => {
                self.pos += 2;
                let inner = self.nested();
                word.push(Piece::Command(Box::new(inner)));
            }
            Some(b'{') => {
                self.pos += 2;
                let from = self.pos;
                let mut open = 1_u32;
                while let Some(byte) = self.peek() {
                    self.pos += 1;
                    match byte {
                        b'{' => open += 1,
                        b'}' => open -= 1,
                        _ => {}
                    }
                    if open == 0 {
                        break;
                    }
                }
                let body = self.slice(from, self.pos - usize::from(open == 0));
                let name: String =
                    body.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '@').collect();
                let operation = body.get(name.len()..).unwrap_or_default().to_owned();
                word.push(Piece::Var { name, operation });
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let from = self.pos + 1;
                self.pos = from;
                while self.peek().is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_') {
                    self.pos += 1;
                }
                word.push(Piece::Var { name: self.slice(from, self.pos), operation: String::new() });
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?$!-".contains(&byte) => {
                word.push(Piece::Var { name: char::from(byte).to_string(), operation: String::new() });
                self.pos += 2;
            }
            _ => {
                push(word, "$");
                self.pos += 1;
            }
        }
    }

    /// The commands of a `$(` or `<(` that was just eaten, and its closing bracket.
    pub(super) fn nested(&mut self) -> Node {
        if self.depth >= DEEPEST {
            while self.peek().is_some_and(|it| it != b')') {
                self.pos += 1;
            }
            self.pos = (self.pos + 1).min(self.src.len());
            return Node::List(Vec::new());
        }
        self.depth += 1;
        let node = self.list(&[]);
        self.depth -= 1;
        if self.peek() == Some(b')') {
            self.pos += 1;
        }
        node
    }
}

fn push(word: &mut Word, text: &str) {
    if let Some(Piece::Text(last)) = word.last_mut() {
        last.push_str(text);
    } else {
        word.push(Piece::Text(text.to_owned()));
    }
}
