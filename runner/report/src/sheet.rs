//! A table before it has a form: for a terminal, or for Markdown.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};

use crate::table::headed_table;

/// No table is wider than this, in characters.
const WIDTH: u16 = 100;

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

    /// As a terminal shows it.
    pub fn text(&self) -> String {
        let head: Vec<&str> = self.head.iter().map(String::as_str).collect();
        let mut table: Table = headed_table(&head);
        let room = self.room();
        if table.width().is_none_or(|width| width >= WIDTH) {
            // The names make room for the figures; nothing else is ever broken.
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        for line in &self.lines {
            match line {
                Line::Section(name) => {
                    let mut cells = vec![Cell::new(broken(name, room))];
                    cells.resize(self.head.len(), Cell::new(""));
                    table.add_row(cells);
                }
                Line::Cells(name, figures) => {
                    let right = |it: &String| Cell::new(it).set_alignment(CellAlignment::Right);
                    let mut cells = vec![Cell::new(broken(name, room))];
                    cells.extend(figures.iter().map(right));
                    table.add_row(cells);
                }
            }
        }
        let mut text = format!("{}\n{table}", self.title);
        for note in &self.notes {
            text.push('\n');
            text.push_str(&wrapped(note, "  "));
        }
        text
    }

    /// Characters that are left for the names when all figures have theirs.
    fn room(&self) -> usize {
        let wide = |cell: &str| cell.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let mut widths: Vec<usize> = self.head.iter().map(|it| wide(it)).collect();
        for line in &self.lines {
            let Line::Cells(_, figures) = line else { continue };
            for (width, cell) in widths.iter_mut().skip(1).zip(figures) {
                *width = (*width).max(wide(cell));
            }
        }
        // Each column has a space on either side and a rule; the last rule is one more.
        let figures: usize = widths.iter().skip(1).map(|width| width + 3).sum();
        usize::from(WIDTH).saturating_sub(figures + 4).clamp(NAME.0, NAME.1)
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|it| escaped(it)).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<String> =
            (0..self.head.len()).map(|at| if at == 0 { ":--" } else { "--:" }.to_owned()).collect();
        let mut text = format!("### {}\n\n{}| {} |\n", self.title, row(&self.head), rule.join(" | "));
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

/// A name in lines of at most `room` characters: broken behind a hyphen, or where it must be.
fn broken(name: &str, room: usize) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for part in name.split_inclusive(['-', ' ', '/', '_']) {
        let size = part.chars().count();
        if length > 0 && length + size > room {
            text.push('\n');
            length = 0;
        }
        for c in part.chars() {
            if length >= room {
                text.push('\n');
                length = 0;
            }
            text.push(c);
            length += 1;
        }
    }
    text
}

/// A sentence in lines that a terminal of the common width does not break, each after `indent`.
pub(crate) fn wrapped(sentence: &str, indent: &str) -> String {
    let (mut text, mut length) = (indent.to_owned(), indent.len());
    for word in sentence.split(' ') {
        let size = word.chars().count();
        if length > indent.len() && length + size + 1 > usize::from(WIDTH) {
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

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace("-\n", "").replace('\n', " ")
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
        let text = sheet.text();
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
        assert_eq!(wrapped("one two", " "), " one two");
    }

    #[test]
    fn a_bar_in_a_cell_is_no_column() {
        let mut sheet = Sheet::new("t", &["a|b", "n"]);
        sheet.lines.push(Line::Section("s".into()));
        sheet.lines.push(Line::Cells("x".into(), vec!["1\n2".into()]));
        assert_eq!(sheet.markdown(), "### t\n\n| a\\|b | n |\n| :-- | --: |\n| **s** |  |\n| x | 1 2 |\n");
    }
}
