//! The sheet: one line for each mark, as CSV.

use std::collections::{BTreeMap, BTreeSet};

use proctor_store::Rating;

use super::{Key, KeyItem, PointVerdict, RatingVerdict, word};

const COLUMNS: [&str; 5] = ["item", "what", "kind", "mark", "note"];
const RATINGS: [&str; 2] = ["visual_quality", "domain_quality"];
/// A longer sheet is none, in bytes.
const LONGEST: usize = 64 << 20;
/// Longest note that is kept in a verdict, in characters; the sheet itself is kept whole.
const NOTE: usize = 4000;

/// What is wrong with a sheet: the first thing, and where it stands.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{column}: {problem}", column = column.map(|it| format!(", column `{it}`")).unwrap_or_default())]
pub struct SheetError {
    /// The line of the file, from 1.
    pub line: u64,
    /// The column, where it is one.
    pub column: Option<&'static str>,
    /// What.
    pub problem: String,
}

/// What a rater filled in, by item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub(super) items: BTreeMap<String, Marks>,
}

/// The marks of an item; points in the order of the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) points: Vec<PointVerdict>,
    pub(super) ratings: [RatingVerdict; 2],
}

/// The sheet with all its marks missing.
pub(super) fn empty(items: &[KeyItem]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory does not fail.
    let mut line = |cells: [&str; 5]| drop(writer.write_record(cells));
    line(COLUMNS);
    for it in items {
        for point in &it.points {
            line([&it.item, &point.id, word(point.kind), "", ""]);
        }
        for rating in RATINGS {
            line([&it.item, rating, "rating", "", ""]);
        }
    }
    writer.into_inner().unwrap_or_default()
}

impl Marks {
    fn none(item: &KeyItem) -> Self {
        let point = |it: &super::AskedPoint| PointVerdict {
            id: it.id.clone(),
            kind: it.kind,
            satisfied: None,
            note: String::new(),
        };
        Self { points: item.points.iter().map(point).collect(), ratings: Default::default() }
    }

    /// Marks that are missing.
    pub(super) fn missing(&self) -> usize {
        let points = self.points.iter().filter(|it| it.satisfied.is_none()).count();
        points + self.ratings.iter().filter(|it| it.rating.is_none()).count()
    }

    /// Whether the rater said nothing of the item at all.
    pub(super) fn is_empty(&self) -> bool {
        self.missing() == self.points.len() + RATINGS.len()
    }
}

impl Sheet {
    /// Reads a sheet that belongs to `key`. Lines may be in any order, and lines that are not there are marks that are
    /// missing. Commas or semicolons, since some spreadsheets write the latter.
    pub fn read(bytes: &[u8], key: &Key) -> Result<Self, SheetError> {
        let wrong = |line, column, problem: String| SheetError { line, column, problem };
        if bytes.len() > LONGEST {
            return Err(wrong(1, None, "the sheet is too long".to_owned()));
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|it| *it == b'\n').count() as u64;
            wrong(line, None, "it is not UTF-8; save the sheet as CSV in UTF-8".to_owned())
        })?;
        let head = text.lines().next().unwrap_or_default();
        let delimiter = if head.contains(';') && !head.contains(',') { b';' } else { b',' };
        if let Some(line) = open_quotation(text, char::from(delimiter)) {
            let problem = "a quotation mark opens here that nothing closes, or that is closed amid a cell";
            return Err(wrong(line, None, problem.to_owned()));
        }
        let mut reader =
            csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
        let heads = reader.headers().map_err(|error| wrong(1, None, error.to_string()))?.clone();
        let mut places = [0; 5];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            let found = heads.iter().position(|it| it.trim() == column);
            // Whoever has nothing to note may drop that column.
            let found = found.or((column == "note").then_some(usize::MAX));
            *place = found.ok_or_else(|| wrong(1, Some(column), "there is no such column".to_owned()))?;
        }
        let known: BTreeMap<&str, &KeyItem> = key.items.iter().map(|it| (it.item.as_str(), it)).collect();
        let mut sheet = Self::default();
        let mut seen = BTreeSet::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(1, csv::Position::line);
                wrong(line, None, error.to_string())
            })?;
            let line = record.position().map_or(1, csv::Position::line);
            let [item, what, kind, mark, note] = places.map(|it| record.get(it).unwrap_or_default().trim());
            if [item, what, kind, mark, note].iter().all(|it| it.is_empty()) {
                continue;
            }
            let asked = known.get(item).ok_or_else(|| {
                wrong(line, Some("item"), format!("{} is no item of this export", quoted(item)))
            })?;
            if !seen.insert((item.to_owned(), kind.to_owned(), what.to_owned())) {
                return Err(wrong(line, Some("what"), format!("{} stands here twice", quoted(what))));
            }
            let marks = sheet.items.entry(item.to_owned()).or_insert_with(|| Marks::none(asked));
            marks
                .set(what, kind, mark, note)
                .map_err(|(column, problem)| wrong(line, Some(column), problem))?;
        }
        Ok(sheet)
    }
}

