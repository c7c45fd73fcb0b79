//! What a call does to the files of the session, and what of it is a fact: the verbs that all readers of commands, scripts
//! and tools share.

use super::facts::{Fact, Facts};
use super::ledger::{Known, Ledger, Pictures, Text, extension, file_name, written_extension};
use super::prose;

/// A session while one of its calls is read.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) ledger: Ledger,
    pub(crate) facts: Facts,
    /// Working directory, as the ledger names it; empty in the workspace.
    pub(crate) cwd: String,
    /// Loops around what is read.
    pub(crate) loops: u32,
    /// What may still be looked at in this call.
    pub(crate) budget: u32,
    /// Files of which the artifact was made.
    pub(crate) became_artifact: Vec<String>,
    /// The call was refused or failed: files are as they were.
    pub(crate) in_vain: bool,
}

/// Where a text comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Made<'a> {
    /// The text, where it is known.
    pub(crate) content: Option<&'a str>,
    /// Whose text it was made of.
    pub(crate) from: Option<Text>,
    /// Whether it is that text, unchanged.
    pub(crate) verbatim: bool,
    /// Whether it is another one in each turn of a loop.
    pub(crate) varies: bool,
    /// Whether it is put behind what is there, or changes a part of it.
    pub(crate) amends: bool,
}

impl Scene {
    /// What is looked at in one call: steps of shells and scripts, and files.
    pub(crate) const BUDGET: u32 = 20_000;

