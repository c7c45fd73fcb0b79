//! Text to tree. Every byte is looked at a bounded number of times, and nothing makes it fail: what does not fit the
//! grammar is skipped.

use super::word::attach;
use super::{Node, Piece, Word};

/// Deeper nesting is skipped: no script is meant to be read at that depth.
pub(super) const DEEPEST: usize = 24;

/// The tree of a script.
pub(crate) fn parse(script: &str) -> Node {
    let mut parser =
        Parser { src: script.as_bytes(), pos: 0, depth: 0, waiting: Vec::new(), bodies: Vec::new() };
    let mut all = Vec::new();
    while parser.pos < parser.src.len() {
        let before = parser.pos;
        all.push(parser.list(&[]));
        // A `)` or `done` that closes nothing.
        if parser.pos == before || parser.at_close() {
            parser.pos += 1;
        }
    }
    let mut tree = Node::List(all);
    attach(&mut tree, &parser.bodies);
    tree
}

/// A here-document whose body has not come yet.
pub(super) struct Waiting {
    pub(super) index: usize,
    pub(super) delimiter: String,
    pub(super) strip_tabs: bool,
    pub(super) quoted: bool,
}

pub(super) struct Parser<'a> {
    pub(super) src: &'a [u8],
    pub(super) pos: usize,
    pub(super) depth: usize,
    pub(super) waiting: Vec<Waiting>,
    pub(super) bodies: Vec<Word>,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.src.get(self.pos).copied()
    }

    pub(super) fn at(&self, ahead: usize) -> Option<u8> {
        self.src.get(self.pos + ahead).copied()
    }

    pub(super) fn starts(&self, text: &str) -> bool {
        self.src.get(self.pos..).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    pub(super) fn slice(&self, from: usize, to: usize) -> String {
        String::from_utf8_lossy(self.src.get(from..to).unwrap_or_default()).into_owned()
    }

    pub(super) fn at_close(&self) -> bool {
        matches!(self.peek(), Some(b')' | b'}'))
    }

    /// Blanks, joined lines and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.pos += 1,
                Some(b'\\') if self.at(1) == Some(b'\n') => self.pos += 2,
                Some(b'#') => {
                    while self.peek().is_some_and(|it| it != b'\n') {
                        self.pos += 1;
                    }
                }
                _ => break,
            }
        }
    }

    pub(super) fn newline(&mut self) {
        self.pos += 1;
        for waiting in std::mem::take(&mut self.waiting) {
            let body = self.here_body(&waiting);
            if let Some(slot) = self.bodies.get_mut(waiting.index) {
                *slot = body;
            }
        }
    }

    pub(super) fn here_body(&mut self, waiting: &Waiting) -> Word {
        let mut text = String::new();
        while self.pos < self.src.len() {
            let end = memchr::memchr(b'\n', &self.src[self.pos..]).map_or(self.src.len(), |at| self.pos + at);
            let line = self.slice(self.pos, end);
            self.pos = (end + 1).min(self.src.len());
            let line = if waiting.strip_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line.trim_end_matches('\r') == waiting.delimiter {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        if waiting.quoted { vec![Piece::Text(text)] } else { self.expandable(&text) }
    }

    /// The pieces of a text in which only `$` and backquotes mean something.
    pub(super) fn expandable(&self, text: &str) -> Word {
        let mut inner = Parser {
            src: text.as_bytes(),
            pos: 0,
            depth: self.depth + 1,
            waiting: Vec::new(),
            bodies: Vec::new(),
        };
        let mut word = Vec::new();
        inner.until(None, &mut word);
        word
    }

    /// Separators between commands.
    pub(super) fn separators(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline(),
                Some(b';') => self.pos += 1,
                Some(b'&') if self.at(1) == Some(b'&') => self.pos += 2,
                Some(b'&') if self.at(1) != Some(b'>') => self.pos += 1,
                Some(b'|') if self.at(1) == Some(b'|') => self.pos += 2,
                _ => break,
            }
        }
    }

    /// A reserved word at this place.
    pub(super) fn reserved(&self, word: &str) -> bool {
        let ends = |at: Option<u8>| at.is_none_or(|it| b" \t\r\n;&|()<>".contains(&it));
        self.starts(word) && ends(self.at(word.len()))
    }

    pub(super) fn skip_reserved(&mut self, word: &str) -> bool {
        let found = self.reserved(word);
        if found {
            self.pos += word.len();
        }
        found
    }

    /// Commands until one of `ends` or a closing bracket.
    pub(super) fn list(&mut self, ends: &[&str]) -> Node {
        let mut all = Vec::new();
        loop {
            if ends.contains(&";;") {
                self.case_separators();
            } else {
                self.separators();
            }
            let stop = self.pos >= self.src.len()
                || self.peek() == Some(b')')
                || (self.reserved("}") && self.depth > 0)
                || ends.iter().any(|end| if *end == ";;" { self.starts(end) } else { self.reserved(end) });
            if stop {
                break;
            }
            let before = self.pos;
            all.push(self.pipeline());
            if self.pos == before {
                self.pos += 1;
            }
        }
        if all.len() == 1 { all.pop().unwrap_or(Node::List(Vec::new())) } else { Node::List(all) }
    }

    /// As [`Self::separators`], but `;;` ends a branch.
    pub(super) fn case_separators(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.newline(),
                Some(b';') if self.at(1) != Some(b';') => self.pos += 1,
                Some(b'&') if self.at(1) == Some(b'&') => self.pos += 2,
                Some(b'&') => self.pos += 1,
                Some(b'|') if self.at(1) == Some(b'|') => self.pos += 2,
                _ => break,
            }
        }
    }

    pub(super) fn pipeline(&mut self) -> Node {
        let mut all = vec![self.command()];
        loop {
            self.blanks();
            if self.peek() == Some(b'|') && self.at(1) != Some(b'|') {
                self.pos += 1;
                if self.peek() == Some(b'&') {
                    self.pos += 1;
                }
                self.blanks();
                while self.peek() == Some(b'\n') {
                    self.newline();
                    self.blanks();
                }
                all.push(self.command());
            } else {
                break;
            }
        }
        if all.len() == 1 { all.pop().unwrap_or(Node::List(Vec::new())) } else { Node::Pipe(all) }
    }

    pub(super) fn command(&mut self) -> Node {
        self.blanks();
        while self.skip_reserved("!") || self.skip_reserved("time") {
            self.blanks();
        }
        if self.depth >= DEEPEST {
            return self.simple();
        }
        self.depth += 1;
        let node = self.compound();
        self.depth -= 1;
        node
    }

    pub(super) fn compound(&mut self) -> Node {
        if self.starts("((") {
            let end = memchr::memmem::find(&self.src[self.pos..], b"))")
                .map_or(self.src.len(), |at| self.pos + at + 2);
            self.pos = end;
            return Node::List(Vec::new());
        }
        if self.peek() == Some(b'(') {
            self.pos += 1;
            let body = Box::new(self.list(&[]));
            if self.peek() == Some(b')') {
                self.pos += 1;
            }
            return Node::Group { body, subshell: true, redirects: self.redirects() };
        }
        if self.skip_reserved("{") {
            let body = Box::new(self.list(&["}"]));
            self.skip_reserved("}");
            return Node::Group { body, subshell: false, redirects: self.redirects() };
        }
        if self.skip_reserved("if") {
            return self.branches();
        }
        if self.skip_reserved("while") || self.skip_reserved("until") {
            let condition = Box::new(self.list(&["do"]));
            return self.loop_body(None, Vec::new(), condition);
        }
        if self.skip_reserved("for") || self.skip_reserved("select") {
            return self.for_loop();
        }
        if self.skip_reserved("case") {
            return self.case();
        }
        if self.skip_reserved("function") {
            self.blanks();
            let name = self.name();
            return self.function(name);
        }
        self.simple()
    }

    pub(super) fn branches(&mut self) -> Node {
        let mut all = vec![self.list(&["then"])];
        while self.skip_reserved("then") || self.skip_reserved("else") || self.skip_reserved("elif") {
            all.push(self.list(&["then", "elif", "else", "fi"]));
        }
        self.skip_reserved("fi");
        let redirects = self.redirects();
        Node::Group { body: Box::new(Node::List(all)), subshell: false, redirects }
    }

    pub(super) fn for_loop(&mut self) -> Node {
        self.blanks();
        let mut var = None;
        let mut over = Vec::new();
        if self.starts("((") {
            let end = memchr::memmem::find(&self.src[self.pos..], b"))")
                .map_or(self.src.len(), |at| self.pos + at + 2);
            let head = self.slice(self.pos, end);
            self.pos = end;
            let name =
                head.trim_start_matches(['(', ' ']).split(|c: char| !c.is_alphanumeric() && c != '_').next();
            var = name.map(str::to_owned);
            over.push(vec![Piece::Unknown]);
        } else {
            var = Some(self.name()).or(var);
            self.blanks();
            while self.peek() == Some(b'\n') {
                self.newline();
                self.blanks();
            }
            if self.skip_reserved("in") {
                over = self.words();
            } else {
                over.push(vec![Piece::Var { name: "@".to_owned(), operation: String::new() }]);
            }
        }
        self.separators();
        self.loop_body(var, over, Box::new(Node::List(Vec::new())))
    }

    pub(super) fn words(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        loop {
            self.blanks();
            match self.word() {
                Some(word) => words.push(word),
                None => break words,
            }
        }
    }

    pub(super) fn loop_body(&mut self, var: Option<String>, over: Vec<Word>, condition: Box<Node>) -> Node {
        let end = if self.skip_reserved("do") { "done" } else { "}" };
        if end == "}" {
            self.skip_reserved("{");
        }
        let body = Box::new(self.list(&[end]));
        self.skip_reserved(end);
        Node::Loop { var, over, condition, body, redirects: self.redirects() }
    }

    pub(super) fn case(&mut self) -> Node {
        self.blanks();
        let _ = self.word();
        self.separators();
        self.skip_reserved("in");
        let mut all = Vec::new();
        loop {
            self.separators();
            if self.pos >= self.src.len() || self.skip_reserved("esac") {
                break;
            }
            // The pattern.
            let before = self.pos;
            while self.peek().is_some_and(|it| it != b')' && it != b'\n') {
                self.pos += 1;
            }
            self.pos += 1;
            all.push(self.list(&[";;", "esac"]));
            while self.starts(";") || self.starts("&") {
                self.pos += 1;
            }
            if self.pos <= before {
                self.pos = before + 1;
            }
        }
        Node::List(all)
    }

    pub(super) fn function(&mut self, name: String) -> Node {
        self.blanks();
        if self.starts("()") {
            self.pos += 2;
        }
        self.blanks();
        while self.peek() == Some(b'\n') {
            self.newline();
            self.blanks();
        }
        Node::Function { name, body: Box::new(self.command()) }
    }

    pub(super) fn name(&mut self) -> String {
        let from = self.pos;
        while self.peek().is_some_and(|it| it.is_ascii_alphanumeric() || b"_-.".contains(&it)) {
            self.pos += 1;
        }
        self.slice(from, self.pos)
    }

    pub(super) fn simple(&mut self) -> Node {
        let mut assigns = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect() {
                redirects.push(redirect);
                continue;
            }
            if words.is_empty() {
                if let Some(assign) = self.assignment() {
                    assigns.push(assign);
                    continue;
                }
            }
            if words.len() == 1 && self.starts("(") {
                if let [Piece::Text(name)] = words[0].as_slice() {
                    let name = name.clone();
                    self.pos += 1;
                    self.blanks();
                    if self.peek() == Some(b')') {
                        self.pos += 1;
                        if self.depth < DEEPEST {
                            return self.function(name);
                        }
                    }
                }
            }
            let Some(word) = self.word() else { break };
            let is_test = words.is_empty() && word == [Piece::Text("[[".to_owned())];
            words.push(word);
            if is_test {
                self.test(&mut words);
            }
        }
        Node::Simple { assigns, words, redirects }
    }

    /// `[[ … ]]`, in which `<`, `&&` and brackets are no operators of the shell.
    pub(super) fn test(&mut self, words: &mut Vec<Word>) {
        while self.pos < self.src.len() && !self.starts("]]") {
            let before = self.pos;
            self.blanks();
            if let Some(word) = self.word() {
                words.push(word);
            }
            if self.pos == before {
                self.pos += 1;
            }
        }
        self.pos = (self.pos + 2).min(self.src.len());
    }

    pub(super) fn assignment(&mut self) -> Option<(String, Vec<Word>)> {
        let mut end = self.pos;
        while self.src.get(end).is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_') {
            end += 1;
        }
        let named = end > self.pos && !self.src[self.pos].is_ascii_digit();
        let plus = usize::from(self.src.get(end) == Some(&b'+'));
        if !named || self.src.get(end + plus) != Some(&b'=') {
            return None;
        }
        let name = self.slice(self.pos, end);
        self.pos = end + plus + 1;
        if self.peek() == Some(b'(') {
            self.pos += 1;
            let mut all = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    Some(b'\n') => self.newline(),
                    Some(b')') => {
                        self.pos += 1;
                        break;
                    }
                    _ => match self.word() {
                        Some(word) => all.push(word),
                        None => break,
                    },
                }
            }
            return Some((name, all));
        }
        Some((name, vec![self.word().unwrap_or_default()]))
    }
}