impl Marks {
    fn set(&mut self, what: &str, kind: &str, mark: &str, note: &str) -> Result<(), (&'static str, String)> {
        let note: String = note.chars().take(NOTE).collect();
        if kind == "rating" {
            let at = RATINGS.iter().position(|it| *it == what);
            let place = at.and_then(|at| self.ratings.get_mut(at));
            let place = place.ok_or_else(|| ("what", format!("{} is no rating", quoted(what))))?;
            let rating = match mark {
                "" => None,
                mark => Some(mark.parse::<u8>().ok().and_then(|it| Rating::try_from(it).ok()).ok_or_else(
                    || ("mark", format!("{} is no rating: it is a whole number from 1 to 5", quoted(mark))),
                )?),
            };
            *place = RatingVerdict { rating, note };
            return Ok(());
        }
        let point = self.points.iter_mut().find(|it| it.id == what);
        let point = point.ok_or_else(|| ("what", format!("{} is no point of this item", quoted(what))))?;
        if word(point.kind) != kind {
            let problem = format!("{} is {}, not {}", quoted(what), word(point.kind), quoted(kind));
            return Err(("kind", problem));
        }
        point.satisfied = match mark.to_ascii_lowercase().as_str() {
            "" => None,
            "1" | "yes" | "true" => Some(true),
            "0" | "no" | "false" => Some(false),
            _ => return Err(("mark", format!("{} is no mark: 1 holds, 0 does not", quoted(mark)))),
        };
        point.note = note;
        Ok(())
    }
}

/// The line of the quotation mark that opens a cell and is not closed at the end of one. The reader of CSV takes such a cell
/// for all the rest of the sheet, or up to the next quotation mark, and the marks in there for a note.
fn open_quotation(text: &str, delimiter: char) -> Option<u64> {
    let mut line = 1;
    let mut opened = None;
    let mut at_start = true;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        line += u64::from(c == '\n');
        if opened.is_none() {
            opened = (c == '"' && at_start).then_some(line);
            at_start = c == delimiter || c == '\n' || c == '\r';
        } else if c == '"' && chars.next_if_eq(&'"').is_none() {
            if chars.peek().is_some_and(|it| *it != delimiter && *it != '\n' && *it != '\r') {
                return opened;
            }
            opened = None;
            at_start = false;
        }
    }
    opened
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("`{}`", shown.escape_debug())
}

#[cfg(test)]
mod tests {
    use proctor_store::PointKind;
    use proctor_traces::Digest;

    use super::*;
    use crate::human::AskedPoint;
    use crate::vision::VisionInputs;

    fn key() -> Key {
        let digest = Digest::of(b"");
        let inputs = VisionInputs {
            candidate: Some(digest),
            source: digest,
            reference: digest,
            instruction: digest,
            points: digest,
        };
        let item = |name: &str| KeyItem {
            item: name.into(),
            trial: "vao/t/m/1".parse().unwrap(),
            inputs: inputs.clone(),
            points: vec![
                AskedPoint { id: "d1".into(), kind: PointKind::Direct },
                AskedPoint { id: "v,1".into(), kind: PointKind::Derived },
            ],
        };
        let items = vec![item("item-001"), item("item-002")];
        Key { schema: Key::SCHEMA, export: "ab".into(), seed: 0, items, without_picture: Vec::new() }
    }

