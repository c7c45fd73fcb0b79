//! The program in a model's reply. The rules are in docs/tracks.md.

/// A fenced code block (`CommonMark` 0.31, 4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    /// First word behind the fence, in small letters; empty if there is none.
    tag: String,
    text: String,
    /// Whether its closing fence is there.
    closed: bool,
}

/// What a reply came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This is the program; the second says how it was told from others, if there were others.
    Program(String, Option<String>),
    /// There is none, for this reason.
    Nothing(&'static str),
}

/// The program in `reply`, in the language that is marked with one of `tags`, the first of which was asked for. `was_cut`
/// says that the reply ends where its limit of tokens was.
pub(super) fn program(reply: &str, tags: &[&str], was_cut: bool) -> Found {
    let all = blocks(reply);
    let half = all.last().is_some_and(|it| !it.closed);
    let whole: Vec<&Block> =
        all.iter().filter(|it| it.closed || !was_cut).filter(|it| !it.text.trim().is_empty()).collect();
    if whole.is_empty() {
        return match (all.is_empty(), half && was_cut) {
            (true, _) if !was_cut && is_bare(reply, tags) => {
                Found::Program(reply.trim().to_owned() + "\n", Some("no fence around it".to_owned()))
            }
            (true, _) => Found::Nothing("there is no code block in the reply"),
            (false, true) => Found::Nothing("the reply was cut within its code block"),
            (false, false) => Found::Nothing("the code block in the reply is empty"),
        };
    }
    let marked = |block: &&&Block| tags.contains(&block.tag.as_str());
    let unmarked = |block: &&&Block| block.tag.is_empty();
    let chosen = longest(whole.iter().filter(marked))
        .or_else(|| longest(whole.iter().filter(unmarked)))
        .or_else(|| longest(whole.iter()));
    let Some(block) = chosen else { return Found::Nothing("there is no code block in the reply") };
    let mut remarks = Vec::new();
    if whole.len() > 1 {
        remarks.push(format!("one of {} code blocks", whole.len()));
    }
    if !tags.contains(&block.tag.as_str()) {
        remarks.push(if block.tag.is_empty() {
            "it has no mark".to_owned()
        } else {
            "it has another mark".to_owned()
        });
    }
    if !block.closed {
        remarks.push("its fence is never closed".to_owned());
    }
    Found::Program(block.text.clone(), (!remarks.is_empty()).then(|| remarks.join(", ")))
}

/// The longest; of equally long ones the last, since a model mends what it has said before.
fn longest<'a>(blocks: impl Iterator<Item = &'a &'a Block>) -> Option<&'a Block> {
    blocks.copied().max_by_key(|block| block.text.len())
}

/// A fence at the beginning of a line.
struct Fence<'a> {
    mark: char,
    length: usize,
    indent: usize,
    info: &'a str,
}

fn fence(line: &str) -> Option<Fence<'_>> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let length = rest.len() - info.len();
    // Behind backticks, more of them would make it code within a line.
    let is_fence = indent <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
    is_fence.then_some(Fence { mark, length, indent, info: info.trim() })
}

fn blocks(reply: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Fence<'_>> = None;
    for line in reply.lines() {
        match (&open, fence(line), found.last_mut()) {
            (None, Some(begin), _) => {
                let tag = begin.info.split([' ', '\t', ',', '{', ':']).next().unwrap_or_default();
                let tag = tag.to_lowercase();
                found.push(Block { tag, text: String::new(), closed: false });
                open = Some(begin);
            }
            (Some(begin), Some(end), Some(block))
                if end.mark == begin.mark && end.length >= begin.length && end.info.is_empty() =>
            {
                block.closed = true;
                open = None;
            }
            (Some(begin), _, Some(block)) => {
                let spaces = line.bytes().take(begin.indent).take_while(|byte| *byte == b' ').count();
                block.text.push_str(&line[spaces..]);
                block.text.push('\n');
            }
            _ => {}
        }
    }
    found
}

