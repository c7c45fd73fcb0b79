//! `ImageMagick` and other programs that take pictures and give pictures or numbers.

use super::Arg;
use crate::actions::facts::Fact;
use crate::actions::ledger::{Pictures, extension, globbing};
use crate::actions::scene::{Scene, is_picture};
use crate::actions::shell::Stream;

/// A picture among the words of a command.
struct Input {
    pictures: Pictures,
    /// Whether a region was cut of it, before or after it was read.
    cut: bool,
}

/// Runs one of them.
pub(super) fn run(scene: &mut Scene, name: &str, argv: &[Arg], stdin: &Stream) -> Stream {
    let line = line(argv);
    let (name, argv) = match (name, argv.get(1).map(|it| it.text.as_str())) {
        (
            "magick" | "gm",
            Some(tool @ ("convert" | "compare" | "montage" | "composite" | "identify" | "mogrify")),
        ) => (tool.to_owned(), &argv[1..]),
        ("magick" | "gm" | "convert-im6.q16", _) => ("convert".to_owned(), argv),
        (name, _) => (name.to_owned(), argv),
    };
    let words: Vec<&str> = argv.iter().skip(1).map(|it| it.text.as_str()).collect();
    if words.is_empty() {
        return Stream::default();
    }
    if let Some(list) = words.windows(2).find(|it| it[0] == "-list") {
        let fonts = list[1].eq_ignore_ascii_case("font");
        scene.note(if fonts { Fact::LookedForFonts } else { Fact::CheckedTools }, &line);
        return Stream::default();
    }
    let writes = !matches!(name.as_str(), "identify" | "perceptualdiff" | "dssim" | "butteraugli");
    let output = match (writes, name.as_str()) {
        (false, _) | (_, "mogrify") => None,
        (true, "ffmpeg") => words.last().copied(),
        (true, _) => {
            words.last().copied().filter(|it| !it.starts_with('-') || it.ends_with(":-") || *it == "-")
        }
    };
    // `png:path` names the form and then the file.
    let output = output.map(|it| {
        it.split_once(':')
            .filter(|(form, path)| form.len() < 6 && !path.is_empty() && *path != "-" && is_picture(path))
            .map_or(it, |(_, path)| path)
    });
    let inputs = inputs(scene, &words, output, stdin);
    let all = inputs.iter().fold(Pictures::NONE, |all, it| all | it.pictures);
    let measure = Measure::of(&words, output);
    if matches!(
        name.as_str(),
        "compare" | "perceptualdiff" | "odiff" | "pixelmatch" | "dssim" | "butteraugli"
    ) {
        return compare(scene, &inputs, output, &line);
    }
    let subtracts = words.iter().any(|it| {
        let it = it.to_lowercase();
        matches!(
            it.as_str(),
            "difference"
                | "minussrc"
                | "minusdst"
                | "subtract"
                | "minus"
                | "exclusion"
                | "changemask"
                | "-metric"
        )
    });
    if subtracts && inputs.len() > 1 {
        scene.compare(all, &line);
        if let Some(path) = output.filter(|it| is_file(it)) {
            scene.draw(path, all | Pictures::DIFFERENCE);
        }
        return Stream { pictures: all | Pictures::DIFFERENCE, ..Stream::default() };
    }
    measure.note(scene, all, inputs.iter().any(|it| it.cut), &line);
    let makes_picture = output.is_some_and(|it| is_file(it) || it == "-" || it.ends_with(":-"));
    if name == "identify" || (!makes_picture && name != "mogrify") {
        return Stream::default();
    }
    // What is only handed on is no picture that anybody could open.
    let kept = name == "mogrify" || output.is_some_and(is_file);
    let cut = inputs
        .iter()
        .any(|it| it.cut && it.pictures.any(Pictures::ANY_SOURCE) && !it.pictures.any(Pictures::RENDERS));
    if cut && kept {
        scene.note(Fact::CutSource, &line);
    }
    let shown: Vec<Pictures> =
        inputs.iter().map(|it| if it.cut { it.pictures.part() } else { it.pictures }).collect();
    let made = match shown.as_slice() {
        [] => Pictures::NONE,
        [one] => {
            if one.any(Pictures::TRIALS) && !one.any(Pictures::ANSWER) {
                scene.note(Fact::RanTrial, &line);
            }
            let from_pdf = words.iter().any(|it| extension(it.split('[').next().unwrap_or(it)) == "pdf");
            if from_pdf && one.any(Pictures::ANSWER) {
                scene.note(Fact::RenderedDraft, &line);
            }
            *one
        }
        many => scene.join(many, &line),
    };
    if name == "mogrify" {
        for word in words.iter().filter(|it| is_picture(it)) {
            scene.draw(word, made);
        }
        return Stream::default();
    }
    if let Some(path) = output.filter(|it| is_file(it)) {
        scene.draw(path, made);
        return Stream::default();
    }
    Stream { pictures: made, ..Stream::default() }
}

/// What numbers are asked for.
#[derive(Default)]
struct Measure {
    pixels: bool,
    structure: bool,
    ink: bool,
}

