//! A dry run of a script: words are expanded as far as they can be known, loops go round a few times, functions are called,
//! streams are followed through pipes. Nothing is started; each program is handed to [`crate::actions::programs`].

use std::collections::HashMap;
use std::rc::Rc;

use super::{Node, Redirect, RedirectKind, Word};
use crate::actions::ledger::{Pictures, Text};
use crate::actions::programs::{self, Arg};
use crate::actions::scene::{Made, Scene};

/// What flows out of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Whose text it is.
    pub(crate) text: Option<Text>,
    /// Whether it is all of that text, unchanged.
    pub(crate) verbatim: bool,
    /// The text itself, where it is known.
    pub(crate) content: Option<Rc<str>>,
    /// What can be seen in it, if it is a picture.
    pub(crate) pictures: Pictures,
    /// Whether it is another one in each turn of a loop.
    pub(crate) varies: bool,
    /// Where it was read from, for reasons.
    pub(crate) path: String,
    /// Whether the programs that made it already put it where it goes.
    pub(crate) delivered: bool,
}

/// Where the output of a program goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sink {
    /// To the model.
    Shown,
    /// Into the next program.
    Piped,
    /// Into a file.
    File { path: String, append: bool },
}

/// The shell of one script.
pub(crate) struct Run<'s> {
    pub(crate) scene: &'s mut Scene,
    pub(super) vars: HashMap<String, Value>,
    functions: HashMap<String, Rc<Node>>,
    pub(super) args: Vec<Arg>,
    depth: u32,
}

#[derive(Clone, Default)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) varies: bool,
}

impl<'s> Run<'s> {
    /// Deepest nesting of functions, scripts and `bash -c`.
    const DEEPEST: u32 = 12;
    /// Turns of a loop that are looked at.
    const TURNS: usize = 3;
    /// Longest word that is put together.
    pub(super) const WORD_CAP: usize = 64 << 10;

