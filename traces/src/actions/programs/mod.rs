//! Programs by name: what each makes of its words and its input. A program that nobody knows does nothing that counts.

mod files;
mod magick;
mod probe;
mod render;
mod words;

use std::rc::Rc;

use super::facts::Fact;
use super::ledger::file_name;
use super::python;
use super::scene::{Made, Scene};
use super::shell::{Run, Sink, Stream};

pub(crate) use render::quoted;
pub(crate) use words::Words;

/// A word of a command after expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arg {
    pub(crate) text: String,
    /// Whether it is another one in each turn of a loop.
    pub(crate) varies: bool,
}

impl Arg {
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), varies: false }
    }
}

/// The content of a file as a stream.
pub(crate) fn open(scene: &mut Scene, path: &str) -> Stream {
    let text = scene.text(path);
    Stream {
        text,
        verbatim: true,
        content: scene.ledger.content(&scene.resolve(path)),
        pictures: scene.pictures(path),
        varies: false,
        path: path.to_owned(),
        delivered: false,
    }
}

/// Starts the program that `argv` names.
pub(crate) fn start(run: &mut Run<'_>, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    let Some(first) = argv.first() else { return Stream::default() };
    let name = file_name(&first.text).to_owned();
    let words = Words::new(argv);
    if let Some(asked) = probe::asked_for_version(&name, &words) {
        run.scene.note(Fact::CheckedTools, &asked);
        return Stream::default();
    }
    match name.as_str() {
        // What starts another program.
        "env" | "timeout" | "nice" | "nohup" | "time" | "sudo" | "stdbuf" | "exec" | "xvfb-run"
        | "setsid" | "ionice" | "builtin" | "command" | "strace" | "xargs" | "busybox" | "then" | "do"
        | "else" => wrapped(run, &name, argv, stdin, sink),
        "bash" | "sh" | "dash" | "zsh" | "ksh" => shell(run, argv, stdin, sink),
        "find" => find(run, argv, stdin, sink),
        name if is_python(name) => python_program(run, &words, stdin, sink),
        "node" | "deno" | "bun" => node_program(run, &words, stdin),
        // Text.
        "cat" | "tac" | "head" | "tail" | "nl" | "less" | "more" | "bat" | "batcat" | "grep" | "egrep"
        | "fgrep" | "rg" | "sed" | "awk" | "gawk" | "mawk" | "perl" | "cut" | "sort" | "uniq" | "tr"
        | "fold" | "column" | "paste" | "rev" | "od" | "xxd" | "hexdump" | "strings" | "wc" | "tee"
        | "diff" | "cmp" | "comm" | "colordiff" | "jq" | "xmllint" | "tidy" | "html2text" | "sponge"
        | "iconv" | "base64" | "md5sum" | "sha256sum" | "sha1sum" | "envsubst" | "m4" | "expand"
        | "unexpand" | "dos2unix" | "unflatten" | "tred" => files::text(run.scene, &name, &words, stdin),
        "echo" | "printf" => files::print(&name, argv),
        "seq" => files::seq(&words),
        "dirname" | "basename" | "realpath" | "readlink" => files::path_part(&name, &words),
        "cp" | "mv" | "install" | "ln" | "rsync" => {
            files::copy(run.scene, &words);
            Stream::default()
        }
        "ls" | "stat" | "file" | "test" | "[" | "[[" | "du" => {
            files::look(run.scene, &name, &words);
            Stream::default()
        }
        "make" | "gmake" => {
            let recipes = run.scene.ledger.content(&run.scene.resolve("Makefile"));
            let lines: Option<String> = recipes.map(|it| {
                it.lines()
                    .filter_map(|it| it.strip_prefix('\t'))
                    .map(|it| it.trim_start_matches(['@', '-']).to_owned() + "\n")
                    .collect()
            });
            lines.map_or_else(Stream::default, |it| run.sub_script(&it, Vec::new(), sink))
        }
        "git" if words.rest().any(|it| matches!(it, "diff" | "show" | "grep")) => {
            let answer =
                words.operands().find(|it| run.scene.text(it).is_some_and(super::ledger::Text::is_answer));
            answer.map_or_else(Stream::default, |it| open(run.scene, it))
        }
        "patch" | "apply_patch" | "applypatch" => {
            if let Some(text) = stdin.content.as_deref().or(words.plain(0)) {
                super::patch::apply(run.scene, text);
            }
            Stream::default()
        }
        "ed" | "ex" | "vim" | "vi" => {
            if let Some(path) = words.operands().last() {
                run.scene.write(path, &Made { amends: true, ..Made::default() });
            }
            Stream::default()
        }
        // Pictures.
        "convert" | "magick" | "montage" | "composite" | "mogrify" | "compare" | "identify" | "gm"
        | "convert-im6.q16" | "magick-script" | "vips" | "ffmpeg" | "pngcrop" | "perceptualdiff"
        | "odiff" | "pixelmatch" | "dssim" | "butteraugli" => magick::run(run.scene, &name, argv, stdin),
        "tesseract" | "ocrmypdf" | "gocr" | "cuneiform" | "easyocr" => {
            probe::ocr(run.scene, &words, stdin);
            Stream::default()
        }
        // Renderers.
        name if render::is_renderer(name) => render::run(run, name, argv, stdin, sink),
        _ => {
            probe::other(run.scene, &name, &words);
            direct(run, argv, sink)
        }
    }
}

