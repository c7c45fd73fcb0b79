//! A table before it has a form: for a terminal, or for Markdown.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, Table};

use crate::table::headed_table;

/// No table is wider than this, in characters.
const WIDTH: u16 = 100;

/// Names are broken after so many characters, at a hyphen.
const NAME: usize = 24;

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
        if table.width().is_none_or(|width| width > WIDTH) {
            table.set_width(WIDTH);
        }
        for line in &self.lines {
            match line {
                Line::Section(name) => {
                    let mut cells = vec![Cell::new(name)];
                    cells.resize(self.head.len(), Cell::new(""));
                    table.add_row(cells);
                }
                Line::Cells(name, figures) => {
                    let right = |it: &String| Cell::new(it).set_alignment(CellAlignment::Right);
                    let mut cells = vec![Cell::new(broken(name))];
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

/// A name in lines of bearable length.
fn broken(name: &str) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for part in name.split_inclusive(['-', ' ']) {
        let size = part.chars().count();
        if length > 0 && length + size > NAME {
            text.push('\n');
            length = 0;
        }
        text.push_str(part);
        length += size;
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
    cell.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_wider_than_a_terminal() {
        let mut sheet = Sheet::new("t", &["method", "one", "two", "three", "four", "five"]);
        let figure = "96.9 % [95.9–97.7]\n1525/1573".to_owned();
        sheet.lines.push(Line::Cells("a-very-long-name-of-a-method-".repeat(4), vec![figure; 5]));
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
