//! Notes, plans and prompts: whether they say what changes or stays, and whether they write down geometry.

use super::facts::Fact;

/// Longest text that is looked at.
const CAP: usize = 32 << 10;

const STAYS: [&str; 26] = [
    "must stay",
    "stays",
    "stay the same",
    "stay where",
    "stay as",
    "to keep",
    "keep:",
    "keep ",
    "keeps ",
    "unchanged",
    "preserve",
    "untouched",
    "do not change",
    "don't change",
    "not to change",
    "must not change",
    "does not change",
    "remain",
    "as it is",
    "as is",
    "left alone",
    "leave alone",
    "same as before",
    "nothing else",
    "no other change",
    "identical to the source",
];

const CHANGES: [&str; 22] = [
    "changes:",
    "change:",
    "to change",
    "must change",
    "what changes",
    "changed:",
    "changes ",
    "only the ",
    "becomes",
    "become ",
    "needs to be",
    "has to change",
    "should change",
    "affected",
    "the edit:",
    "requested edit",
    "edit:",
    "scope",
    "follows from",
    "consequence",
    "must now",
    "update:",
];

/// The words that say what changes or what stays; none in a bare list of steps.
pub(crate) fn scope(text: &str) -> Option<&str> {
    let text = cut(text);
    let lower = text.to_lowercase();
    let stays = STAYS.iter().find_map(|it| lower.find(it));
    let changes = CHANGES.iter().find_map(|it| lower.find(it)).or_else(|| value_change(&lower));
    let at = changes.into_iter().chain(stays).min()?;
    // A list of steps may have the word in passing.
    let firm = stays.is_some()
        || value_change(&lower).is_some()
        || ["must change", "to change", "changes", "change:", "only the", "scope"]
            .iter()
            .any(|it| lower.contains(it));
    firm.then(|| text.get(at..).unwrap_or(text))
}

/// Whether a text says what stays.
pub(crate) fn stays(text: &str) -> bool {
    let lower = cut(text).to_lowercase();
    STAYS.iter().any(|it| lower.contains(it))
}

/// `80 -> 90`, `from 80 to 90`: a value that gives way to another.
fn value_change(lower: &str) -> Option<usize> {
    let arrows = ["->", "→", "=>"];
    for arrow in arrows {
        if let Some(at) = lower.find(arrow) {
            if lower.contains("chang")
                || lower.contains("edit")
                || lower.contains("rename")
                || lower.contains("replace")
            {
                return Some(at);
            }
        }
    }
    let at = lower.find("from ")?;
    let rest: String = lower.get(at..)?.chars().take(60).collect();
    (rest.contains(" to ")
        && (lower.contains("chang") || lower.contains("rename") || lower.contains("update")))
    .then_some(at)
}

const PLACES: [&str; 34] = [
    " px",
    "px ",
    "px,",
    "px.",
    "pitch",
    "spacing",
    "padding",
    "margin",
    "coordinate",
    "x=",
    "y=",
    "geometry",
    "row height",
    "radius",
    "gap ",
    "gap:",
    "wide",
    "connects",
    "connected",
    "connection",
    "edges:",
    "nodes:",
    "junction",
    "adjacency",
    "axis:",
    "axes",
    "per unit",
    "slope",
    "baseline",
    "column",
    "positions",
    "layout:",
    "bbox",
    "grid",
];

/// The words that write down where things are or what they are connected with.
pub(crate) fn geometry(text: &str) -> Option<&str> {
    let text = cut(text);
    let lower = text.to_lowercase();
    let numbers = lower.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty()).take(4).count();
    let hits: Vec<usize> = PLACES.iter().filter_map(|it| lower.find(it)).collect();
    let pairs = pairs(&lower);
    let wires = ["wire", "edge", "node", "gate", "connect"].iter().any(|it| lower.contains(it))
        && lower.contains("->");
    let enough = (hits.len() >= 2 && numbers >= 3) || pairs >= 3 || (wires && !hits.is_empty());
    let at = hits.into_iter().min().unwrap_or(0);
    enough.then(|| text.get(at..).unwrap_or(text))
}