fn is_python(name: &str) -> bool {
    let rest = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    rest.is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
        || name == "ipython"
        || name == "uv"
}

/// `timeout 5 X`, `env A=b X`, `xargs -n1 X`: X, with what the wrapper adds.
fn wrapped(run: &mut Run<'_>, name: &str, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    if name == "command" && argv.get(1).is_some_and(|it| matches!(it.text.as_str(), "-v" | "-V")) {
        let what = argv.get(2).map_or("", |it| it.text.as_str());
        run.scene.note(Fact::CheckedTools, &format!("command -v {what}"));
        return Stream::default();
    }
    let with_value: &[&str] = match name {
        "timeout" => &["-k", "-s", "--signal", "--kill-after"],
        "nice" | "ionice" => &["-n", "-c"],
        "xargs" => &["-n", "-I", "-d", "-P", "-L", "-a", "-s"],
        "stdbuf" => &["-i", "-o", "-e"],
        "env" => &["-u", "-C"],
        "sudo" => &["-u", "-g"],
        "xvfb-run" => &["-s", "--server-args", "-n"],
        _ => &[],
    };
    let mut at = 1;
    while let Some(arg) = argv.get(at) {
        let text = arg.text.as_str();
        if with_value.contains(&text) {
            at += 2;
        } else if text.starts_with('-') || (name == "env" && text.contains('=')) {
            at += 1;
        } else {
            break;
        }
    }
    if name == "timeout" {
        at += 1;
    }
    let mut rest: Vec<Arg> = argv.get(at..).unwrap_or_default().to_vec();
    if rest.is_empty() {
        return Stream::default();
    }
    if name == "xargs" {
        let items: Vec<&str> =
            stdin.content.as_deref().map_or(vec!["*"], |it| it.split_whitespace().take(8).collect());
        match argv
            .iter()
            .position(|it| it.text == "-I")
            .and_then(|it| argv.get(it + 1))
            .map(|it| it.text.clone())
        {
            Some(mark) if !mark.is_empty() => {
                let item = items.first().copied().unwrap_or("*");
                for arg in &mut rest {
                    arg.text = arg.text.replace(&mark, item);
                }
            }
            _ => rest.extend(items.into_iter().map(Arg::plain)),
        }
    }
    run.start(&rest, stdin, sink)
}

fn shell(run: &mut Run<'_>, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    let mut at = 1;
    while let Some(flag) = argv.get(at).map(|it| it.text.as_str()).filter(|it| it.starts_with(['-', '+'])) {
        at += 1;
        if !flag.starts_with("--") && flag.contains('c') {
            let script = argv.get(at).map(|it| it.text.clone()).unwrap_or_default();
            let args = argv.get(at + 2..).unwrap_or_default().to_vec();
            return run.sub_script(&script, args, sink);
        }
        if flag == "-o" {
            at += 1;
        }
    }
    match argv.get(at) {
        Some(_) => direct(run, &argv[at..], sink),
        None => match stdin.content.clone() {
            Some(script) => run.sub_script(&script, Vec::new(), sink),
            None => Stream::default(),
        },
    }
}

/// A script of the session that is started by its path.
fn direct(run: &mut Run<'_>, argv: &[Arg], sink: &Sink) -> Stream {
    let Some(path) = argv.first().map(|it| run.scene.resolve(&it.text)) else { return Stream::default() };
    let Some(content) = run.scene.ledger.content(&path) else { return Stream::default() };
    if content.starts_with("#!") && content.lines().next().is_some_and(|it| it.contains("python")) {
        return python::run(run, &content, argv, &Stream::default());
    }
    if matches!(&*super::ledger::extension(&path), "py" | "js") {
        return Stream::default();
    }
    run.sub_script(&content, argv[1..].to_vec(), sink)
}