    #[test]
    fn an_empty_sheet_is_read_as_missing_marks_and_a_filled_one_as_marks() {
        let key = key();
        let text = String::from_utf8(empty(&key.items)).unwrap();
        assert_eq!(text.lines().count(), 1 + 2 * 4);
        let sheet = Sheet::read(text.as_bytes(), &key).unwrap();
        assert!(sheet.items.values().all(Marks::is_empty) && sheet.items["item-001"].missing() == 4);

        // As a spreadsheet may write it: a mark of the encoding, semicolons, other line ends, another order, less columns.
        let filled = "\u{feff}mark;item;kind;what\r\n1;item-002;direct;d1\r\nNo;item-002;derived;v,1\r\n5;item-002;rating;domain_quality\r\n;;;\r\n";
        let sheet = Sheet::read(filled.as_bytes(), &key).unwrap();
        let marks = &sheet.items["item-002"];
        assert_eq!(marks.points.iter().map(|it| it.satisfied).collect::<Vec<_>>(), [Some(true), Some(false)]);
        let ratings = marks.ratings.clone().map(|it| it.rating.map(Rating::get));
        assert_eq!((ratings, marks.missing(), sheet.items.len()), ([None, Some(5)], 1, 1));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let key = key();
        let head = "item,what,kind,mark,note\n";
        for (text, place, problem) in [
            ("item,what,mark\n".to_owned(), "line 1, column `kind`", "there is no such column"),
            (format!("{head}item-003,d1,direct,1,\n"), "line 2, column `item`", "`item-003` is no item"),
            (
                format!("{head}item-001,d1,direct,1,\nitem-001,d2,direct,1,\n"),
                "line 3, column `what`",
                "`d2` is no point",
            ),
            (
                format!("{head}item-001,d1,derived,1,\n"),
                "line 2, column `kind`",
                "`d1` is direct, not `derived`",
            ),
            (format!("{head}item-001,d1,direct,2,\n"), "line 2, column `mark`", "`2` is no mark"),
            (format!("{head}item-001,d1,direct,0.5,\n"), "line 2, column `mark`", "`0.5` is no mark"),
            (
                format!("{head}item-001,visual_quality,rating,6,\n"),
                "line 2, column `mark`",
                "`6` is no rating",
            ),
            (format!("{head}item-001,beauty,rating,3,\n"), "line 2, column `what`", "`beauty` is no rating"),
            // A note over two lines counts as two.
            (
                format!("{head}item-001,d1,direct,1,\"a\nb\"\nitem-001,d1,direct,1,\n"),
                "line 4, column `what`",
                "twice",
            ),
        ] {
            let error = Sheet::read(text.as_bytes(), &key).unwrap_err().to_string();
            assert!(error.starts_with(place) && error.contains(problem), "{text}: {error}");
        }
        let filled = "item-001,d1,direct,1,";
        for (note, rest) in [("\"open", ""), ("\"open", "item-002,d1,direct,1,\"a note\"\n"), ("\"a\" b", "")]
        {
            let text = format!("{head}\n{filled}{note}\n{}\n{rest}", filled.replace("001", "002"));
            let error = Sheet::read(text.as_bytes(), &key).unwrap_err();
            assert_eq!((error.line, error.problem.contains("quotation mark")), (3, true), "{text}: {error}");
        }
        let closed = format!("{head}{filled}\"a \"\"b\"\"\n; \"\r\nitem-002,d1,direct,0,5\" wide\n");
        assert_eq!(Sheet::read(closed.as_bytes(), &key).unwrap().items.len(), 2);
        let latin = [head.as_bytes(), b"item-001,d1,direct,1,caf\xe9\n"].concat();
        assert_eq!(Sheet::read(&latin, &key).unwrap_err().line, 2);
    }
}
