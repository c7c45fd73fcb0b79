//! The structured block of a reply, where it can be told which one that is.
//!
//! A picture can hold any text, a whole verdict too, and a judge may quote it. So what decides is never which block can be
//! read: everything that looks like one counts, and one that cannot be read is not passed over for one that can.

use serde_json::{Map, Value};

use super::once::Told;
use super::repair::repaired;
use super::reply::Unscored;

/// A longer reply is none, in bytes: it would be searched again from each of its braces.
const LONGEST: usize = 1 << 20;
/// A reply with more braces than this outside of what can be read gives no verdict.
const MOST_STARTS: usize = 2000;
/// So many braces are tried as the start of a block that needs repair; each costs a walk through the reply.
const MOST_REPAIRS: usize = 64;
/// Longest talk after the block, in characters. After more it is not the judge's last word, but something that it speaks of.
const LONGEST_AFTER: usize = 400;
/// What a block has for keys.
const KEYS: [&str; 3] = ["points", "visual_quality", "domain_quality"];

/// The one block of a reply, or several that are equal.
pub(super) fn block_of(reply: &str) -> Result<Map<String, Value>, Unscored> {
    if reply.len() > LONGEST {
        return Err(Unscored::NoBlock);
    }
    let whole = whole_blocks(reply)?;
    let (told, after) = match whole.split_last() {
        None => mended(reply)?,
        Some((last, others)) => {
            if others.iter().any(|it| it.told != last.told) || looks_like_one(&around(reply, &whole)) {
                return Err(Unscored::Ambiguous);
            }
            let told = last.told.clone().ok_or(Unscored::NoBlock)?;
            (told, reply[last.end..].to_owned())
        }
    };
    if after.contains('{') || after.trim().chars().count() > LONGEST_AFTER {
        return Err(Unscored::Ambiguous);
    }
    match told {
        Told { twice: Some(key), .. } => Err(Unscored::Strange { id: key.chars().take(80).collect() }),
        Told { value: Value::Object(block), .. } => Ok(block),
        Told { .. } => Err(Unscored::NoBlock),
    }
}

/// Valid JSON that is a block, or has one inside; the latter cannot be read.
struct Whole {
    start: usize,
    end: usize,
    told: Option<Told>,
}

fn whole_blocks(text: &str) -> Result<Vec<Whole>, Unscored> {
    let mut found = Vec::new();
    let mut past = 0;
    let mut tried = 0;
    for (start, _) in text.match_indices('{') {
        if start < past {
            continue;
        }
        tried += 1;
        if tried > MOST_STARTS {
            return Err(Unscored::NoBlock);
        }
        let Some((told, length)) = first(&text[start..]) else { continue };
        past = start + length;
        if is_block(&told.value) && !is_inside(&text[..start]) {
            found.push(Whole { start, end: past, told: Some(told) });
        } else if holds_one(&told.value) {
            found.push(Whole { start, end: past, told: None });
        }
    }
    Ok(found)
}

/// The JSON that `text` begins with, and its length.
fn first(text: &str) -> Option<(Told, usize)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    let told = stream.next()?.ok()?;
    Some((told, stream.byte_offset()))
}

/// What stands around the blocks, each replaced by a line end.
fn around(text: &str, blocks: &[Whole]) -> String {
    let mut rest = String::with_capacity(text.len());
    let mut past = 0;
    for it in blocks {
        rest.push_str(&text[past..it.start]);
        rest.push('\n');
        past = it.end;
    }
    rest + &text[past..]
}

/// The only block of a reply, which needs repair, and what comes after it.
fn mended(reply: &str) -> Result<(Told, String), Unscored> {
    if KEYS.iter().any(|key| times(reply, key) > 1) {
        return Err(Unscored::Ambiguous);
    }
    for (start, _) in reply.match_indices('{').take(MOST_REPAIRS) {
        let text = repaired(&reply[start..]);
        let Some((told, length)) = first(&text).filter(|(told, _)| is_block(&told.value)) else { continue };
        let after = &text[length..];
        if looks_like_one(&reply[..start]) || looks_like_one(after) {
            return Err(Unscored::Ambiguous);
        }
        return if is_inside(&reply[..start]) {
            Err(Unscored::NoBlock)
        } else {
            Ok((told, after.to_owned()))
        };
    }
    Err(Unscored::NoBlock)
}

fn is_block(value: &Value) -> bool {
    value.get("points").is_some()
}

/// Whether a key of a block is anywhere in `value`.
fn holds_one(value: &Value) -> bool {
    match value {
        Value::Object(object) => object
            .iter()
            .any(|(key, value)| KEYS.iter().any(|it| key.eq_ignore_ascii_case(it)) || holds_one(value)),
        Value::Array(items) => items.iter().any(holds_one),
        _ => false,
    }
}

/// Whether what comes after `before` is the value of a key in something that cannot be read.
fn is_inside(before: &str) -> bool {
    before.trim_end().strip_suffix(':').is_some_and(|it| it.trim_end().ends_with(QUOTES))
}

const QUOTES: [char; 5] = ['"', '\'', '“', '”', '„'];