    pub(crate) fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            facts: Facts::default(),
            cwd: String::new(),
            loops: 0,
            budget: Self::BUDGET,
            became_artifact: Vec::new(),
            in_vain: false,
        }
    }

    pub(crate) fn spend(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    /// Pays for work on that many bytes; whether there was enough.
    pub(crate) fn spend_on(&mut self, bytes: usize) -> bool {
        let steps = u32::try_from(bytes / 256).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(steps);
        self.budget > 0
    }

    pub(crate) fn note(&mut self, fact: Fact, evidence: &str) {
        self.facts.note(fact, evidence);
    }

    pub(crate) fn resolve(&self, path: &str) -> String {
        self.ledger.resolve(&self.cwd, path)
    }

    pub(crate) fn known(&self, path: &str) -> Option<Known> {
        self.ledger.get(&self.resolve(path))
    }

    /// What can be seen in a picture, by what made it, else by its name.
    pub(crate) fn pictures(&self, path: &str) -> Pictures {
        let path = self.resolve(path);
        match self.ledger.get(&path) {
            Some(known) => known.pictures,
            None if is_picture(&path) => by_name(&path),
            None => Pictures::NONE,
        }
    }

    /// Whose text a file holds, by what wrote it, else by its name.
    pub(crate) fn text(&self, path: &str) -> Option<Text> {
        let path = self.resolve(path);
        match self.ledger.get(&path) {
            Some(known) => known.text,
            None if is_task(&path) => Some(Text::Task),
            None => None,
        }
    }

    /// A picture, or a PDF, is put before the model.
    pub(crate) fn view(&mut self, path: &str) {
        let resolved = self.resolve(path);
        let known = self.ledger.get(&resolved);
        let exists = known.is_some();
        let mut seen = known.map_or(Pictures::NONE, |it| it.pictures);
        if seen.is_empty() {
            seen = by_name(&resolved);
        }
        if seen.is_empty() && !exists {
            seen = self.ledger.meant(&resolved).map_or(Pictures::NONE, |it| it.pictures);
            if seen.any(Pictures::ARTIFACT) {
                seen = Pictures::DRAFT;
            }
        }
        self.saw(seen, path);
    }

    /// Something is put before the model in which `seen` can be seen.
    pub(crate) fn saw(&mut self, seen: Pictures, path: &str) {
        if seen.any(Pictures::DIFFERENCE) && !seen.any(Pictures::TRIALS) {
            self.note(Fact::ViewedDifference, path);
        } else if seen.any(Pictures::ANSWER) {
            let fact =
                if seen.any(Pictures::ARTIFACT) { Fact::ViewedRender } else { Fact::ViewedDraftRender };
            self.note(fact, path);
        } else if seen.any(Pictures::TRIALS) {
            self.note(Fact::ViewedTrial, path);
        } else if seen.any(Pictures::SMOKE) {
            self.note(Fact::ViewedSmoke, path);
        } else if seen.any(Pictures::SOURCE) {
            self.note(Fact::ViewedSource, path);
        } else if seen.any(Pictures::SOURCE_PART) {
            self.note(Fact::ViewedSourcePart, path);
        } else if self.ledger.longest > 0 {
            // Nobody knows what it shows: after the first writing, most likely what was drawn.
            self.note(Fact::ViewedDraftRender, path);
        } else {
            self.note(Fact::ViewedSourcePart, path);
        }
    }

    /// The text of a file is shown.
    pub(crate) fn show(&mut self, text: Option<Text>, path: &str) {
        match text {
            Some(Text::Task) => self.note(Fact::ReadTask, path),
            Some(text) if text.is_answer() => self.note(Fact::ReadAnswer, path),
            _ => {}
        }
    }

    /// The text of the file at `path` is shown to the model.
    pub(crate) fn read(&mut self, path: &str) {
        let mut text = self.text(path);
        if text.is_none() && !is_picture(path) {
            let resolved = self.resolve(path);
            text = self.ledger.meant(&resolved).and_then(|it| it.text).filter(|it| it.is_answer());
        }
        self.show(text, path);
    }

    /// A file of text is written or changed; what it is now.
    pub(crate) fn write(&mut self, path: &str, made: &Made<'_>) -> Text {
        let resolved = self.resolve(path);
        let before = self.ledger.get(&resolved);
        let old = before.as_ref().and_then(|it| it.text);
        let text = self.kind(&resolved, old, made);
        match text {
            Text::Artifact => self.note(Fact::ChangedArtifact, path),
            Text::Draft => self.note(Fact::ChangedDraft, path),
            Text::Variant if self.loops > 0 => self.note(Fact::SweptValues, path),
            Text::Variant | Text::Trial => self.note(Fact::WroteTrial, path),
            Text::Smoke => self.note(Fact::SmokeTest, path),
            Text::Note => {
                if let Some(content) = made.content {
                    self.say(content);
                }
            }
            Text::Task | Text::Copy | Text::Script | Text::Other => {}
        }
        if !self.in_vain {
            let content = match (made.content, made.amends) {
                (Some(content), false) => Some(content.into()),
                (Some(more), true) => before.and_then(|it| it.content).map(|it| format!("{it}{more}").into()),
                (None, _) => None,
            };
            self.ledger.put(&resolved, Known { text: Some(text), pictures: Pictures::NONE, content });
        }
        text
    }

    fn kind(&self, path: &str, old: Option<Text>, made: &Made<'_>) -> Text {
        if self.ledger.is_artifact(path) {
            return Text::Artifact;
        }
        let becomes = self.ledger.drafts.contains(path);
        if let Some(from) = made.from {
            match from {
                Text::Artifact | Text::Copy if made.verbatim => return Text::Copy,
                Text::Artifact | Text::Copy | Text::Draft | Text::Variant => {
                    if !drawable(path, &self.ledger.artifact) {
                        return Text::Other;
                    }
                    let swept = self.loops > 0 && made.varies;
                    let aside = path.starts_with('/') && old.is_none_or(|it| !it.is_answer());
                    return if becomes {
                        Text::Draft
                    } else if made.verbatim {
                        from
                    } else if swept || self.loops > 0 || aside {
                        Text::Variant
                    } else {
                        Text::Draft
                    };
                }
                Text::Trial | Text::Smoke if drawable(path, &self.ledger.artifact) => return Text::Trial,
                _ => {}
            }
        }
        if made.amends {
            if let Some(old @ (Text::Draft | Text::Trial | Text::Smoke | Text::Variant)) = old {
                return old;
            }
            if old == Some(Text::Copy) {
                return if path.starts_with('/') { Text::Variant } else { Text::Draft };
            }
        }
        if is_prose(path) {
            return Text::Note;
        }
        if !drawable(path, &self.ledger.artifact) {
            return if matches!(
                &*extension(path),
                "py" | "sh" | "js" | "mjs" | "cjs" | "bash" | "pl" | "rb" | ""
            ) {
                Text::Script
            } else {
                Text::Other
            };
        }
        let content = made.content.unwrap_or_default();
        if extension(path) == "py" && !draws(content) && !content.is_empty() {
            return Text::Script;
        }
        if becomes || old.is_some_and(Text::is_answer) {
            return Text::Draft;
        }
        if self.loops > 0 && made.varies {
            return Text::Trial;
        }
        weigh(path, content, self.ledger.longest, &self.ledger.artifact)
    }

    /// The artifact is made of the file at `path`. Whether that was known to be a draft is what a second reading is for.
    pub(crate) fn becomes_artifact(&mut self, path: &str, text: Option<Text>) {
        if !path.is_empty() && matches!(text, Some(Text::Trial | Text::Variant | Text::Smoke)) {
            self.became_artifact.push(self.resolve(path));
        }
    }

    /// A text that is meant for the model itself or for another: notes, plans, prompts.
    pub(crate) fn say(&mut self, text: &str) {
        if let Some(words) = prose::scope(text) {
            self.note(Fact::StatedScope, words);
        }
        if let Some(words) = prose::geometry(text) {
            self.note(Fact::StatedGeometry, words);
        }
    }

    /// Something is printed for the model that no program computed. A line of it is no note, unless it says what stays.
    pub(crate) fn remark(&mut self, text: &str) {
        if text.len() < 4096 && text.split_whitespace().count() >= 8 && prose::stays(text) {
            self.say(text);
        }
    }

    /// A picture is written in which `shown` can be seen.
    pub(crate) fn draw(&mut self, path: &str, shown: Pictures) {
        let resolved = self.resolve(path);
        if !self.in_vain && !resolved.is_empty() {
            self.ledger.put(&resolved, Known { text: None, pictures: shown, content: None });
        }
    }

    /// A renderer is started on a text; what is to be seen in the picture. `options_vary` if a loop changes anything but
    /// where the picture goes.
    pub(crate) fn render(
        &mut self,
        text: Option<Text>,
        path: &str,
        options_vary: bool,
        with: &str,
    ) -> Pictures {
        let mut text = text.or_else(|| self.text(path));
        let mut meant = false;
        if text.is_none() || text == Some(Text::Other) || text == Some(Text::Script) {
            let resolved = self.resolve(path);
            if let Some(known) = self.ledger.meant(&resolved).and_then(|it| it.text) {
                text = Some(known);
                meant = true;
            } else if !path.is_empty() {
                text = Some(if resolved.starts_with('/') { Text::Trial } else { Text::Draft });
            }
        }
        let Some(text) = text else { return Pictures::NONE };
        let evidence = format!("{with} {path}");
        let sweeps = self.loops > 0 && options_vary;
        match text {
            Text::Artifact | Text::Copy if sweeps => {
                self.note(Fact::SweptValues, &evidence);
                self.note(Fact::RenderedInSweep, &evidence);
            }
            Text::Artifact | Text::Copy if meant => self.note(Fact::RenderedDraft, &evidence),
            Text::Artifact | Text::Copy => self.note(Fact::RenderedArtifact, &evidence),
            Text::Draft if sweeps => self.note(Fact::SweptValues, &evidence),
            Text::Draft => self.note(Fact::RenderedDraft, &evidence),
            Text::Variant if self.loops > 0 => self.note(Fact::SweptValues, &evidence),
            Text::Variant | Text::Trial => self.note(Fact::RanTrial, &evidence),
            Text::Smoke => self.note(Fact::SmokeTest, &evidence),
            Text::Task | Text::Note | Text::Script | Text::Other => return Pictures::NONE,
        }
        if meant { Pictures::DRAFT } else { text.render() }
    }

    /// Two pictures, or one that shows several things, are compared by number.
    pub(crate) fn compare(&mut self, sides: Pictures, evidence: &str) {
        self.note(Fact::ComparedPixels, evidence);
        if sides.any(Pictures::VARIANT) && self.loops > 0 {
            self.note(Fact::SweptValues, evidence);
        } else if sides.any(Pictures::TRIALS) {
            self.note(Fact::RanTrial, evidence);
        }
    }

    /// Several pictures are put into one; what it shows.
    pub(crate) fn join(&mut self, parts: &[Pictures], evidence: &str) -> Pictures {
        let all = parts.iter().fold(Pictures::NONE, |all, it| all | *it);
        if all.any(Pictures::ANSWER) && (all.sides() > 1 || parts.len() > 1) {
            self.note(Fact::JoinedPictures, evidence);
        } else if all.any(Pictures::TRIALS) {
            self.note(Fact::RanTrial, evidence);
        }
        all
    }
}

