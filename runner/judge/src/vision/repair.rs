//! JSON as models write it: with typographic or single quotes, commas too many, line ends inside strings. What is repaired
//! has one reading only; whatever is left broken is for the parser to refuse.

/// The text with such faults mended. Valid JSON stays as it is.
pub(super) fn repaired(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.char_indices().peekable();
    let mut quote: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        let rest = &text[at + c.len_utf8()..];
        match quote {
            None => match c {
                '"' | '\'' | '“' | '”' | '„' => {
                    quote = Some(c);
                    out.push('"');
                }
                ',' if rest.trim_start().starts_with(['}', ']']) => {}
                c => out.push(c),
            },
            Some(open) => match c {
                '\\' => match chars.next() {
                    Some((_, '\'')) => out.push('\''),
                    Some((_, next)) => out.extend(['\\', next]),
                    None => out.push('\\'),
                },
                c if closes(open, c, rest) => {
                    quote = None;
                    out.push('"');
                }
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                // No other control character means anything.
                c if c.is_control() => {}
                c => out.push(c),
            },
        }
    }
    out
}

/// Whether `c` ends a string that `open` began; an apostrophe inside one does not.
fn closes(open: char, c: char, rest: &str) -> bool {
    match open {
        '"' => c == '"',
        '\'' => {
            c == '\'' && (rest.trim_start().is_empty() || rest.trim_start().starts_with([',', ':', '}', ']']))
        }
        _ => matches!(c, '“' | '”' | '"'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_with_one_reading_are_mended() {
        for (text, mended) in [
            (r#"{"a": "b, }", "c": [1, 2]}"#, r#"{"a": "b, }", "c": [1, 2]}"#),
            (r#"{"a": [1,2,], }"#, r#"{"a": [1,2] }"#),
            ("{“a”: “b”}", r#"{"a": "b"}"#),
            (r#"{'a': 'it's "so"'}"#, r#"{"a": "it's \"so\""}"#),
            ("{\"a\": \"x\ny\"}", r#"{"a": "x\ny"}"#),
        ] {
            assert_eq!(repaired(text), mended);
        }
    }
}
