//! The explicit instruction of ablation C: the concise one, and behind it what a solver would have to find out.
//!
//! VAO-Bench, C.1: "Expanded instructions retain the original text and add content from `target_objects`, `expected_delta`, and
//! `required_synchronized_updates` …, and `synchronized_updates_applied` …. Rule-based extraction and deduplication retain target
//! objects, required changes, and linked updates while filtering preservation requirements, verification steps, and speculative
//! statements." The paper does not give the rules; these are ours (docs/vao-decisions.md, 24).

use crate::task::Task;

/// Words that make a sentence one about what must stay.
const PRESERVING: [&str; 15] = [
    "unchanged",
    "untouched",
    "unaffected",
    "preserve",
    "preserves",
    "preserved",
    "preserving",
    "keep",
    "keeps",
    "kept",
    "stay",
    "stays",
    "remain",
    "remains",
    "retain",
];

/// Words that make it one about a check.
const VERIFYING: [&str; 13] = [
    "verify",
    "verifies",
    "verified",
    "verification",
    "confirm",
    "confirms",
    "validate",
    "ensure",
    "ensures",
    "check",
    "checked",
    "inspect",
    "double-check",
];

/// Words that make it a guess.
const SPECULATING: [&str; 13] = [
    "may",
    "might",
    "could",
    "maybe",
    "perhaps",
    "possibly",
    "probably",
    "likely",
    "presumably",
    "optionally",
    "optional",
    "potentially",
    "apparently",
];

/// The same, in several words.
const PHRASES: [&str; 11] = [
    "make sure",
    "must not change",
    "should not change",
    "does not change",
    "do not change",
    "not be changed",
    "as it was",
    "as they were",
    "if needed",
    "if necessary",
    "if applicable",
];

/// The instruction of `task` with what follows from it spelled out.
pub fn explicit_instruction(task: &Task) -> String {
    let annotations = &task.hidden.annotations;
    let mut told = vec![normal(&task.solver.instruction)];
    let objects = new_ones(&annotations.target_objects, &mut told, false);
    let changes = new_ones(&annotations.expected_delta, &mut told, true);
    let linked =
        annotations.required_synchronized_updates.iter().chain(&annotations.synchronized_updates_applied);
    let linked = new_ones(linked, &mut told, true);
    let mut text = task.solver.instruction.trim().to_owned();
    for (head, entries) in
        [("Objects to edit:", objects), ("Required changes:", changes), ("Linked updates:", linked)]
    {
        if !entries.is_empty() {
            text.push_str("\n\n");
            text.push_str(head);
            for entry in entries {
                text.push_str("\n- ");
                text.push_str(&entry);
            }
        }
    }
    text
}

/// The entries that nothing told before says already; of those that are sentences, the sentences that are required changes.
fn new_ones<'a>(
    entries: impl IntoIterator<Item = &'a String>,
    told: &mut Vec<String>,
    are_sentences: bool,
) -> Vec<String> {
    let mut new = Vec::new();
    for entry in entries {
        let kept: Vec<&str> =
            sentences(entry).into_iter().filter(|it| !are_sentences || is_required(it)).collect();
        let (text, key) = (kept.join(" "), normal(&kept.join(" ")));
        if !key.is_empty() && !told.contains(&key) {
            told.push(key);
            new.push(text);
        }
    }
    new
}

/// An entry in its sentences. One ends with a mark that white space follows, and with a semicolon, behind which another
/// requirement may stand.
fn sentences(entry: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut previous) = (0, ' ');
    for (at, c) in entry.char_indices() {
        if c.is_whitespace() && matches!(previous, '.' | '!' | '?' | ';') {
            found.push(entry[start..at].trim());
            start = at;
        }
        previous = c;
    }
    found.push(entry[start..].trim());
    found.retain(|it| !it.is_empty());
    found
}

/// Whether a sentence is a change to be made: not what must stay, not a check, not a guess.
fn is_required(sentence: &str) -> bool {
    // The month is no guess.
    let is_month = |word: &str| word == "May";
    let words: Vec<String> = sentence
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .filter(|word| !word.is_empty() && !is_month(word))
        .map(str::to_lowercase)
        .collect();
    let says = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let text = format!(" {} ", words.join(" "));
    let phrased = PHRASES.iter().any(|phrase| text.contains(&format!(" {phrase} ")));
    !(phrased || says(&PRESERVING) || says(&VERIFYING) || says(&SPECULATING))
}

/// A text for comparison: case, white space and the mark at its end do not count.
fn normal(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ").trim_end_matches(['.', ';', '!']).to_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::fixture::Package;

    #[test]
    fn what_follows_is_spelled_out_once() {
        let text = explicit_instruction(&Package::new().load());
        assert_eq!(
            text,
            "Change the threshold from 80 to 90.\n\nObjects to edit:\n- the threshold\n\nRequired changes:\n\
             - The threshold reads 90 instead of 80.\n\nLinked updates:\n\
             - The count of warnings falls from two to one."
        );
    }

    #[test]
    fn what_stays_what_is_checked_and_what_is_guessed_is_left_out() {
        let package = Package::new();
        package.edit(
            "hidden/annotations.toml",
            "required_synchronized_updates = [\"The count of warnings falls from two to one.\"]",
            "required_synchronized_updates = [\"The bar of May grows. All other bars stay as they are.\", \
             \"Verify that the sum is right.\", \"The legend might need a new entry.\", \
             \"Make sure nothing overlaps.\", \"the bar of may grows\", \"The mean becomes 4.5;\", \
             \"Title and axes are unchanged; the note names May.\"]",
        );
        let text = explicit_instruction(&package.load());
        let linked: Vec<&str> = text.split("Linked updates:\n").nth(1).unwrap().lines().collect();
        assert_eq!(
            linked,
            [
                "- The bar of May grows.",
                "- The mean becomes 4.5;",
                "- the note names May.",
                "- The count of warnings falls from two to one."
            ]
        );
    }

    #[test]
    fn an_instruction_without_annotations_is_the_concise_one() {
        let package = Package::new();
        for list in [
            "target_objects = [\"the threshold\"]",
            "expected_delta = [\"The threshold reads 90 instead of 80.\"]",
            "synchronized_updates = [\"The count of warnings falls from two to one.\"]",
            "synchronized_updates_applied = [\"The count of warnings falls from two to one.\"]",
        ] {
            let name = list.split(" =").next().unwrap();
            package.edit("hidden/annotations.toml", list, &format!("{name} = []"));
        }
        assert_eq!(explicit_instruction(&package.load()), "Change the threshold from 80 to 90.");
    }
}
