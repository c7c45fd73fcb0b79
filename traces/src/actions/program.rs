//! Programs in JavaScript that an agent writes for one call of Codex's code mode: what they hand to tools, and what they say.

use std::collections::HashMap;

/// A step of such a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A tool is called; what could not be known of its arguments is missing.
    Tool { name: String, arguments: HashMap<String, String> },
    /// Something is said to the model.
    Says(String),
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Sign(u8),
}

/// Most tokens that are read.
const MOST: usize = 100_000;

/// The steps of a program, in order.
pub(crate) fn steps(code: &str) -> Vec<Step> {
    let tokens = tokens(code);
    let mut vars: HashMap<&str, String> = HashMap::new();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at..] {
            [Token::Name(kind), Token::Name(name), Token::Sign(b'='), ..]
                if matches!(kind.as_str(), "const" | "let" | "var") =>
            {
                let (text, _) = string_at(&tokens, at + 3, &vars);
                if let Some(text) = text {
                    vars.insert(name, text);
                }
                at += 3;
            }
            [Token::Name(tools), Token::Sign(b'.'), Token::Name(name), Token::Sign(b'('), ..]
                if tools == "tools" =>
            {
                steps.push(Step::Tool { name: name.clone(), arguments: arguments(&tokens, at + 4, &vars) });
                at += 4;
            }
            [Token::Name(text), Token::Sign(b'('), ..]
                if text == "text" && (at == 0 || tokens[at - 1] != Token::Sign(b'.')) =>
            {
                let said = strings_until_close(&tokens, at + 2, &vars);
                if !said.is_empty() {
                    steps.push(Step::Says(said));
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
    steps
}

/// `"a" + "b"`, or a variable that holds a string; where it ends.
fn string_at(tokens: &[Token], from: usize, vars: &HashMap<&str, String>) -> (Option<String>, usize) {
    let mut out: Option<String> = None;
    let mut at = from;
    loop {
        match tokens.get(at) {
            Some(Token::Text(text)) => out.get_or_insert_default().push_str(&filled(text, vars)),
            Some(Token::Name(name)) if vars.contains_key(name.as_str()) => {
                out.get_or_insert_default().push_str(vars.get(name.as_str()).map_or("", String::as_str));
            }
            Some(Token::Name(name)) if name == "String" => {
                at += 3;
                continue;
            }
            _ => return (out, at),
        }
        at += 1;
        if tokens.get(at) == Some(&Token::Sign(b'+')) && out.as_ref().is_none_or(|it| it.len() < 1 << 20) {
            at += 1;
        } else {
            return (out, at);
        }
    }
}

fn filled(text: &str, vars: &HashMap<&str, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1}') {
        out.push_str(before);
        let (name, tail) = after.split_once('\u{2}').unwrap_or((after, ""));
        out.push_str(vars.get(name.trim()).filter(|it| it.len() < 4096).map_or("*", String::as_str));
        rest = tail;
    }
    out + rest
}

fn arguments(tokens: &[Token], from: usize, vars: &HashMap<&str, String>) -> HashMap<String, String> {
    let mut all = HashMap::new();
    let mut at = from;
    let mut depth = 1_i32;
    if !matches!(tokens.get(at), Some(Token::Sign(b'{'))) {
        if let (Some(text), _) = string_at(tokens, at, vars) {
            all.insert("input".to_owned(), text);
        }
        return all;
    }
    while at < tokens.len() && depth > 0 {
        match &tokens[at] {
            Token::Sign(b'(' | b'{' | b'[') => depth += 1,
            Token::Sign(b')' | b'}' | b']') => depth -= 1,
            Token::Name(key) | Token::Text(key) if tokens.get(at + 1) == Some(&Token::Sign(b':')) => {
                let (value, end) = string_at(tokens, at + 2, vars);
                if let Some(value) = value {
                    all.insert(key.clone(), value);
                }
                at = end.max(at + 2);
                continue;
            }
            // `{cmd}`.
            Token::Name(key)
                if vars.contains_key(key.as_str())
                    && matches!(tokens.get(at + 1), Some(Token::Sign(b',' | b'}'))) =>
            {
                all.insert(key.clone(), vars.get(key.as_str()).cloned().unwrap_or_default());
            }
            _ => {}
        }
        at += 1;
    }
    all
}

