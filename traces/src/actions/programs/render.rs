//! Renderers: what they are given, what they draw and where to.

use super::{Arg, Words};
use crate::actions::facts::Fact;
use crate::actions::ledger::{Pictures, Text, extension, file_name};
use crate::actions::scene::{Made, Scene, is_picture};
use crate::actions::shell::{Run, Sink, Stream};

/// What kind of renderer a program is.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Browser,
    Latex,
    Graphviz,
    /// PDF or PostScript to a picture.
    Raster,
    /// A drawing to a picture: `rsvg-convert in.svg -o out.png`.
    Drawing,
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "chromium"
        | "chromium-browser"
        | "chrome"
        | "google-chrome"
        | "google-chrome-stable"
        | "headless_shell"
        | "chrome-headless-shell"
        | "firefox"
        | "wkhtmltoimage"
        | "wkhtmltopdf"
        | "weasyprint"
        | "cutycapt"
        | "playwright" => Kind::Browser,
        "pdflatex" | "latex" | "xelatex" | "lualatex" | "latexmk" | "tectonic" | "pdftex" | "luatex"
        | "xetex" | "arara" | "texi2pdf" | "platex" | "uplatex" => Kind::Latex,
        "dot" | "neato" | "fdp" | "sfdp" | "circo" | "twopi" | "osage" | "patchwork" => Kind::Graphviz,
        "pdftocairo" | "pdftoppm" | "mutool" | "gs" | "dvipng" | "dvips" | "ps2pdf" | "dvisvgm"
        | "pdf2svg" | "pdfcrop" | "dvipdfmx" => Kind::Raster,
        "rsvg-convert" | "cairosvg" | "inkscape" | "resvg" | "asy" | "mpost" | "gnuplot" => Kind::Drawing,
        _ => return None,
    })
}

/// Whether a program is a renderer.
pub(super) fn is_renderer(name: &str) -> bool {
    kind(name).is_some()
}

/// Starts one.
pub(super) fn run(run: &mut Run<'_>, name: &str, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    match kind(name) {
        Some(Kind::Browser) => browser(run.scene, name, argv),
        Some(Kind::Latex) => latex(run.scene, name, argv, stdin),
        Some(Kind::Graphviz) => graphviz(run.scene, name, argv, stdin, sink),
        Some(Kind::Raster) => raster(run.scene, name, argv, stdin),
        Some(Kind::Drawing) => drawing(run.scene, name, argv, stdin),
        None => Stream::default(),
    }
}

/// Whether a loop changes anything but the input and the place of the picture.
fn options_vary(argv: &[Arg], not: &[&str]) -> bool {
    argv.iter().skip(1).any(|it| it.varies && !not.iter().any(|not| it.text.contains(not)))
}

fn browser(scene: &mut Scene, name: &str, argv: &[Arg]) -> Stream {
    let words = Words::new(argv);
    let value = |flag: &str| {
        let joined = format!("{flag}=");
        words.rest().find_map(|it| it.strip_prefix(&joined).map(str::to_owned))
    };
    let mut inputs: Vec<&str> = words.operands().filter(|it| *it != "screenshot" && *it != "pdf").collect();
    let mut output = value("--screenshot").or_else(|| value("--print-to-pdf"));
    if output.is_none() {
        output = match name {
            "wkhtmltoimage" | "wkhtmltopdf" | "weasyprint" | "playwright" if inputs.len() > 1 => {
                inputs.pop().map(str::to_owned)
            }
            "firefox" => inputs.iter().position(|it| is_picture(it)).map(|at| inputs.remove(at).to_owned()),
            _ if words.has("--screenshot") => Some("screenshot.png".to_owned()),
            _ if words.has("--print-to-pdf") => Some("output.pdf".to_owned()),
            _ => None,
        };
    }
    let dumps = words.rest().any(|it| it.starts_with("--dump-dom"));
    let Some(input) = inputs.iter().copied().find(|it| !matches!(*it, "headless" | "about:blank")) else {
        return Stream::default();
    };
    if let Some(page) = input.strip_prefix("data:") {
        scene.note(Fact::SmokeTest, page);
        if let Some(path) = output {
            scene.draw(&path, Pictures::SMOKE);
        }
        return Stream::default();
    }
    let text = scene.text(input);
    let content = scene.ledger.content(&scene.resolve(input));
    measured_in_page(scene, content.as_deref(), text, input);
    if dumps && output.is_none() {
        return dumped(scene, text, input, name);
    }
    if output.is_none() && name.starts_with("chrom") && !words.rest().any(|it| it.starts_with("--headless")) {
        return Stream::default();
    }
    let out = output.clone().unwrap_or_default();
    let vary = options_vary(argv, &[&out, input, "user-data-dir"]);
    let shown = scene.render(text, input, vary, name);
    if let Some(path) = output {
        scene.draw(&path, shown);
    }
    Stream::default()
}