impl Measure {
    fn of(words: &[&str], output: Option<&str>) -> Self {
        let mut it = Self::default();
        let lists = output.is_some_and(|it| {
            it.starts_with("txt:")
                || it.starts_with("histogram:")
                || extension(it) == "txt"
                || it.starts_with("rgb:")
                || it.starts_with("gray:")
        });
        it.pixels |= lists;
        for word in words {
            let lower = word.to_lowercase();
            it.pixels |= [
                "%[pixel",
                "%[fx:",
                "%[hex",
                "histogram",
                "%c",
                "%k",
                "%[colors",
                "%[mean]",
                "%[max]",
                "%[min]",
            ]
            .iter()
            .any(|it| lower.contains(it))
                || matches!(lower.as_str(), "-unique-colors" | "-unique" | "-verbose");
            it.structure |= lower.contains("connected-components")
                || lower == "-hough-lines"
                || lower.contains("convex-hull");
            it.ink |=
                word.contains("%@") || (lower == "-trim" && output.is_none_or(|it| it.starts_with("info:")));
        }
        if it.structure {
            it.pixels = false;
        }
        it
    }

    fn note(&self, scene: &mut Scene, all: Pictures, cut: bool, line: &str) {
        // The extent of the whole source is where its edges are; that of a region, how large what is written there.
        if self.ink && !cut && all.any(Pictures::ANY_SOURCE) && !all.any(Pictures::SOURCE_PART) {
            scene.note(Fact::SampledPixels, line);
            return;
        }
        if self.pixels && all.any(Pictures::ANY_SOURCE) {
            scene.note(Fact::SampledPixels, line);
        }
        if self.structure && all.any(Pictures::ANY_SOURCE) {
            scene.note(Fact::FoundStructure, line);
        }
        if self.ink && !all.is_empty() {
            scene.note(Fact::MeasuredText, line);
            if all.any(Pictures::TRIALS) {
                scene.note(Fact::RanTrial, line);
            }
        }
    }
}

/// The pictures that a command reads. A region is cut where `-crop` follows a picture in the same brackets, or `[WxH+X+Y]`
/// its name.
fn inputs(scene: &Scene, words: &[&str], output: Option<&str>, stdin: &Stream) -> Vec<Input> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut group_start = 0;
    let mut before = false;
    let last = if output.is_some() { words.len().saturating_sub(1) } else { words.len() };
    for (at, word) in words[..last].iter().enumerate() {
        match *word {
            "(" => group_start = inputs.len(),
            ")" => group_start = 0,
            "-crop" | "-extract" | "-shave" | "-chop" | "-gravity-crop" | "-distort-crop" => {
                let cuts = !words.get(at + 1).is_some_and(|it| it.starts_with("0x0"));
                if cuts && *word == "-extract" {
                    before = true;
                }
                let from = group_start.min(inputs.len());
                for input in inputs[from..].iter_mut().filter(|_| cuts) {
                    input.cut = true;
                }
            }
            "-" if !stdin.pictures.is_empty() => inputs.push(Input { pictures: stdin.pictures, cut: false }),
            word if word.starts_with('-') => {}
            word => {
                let path = word
                    .rsplit_once(':')
                    .filter(|(head, _)| head.len() < 6 && !head.contains('/'))
                    .map_or(word, |(_, path)| path);
                let (path, region) = match path.split_once('[') {
                    Some((path, region)) => (path, region.contains('x')),
                    None => (path, false),
                };
                let is_stdin = path == "-" && !stdin.pictures.is_empty();
                let pictures = if is_stdin {
                    stdin.pictures
                } else if is_picture(path) || extension(path) == "pdf" || globbing(path) && path.contains('.')
                {
                    scene.pictures(path)
                } else {
                    continue;
                };
                inputs.push(Input { pictures, cut: region || before });
            }
        }
    }
    inputs
}

fn compare(scene: &mut Scene, inputs: &[Input], output: Option<&str>, line: &str) -> Stream {
    // The last word of `compare a b` is a picture that is read.
    let file = output.filter(|it| is_file(it));
    let mut all = inputs.iter().fold(Pictures::NONE, |all, it| all | it.pictures);
    let reads_last = inputs.len() < 2;
    if let (Some(path), true) = (file, reads_last) {
        all |= scene.pictures(path);
    }
    scene.compare(all, line);
    if inputs.iter().any(|it| it.cut && it.pictures.any(Pictures::ANY_SOURCE))
        && file.is_some()
        && !reads_last
    {
        scene.note(Fact::CutSource, line);
    }
    if let (Some(path), false) = (file, reads_last) {
        scene.draw(path, all | Pictures::DIFFERENCE);
    }
    Stream { pictures: all | Pictures::DIFFERENCE, ..Stream::default() }
}

/// Whether a place for output, as `ImageMagick` writes it, is a file.
fn is_file(output: &str) -> bool {
    let special =
        ["null:", "info:", "txt:", "histogram:", "rgb:", "gray:"].iter().any(|it| output.starts_with(it));
    !special
        && output != "-"
        && !output.ends_with(":-")
        && !output.starts_with("/dev/")
        && extension(output) != "txt"
}

fn line(argv: &[Arg]) -> String {
    argv.iter().take(16).map(|it| it.text.chars().take(60).collect::<String>()).collect::<Vec<_>>().join(" ")
}
