//! A table before it has a form: for a terminal, or for Markdown.

use std::fmt::Write as _;
use std::ops::Range;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::table::headed_table;

/// No table is wider than this, in characters.
const WIDTH: usize = 100;

/// Least and most characters of a line of a name.
const NAME: (usize, usize) = (10, 40);

/// A table with its title and what must be known to read it.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Title.
    pub title: String,
    /// Heads of the columns; the first column has names, all others figures.
    pub head: Vec<String>,
    /// The lines.
    pub lines: Vec<Line>,
    /// What stands below it.
    pub notes: Vec<String>,
    /// So many columns after the first have words; those after them have numbers.
    pub words: usize,
    /// Whether names stay whole where there is any room for them: whoever reads the table may look for them.
    pub whole_names: bool,
}

/// A line of a table.
#[derive(Clone, Debug)]
pub enum Line {
    /// The name of those that follow.
    Section(String),
    /// A name and its figures; a cell may have several lines.
    Cells(String, Vec<String>),
}

impl Sheet {
    /// A table without lines.
    pub fn new(title: &str, head: &[&str]) -> Self {
        let head = head.iter().map(|it| (*it).to_owned()).collect();
        Self { title: title.to_owned(), head, ..Self::default() }
    }

    /// As the terminal shows it that stdout is, or as one of the common width would.
    pub fn text(&self) -> String {
        match terminal_width() {
            Some(width) => self.text_within(width),
            // Whatever reads it may look for the name.
            None if self.whole_names => self.text_within(usize::MAX),
            None => self.text_within(WIDTH),
        }
    }

    /// In lines of at most `width` characters. The names make room for the figures: they are broken between their parts.
    /// Where that is not enough, what does not fit stands in a table below, with the names once more. No figure is ever
    /// broken, and only a part of a name that is too long by itself is shortened.
    pub fn text_within(&self, width: usize) -> String {
        let (room, blocks) = self.blocks(width);
        let mut parts: Vec<String> = Vec::new();
        parts.extend(Some(&self.title).filter(|it| !it.is_empty()).cloned());
        parts.extend(blocks.into_iter().map(|block| self.block(block, room)));
        parts.extend(self.notes.iter().map(|note| wrapped_within(note, "  ", width.min(WIDTH))));
        parts.join("\n")
    }

    /// Some of the columns as a table.
    fn block(&self, columns: Range<usize>, room: usize) -> String {
        let pick = |cells: &[String]| cells.get(columns.clone()).unwrap_or_default().to_vec();
        let heads = [self.head.get(..1).unwrap_or_default().to_vec(), pick(&self.head)].concat();
        let mut table: Table = headed_table(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        table.set_content_arrangement(ContentArrangement::Disabled);
        for line in &self.lines {
            let (name, figures) = match line {
                Line::Section(name) => (name, vec![String::new(); columns.len()]),
                // The name is the first cell.
                Line::Cells(name, figures) => {
                    let from = columns.start.saturating_sub(1);
                    (name, figures.get(from..figures.len().min(columns.end - 1)).unwrap_or_default().to_vec())
                }
            };
            let aligned = |(at, it): (usize, &String)| {
                let is_word = columns.start + at <= self.words;
                let side = if is_word { CellAlignment::Left } else { CellAlignment::Right };
                Cell::new(it).set_alignment(side)
            };
            let mut cells = vec![Cell::new(broken(name, room))];
            cells.extend(figures.iter().enumerate().map(aligned));
            table.add_row(cells);
        }
        table.to_string()
    }

    /// Characters for a line of a name, and the columns of each table.
    fn blocks(&self, width: usize) -> (usize, Vec<Range<usize>>) {
        // Each column has a space on either side and a rule; the last rule is one more.
        let widths: Vec<usize> = self.widths().into_iter().map(|width| width + 3).collect();
        let names = widths.first().map_or(0, |width| width - 3);
        let (least, most) = (names.min(NAME.0), if self.whole_names { names } else { names.min(NAME.1) });
        let all = 1..self.head.len().max(1);
        let left = width.saturating_sub(4 + widths.iter().skip(1).sum::<usize>());
        if left >= least {
            return (left.clamp(1, most.max(1)), vec![all]);
        }
        let room = most.min((width / 3).max(least)).max(1);
        let most = width.saturating_sub(room + 4);
        let (mut blocks, mut first, mut used) = (Vec::new(), 1, 0);
        for (at, width) in widths.iter().enumerate().skip(1) {
            if used > 0 && used + width > most {
                blocks.push(first..at);
                (first, used) = (at, 0);
            }
            used += width;
        }
        blocks.push(first..all.end);
        (room, blocks)
    }

    /// Characters of the widest cell of each column.
    fn widths(&self) -> Vec<usize> {
        let wide = |cell: &str| cell.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut widths: Vec<usize> = self.head.iter().map(|it| wide(it)).collect();
        for line in &self.lines {
            let (name, figures) = match line {
                Line::Section(name) => (name, &[][..]),
                Line::Cells(name, figures) => (name, figures.as_slice()),
            };
            for (width, cell) in widths.iter_mut().zip(std::iter::once(name).chain(figures)) {
                *width = (*width).max(wide(cell));
            }
        }
        widths
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|it| escaped(it)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> =
            (0..self.head.len()).map(|at| if at == 0 { ":--" } else { "--:" }.to_owned()).collect();
        let mut text =
            format!("### {}\n\n{}| {} |\n", escaped(&self.title), row(&self.head), rule.join(" | "));
        for line in &self.lines {
            let mut cells = match line {
                Line::Section(name) => vec![format!("**{name}**")],
                Line::Cells(name, figures) => [std::slice::from_ref(name), figures].concat(),
            };
            cells.resize(self.head.len(), String::new());
            text.push_str(&row(&cells));
        }
        for note in &self.notes {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{}", escaped(note));
        }
        text
    }
}

/// The width of the terminal that stdout is; none if it is none, or says that it has no width, as some do.
fn terminal_width() -> Option<usize> {
    Table::new().width().filter(|width| *width >= 40).map(|width| usize::from(width).min(WIDTH))
}

/// A name in lines of at most `room` characters, broken between its parts. A longer part is shortened.
fn broken(name: &str, room: usize) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for part in name.split_inclusive(['-', ' ', '/', '_']) {
        let size = part.chars().count();
        if length > 0 && length + size > room {
            text.push('\n');
            length = 0;
        }
        if size > room {
            text.extend(part.chars().take(room.saturating_sub(1)).chain(['…']));
        } else {
            text.push_str(part);
        }
        length += size;
    }
    text
}