    pub(crate) fn new(scene: &'s mut Scene, args: Vec<Arg>, depth: u32) -> Self {
        Self { scene, vars: HashMap::new(), functions: HashMap::new(), args, depth }
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Runs a script given as text; its output goes to `sink`.
    pub(crate) fn script(&mut self, script: &str, sink: &Sink) -> Stream {
        if self.depth >= Self::DEEPEST {
            return Stream::default();
        }
        self.depth += 1;
        let tree = super::parse(script);
        let out = self.node(&tree, &Stream::default(), sink);
        self.depth -= 1;
        Stream { delivered: true, ..out }
    }

    /// Runs a script in a shell of its own.
    pub(crate) fn sub_script(&mut self, script: &str, args: Vec<Arg>, sink: &Sink) -> Stream {
        let cwd = self.scene.cwd.clone();
        let mut inner = Run::new(self.scene, args, self.depth + 1);
        let out = inner.script(script, sink);
        self.scene.cwd = cwd;
        out
    }

    pub(super) fn node(&mut self, node: &Node, stdin: &Stream, sink: &Sink) -> Stream {
        if !self.scene.spend() {
            return Stream::default();
        }
        match node {
            Node::Simple { assigns, words, redirects } => self.simple(assigns, words, redirects, stdin, sink),
            Node::Pipe(all) => self.pipe(all, stdin, sink),
            Node::List(all) => {
                let mut out = Stream::default();
                for node in all {
                    let next = self.node(node, stdin, sink);
                    merge(&mut out, next);
                }
                out
            }
            Node::Group { body, subshell, redirects } => {
                let (stdin, sink) = self.redirected(redirects, stdin, sink);
                let cwd = subshell.then(|| self.scene.cwd.clone());
                let out = self.node(body, &stdin, &sink);
                if let Some(cwd) = cwd {
                    self.scene.cwd = cwd;
                }
                out
            }
            Node::Loop { var, over, condition, body, redirects } => {
                self.turns(var.as_deref(), over, condition, body, redirects, stdin, sink)
            }
            Node::Function { name, body } => {
                self.functions.insert(name.clone(), Rc::new((**body).clone()));
                Stream::default()
            }
        }
    }

    fn turns(
        &mut self,
        var: Option<&str>,
        over: &[Word],
        condition: &Node,
        body: &Node,
        redirects: &[Redirect],
        stdin: &Stream,
        sink: &Sink,
    ) -> Stream {
        let (stdin, sink) = self.redirected(redirects, stdin, sink);
        let mut out = Stream::default();
        merge(&mut out, self.node(condition, &stdin, &sink));
        let values: Vec<Value> = match var {
            Some(_) => self.fields(over),
            None => vec![Value::default()],
        };
        // One turn is no loop over anything.
        let is_loop = values.len() != 1 || values.iter().any(|it| it.text.contains('*'));
        self.scene.loops += u32::from(is_loop);
        for value in values.into_iter().take(Self::TURNS) {
            if let Some(name) = var {
                self.vars.insert(name.to_owned(), Value { text: value.text, varies: is_loop });
            }
            let before = self.vars.clone();
            let turn = self.node(body, &stdin, &sink);
            if is_loop {
                // What is set in a turn is another thing in the next.
                for (name, value) in &mut self.vars {
                    value.varies |= !before.contains_key(name);
                }
            }
            merge(&mut out, turn);
        }
        self.scene.loops -= u32::from(is_loop);
        out
    }

    fn pipe(&mut self, all: &[Node], stdin: &Stream, sink: &Sink) -> Stream {
        let mut stream = stdin.clone();
        let cwd = self.scene.cwd.clone();
        for (at, node) in all.iter().enumerate() {
            let last = at + 1 == all.len();
            stream = self.node(node, &stream, if last { sink } else { &Sink::Piped });
        }
        self.scene.cwd = cwd;
        stream
    }

    /// Standard input and output after redirections.
    fn redirected(&mut self, redirects: &[Redirect], stdin: &Stream, sink: &Sink) -> (Stream, Sink) {
        let (mut stdin, mut sink) = (stdin.clone(), sink.clone());
        for redirect in redirects {
            match &redirect.kind {
                RedirectKind::Read(word) => {
                    let path = self.expand(word).text;
                    stdin = programs::open(self.scene, &path);
                }
                RedirectKind::Text(word) => {
                    let value = self.expand(word);
                    stdin = Stream {
                        content: Some(value.text.into()),
                        varies: value.varies,
                        ..Stream::default()
                    };
                }
                RedirectKind::Write(word) | RedirectKind::Append(word)
                    if redirect.fd == 1 || redirect.fd == 3 =>
                {
                    let path = self.expand(word).text;
                    sink = Sink::File { path, append: matches!(redirect.kind, RedirectKind::Append(_)) };
                }
                RedirectKind::Write(_) | RedirectKind::Append(_) | RedirectKind::Duplicate => {}
            }
        }
        (stdin, sink)
    }

    fn simple(
        &mut self,
        assigns: &[(String, Vec<Word>)],
        words: &[Word],
        redirects: &[Redirect],
        stdin: &Stream,
        sink: &Sink,
    ) -> Stream {
        for (name, value) in assigns {
            let fields = self.fields(value);
            let varies = fields.iter().any(|it| it.varies);
            let text = fields.into_iter().map(|it| it.text).collect::<Vec<_>>().join(" ");
            self.vars.insert(name.clone(), Value { text, varies });
        }
        let (stdin, sink) = self.redirected(redirects, stdin, sink);
        let mut argv: Vec<Arg> =
            self.fields(words).into_iter().map(|it| Arg { text: it.text, varies: it.varies }).collect();
        if argv.is_empty() {
            return Stream::default();
        }
        let name = argv[0].text.clone();
        if let Some(body) = self.functions.get(&name).cloned() {
            return self.call(&body, argv.split_off(1), &stdin, &sink);
        }
        let out = self.start(&argv, &stdin, &sink);
        self.deliver(out, &sink)
    }

    fn call(&mut self, body: &Node, args: Vec<Arg>, stdin: &Stream, sink: &Sink) -> Stream {
        if self.depth >= Self::DEEPEST {
            return Stream::default();
        }
        self.depth += 1;
        let outer = std::mem::replace(&mut self.args, args);
        let out = self.node(body, stdin, sink);
        self.args = outer;
        self.depth -= 1;
        out
    }

    /// Starts a program, or does what a builtin does.
    pub(crate) fn start(&mut self, argv: &[Arg], stdin: &Stream, sink: &Sink) -> Stream {
        if !self.scene.spend() {
            return Stream::default();
        }
        let word = |at: usize| argv.get(at).map_or("", |it| it.text.as_str());
        match word(0) {
            "cd" | "pushd" => {
                let to = if word(1) == "--" { word(2) } else { word(1) };
                let resolved = self.scene.resolve(if to.is_empty() { "~" } else { to });
                self.scene.cwd = if resolved == "." { String::new() } else { resolved };
                Stream::default()
            }
            "set" if word(1) == "--" => {
                self.args = argv.iter().skip(2).cloned().collect();
                Stream::default()
            }
            "shift" => {
                self.args = self.args.iter().skip(1).cloned().collect();
                Stream::default()
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for arg in &argv[1..] {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        self.vars
                            .insert(name.to_owned(), Value { text: value.to_owned(), varies: arg.varies });
                    }
                }
                Stream::default()
            }
            "read" => {
                for arg in argv[1..].iter().filter(|it| !it.text.starts_with('-')) {
                    self.vars.insert(arg.text.clone(), Value { text: "*".to_owned(), varies: true });
                }
                Stream::default()
            }
            "eval" => {
                let script = argv[1..].iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
                self.script(&script, sink)
            }
            "source" | "." => match self.scene.ledger.content(&self.scene.resolve(word(1))) {
                Some(script) => self.script(&script, sink),
                None => Stream::default(),
            },
            _ => programs::start(self, argv, stdin, sink),
        }
    }

