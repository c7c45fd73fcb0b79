//! What a program did, all in all: from single deeds to facts.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::calls::Deed;
use super::value::Val;
use crate::actions::facts::Fact;
use crate::actions::ledger::{Pictures, Text};
use crate::actions::scene::Scene;
use crate::actions::shell::Stream;

/// What was met in a program.
#[derive(Default)]
pub(super) struct Tally {
    deeds: BTreeMap<Deed, Pictures>,
    pics: Pictures,
    /// Strings and comments of the program.
    pub(super) words: String,
    /// What was set against each other.
    pub(super) compared: Pictures,
    pub(super) plotted: Pictures,
    pub(super) printed_pics: Pictures,
    pub(super) printed_pixels: bool,
    pub(super) prints: u32,
    pub(super) imports: u32,
    pub(super) versions: u32,
    pub(super) calls: u32,
    pub(super) asserts: bool,
    pub(super) divides: bool,
    pub(super) indexed: bool,
    pub(super) cut: bool,
    pub(super) drew: bool,
    pub(super) seeded: bool,
    pub(super) commands: bool,
    pub(super) swept_command: bool,
    pub(super) wrote: bool,
    pub(super) wrote_answer: bool,
    pub(super) ran_answer: bool,
    pub(super) shot: bool,
    /// Distances between places, and how many of them only mark edges.
    pub(super) gaps: u32,
    pub(super) edges: u32,
    /// Pictures that it names, whatever it does with them.
    pub(super) touched: Pictures,
    pub(super) page: Option<String>,
    pub(super) page_text: Option<Text>,
    read_answer: Option<String>,
    read_task: Option<String>,
}