/// A page is taken apart instead of drawn.
fn dumped(scene: &mut Scene, text: Option<Text>, input: &str, name: &str) -> Stream {
    match text {
        Some(text) if text.is_answer() => {
            scene.note(Fact::CheckedAnswer, &format!("{name} --dump-dom {input}"));
        }
        Some(Text::Variant | Text::Trial) => scene.note(Fact::RanTrial, input),
        Some(Text::Smoke) => scene.note(Fact::SmokeTest, input),
        None if scene.ledger.meant(&scene.resolve(input)).is_some() => scene.note(Fact::CheckedAnswer, input),
        _ => {}
    }
    Stream::default()
}

/// A calibration page that measures its own text, and tries fonts.
fn measured_in_page(scene: &mut Scene, content: Option<&str>, text: Option<Text>, path: &str) {
    let Some(content) = content.filter(|_| matches!(text, Some(Text::Trial | Text::Smoke | Text::Variant)))
    else {
        return;
    };
    let measures =
        ["getBoundingClientRect", "offsetWidth", "measureText", "getComputedTextLength", "getBBox"];
    if measures.iter().any(|it| content.contains(it)) {
        scene.note(Fact::MeasuredText, path);
        scene.note(Fact::RanTrial, path);
    }
    if candidate_fonts(content) {
        scene.note(Fact::LookedForFonts, path);
    }
}

/// Whether a text sets more than one font.
pub(crate) fn candidate_fonts(content: &str) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    for mark in ["font-family:", "fontname=", "\\setmainfont{", "\\fontfamily{", "font:"] {
        for (at, _) in content.match_indices(mark).take(16) {
            let rest = content[at + mark.len()..].trim_start_matches([' ', '"', '\'']);
            let name = rest.split(['"', '\'', ';', '}', ',', ']', '\n']).next().unwrap_or_default().trim();
            if !name.is_empty() && !seen.contains(&name) {
                seen.push(name);
            }
        }
    }
    seen.len() > 1
}

