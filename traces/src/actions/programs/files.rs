//! Programs that read, print, copy and look at files.

use super::{Arg, Words, open};
use crate::actions::facts::Fact;
use crate::actions::ledger::{Known, Text, file_name};
use crate::actions::scene::{Made, Scene};
use crate::actions::shell::Stream;

/// Programs whose output is their input, in whole or part.
pub(super) fn text(scene: &mut Scene, name: &str, words: &Words<'_>, stdin: &Stream) -> Stream {
    if in_place(scene, name, words) {
        return Stream::default();
    }
    let (files, keeps_all) = match name {
        "cat" => (operands(words, 0), words.operands().count() <= 1 && !words.short('n')),
        "tee" => return tee(scene, words, stdin),
        "grep" | "egrep" | "fgrep" | "rg" => {
            let given =
                words.has("-e") || words.has("-f") || words.rest().any(|it| it.starts_with("--regexp"));
            (operands(words, usize::from(!given)), false)
        }
        "sed" | "awk" | "gawk" | "mawk" | "perl" | "jq" => {
            let given = words.has("-e") || words.has("-f") || (name == "perl" && words.short('e'));
            (operands(words, usize::from(!given)), false)
        }
        "tr" => (Vec::new(), false),
        _ => (operands(words, 0), false),
    };
    let varies = words.all().iter().any(|it| it.varies);
    if matches!(name, "diff" | "cmp" | "comm" | "colordiff") {
        return compare(scene, &files);
    }
    if matches!(name, "wc" | "md5sum" | "sha256sum" | "sha1sum") {
        let from_stdin = stdin.text.is_some_and(Text::is_answer) && name == "wc" && files.is_empty();
        let answer = files.iter().find(|it| scene.text(it).is_some_and(Text::is_answer)).cloned();
        if let Some(path) = answer.or_else(|| from_stdin.then(|| stdin.path.clone())) {
            // Of a stream the number of hits is asked for, of a file its size.
            scene.note(
                if from_stdin && !stdin.verbatim { Fact::ReadAnswer } else { Fact::FoundAnswer },
                &path,
            );
        }
        return Stream::default();
    }
    if matches!(name, "xmllint" | "tidy")
        && files.iter().any(|it| scene.text(it).is_some_and(Text::is_answer))
    {
        scene.note(Fact::CheckedAnswer, name);
    }
    let mut out: Option<Stream> = None;
    for path in files.iter().filter(|it| *it != "-") {
        let mut next = open(scene, path);
        if next.text.is_none() && next.pictures.is_empty() && !path.starts_with('/') {
            let resolved = scene.resolve(path);
            let meant = scene.ledger.meant(&resolved).and_then(|it| it.text);
            next.text = meant.filter(|it| it.is_answer()).map(|_| Text::Draft);
        }
        let nearer = |a: Option<Text>, b: Option<Text>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        out = Some(match out {
            None => next,
            Some(before) => {
                let text = nearer(before.text, next.text);
                let content = match (before.content, next.content) {
                    (Some(a), Some(b)) if a.len() + b.len() < 1 << 18 => Some(format!("{a}{b}").into()),
                    _ => None,
                };
                Stream { text, content, verbatim: false, ..next }
            }
        });
    }
    let mut out = out.unwrap_or_else(|| stdin.clone());
    out.varies |= varies;
    if !keeps_all {
        out.verbatim = false;
        out.content = None;
        // What a filter leaves of a picture is no picture.
        if name != "cat" {
            out.pictures = crate::actions::ledger::Pictures::NONE;
        }
    }
    out
}