/// Words to look for; looking for all of them takes less long than preparing to look for one.
type Words<const N: usize> = LazyLock<[Finder<'static>; N]>;

fn words<const N: usize>(words: [&'static str; N]) -> [Finder<'static>; N] {
    words.map(Finder::new)
}

/// Words for what text leaves on a picture.
static TEXT_WORDS: Words<16> = Words::new(|| {
    words([
        "ink",
        "baseline",
        "cap height",
        "cap-height",
        "x-height",
        "glyph",
        "text",
        "label",
        "title",
        "caption",
        "letter",
        "word",
        "heading",
        "font size",
        "fontsize",
        "tick label",
    ])
});

/// Words for what is derived and no longer read off.
static STRUCTURE_WORDS: Words<21> = Words::new(|| {
    words([
        "slope",
        "gap",
        "pitch",
        "spacing",
        "edge list",
        "wire",
        "connect",
        "component",
        "bar height",
        "segment",
        "radius",
        "per px",
        "px per",
        "px/unit",
        "angle",
        "junction",
        "intersect",
        "adjacency",
        "column width",
        "row height",
        "node ",
    ])
});

/// Words that are those of derived data only where something is divided by what was measured.
static DATA_WORDS: Words<12> = Words::new(|| {
    words([
        "value",
        "unit",
        "percent",
        "%",
        "scale",
        "data",
        "ratio",
        "grid",
        "coordinate",
        "height",
        "width",
        "centre",
    ])
});

impl Tally {
    /// A call was met that does something with what went into it.
    pub(super) fn deed(&mut self, deed: Deed, val: &Val) {
        self.pics |= val.pics;
        let about_difference = val.diff && matches!(deed, Deed::Structure | Deed::Places | Deed::Pixels);
        if !about_difference {
            *self.deeds.entry(deed).or_default() |= val.pics;
        }
    }

    pub(super) fn read(&mut self, text: Option<Text>, path: &str) {
        match text {
            Some(Text::Task) => self.read_task = Some(path.to_owned()),
            Some(text) if text.is_answer() => self.read_answer = Some(path.to_owned()),
            _ => {}
        }
    }

    fn did(&self, deed: Deed) -> bool {
        self.deeds.contains_key(&deed)
    }

    /// Whether a deed was done to the source; to whatever the program looks at, if that is not known.
    fn to_source(&self, deed: Deed, all: Pictures) -> bool {
        match self.deeds.get(&deed) {
            Some(pics) if pics.is_empty() => all.any(Pictures::ANY_SOURCE) && !all.any(Pictures::RENDERS),
            Some(pics) => pics.any(Pictures::ANY_SOURCE) && self.compared.is_empty(),
            None => false,
        }
    }

    /// The facts of the program.
    pub(super) fn judge(mut self, scene: &mut Scene, code: &str) -> Stream {
        let first = code.lines().map(str::trim).find(|it| {
            !it.is_empty() && !it.starts_with("import") && !it.starts_with("from") && !it.starts_with('#')
        });
        let why = format!("python: {}", first.unwrap_or_default());
        self.pics |= self.printed_pics | self.compared | self.plotted;
        let pics = if self.pics.is_empty() { mentioned(scene, code) } else { self.pics };
        let lower = self.words.to_lowercase();
        if !self.compared.is_empty() {
            scene.compare(self.compared, &why);
        }
        if self.cut {
            scene.note(Fact::CutSource, &why);
        }
        self.measure(scene, pics, &lower, &why);
        self.fonts(scene, &why);
        if let Some(path) = &self.read_task {
            if self.prints > 0 {
                scene.note(Fact::ReadTask, path);
            }
        }
        let swept = self.seeded && (!self.compared.is_empty() || pics.any(Pictures::ANY_SOURCE))
            || self.did(Deed::Search)
            || self.swept_command;
        if swept {
            scene.note(Fact::SweptValues, &why);
        }
        if let Some(path) = &self.read_answer {
            let only_read =
                !self.wrote && !self.commands && !self.ran_answer && !scene.facts.has(Fact::SweptValues);
            if only_read || (self.did(Deed::Check) && !self.wrote_answer) {
                scene.note(Fact::CheckedAnswer, path);
            }
        }
        if self.drew && !self.wrote_answer && !self.ran_answer {
            scene.note(Fact::RanTrial, &why);
        }
        self.probes(scene, code, &why);
        Stream::default()
    }

    fn measure(&self, scene: &mut Scene, pics: Pictures, lower: &str, why: &str) {
        let from_source = pics.any(Pictures::ANY_SOURCE);
        let compares = !self.compared.is_empty();
        let said = says(lower, &*STRUCTURE_WORDS) || (self.divides && says(lower, &*DATA_WORDS));
        let structure_said = said && (self.divides || self.indexed) || self.gaps > self.edges;
        let places = self.did(Deed::Places);
        let text_said = says(lower, &*TEXT_WORDS);
        let structure = self.to_source(Deed::Structure, pics)
            || (structure_said
                && from_source
                && !compares
                && !pics.any(Pictures::RENDERS)
                && self.prints > 0);
        let ink = places && text_said && !pics.is_empty() && !compares && !self.did(Deed::Structure);
        let extents = self.did(Deed::Ocr)
            || self.did(Deed::TextExtent)
            || (self.did(Deed::Font) && places)
            || self.page_measured(scene);
        if ink || extents {
            scene.note(Fact::MeasuredText, why);
            if pics.any(Pictures::TRIALS) {
                scene.note(Fact::RanTrial, why);
            }
        }
        if structure && (!ink || self.did(Deed::Structure)) {
            scene.note(Fact::FoundStructure, why);
        }
        let raw = self.to_source(Deed::Pixels, pics) || (self.printed_pixels && from_source && !compares);
        let positions = places && self.to_source(Deed::Places, pics) && !structure && !ink;
        let rest = from_source
            && !compares
            && !structure
            && !ink
            && !extents
            && !self.cut
            && self.indexed
            && self.prints > 0
            && !pics.any(Pictures::RENDERS);
        if raw || positions || rest {
            scene.note(Fact::SampledPixels, why);
        }
        let trials = pics.any(Pictures::TRIALS) && (self.prints > 0 || self.indexed) && !compares;
        if trials {
            scene.note(Fact::RanTrial, why);
        }
    }

    fn fonts(&self, scene: &mut Scene, why: &str) {
        if self.did(Deed::Font) {
            scene.note(Fact::LookedForFonts, why);
            if self.drew {
                scene.note(Fact::WroteTrial, why);
            }
        }
    }

    /// A page is asked for the extents of what is on it; if it is the answer and not asked for that, it is checked.
    fn page_measured(&self, scene: &mut Scene) -> bool {
        let Some(page) = &self.page else { return false };
        let text = self.page_text.or_else(|| scene.text(page));
        let measures = ["getBoundingClientRect", "bounding_box", "offsetWidth", "measureText", "getBBox"]
            .iter()
            .any(|it| self.words.contains(it));
        if !measures && !self.shot && text.is_some_and(Text::is_answer) {
            scene.note(Fact::CheckedAnswer, page);
        }
        measures
    }

    /// A program that only asks what can be imported.
    fn probes(&self, scene: &mut Scene, code: &str, why: &str) {
        let looks = self.versions > 0 || self.did(Deed::Module) || self.calls <= self.prints + 1;
        let only = self.imports > 0
            && looks
            && self.pics.is_empty()
            && self.touched.is_empty()
            && !self.wrote
            && !self.commands
            && !self.drew;
        let computes = code.contains(" = ") && self.versions == 0 && !self.did(Deed::Module);
        let tools = [
            "PIL",
            "numpy",
            "cv2",
            "scipy",
            "skimage",
            "matplotlib",
            "playwright",
            "cairosvg",
            "pytesseract",
            "fontTools",
            "networkx",
            "pandas",
            "weasyprint",
            "selenium",
            "graphviz",
        ];
        let imports_tools = tools.iter().any(|it| code.contains(it)) || self.did(Deed::Module);
        if only && imports_tools && !computes && self.read_answer.is_none() && !self.did(Deed::Font) {
            scene.note(Fact::CheckedTools, why);
        }
    }
}

/// Whether one of these stands at the beginning of a word.
fn says(lower: &str, words: &[Finder<'_>]) -> bool {
    words.iter().any(|it| {
        it.find_iter(lower.as_bytes())
            .take(32)
            .any(|at| !lower[..at].chars().next_back().is_some_and(char::is_alphabetic))
    })
}

/// Pictures that are named anywhere in a program.
fn mentioned(scene: &Scene, code: &str) -> Pictures {
    crate::actions::programs::quoted(code)
        .iter()
        .take(64)
        .fold(Pictures::NONE, |all, it| all | scene.pictures(it))
}