/// By a picture's name alone, for those of which nobody knows what made them.
fn by_name(path: &str) -> Pictures {
    let name = file_name(path).to_lowercase();
    let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
    let says = |words: &[&str]| words.iter().any(|it| stem.contains(it));
    if !is_picture(path) {
        Pictures::NONE
    } else if matches!(stem, "source" | "src" | "original" | "target" | "reference" | "ref") {
        Pictures::SOURCE
    } else if says(&["diff"]) {
        Pictures::DIFFERENCE
    } else if says(&["crop", "source", "region"]) {
        Pictures::SOURCE_PART
    } else if says(&[
        "preview", "render", "artifact", "output", "draft", "shot", "side", "both", "overlay", "montage",
        "compar",
    ]) {
        Pictures::DRAFT
    } else {
        Pictures::NONE
    }
}

/// Whether a path names a picture by its extension.
pub(crate) fn is_picture(path: &str) -> bool {
    const KINDS: [&str; 14] = [
        "png", "jpg", "jpeg", "gif", "webp", "bmp", "ppm", "pgm", "pnm", "tif", "tiff", "miff", "xwd", "apng",
    ];
    let extension = written_extension(path);
    KINDS.iter().any(|kind| extension.eq_ignore_ascii_case(kind))
}

fn is_task(path: &str) -> bool {
    let name = file_name(path).to_lowercase();
    matches!(name.split('.').next(), Some("task" | "instructions" | "prompt")) && !is_picture(path)
}