fn operands(words: &Words<'_>, skip: usize) -> Vec<String> {
    let mut operands = Vec::new();
    let mut skip = skip;
    let mut rest = words.rest();
    while let Some(word) = rest.next() {
        if matches!(
            word,
            "-e" | "-f"
                | "-A"
                | "-B"
                | "-C"
                | "-m"
                | "-n"
                | "-c"
                | "--max-count"
                | "-k"
                | "-t"
                | "-w"
                | "-F"
                | "-v"
                | "-d"
        ) && takes_value(words.all().first().map_or("", |it| it.text.as_str()), word)
        {
            let _ = rest.next();
        } else if !word.starts_with('-') || word == "-" {
            if skip > 0 {
                skip -= 1;
            } else {
                operands.push(word.to_owned());
            }
        }
    }
    operands
}

fn takes_value(program: &str, flag: &str) -> bool {
    match file_name(program) {
        "grep" | "egrep" | "fgrep" | "rg" => matches!(flag, "-e" | "-f" | "-A" | "-B" | "-C" | "-m"),
        "sed" => matches!(flag, "-e" | "-f"),
        "awk" | "gawk" | "mawk" => matches!(flag, "-F" | "-v" | "-f"),
        "head" | "tail" => matches!(flag, "-n" | "-c"),
        "cut" => matches!(flag, "-d" | "-f" | "-c"),
        "sort" => matches!(flag, "-k" | "-t"),
        "nl" | "fold" => matches!(flag, "-w"),
        _ => false,
    }
}

/// `sed -i` and its like.
fn in_place(scene: &mut Scene, name: &str, words: &Words<'_>) -> bool {
    let edits = match name {
        "sed" => words.rest().any(|it| {
            it == "--in-place"
                || it.starts_with("-i")
                || (it.len() < 6
                    && it.starts_with('-')
                    && !it.starts_with("--")
                    && it.contains('i')
                    && !it.contains('e'))
        }),
        "perl" => words
            .rest()
            .any(|it| it.starts_with('-') && !it.starts_with("--") && it.len() < 10 && it.contains('i')),
        "sponge" | "dos2unix" => true,
        _ => false,
    };
    if !edits {
        return false;
    }
    let given = words.has("-e") || words.has("-f") || name == "perl" || name == "sponge";
    let varies = words.all().iter().any(|it| it.varies);
    let skip = usize::from(!given);
    let mut files = operands(words, skip);
    if name == "perl" {
        // The script follows the bundle that ends in `e`.
        files = files.into_iter().skip(1).collect();
    }
    for path in files {
        let known = scene.text(&path);
        if known == Some(Text::Artifact)
            || known.is_some()
            || scene.ledger.meant(&scene.resolve(&path)).is_some()
        {
            scene.write(&path, &Made { amends: true, varies, ..Made::default() });
        }
    }
    true
}

fn tee(scene: &mut Scene, words: &Words<'_>, stdin: &Stream) -> Stream {
    let append = words.short('a') || words.has("--append");
    for path in operands(words, 0) {
        if path.starts_with("/dev/") {
            continue;
        }
        let made = Made {
            content: stdin.content.as_deref(),
            from: stdin.text,
            verbatim: stdin.verbatim && !append,
            varies: stdin.varies,
            amends: append,
        };
        scene.write(&path, &made);
    }
    // That the model sees what it has just written is no reading of it.
    Stream { text: None, ..stdin.clone() }
}

fn compare(scene: &mut Scene, files: &[String]) -> Stream {
    let answer = files.iter().find(|it| scene.text(it).is_some_and(Text::is_answer)).cloned();
    match answer {
        Some(path) => Stream { text: Some(Text::Artifact), path, ..Stream::default() },
        None => Stream::default(),
    }
}

/// `echo` and `printf`.
pub(super) fn print(name: &str, argv: &[Arg]) -> Stream {
    let mut words = argv.iter().skip(1).peekable();
    while words.peek().is_some_and(|it| matches!(it.text.as_str(), "-e" | "-n" | "-en" | "-ne" | "--")) {
        words.next();
    }
    let varies = argv.iter().any(|it| it.varies);
    let texts: Vec<&str> = words.map(|it| it.text.as_str()).collect();
    let text = match (name, texts.split_first()) {
        ("printf", Some((format, values))) => {
            let mut text = (*format).to_owned();
            if !values.is_empty() && format.contains("%s") {
                text = values.iter().map(|value| format.replacen("%s", value, 1)).collect();
            }
            text.replace("\\n", "\n").replace("\\t", "\t")
        }
        _ => texts.join(" ") + "\n",
    };
    Stream { content: Some(text.into()), varies, ..Stream::default() }
}