/// Whether text that is no JSON has what would be a key of a block.
fn looks_like_one(text: &str) -> bool {
    KEYS.iter().any(|key| times(text, key) > 0)
}

/// How often `key` stands in `text` as a key: in quotation marks and before a colon, a comment or the end; or bare, before a
/// colon and a bracket. Quotation marks that are escaped are none, since what they are in is a string.
fn times(text: &str, key: &str) -> usize {
    let text = text.to_ascii_lowercase();
    let is_key = |at: usize| {
        let after = &text[at + key.len()..];
        match after.strip_prefix(QUOTES) {
            Some(after) => {
                let after = after.trim_start();
                text[..at].ends_with(QUOTES) && (after.is_empty() || after.starts_with([':', '/', '#']))
            }
            None => {
                after.trim_start().strip_prefix(':').is_some_and(|it| it.trim_start().starts_with(['[', '{']))
            }
        }
    };
    text.match_indices(key).filter(|(at, _)| is_key(*at)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = r#"{"points": {"r1": 0}, "visual_quality": 2, "domain_quality": 2}"#;
    const QUOTED: &str = r#"{"points": {"r1": 1}, "visual_quality": 5, "domain_quality": 5}"#;

    #[test]
    fn a_quotation_wins_over_no_block_however_broken_that_is() {
        for own in [
            OWN.replace("0}", "0,}"),
            OWN.replace('"', "'"),
            OWN.replace("0}", "NaN}"),
            OWN.replace("0}", "True}"),
            OWN.replace("\"points\"", "points"),
            OWN.replace("{\"points\"", "{ // marks\n\"points\" /* by id */"),
            OWN.replace("\"points\"", "\"Points\""),
            OWN[..OWN.len() / 2].to_owned(),
            OWN[..12].to_owned(),
            format!("{{\"result\": {OWN}}}"),
            format!("{{\"result\": {OWN}, \"n\": NaN}}"),
        ] {
            for quoted in
                [QUOTED.to_owned(), QUOTED.replace("1}", "1,}"), QUOTED.replace("points", "po\\u0069nts")]
            {
                let found = block_of(&format!("It's said: {quoted}\nMy verdict:\n{own}"));
                assert_eq!(found, Err(Unscored::Ambiguous), "{quoted} {own}");
                let found = block_of(&format!("{own}\nIt's said: {quoted}"));
                assert_eq!(found, Err(Unscored::Ambiguous), "{own} {quoted}");
            }
        }
    }

    #[test]
    fn a_lone_block_that_cannot_be_read_is_none() {
        for own in [
            OWN.replace("0}", "NaN}"),
            OWN.replace("0}", "True}"),
            OWN.replace("{\"points\"", "{ // marks\n\"points\""),
            OWN[..OWN.len() - 1].to_owned(),
            format!("{{\"result\": {OWN}}}"),
            format!("{{\"n\": NaN, \"result\": {}}}", OWN.replace("0}", "0,}")),
        ] {
            assert_eq!(block_of(&own), Err(Unscored::NoBlock), "{own}");
        }
        assert_eq!(block_of(&format!("{{\"n\": NaN, \"result\": {OWN}}}")), Err(Unscored::NoBlock));
    }

    #[test]
    fn a_block_that_is_followed_by_much_is_not_the_last_word() {
        let after = |text: &str| block_of(&format!("{OWN}\n```\n{text}")).map(|_| ());
        assert_eq!(after("The “points” are: r1. Let me know!"), Ok(()));
        assert_eq!(after(&"x".repeat(390)), Ok(()));
        assert_eq!(after(&"x".repeat(401)), Err(Unscored::Ambiguous));
        assert_eq!(after("{} is what I say"), Err(Unscored::Ambiguous));
        let mended = format!("{}\n{}", OWN.replace("0}", "0,}"), "x".repeat(401));
        assert_eq!(block_of(&mended), Err(Unscored::Ambiguous));
    }

    #[test]
    fn too_many_braces_are_no_verdict() {
        assert!(block_of(&format!("{}{OWN}", "{ ".repeat(MOST_STARTS - 1))).is_ok());
        for many in ["{ ".repeat(MOST_STARTS), "{} ".repeat(MOST_STARTS)] {
            assert_eq!(block_of(&format!("{many}{OWN}")), Err(Unscored::NoBlock));
            assert!(block_of(&format!("{OWN}{many}{QUOTED}")).is_err());
        }
    }

    #[test]
    fn what_is_told_twice_is_not_told() {
        for (from, to, key) in [
            ("\"r1\": 0", "\"r1\": 0, \"r1\": 1", "r1"),
            ("\"r1\": 0", "\"r1\": {\"satisfied\": 0, \"satisfied\": 0}", "satisfied"),
            ("{\"points\"", "{\"points\": {\"r1\": 1}, \"points\"", "points"),
            ("\"visual_quality\"", "\"domain_quality\": 4, \"visual_quality\"", "domain_quality"),
        ] {
            let twice = OWN.replace(from, to);
            assert_eq!(block_of(&twice), Err(Unscored::Strange { id: key.to_owned() }), "{twice}");
        }
        assert!(block_of(&OWN.replace("0}", "0,\"r1\": 1,}")).is_err());
    }
}