/// A sentence in lines that the terminal does not break, each after `indent`.
pub(crate) fn wrapped(sentence: &str, indent: &str) -> String {
    wrapped_within(sentence, indent, terminal_width().unwrap_or(WIDTH))
}

fn wrapped_within(sentence: &str, indent: &str, width: usize) -> String {
    let (mut text, mut length) = (indent.to_owned(), indent.len());
    // A foreign word must not begin a line of its own.
    for word in sentence.split([' ', '\n', '\r']) {
        let size = word.chars().count();
        if length > indent.len() && length + size + 1 > width {
            text.push('\n');
            text.push_str(indent);
            length = indent.len();
        } else if length > indent.len() {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += size;
    }
    text
}

/// Foreign words as Markdown takes for words: on one line, neither a column nor a tag, code, link or picture.
pub(crate) fn escaped(cell: &str) -> String {
    let line = cell.replace("-\n", "").replace(['\n', '\r'], " ");
    let mut text = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '<' => text.push_str("&lt;"),
            '|' | '`' | '\\' => text.extend(['\\', c]),
            // Brackets are ours, around intervals; with a parenthesis they are a link.
            ']' if matches!(rest.peek(), Some('(' | '[' | ':')) => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_a_terminal() {
        let mut sheet = Sheet::new("t", &["method", "one", "two", "three", "four", "five"]);
        let figure = "96.9 % [96]\n1525/1573".to_owned();
        sheet.lines.push(Line::Cells("a-very-long-name-of-a-method-".repeat(4), vec![figure.clone(); 5]));
        sheet.lines.push(Line::Cells("x".repeat(120), vec![figure; 5]));
        sheet.notes.push("word ".repeat(60).trim_end().to_owned());
        for width in [40, 60, 80, WIDTH] {
            let text = sheet.text_within(width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            // Every figure of every column is there, and whole.
            assert_eq!(text.matches("96.9 % [96]").count(), 10, "{width}\n{text}");
            assert_eq!(text.matches("1525/1573").count(), 10, "{width}\n{text}");
        }
        assert_eq!(wrapped("one two", " "), " one two");
        assert_eq!(wrapped("PROBLEM  a\nResults: b", ""), "PROBLEM  a Results: b");
    }

    #[test]
    fn names_are_broken_between_their_parts_and_shortened_only_where_a_part_is_too_long() {
        assert_eq!(broken("claude-code-opus", 12), "claude-code-\nopus");
        assert_eq!(broken("vao/dashboard-threshold/m/1", 11), "vao/\ndashboard-\nthreshold/\nm/1");
        assert_eq!(broken("a-incomprehensibilities-b", 10), "a-\nincompreh…\nb");
        let mut sheet = Sheet { whole_names: true, words: 1, ..Sheet::new("", &["trial", "ending", "n"]) };
        sheet.lines.push(Line::Cells(
            "vao/dashboard-threshold/claude-code-sonnet/1".into(),
            vec!["completed".into(), "7".into()],
        ));
        assert!(
            sheet
                .text_within(usize::MAX)
                .contains("vao/dashboard-threshold/claude-code-sonnet/1 ┆ completed ┆ 7")
        );
        let narrow = sheet.text_within(40);
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 40) && narrow.contains("threshold/"),
            "{narrow}"
        );
    }

    #[test]
    fn foreign_words_are_neither_tags_nor_links() {
        for (foreign, harmless) in [
            ("<img src=x>", "&lt;img src=x>"),
            ("![x](http://h/p.png)", "![x\\](http://h/p.png)"),
            ("`rm`", "\\`rm\\`"),
            ("a\n# head", "a # head"),
            ("96.9 % [96.1, 97.2]", "96.9 % [96.1, 97.2]"),
        ] {
            assert_eq!(escaped(foreign), harmless);
        }
    }

    #[test]
    fn a_bar_in_a_cell_is_no_column() {
        let mut sheet = Sheet::new("t", &["a|b", "n"]);
        sheet.lines.push(Line::Section("s".into()));
        sheet.lines.push(Line::Cells("x".into(), vec!["1\n2".into()]));
        assert_eq!(sheet.markdown(), "### t\n\n| a\\|b | n |\n| :-- | --: |\n| **s** |  |\n| x | 1 2 |\n");
    }
}