/// `seq`: its first numbers.
pub(super) fn seq(words: &Words<'_>) -> Stream {
    let numbers: Vec<f64> = words.rest().filter_map(|it| it.parse().ok()).collect();
    let (from, step, to) = match numbers.as_slice() {
        [to] => (1.0, 1.0, *to),
        [from, to] => (*from, 1.0, *to),
        [from, step, to] => (*from, *step, *to),
        _ => return Stream::default(),
    };
    let mut all = Vec::new();
    let mut value = from;
    while all.len() < 8 && value <= to && step > 0.0 {
        all.push(value.to_string());
        value += step;
    }
    Stream { content: Some(all.join("\n").into()), ..Stream::default() }
}

/// `dirname`, `basename` and their like.
pub(super) fn path_part(name: &str, words: &Words<'_>) -> Stream {
    let path = words.operands().next().unwrap_or("*");
    let part = match name {
        "basename" => {
            let file = file_name(path);
            let suffix = words.operands().nth(1).unwrap_or_default();
            file.strip_suffix(suffix).unwrap_or(file).to_owned()
        }
        "dirname" => path.rsplit_once('/').map_or(".", |(folder, _)| folder).to_owned(),
        _ => path.to_owned(),
    };
    Stream { content: Some(part.into()), ..Stream::default() }
}

/// `cp`, `mv` and their like.
pub(super) fn copy(scene: &mut Scene, words: &Words<'_>) {
    let mut operands: Vec<&str> = words.operands().collect();
    let varies = words.all().iter().any(|it| it.varies);
    let target = match words.rest().position(|it| it == "-t") {
        Some(at) => words.plain(at + 1),
        None => operands.pop(),
    };
    let Some(target) = target else { return };
    let into_folder = operands.len() > 1 || target.ends_with('/') || target == "." || target == "..";
    for from in operands.into_iter().take(64) {
        let known = scene.known(from);
        let folder_by_looks =
            !into_folder && crate::actions::ledger::extension(target).is_empty() && known.is_some();
        let path = if into_folder || folder_by_looks {
            format!("{}/{}", target.trim_end_matches('/'), file_name(from))
        } else {
            target.to_owned()
        };
        let resolved = scene.resolve(&path);
        if scene.ledger.is_artifact(&resolved) {
            scene.becomes_artifact(from, known.as_ref().and_then(|it| it.text));
        }
        match known {
            Some(Known { text: None, pictures, .. }) if !pictures.is_empty() => scene.draw(&path, pictures),
            known => {
                let text = known.as_ref().and_then(|it| it.text);
                let content = known.and_then(|it| it.content);
                scene.write(
                    &path,
                    &Made { content: content.as_deref(), from: text, verbatim: true, varies, amends: false },
                );
            }
        }
    }
}

/// `ls`, `stat`, `test`: whether the answer is there.
pub(super) fn look(scene: &mut Scene, name: &str, words: &Words<'_>) {
    for path in words.operands().take(32) {
        let resolved = scene.resolve(path);
        if path.contains("/fonts")
            || path.contains("texmf") && path.contains("font")
            || file_name(path) == ".fonts"
        {
            scene.note(Fact::LookedForFonts, &words.line());
        } else if path.ends_with("/bin")
            || path.contains("/bin/")
            || path.contains("site-packages")
            || path.contains("texmf-dist/tex")
        {
            scene.note(Fact::CheckedTools, &words.line());
        } else if scene.ledger.is_artifact(&resolved) && scene.ledger.longest > 0 {
            scene.note(Fact::FoundAnswer, &format!("{name} {path}"));
        }
    }
}
