//! Tokens and logical lines of Python (The Python Language Reference, 2).

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    Number(String),
    /// A string; `formatted` if `{…}` in it are expressions.
    Text {
        value: String,
        formatted: bool,
    },
    /// An operator or a bracket.
    Op(&'static str),
}

impl Token {
    pub(super) fn is(&self, op: &str) -> bool {
        matches!(self, Self::Op(it) if *it == op)
    }

    pub(super) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }
}

/// A logical line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) tokens: Vec<Token>,
}

/// What a program says in tokens, and apart from it in comments.
#[derive(Default)]
pub(super) struct Source {
    pub(super) lines: Vec<Line>,
    pub(super) comments: String,
}

const OPS: [&str; 46] = [
    "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", "@=", "**", "//", "<<", ">>", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "@",
    "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<",
];

/// Most that is read of one program, in tokens.
const MOST: usize = 60_000;

/// Takes a program apart.
pub(super) fn lines(code: &str) -> Source {
    let bytes = code.as_bytes();
    let mut out = Source::default();
    let mut line = Line::default();
    let mut depth = 0_i32;
    let mut at = 0;
    let mut total = 0;
    let mut fresh = true;
    while at < bytes.len() && total < MOST {
        let byte = bytes[at];
        if fresh && depth == 0 {
            let from = at;
            while at < bytes.len() && matches!(bytes[at], b' ' | b'\t') {
                at += 1;
            }
            line.indent = at - from;
            fresh = false;
            continue;
        }
        match byte {
            b'\n' => {
                at += 1;
                if depth <= 0 {
                    depth = 0;
                    finish(&mut out, &mut line);
                    fresh = true;
                }
            }
            b' ' | b'\t' | b'\r' | 0x0c => at += 1,
            b'\\' => at += 1 + usize::from(bytes.get(at + 1) == Some(&b'\n')),
            b'#' => {
                let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |it| at + it);
                if out.comments.len() < 1 << 14 {
                    out.comments.push_str(&code[at..end]);
                    out.comments.push('\n');
                }
                at = end;
            }
            b';' if depth == 0 => {
                let indent = line.indent;
                finish(&mut out, &mut line);
                line.indent = indent;
                at += 1;
            }
            b'"' | b'\'' => at = text(code, at, "", &mut line),
            b'0'..=b'9' => {
                let from = at;
                while at < bytes.len()
                    && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'.' | b'_'))
                {
                    at += 1;
                }
                line.tokens.push(Token::Number(code[from..at].to_owned()));
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                let from = at;
                while at < bytes.len()
                    && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] >= 0x80)
                {
                    at += 1;
                }
                let name = &code[from..at];
                let is_prefix = name.len() <= 2 && name.bytes().all(|it| b"rRbBuUfFtT".contains(&it));
                if is_prefix && matches!(bytes.get(at), Some(b'"' | b'\'')) {
                    at = text(code, at, name, &mut line);
                } else {
                    line.tokens.push(Token::Name(name.to_owned()));
                }
            }
            _ => {
                let rest = &bytes[at..];
                let op = OPS
                    .iter()
                    .find(|it| it.as_bytes().first() == Some(&byte) && rest.starts_with(it.as_bytes()))
                    .copied()
                    .or(if byte == b'>' { Some(">") } else { None });
                match op {
                    Some(op) => {
                        match op {
                            "(" | "[" | "{" => depth += 1,
                            ")" | "]" | "}" => depth -= 1,
                            _ => {}
                        }
                        line.tokens.push(Token::Op(op));
                        at += op.len();
                    }
                    None => at += 1,
                }
            }
        }
        total += 1;
    }
    finish(&mut out, &mut line);
    out
}

fn finish(out: &mut Source, line: &mut Line) {
    let line = std::mem::take(line);
    if !line.tokens.is_empty() {
        out.lines.push(line);
    }
}

/// Reads the string that begins at `at`; where it ends.
fn text(code: &str, at: usize, prefix: &str, line: &mut Line) -> usize {
    let bytes = code.as_bytes();
    let quote = bytes[at];
    let triple = bytes.get(at + 1) == Some(&quote) && bytes.get(at + 2) == Some(&quote);
    let from = at + if triple { 3 } else { 1 };
    let mut end = from;
    while end < bytes.len() {
        if bytes[end] == b'\\' {
            end += 2;
        } else if (bytes[end] == b'\n' && !triple)
            || bytes[end] == quote
                && (!triple || (bytes.get(end + 1) == Some(&quote) && bytes.get(end + 2) == Some(&quote)))
        {
            break;
        } else {
            end += 1;
        }
    }
    let end = end.min(bytes.len());
    let formatted = prefix.bytes().any(|it| matches!(it, b'f' | b'F' | b't' | b'T'));
    let value = code.get(from..end).unwrap_or_default().to_owned();
    match line.tokens.last_mut() {
        // Literals that stand side by side are one.
        Some(Token::Text { value: before, formatted: old }) => {
            before.push_str(&value);
            *old |= formatted;
        }
        _ => line.tokens.push(Token::Text { value, formatted }),
    }
    let closing = if end < bytes.len() && bytes[end] == quote { if triple { 3 } else { 1 } } else { 0 };
    let mut next = end + closing;
    while next < bytes.len() && !code.is_char_boundary(next) {
        next += 1;
    }
    next.max(at + 1)
}