/// Pairs of numbers such as `(3, 4)`.
fn pairs(lower: &str) -> usize {
    let is_pair = |inner: &str| {
        let mut parts = inner.split(',');
        let number = |it: Option<&str>| {
            it.is_some_and(|it| {
                !it.trim().is_empty()
                    && it.trim().bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-')
            })
        };
        number(parts.next()) && number(parts.next())
    };
    lower
        .split('(')
        .skip(1)
        .filter_map(|it| it.split(')').next())
        .filter(|it| it.len() < 24 && is_pair(it))
        .take(4)
        .count()
}

fn cut(text: &str) -> &str {
    if text.len() <= CAP {
        return text;
    }
    let mut end = CAP;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a prompt hands over to another, sentence by sentence: which work, on what.
pub(crate) fn handed_over(text: &str) -> Vec<(Fact, &str)> {
    const WORK: [&str; 20] = [
        "measure",
        "extract",
        "list",
        "report",
        "find",
        "determine",
        "locate",
        "work out",
        "read off",
        "trace",
        "identify",
        "analyse",
        "analyze",
        "map",
        "get",
        "give",
        "tell",
        "describe",
        "which",
        "return",
    ];
    const OBJECTS: [(&str, Fact); 34] = [
        ("connection", Fact::FoundStructure),
        ("wire", Fact::FoundStructure),
        ("nodes", Fact::FoundStructure),
        ("edges", Fact::FoundStructure),
        ("arrows", Fact::FoundStructure),
        ("layout", Fact::FoundStructure),
        ("structure", Fact::FoundStructure),
        ("values of", Fact::FoundStructure),
        ("data values", Fact::FoundStructure),
        ("data points", Fact::FoundStructure),
        ("bar heights", Fact::FoundStructure),
        ("spacing", Fact::FoundStructure),
        ("grid", Fact::FoundStructure),
        ("coordinates", Fact::FoundStructure),
        ("components", Fact::FoundStructure),
        ("hex", Fact::SampledPixels),
        ("rgb", Fact::SampledPixels),
        ("colours", Fact::SampledPixels),
        ("colors", Fact::SampledPixels),
        ("pixel values", Fact::SampledPixels),
        ("palette", Fact::SampledPixels),
        ("ocr", Fact::MeasuredText),
        ("text box", Fact::MeasuredText),
        ("bounding boxes of the text", Fact::MeasuredText),
        ("text widths", Fact::MeasuredText),
        ("font size", Fact::MeasuredText),
        ("all text", Fact::MeasuredText),
        ("which font", Fact::LookedForFonts),
        ("the font", Fact::LookedForFonts),
        ("fonts", Fact::LookedForFonts),
        ("installed", Fact::CheckedTools),
        ("differences between", Fact::ComparedPixels),
        ("pixel difference", Fact::ComparedPixels),
        ("rmse", Fact::ComparedPixels),
    ];
    const DONE: [(&str, &str, Fact); 7] = [
        ("compare", "pixel", Fact::ComparedPixels),
        ("compare", "number", Fact::ComparedPixels),
        ("compare", "preview", Fact::ViewedDraftRender),
        ("compare", "render", Fact::ViewedDraftRender),
        ("review", "artifact.", Fact::ReadAnswer),
        ("proofread", "artifact.", Fact::ReadAnswer),
        ("check", "artifact.", Fact::ReadAnswer),
    ];
    let mut all = Vec::new();
    let sentences = cut(text).split_inclusive(['\n', ';', '?']).flat_map(|it| it.split_inclusive(". "));
    for sentence in sentences.filter(|it| it.len() > 8).take(200) {
        let lower = sentence.trim().to_lowercase();
        if ["do not", "don't", "never", "no need"].iter().any(|it| lower.starts_with(it)) {
            continue;
        }
        if WORK.iter().any(|it| contains_words(&lower, it)) {
            all.extend(
                OBJECTS
                    .iter()
                    .filter(|(object, _)| lower.contains(object))
                    .map(|(_, fact)| (*fact, sentence)),
            );
        }
        let done = DONE.iter().find(|(work, on, _)| contains_words(&lower, work) && lower.contains(on));
        all.extend(done.map(|(_, _, fact)| (*fact, sentence)));
    }
    // Places of what is to be found structure for are no colours.
    let structure = all.iter().any(|(fact, _)| *fact == Fact::FoundStructure);
    all.retain(|(fact, words)| !(structure && *fact == Fact::MeasuredText && words.contains("coordinates")));
    all
}

/// Whether `words` stand in `text` and not inside other words.
fn contains_words(text: &str, words: &str) -> bool {
    text.match_indices(words).take(64).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}