    /// What becomes of the output of a program.
    fn deliver(&mut self, out: Stream, sink: &Sink) -> Stream {
        if out.delivered {
            return Stream { delivered: false, ..out };
        }
        match sink {
            Sink::Piped => out,
            Sink::Shown => {
                self.scene.show(out.text, &out.path);
                if let (None, Some(said)) = (out.text, out.content.as_deref()) {
                    self.scene.remark(said);
                }
                out
            }
            Sink::File { path, append } => {
                if path.is_empty() || path.starts_with("/dev/") {
                    return Stream::default();
                }
                let resolved = self.scene.resolve(path);
                if self.scene.ledger.is_artifact(&resolved) {
                    self.scene.becomes_artifact(&out.path, out.text);
                }
                if out.pictures.is_empty() {
                    self.scene.write(
                        path,
                        &Made {
                            content: out.content.as_deref(),
                            from: out.text,
                            verbatim: out.verbatim && !append,
                            varies: out.varies,
                            amends: *append,
                        },
                    );
                } else {
                    self.scene.draw(path, out.pictures);
                }
                Stream::default()
            }
        }
    }
}

fn merge(out: &mut Stream, next: Stream) {
    let content = match (out.content.take(), next.content) {
        (Some(a), Some(b)) if a.len() + b.len() < 1 << 16 => Some(format!("{a}{b}").into()),
        (a, b) => b.or(a),
    };
    let text = out.text.or(next.text);
    let path = if next.path.is_empty() { std::mem::take(&mut out.path) } else { next.path };
    *out = Stream {
        text,
        verbatim: next.verbatim && out.text.is_none(),
        content,
        pictures: out.pictures | next.pictures,
        varies: out.varies || next.varies,
        path,
        delivered: false,
    };
}