fn latex(scene: &mut Scene, name: &str, argv: &[Arg], stdin: &Stream) -> Stream {
    let words = Words::new(argv);
    let value = |flags: &[&str]| {
        let mut rest = words.rest();
        while let Some(word) = rest.next() {
            for flag in flags {
                if word == *flag {
                    return rest.next().map(str::to_owned);
                }
                if let Some(value) = word.strip_prefix(flag).and_then(|it| it.strip_prefix('=')) {
                    return Some(value.to_owned());
                }
            }
        }
        None
    };
    let dir = value(&["-output-directory", "--output-directory", "-outdir", "--outdir"]);
    let job = value(&["-jobname", "--jobname"]);
    let input = words
        .operands()
        .filter(|it| Some(*it) != dir.as_deref() && Some(*it) != job.as_deref())
        .last()
        .unwrap_or_default();
    if input.is_empty() && stdin.content.is_none() {
        return Stream::default();
    }
    let inline = input.starts_with('\\');
    let path = if extension(input).is_empty() && !inline { format!("{input}.tex") } else { input.to_owned() };
    let text = if inline || input.is_empty() { Some(Text::Smoke) } else { scene.text(&path) };
    let draft = words.rest().any(|it| matches!(it, "-draftmode" | "--draftmode"));
    if draft {
        // It makes nothing that could be looked at.
        let fact = match text {
            Some(text) if text.is_answer() => Fact::CheckedAnswer,
            Some(Text::Trial | Text::Variant) => Fact::RanTrial,
            _ => Fact::CheckedTools,
        };
        scene.note(fact, &format!("{name} -draftmode {path}"));
        return Stream::default();
    }
    // Running it twice is for references; only what is set on the command line could make a sweep.
    let shown = scene.render(text, &path, options_vary(argv, &[input]), name);
    let stem = job
        .unwrap_or_else(|| file_name(&path).rsplit_once('.').map_or("texput", |(stem, _)| stem).to_owned());
    for ext in ["pdf", "dvi"] {
        let out = format!("{stem}.{ext}");
        let out = dir.as_ref().map_or(out.clone(), |dir| format!("{dir}/{out}"));
        scene.draw(&out, shown);
    }
    if text == Some(Text::Trial)
        && scene.ledger.content(&scene.resolve(&path)).is_some_and(|it| candidate_fonts(&it))
    {
        scene.note(Fact::LookedForFonts, &path);
    }
    Stream::default()
}

fn graphviz(scene: &mut Scene, name: &str, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    let words = Words::new(argv);
    let mut format = "dot".to_owned();
    let mut output: Option<String> = None;
    let mut inputs: Vec<&str> = Vec::new();
    let mut own_name = false;
    let mut rest = words.rest();
    while let Some(word) = rest.next() {
        if let Some(value) = word.strip_prefix("-T") {
            format =
                if value.is_empty() { rest.next().unwrap_or_default().to_owned() } else { value.to_owned() };
        } else if let Some(value) = word.strip_prefix("-o") {
            output = if value.is_empty() { rest.next().map(str::to_owned) } else { Some(value.to_owned()) };
        } else if word == "-O" {
            own_name = true;
        } else if word == "-P" || word == "-?" || word == "-c" {
            scene.note(Fact::CheckedTools, &words.line());
            return Stream::default();
        } else if matches!(word, "-G" | "-N" | "-E" | "-K") {
            let _ = rest.next();
        } else if !word.starts_with('-') {
            inputs.push(word);
        }
    }
    let input = inputs.first().copied().unwrap_or_default();
    let text = if input.is_empty() { of_stdin(scene, stdin) } else { scene.text(input) };
    let path = if input.is_empty() && !stdin.path.is_empty() { stdin.path.clone() } else { input.to_owned() };
    let format = format.split(':').next().unwrap_or_default().to_owned();
    if !matches!(
        format.as_str(),
        "png" | "svg" | "pdf" | "ps" | "jpg" | "jpeg" | "gif" | "webp" | "bmp" | "svgz" | "eps" | "x11"
    ) {
        match text {
            Some(text) if text.is_answer() => {
                scene.note(Fact::CheckedAnswer, &format!("{name} -T{format} {path}"));
            }
            Some(Text::Variant) if scene.loops > 0 => scene.note(Fact::SweptValues, &path),
            Some(Text::Variant | Text::Trial) => scene.note(Fact::RanTrial, &path),
            Some(Text::Smoke) => scene.note(Fact::SmokeTest, &path),
            _ => {}
        }
        return Stream { path, ..Stream::default() };
    }
    let out = output.clone().unwrap_or_default();
    let shown = scene.render(text, &path, options_vary(argv, &[&out, input]), name);
    if matches!(text, Some(Text::Trial))
        && scene.ledger.content(&scene.resolve(&path)).is_some_and(|it| candidate_fonts(&it))
    {
        scene.note(Fact::LookedForFonts, &path);
    }
    match (output, own_name) {
        (Some(output), _) if !output.starts_with("/dev/") => {
            scene.draw(&output, shown);
            Stream::default()
        }
        (None, true) => {
            scene.draw(&format!("{input}.{format}"), shown);
            Stream::default()
        }
        _ => Stream {
            pictures: if *sink == Sink::Shown { Pictures::NONE } else { shown },
            path,
            ..Stream::default()
        },
    }
}