fn strings_until_close(tokens: &[Token], from: usize, vars: &HashMap<&str, String>) -> String {
    let mut said = String::new();
    let mut depth = 1_i32;
    for token in tokens.iter().skip(from).take(2_000) {
        match token {
            Token::Sign(b'(') => depth += 1,
            Token::Sign(b')') => depth -= 1,
            Token::Text(text) => {
                said.push_str(&filled(text, vars));
                said.push(' ');
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    said
}

fn tokens(code: &str) -> Vec<Token> {
    let bytes = code.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() && all.len() < MOST {
        match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |it| at + it);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = memchr::memmem::find(&bytes[at..], b"*/").map_or(bytes.len(), |it| at + it + 2);
            }
            quote @ (b'"' | b'\'' | b'`') => {
                let raw = matches!(all.last(), Some(Token::Name(name)) if name == "raw");
                let (text, end) = string(code, at, quote, raw);
                all.push(Token::Text(text));
                at = end;
            }
            b'_' | b'$' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                let from = at;
                while at < bytes.len()
                    && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'_' | b'$' | 0x80..))
                {
                    at += 1;
                }
                all.push(Token::Name(code[from..at].to_owned()));
            }
            byte if byte.is_ascii_whitespace() => at += 1,
            byte => {
                all.push(Token::Sign(byte));
                at += 1;
            }
        }
    }
    // `String.raw` is no more than its text.
    let mut clean: Vec<Token> = Vec::with_capacity(all.len());
    for token in all {
        if matches!(token, Token::Text(_)) && clean.len() >= 3 {
            let tail = &clean[clean.len() - 3..];
            if tail == [Token::Name("String".to_owned()), Token::Sign(b'.'), Token::Name("raw".to_owned())] {
                clean.truncate(clean.len() - 3);
            }
        }
        clean.push(token);
    }
    clean
}

/// The string that begins at `at`, its expressions marked, and where it ends.
fn string(code: &str, at: usize, quote: u8, raw: bool) -> (String, usize) {
    let bytes = code.as_bytes();
    let mut out: Vec<u8> = Vec::new();
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != quote {
        match bytes[at] {
            b'\\' if !raw && at + 1 < bytes.len() => {
                at += 1;
                match bytes[at] {
                    b'n' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    b'\n' => {}
                    other => out.push(other),
                }
                at += 1;
            }
            b'\\' if raw && bytes.get(at + 1) == Some(&b'`') => {
                out.extend(b"\\`");
                at += 2;
            }
            b'$' if quote == b'`' && bytes.get(at + 1) == Some(&b'{') => {
                out.push(1);
                at += 2;
                while at < bytes.len() && bytes[at] != b'}' && bytes[at] != b'`' {
                    out.push(bytes[at]);
                    at += 1;
                }
                out.push(2);
                at += usize::from(bytes.get(at) == Some(&b'}'));
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    let mut end = (at + 1).min(bytes.len());
    while end < bytes.len() && !code.is_char_boundary(end) {
        end += 1;
    }
    (String::from_utf8_lossy(&out).into_owned(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_tools_and_words_come_out_in_order() {
        let code = r#"// look
const p = "/work/a.png";
const r = await tools.exec_command({cmd: String.raw`sed 's/\n/x/' f`, yield_time_ms: 10});
text("kept: " + r.output); for (const n of ["x"]) image(await tools.view_image({path: `/tmp/${n}.png`}));
await tools.view_image({path: p}); await tools.apply_patch("*** Begin Patch\n");"#;
        let tool = |name: &str, key: &str, value: &str| Step::Tool {
            name: name.into(),
            arguments: [(key.to_owned(), value.to_owned())].into(),
        };
        assert_eq!(
            steps(code),
            [
                tool("exec_command", "cmd", r"sed 's/\n/x/' f"),
                Step::Says("kept:  ".into()),
                tool("view_image", "path", "/tmp/*.png"),
                tool("view_image", "path", "/work/a.png"),
                tool("apply_patch", "input", "*** Begin Patch\n"),
            ]
        );
    }
}