fn find(run: &mut Run<'_>, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    probe::other(run.scene, "find", &Words::new(argv));
    let Some(at) = argv.iter().position(|it| matches!(it.text.as_str(), "-exec" | "-execdir" | "-ok")) else {
        return Stream::default();
    };
    let inner: Vec<Arg> =
        argv[at + 1..].iter().take_while(|it| it.text != ";" && it.text != "+").cloned().collect();
    let inner: Vec<Arg> =
        inner.into_iter().map(|it| if it.text == "{}" { Arg::plain("*") } else { it }).collect();
    if inner.is_empty() { Stream::default() } else { run.start(&inner, stdin, sink) }
}

fn python_program(run: &mut Run<'_>, words: &Words<'_>, stdin: &Stream, sink: &Sink) -> Stream {
    let argv = words.all();
    let mut at = 1;
    while let Some(arg) = argv.get(at) {
        let text = arg.text.as_str();
        match text {
            "run" if argv[0].text == "uv" => at += 1,
            "-c" => {
                let code: Rc<str> = argv.get(at + 1).map(|it| it.text.as_str()).unwrap_or_default().into();
                return python::run(run, &code, argv.get(at + 1..).unwrap_or_default(), stdin);
            }
            "-m" => {
                let module = argv.get(at + 1).map_or("", |it| it.text.as_str());
                return python_module(run, module, argv.get(at + 1..).unwrap_or_default(), stdin, sink);
            }
            "-" => break,
            "-W" | "-X" => at += 2,
            _ if text.starts_with('-') => at += 1,
            _ if is_python(text) => at += 1,
            _ => break,
        }
    }
    match argv.get(at) {
        Some(file) if file.text != "-" => {
            let path = file.text.clone();
            let resolved = run.scene.resolve(&path);
            let known = run.scene.text(&path);
            let py_artifact = super::ledger::extension(&run.scene.ledger.artifact) == "py";
            let content = run.scene.ledger.content(&resolved);
            let is_drawing = known.is_some_and(|it| !it.render().is_empty());
            let mistyped = known.is_none() && py_artifact && run.scene.ledger.meant(&resolved).is_some();
            if py_artifact && (is_drawing || mistyped) {
                let shown =
                    run.scene.render(known, &path, argv[at + 1..].iter().any(|it| it.varies), "python");
                python::draw_outputs(run.scene, content.as_deref().unwrap_or_default(), &argv[at..], shown);
                return Stream::default();
            }
            match content {
                Some(content) => python::run(run, &content, &argv[at..], stdin),
                None => Stream::default(),
            }
        }
        _ => match stdin.content.clone() {
            Some(code) => python::run(run, &code, argv.get(at..).unwrap_or_default(), &Stream::default()),
            None => Stream::default(),
        },
    }
}

fn python_module(run: &mut Run<'_>, module: &str, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
    match module {
        "py_compile" | "pyflakes" | "ast" | "compileall" | "pylint" | "flake8" | "mypy" | "tabnanny" => {
            let checked = argv
                .iter()
                .skip(1)
                .any(|it| run.scene.text(&it.text).is_some_and(super::ledger::Text::is_answer));
            if checked {
                run.scene.note(Fact::CheckedAnswer, module);
            }
            Stream::default()
        }
        "pip" => {
            run.scene.note(Fact::CheckedTools, "pip");
            Stream::default()
        }
        "json.tool" => stdin.clone(),
        module if render::is_renderer(module) => render::run(run, module, argv, stdin, sink),
        _ => Stream::default(),
    }
}

/// A script for Node: what it shows of itself by its words.
fn node_program(run: &mut Run<'_>, words: &Words<'_>, stdin: &Stream) -> Stream {
    let argv = words.all();
    let inline = argv
        .iter()
        .position(|it| matches!(it.text.as_str(), "-e" | "--eval" | "-p"))
        .and_then(|at| argv.get(at + 1));
    let code: Option<Rc<str>> = if let Some(code) = inline {
        Some(code.text.as_str().into())
    } else {
        let file = words.operands().next().map(str::to_owned);
        let content = file.and_then(|it| run.scene.ledger.content(&run.scene.resolve(&it)));
        content.or_else(|| stdin.content.clone())
    };
    if let Some(code) = code {
        if code.contains("require(") && code.len() < 160 && !code.contains("readFile") {
            run.scene.note(Fact::CheckedTools, &code);
        }
        render::browser_script(run.scene, &code, &words.operands().collect::<Vec<_>>());
    }
    Stream::default()
}
