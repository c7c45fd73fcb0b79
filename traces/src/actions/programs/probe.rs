//! Programs that look for tools, fonts and text.

use super::Words;
use crate::actions::facts::Fact;
use crate::actions::ledger::{Pictures, extension};
use crate::actions::scene::Scene;
use crate::actions::shell::Stream;

/// Reading text off pictures.
pub(super) fn ocr(scene: &mut Scene, words: &Words<'_>, stdin: &Stream) {
    scene.note(Fact::MeasuredText, &words.line());
    let picture = words.operands().next().map_or(Pictures::NONE, |it| scene.pictures(it)) | stdin.pictures;
    if picture.any(Pictures::TRIALS) {
        scene.note(Fact::RanTrial, &words.line());
    }
}

/// Words of a font package or font file.
const FONT_WORDS: [&str; 28] = [
    "lmodern",
    "lmroman",
    "lmsans",
    "lmmono",
    "lmr10",
    "fontspec",
    "helvet",
    "times.sty",
    "newtx",
    "mathptmx",
    "cmbright",
    "fontawesome",
    "sourcesans",
    "roboto",
    "opensans",
    "noto",
    "dejavu",
    "libertine",
    "libertinus",
    "tgheros",
    "tgtermes",
    "palatino",
    "courier",
    "cmr10",
    "txfonts",
    "pxfonts",
    "unicode-math",
    "firasans",
];

/// Whether a name is that of a font, or of a package that brings one.
pub(super) fn is_font(name: &str) -> bool {
    let lower = name.to_lowercase();
    matches!(&*extension(&lower), "ttf" | "otf" | "pfb" | "ttc" | "tfm" | "afm" | "fd" | "woff" | "woff2")
        || FONT_WORDS.iter().any(|it| lower.contains(it))
}

/// `X --version` and its like: what was asked.
pub(super) fn asked_for_version(name: &str, words: &Words<'_>) -> Option<String> {
    let mut rest = words.rest();
    let (first, more) = (rest.next()?, rest.next());
    let asks = matches!(first, "--version" | "-version" | "-V" | "--help" | "-help")
        || (matches!(first, "-v" | "version")
            && more.is_none()
            && !matches!(name, "grep" | "cat" | "sort" | "command"));
    let about_tools = !matches!(name, "git" | "bash" | "sh" | "ls" | "grep" | "sed" | "awk");
    (asks && about_tools).then(|| words.line())
}

/// The rest of the programs that count.
pub(super) fn other(scene: &mut Scene, name: &str, words: &Words<'_>) {
    let line = words.line();
    match name {
        "fc-list" | "fc-match" | "fc-query" | "fc-scan" | "fc-cache" | "fc-cat" | "otfinfo"
        | "luaotfload-tool" | "ttx" | "fonttools" | "pyftsubset" | "texfindpkg" => {
            scene.note(Fact::LookedForFonts, &line);
        }
        "pdffonts" => {
            scene.note(Fact::LookedForFonts, &line);
            if words.operands().any(|it| scene.pictures(it).any(Pictures::TRIALS)) {
                scene.note(Fact::RanTrial, &line);
            }
        }
        "kpsewhich" | "kpsepath" => {
            let mut any = false;
            for name in words.operands() {
                any = true;
                scene.note(if is_font(name) { Fact::LookedForFonts } else { Fact::CheckedTools }, &line);
            }
            if !any {
                scene.note(Fact::CheckedTools, &line);
            }
        }
        "which" | "type" | "whereis" | "hash" | "dpkg" | "dpkg-query" | "apt" | "apt-cache" | "tlmgr"
        | "pip" | "pip3" | "npm" | "conda" | "texdoc" | "texconfig" | "lsb_release" => {
            scene.note(Fact::CheckedTools, &line);
        }
        "find" | "locate" | "fd" | "mdfind" => {
            let lower = line.to_lowercase();
            if lower.contains("font")
                || lower.contains(".ttf")
                || lower.contains(".otf")
                || words.rest().any(is_font)
            {
                scene.note(Fact::LookedForFonts, &line);
            } else if lower.contains("texmf")
                || lower.contains(".sty")
                || lower.contains("chrom")
                || lower.contains("site-packages")
            {
                scene.note(Fact::CheckedTools, &line);
            }
        }
        "pdftotext" | "pdftohtml" | "pdf2txt.py" | "mutool" => {
            let seen = words.operands().map(|it| scene.pictures(it)).fold(Pictures::NONE, |all, it| all | it);
            if words.rest().any(|it| it.starts_with("-bbox") || it == "-tsv" || it == "-xml")
                || words.has("stext")
            {
                scene.note(Fact::MeasuredText, &line);
            } else if seen.any(Pictures::ANSWER) && name != "mutool" {
                scene.note(Fact::ReadAnswer, &line);
            }
            if seen.any(Pictures::TRIALS) {
                scene.note(Fact::RanTrial, &line);
            }
        }
        "chktex" | "lacheck" | "htmlhint" | "html-validate" | "vnu" | "gvpr" | "acyclic" | "nop"
        | "ccomps" | "gc" | "stylelint"
            if words
                .operands()
                .any(|it| scene.text(it).is_some_and(crate::actions::ledger::Text::is_answer)) =>
        {
            scene.note(Fact::CheckedAnswer, &line);
        }
        _ => {}
    }
}