fn is_prose(path: &str) -> bool {
    let ext = extension(path);
    let name = file_name(path).to_lowercase();
    let named = ["note", "plan", "todo", "scope", "changes"].iter().any(|it| name.contains(it));
    matches!(&*ext, "md" | "txt" | "rst" | "org")
        || (named && matches!(&*ext, "" | "json" | "yaml" | "yml" | "log"))
}

/// Whether a renderer of the task's kind could draw it.
fn drawable(path: &str, artifact: &str) -> bool {
    let ext = extension(path);
    matches!(&*ext, "html" | "htm" | "xhtml" | "tex" | "ltx" | "dot" | "gv" | "svg" | "tikz" | "css")
        || ext == extension(artifact)
}

/// Whether a program in Python draws something.
pub(crate) fn draws(content: &str) -> bool {
    ["savefig", "plt.", "pyplot", "ImageDraw", "cairo", ".to_image(", "write_image(", "turtle"]
        .iter()
        .any(|it| content.contains(it))
}

/// Draft, calibration file or smoke test: a new file that could be drawn, weighed by its name, place, size and what is in it.
fn weigh(path: &str, content: &str, longest: usize, artifact: &str) -> Text {
    let lower = path.to_lowercase();
    let name = file_name(&lower);
    let has = |words: &[&str]| words.iter().any(|it| lower.contains(it));
    let mut draft = 0_i32;
    if has(&[
        "draft",
        "final",
        "artifact",
        "attempt",
        "candidate",
        "answer",
        "main.",
        "index.",
        "page",
        "work.",
        "version",
        "output.",
    ]) {
        draft += 2;
    }
    if has(&[
        "cal",
        "test",
        "probe",
        "trial",
        "try",
        "font",
        "sample",
        "minimal",
        "mwe",
        "metric",
        "size",
        "check",
        "experiment",
        "tune",
        "exp",
        "smoke",
        "hello",
    ]) {
        draft -= 2;
    }
    if path.starts_with('/') {
        draft -= 1;
    }
    if extension(path) != extension(artifact) {
        draft -= 1;
    }
    let size = content.len();
    draft += match (size, longest) {
        (0, _) => 0,
        (size, longest) if longest > 400 && size * 2 >= longest => 3,
        (size, 0) if size > 1500 => 4,
        (size, longest) if longest > 400 && size * 4 < longest => -2,
        (size, 0) if size > 700 => 2,
        (size, 0) if size < 400 => -2,
        _ => 0,
    };
    if draft >= 1 {
        return Text::Draft;
    }
    let trivial = size > 0
        && size < 260
        && !["font-family", "fontname", "fontsize", "\\large", "\\Large", "SCALE", "SIZE"]
            .iter()
            .any(|it| content.contains(it));
    let named = ["smoke", "hello", "mwe"].iter().any(|it| name.contains(it)) && size < 600;
    if trivial || named { Text::Smoke } else { Text::Trial }
}