/// Whose text comes in.
fn of_stdin(scene: &Scene, stdin: &Stream) -> Option<Text> {
    match (stdin.text, stdin.content.as_deref()) {
        (Some(Text::Artifact | Text::Copy), _) if stdin.verbatim => Some(Text::Artifact),
        (Some(Text::Artifact | Text::Copy | Text::Draft), _) if scene.loops > 0 || stdin.varies => {
            Some(Text::Variant)
        }
        (Some(Text::Artifact | Text::Copy | Text::Draft), _) => Some(Text::Draft),
        (Some(text), _) => Some(text),
        (None, Some(content)) if content.len() < 260 => Some(Text::Smoke),
        (None, Some(_)) => Some(Text::Trial),
        (None, None) => None,
    }
}

fn raster(scene: &mut Scene, name: &str, argv: &[Arg], stdin: &Stream) -> Stream {
    let words = Words::new(argv);
    let operands: Vec<&str> = words.operands().collect();
    let is_input = |it: &&&str| matches!(&*extension(it), "pdf" | "ps" | "eps" | "dvi" | "xdv");
    let input = operands.iter().find(is_input).copied().unwrap_or_default();
    if name == "mutool" && words.rest().any(|it| it == "stext" || it == "info" || it == "show") {
        super::probe::other(scene, name, &words);
        return Stream::default();
    }
    let mut shown = if input.is_empty() { stdin.pictures } else { scene.pictures(input) };
    let known = scene.known(input).is_some();
    if shown.is_empty() && !input.is_empty() && !known {
        let resolved = scene.resolve(input);
        let artifact_stem = scene.ledger.artifact.rsplit_once('.').map(|(stem, _)| stem.to_owned());
        if artifact_stem.is_some_and(|it| resolved == format!("{it}.pdf")) {
            shown = Pictures::ARTIFACT;
        }
    }
    if shown.any(Pictures::TRIALS) {
        let fact =
            if scene.loops > 0 && shown.any(Pictures::VARIANT) { Fact::SweptValues } else { Fact::RanTrial };
        scene.note(fact, &words.line());
    } else if shown.any(Pictures::ANSWER) {
        // Drawing is the whole way from text to picture: whoever takes the second step renders.
        scene.note(Fact::RenderedDraft, &words.line());
    } else if shown.any(Pictures::SMOKE) {
        scene.note(Fact::SmokeTest, &words.line());
    }
    let flag_output = words.rest().find_map(|it| {
        it.strip_prefix("-sOutputFile=").or_else(|| it.strip_prefix("-o").filter(|it| !it.is_empty()))
    });
    let after = argv
        .windows(2)
        .find(|it| matches!(it[0].text.as_str(), "-o" | "--output"))
        .map(|it| it[1].text.as_str());
    let positional = operands.iter().position(|it| *it == input).and_then(|at| operands.get(at + 1)).copied();
    let stem = flag_output.or(after).or(positional);
    let ext = if words.has("-jpeg") {
        "jpg"
    } else if words.has("-svg") || name == "pdf2svg" {
        "svg"
    } else {
        "png"
    };
    let stem = match stem {
        Some(stem) => stem.to_owned(),
        None => input.rsplit_once('.').map_or(input, |(stem, _)| stem).to_owned(),
    };
    if stem == "-" {
        return Stream { pictures: shown, ..Stream::default() };
    }
    if !extension(&stem).is_empty()
        && (is_picture(&stem) || matches!(&*extension(&stem), "svg" | "pdf" | "ps"))
    {
        scene.draw(&stem, shown);
    } else {
        for end in [String::new(), "-1".to_owned(), "-01".to_owned()] {
            scene.draw(&format!("{stem}{end}.{ext}"), shown);
        }
    }
    Stream { pictures: shown, ..Stream::default() }
}