/// Whether a reply without any fence is a program from its first word on.
fn is_bare(reply: &str, tags: &[&str]) -> bool {
    let begins: &[&str] = match tags.first().copied() {
        Some("html") => &["<!doctype html", "<html"],
        Some("dot") => &["digraph ", "graph ", "strict digraph ", "strict graph ", "digraph{", "graph{"],
        Some("latex") => &["\\documentclass"],
        Some("python") => &["import ", "from ", "#!/usr/bin/env python", "#!/usr/bin/python"],
        _ => &[],
    };
    let head: String = reply.trim_start().chars().take(40).collect::<String>().to_lowercase();
    begins.iter().any(|begin| head.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: [&str; 2] = ["html", "htm"];

    fn of(reply: &str) -> Option<String> {
        match program(reply, &HTML, false) {
            Found::Program(text, _) => Some(text),
            Found::Nothing(_) => None,
        }
    }

    #[test]
    fn one_block_is_the_program_whatever_stands_around_it_and_whatever_it_is_marked_with() {
        for (reply, expected) in [
            ("```html\n<p>\n```", Some("<p>\n")),
            ("Sure:\n\n~~~ HTML title=x\n<p>\n~~~\nDone.", Some("<p>\n")),
            ("  ```\n  <p>\n    <b>\n  ```", Some("<p>\n  <b>\n")),
            ("```xml\r\n<p>\r\n```\r\n", Some("<p>\n")),
            ("````html\n```\ninner\n```\n````", Some("```\ninner\n```\n")),
            ("```html\n<p>\n```js\nx\n```", Some("<p>\n```js\nx\n")),
            ("No block, but `code` and ``` in a line ```.", None),
            ("", None),
            ("```html\n\n```", None),
        ] {
            assert_eq!(of(reply).as_deref(), expected, "{reply}");
        }
    }

    #[test]
    fn of_several_the_language_decides_then_the_length_then_the_order() {
        let css = "```css\np { color: red; font-size: 99px }\n```\n";
        for (reply, expected) in [
            (format!("{css}```html\n<p>\n```"), "<p>\n"),
            (format!("{css}```\n<p>\n```"), "<p>\n"),
            ("```html\n<p>whole</p>\n```\nChanged:\n```html\n<p>\n```".to_owned(), "<p>whole</p>\n"),
            ("```html\n<p>a</p>\n```\nBetter:\n```html\n<p>b</p>\n```".to_owned(), "<p>b</p>\n"),
            ("```js\nlet a;\n```\n```css\na{}\n```".to_owned(), "let a;\n"),
        ] {
            assert_eq!(of(&reply).as_deref(), Some(expected), "{reply}");
        }
        let Found::Program(_, Some(remark)) = program(&format!("{css}```\n<p>\n```"), &HTML, false) else {
            panic!()
        };
        assert_eq!(remark, "one of 2 code blocks, it has no mark");
    }

    #[test]
    fn a_block_that_is_never_closed_counts_unless_the_reply_was_cut() {
        let reply = "```html\n<p>half";
        let remark = Some("its fence is never closed".to_owned());
        assert_eq!(program(reply, &HTML, false), Found::Program("<p>half\n".to_owned(), remark));
        assert_eq!(program(reply, &HTML, true), Found::Nothing("the reply was cut within its code block"));
        let earlier = "```html\n<p>\n```\nAnd:\n```html\n<p>longer but half";
        assert!(matches!(program(earlier, &HTML, true), Found::Program(text, _) if text == "<p>\n"));
        assert_eq!(program("I think", &HTML, true), Found::Nothing("there is no code block in the reply"));
    }

    #[test]
    fn a_reply_that_is_a_program_from_its_first_word_on_needs_no_fence() {
        assert_eq!(of("\n<!DOCTYPE html>\n<p>\n").as_deref(), Some("<!DOCTYPE html>\n<p>\n"));
        assert_eq!(of("Here: <!DOCTYPE html><p>"), None);
        assert_eq!(program("<html>", &HTML, true), Found::Nothing("there is no code block in the reply"));
        assert!(matches!(program("digraph{a}", &["dot"], false), Found::Program(..)));
        assert_eq!(
            program("digraph{a}", &["latex", "tex"], false),
            Found::Nothing("there is no code block in the reply")
        );
    }
}
