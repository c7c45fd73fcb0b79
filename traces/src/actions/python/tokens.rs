//! Tokens cut where the grammar cuts them.

use super::lex::Token;

/// The head of a compound statement, and what stands behind its colon.
pub(super) fn split_colon(tokens: &[Token]) -> (&[Token], &[Token]) {
    let mut lambda = false;
    let at = top_level(tokens, |it| {
        lambda |= it.name() == Some("lambda");
        let found = it.is(":") && !lambda;
        lambda &= !it.is(":");
        found
    });
    at.map_or((tokens, &[]), |at| (&tokens[..at], &tokens[at + 1..]))
}

/// The first token outside brackets for which `is` holds.
pub(super) fn top_level(tokens: &[Token], mut is: impl FnMut(&Token) -> bool) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Op("(" | "[" | "{") => depth += 1,
            Token::Op(")" | "]" | "}") => depth -= 1,
            token if depth == 0 && is(token) => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parts between separators outside brackets, the empty ones left out.
pub(super) fn split<'t>(tokens: &'t [Token], separator: &str) -> Vec<&'t [Token]> {
    let mut parts = Vec::new();
    let mut depth = 0_i32;
    let mut from = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Op("(" | "[" | "{") => depth += 1,
            Token::Op(")" | "]" | "}") => depth -= 1,
            token if depth == 0 && token.is(separator) => {
                parts.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[from..]);
    parts.retain(|it| !it.is_empty());
    parts
}

/// Where the bracket at `from` closes.
pub(super) fn close(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token {
            Token::Op("(" | "[" | "{") => depth += 1,
            Token::Op(")" | "]" | "}") => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

pub(super) fn names(tokens: &[Token]) -> Vec<String> {
    tokens.iter().filter_map(Token::name).take(16).map(str::to_owned).collect()
}

/// Whether a slice takes an area (`[a:b, c:d]`, `[a:b]`), and not channels (`[..., 0]`) or whole rows (`[:, x]`).
pub(super) fn sliced_area(inner: &[Token]) -> bool {
    split(inner, ",").iter().any(|part| part.len() > 1 && part.iter().any(|it| it.is(":")))
}