fn drawing(scene: &mut Scene, name: &str, argv: &[Arg], stdin: &Stream) -> Stream {
    let words = Words::new(argv);
    let mut output = argv
        .windows(2)
        .find(|it| matches!(it[0].text.as_str(), "-o" | "--output" | "--export-filename"))
        .map(|it| it[1].text.clone());
    output = output.or_else(|| {
        words.rest().find_map(|it| {
            it.strip_prefix("--export-filename=").or_else(|| it.strip_prefix("--output=")).map(str::to_owned)
        })
    });
    let inputs: Vec<&str> = words.operands().filter(|it| Some(*it) != output.as_deref()).collect();
    if output.is_none() && inputs.len() > 1 {
        output = inputs.last().map(|it| (*it).to_owned());
    }
    let input = inputs.first().copied().unwrap_or_default();
    let text = if input.is_empty() { of_stdin(scene, stdin) } else { scene.text(input) };
    let from_picture = scene.pictures(input);
    let shown = if from_picture.is_empty() {
        scene.render(text, input, options_vary(argv, &[input, output.as_deref().unwrap_or("\u{0}")]), name)
    } else {
        from_picture
    };
    match output {
        Some(path) => {
            scene.draw(&path, shown);
            Stream::default()
        }
        None => Stream { pictures: shown, ..Stream::default() },
    }
}

/// A script that drives a browser: what it opens and where the picture goes, by the names in it.
pub(crate) fn browser_script(scene: &mut Scene, code: &str, args: &[&str]) {
    let drives = ["screenshot(", ".pdf(", "page.goto", "setContent"].iter().any(|it| code.contains(it));
    let literals = quoted(code);
    let names: Vec<&str> = literals.iter().map(String::as_str).chain(args.iter().skip(1).copied()).collect();
    let answer = names.iter().copied().find(|it| scene.text(it).is_some_and(|it| !it.render().is_empty()));
    if !drives {
        if let Some(path) = answer.filter(|it| scene.text(it).is_some_and(Text::is_answer)) {
            if code.contains("writeFile") {
                scene.write(path, &Made { amends: true, ..Made::default() });
            } else if code.contains("readFile") {
                scene.note(Fact::CheckedAnswer, path);
            }
        }
        return;
    }
    if ["getBoundingClientRect", "boundingBox(", "offsetWidth", "measureText", "getBBox"]
        .iter()
        .any(|it| code.contains(it))
    {
        scene.note(Fact::MeasuredText, "the page is asked for extents");
    }
    let Some(page) =
        answer.or_else(|| names.iter().copied().find(|it| matches!(&*extension(it), "html" | "svg" | "htm")))
    else {
        return;
    };
    let page = page.to_owned();
    let text = scene.text(&page);
    if !code.contains("screenshot(") && !code.contains(".pdf(") {
        dumped(scene, text, &page, "browser");
        return;
    }
    let shown = scene.render(text, &page, scene.loops > 0, "browser");
    for path in names.iter().filter(|it| is_picture(it)) {
        if scene.pictures(path) != Pictures::SOURCE {
            scene.draw(path, shown);
        }
    }
}

/// String literals of a script in C-like syntax that could name files.
pub(crate) fn quoted(code: &str) -> Vec<String> {
    let mut all = Vec::new();
    let bytes = code.as_bytes();
    let mut at = 0;
    while at < bytes.len() && all.len() < 256 {
        let quote = bytes[at];
        at += 1;
        if !matches!(quote, b'"' | b'\'' | b'`') {
            continue;
        }
        let from = at;
        while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
            at += 1 + usize::from(bytes[at] == b'\\');
        }
        if let Some(text) = code.get(from..at.min(bytes.len())) {
            if text.len() < 300 && text.contains('.') {
                all.push(text.to_owned());
            }
        }
        at += 1;
    }
    all
}
