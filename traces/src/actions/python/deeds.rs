//! Calls: what is done to pictures, files and programs.

use std::rc::Rc;

use super::calls::{Deed, deed};
use super::lex::Token;
use super::read::{CALLS, DEEPEST, Func, Given, Reader};
use super::tokens::split;
use super::value::{Val, blank};
use crate::actions::ledger::{Pictures, Text, extension};
use crate::actions::programs::Arg;
use crate::actions::scene::{Made, is_picture};
use crate::actions::shell::{Sink, Stream};

impl Reader<'_, '_> {
    pub(super) fn called(&mut self, name: &str, receiver: Val, inner: &[Token], depth: u32) -> Val {
        if depth > DEEPEST || !self.run.scene.spend() {
            return receiver;
        }
        let mut given = Vec::new();
        for tokens in split(inner, ",").into_iter().take(64) {
            let keyword = match (tokens.first().and_then(Token::name), tokens.get(1)) {
                (Some(name), Some(equals)) if equals.is("=") => Some(name.to_owned()),
                _ => None,
            };
            let tokens = if keyword.is_some() { &tokens[2..] } else { tokens };
            let tokens = if tokens.first().is_some_and(|it| it.is("*") || it.is("**")) {
                &tokens[1..]
            } else {
                tokens
            };
            let val = self.eval(tokens, depth + 1);
            given.push(Given { keyword, val, tokens });
        }
        let last = name.rsplit('.').next().unwrap_or(name).to_owned();
        if let Some(func) = self.funcs.get(&last).cloned() {
            return self.own(&func, &given);
        }
        let mut all = receiver.clone();
        for one in &given {
            all.join(&one.val);
        }
        self.tally.calls += 1;
        match last.as_str() {
            "print" | "write" if last == "print" || name.ends_with("stdout.write") => {
                let file =
                    given.iter().find(|it| it.keyword.as_deref() == Some("file")).map(|it| it.val.clone());
                if let Some(file) = file.filter(|it| it.writes.is_some()) {
                    self.write(name, &file, &given);
                    return Val::default();
                }
                self.tally.prints += 1;
                self.tally.printed_pixels |= given.iter().any(|it| it.val.pixels);
                self.tally.printed_pics |= all.pics;
                return Val::default();
            }
            "open" if name != "Image.open" && !name.ends_with("Image.open") => {
                return self.open(&receiver, &given);
            }
            "read" | "read_text" | "readlines" | "read_bytes" => {
                let path = receiver.first().to_owned();
                let text = receiver.text.or_else(|| self.run.scene.text(&path));
                self.tally.read(text, &path);
                return Val { text, strs: Vec::new(), ..receiver };
            }
            "replace" | "sub" | "subn" | "format" | "format_map" | "substitute" if name != "os.replace" => {
                all.changed = true;
                if last == "format" {
                    all.strs = receiver
                        .strs
                        .iter()
                        .map(|it| self.built(blank(it, given.first().map(|it| it.val.first()))))
                        .collect();
                } else {
                    all.strs.clear();
                }
                return all;
            }
            "parse_args" | "parse_known_args" => {
                let mut words = Val::default();
                for item in self.argv.clone().iter().skip(1).take(8) {
                    let one = self.literal(&item.text, false);
                    words.join(&one);
                }
                return words;
            }
            "append" | "extend" | "add" | "insert" => {
                let mut items: Vec<Arg> = Vec::new();
                for one in &given {
                    if one.val.items.is_empty() {
                        items.push(Arg { text: one.val.first().to_owned(), varies: one.val.varies });
                    } else {
                        items.extend(one.val.items.iter().cloned());
                    }
                }
                return Val { items, ..all };
            }
            "any" | "all" if !all.pics.is_empty() => self.tally.deed(Deed::Places, &all),
            "load" | "array" | "asarray" | "convert" | "astype" | "copy" | "resize" | "split" | "shape" => {}
            "imshow" => self.tally.plotted |= all.pics,
            "Path" | "PurePath" | "str" | "abspath" | "resolve" => {
                let path = given.first().map(|it| it.val.clone()).unwrap_or_default();
                return if given.is_empty() { receiver } else { path };
            }
            "join" if name == "os.path.join" => {
                let path = self.built(given.iter().map(|it| it.val.first()).collect::<Vec<_>>().join("/"));
                return Val { varies: all.varies, ..self.literal(&path, false) };
            }
            "append_child" | "exit" | "Figure" => {}
            _ => {}
        }
        match deed(name) {
            Some(deed) => self.deed(deed, name, &receiver, &given, all),
            None => all,
        }
    }

    pub(super) fn deed(
        &mut self,
        deed: Deed,
        name: &str,
        receiver: &Val,
        given: &[Given<'_>],
        mut all: Val,
    ) -> Val {
        self.tally.deed(deed, &all);
        match deed {
            Deed::Difference | Deed::Compare => {
                if all.pics.sides() > 1
                    || given.len() > 1 && !all.pics.is_empty() && all.pics.any(Pictures::RENDERS)
                {
                    self.tally.compared |= all.pics;
                }
                all.diff = true;
                all
            }
            Deed::Places => {
                // `flatnonzero(diff(row))` is a list of edges.
                let edges = given.iter().any(|it| it.tokens.iter().any(|it| it.name() == Some("diff")));
                self.tally.edges += u32::from(edges);
                all
            }
            Deed::Gaps => {
                self.tally.gaps += u32::from(!all.diff);
                all
            }
            Deed::Pixels => {
                all.pixels = true;
                all
            }
            Deed::Crop => {
                self.tally.indexed |= !receiver.pics.is_empty();
                all.pics = receiver.pics.part();
                all
            }
            Deed::Save => {
                self.save(receiver, given);
                Val::default()
            }
            Deed::WriteText => {
                self.write(name, receiver, given);
                Val::default()
            }
            Deed::Command => {
                self.command(given);
                all.strs.clear();
                all
            }
            Deed::Search => {
                let funcs: Vec<Func> = given
                    .iter()
                    .filter_map(|it| self.funcs.get(it.tokens.first()?.name()?).cloned())
                    .collect();
                self.run.scene.loops += 1;
                for func in funcs {
                    let unknown = Val { varies: true, ..Val::default() };
                    let given = [Given { keyword: None, val: unknown, tokens: &[] }];
                    self.own(&func, &given);
                }
                self.run.scene.loops -= 1;
                all
            }
            Deed::Seed => {
                self.tally.seeded |= self.run.scene.loops > 0;
                all
            }
            Deed::OpenPage => {
                self.tally.page = given
                    .iter()
                    .map(|it| it.val.first().to_owned())
                    .find(|it| !it.is_empty())
                    .or(self.tally.page.take());
                if all.text.is_some() {
                    self.tally.page_text = all.text;
                }
                all
            }
            Deed::Screenshot => {
                let path = self.tally.page.clone().unwrap_or_default();
                self.tally.shot = true;
                let text = self.tally.page_text.or_else(|| self.run.scene.text(&path));
                let vary = self.run.scene.loops > 0 && all.varies;
                let shown = self.run.scene.render(text, &path, vary, "browser");
                for one in given {
                    let file = one.val.first();
                    if is_picture(file) || extension(file) == "pdf" {
                        self.run.scene.draw(file, shown);
                    }
                }
                Val { pics: shown, ..Val::default() }
            }
            Deed::RunProgram => {
                let path = given
                    .iter()
                    .map(|it| it.val.first())
                    .find(|it| extension(it) == "py")
                    .unwrap_or_default()
                    .to_owned();
                let text = all.text.or_else(|| self.run.scene.text(&path));
                if text.is_some_and(|it| !it.render().is_empty()) {
                    let text = if all.changed { Some(Text::Variant) } else { text };
                    let shown = self.run.scene.render(text, &path, false, name);
                    self.tally.ran_answer = true;
                    super::draw_outputs(self.run.scene, "", &[], shown);
                }
                all
            }
            Deed::DrawVector => {
                let input = given
                    .iter()
                    .chain(std::iter::once(&Given { keyword: None, val: receiver.clone(), tokens: &[] }))
                    .map(|it| it.val.first().to_owned())
                    .find(|it| matches!(&*extension(it), "svg" | "html" | "pdf"));
                if let Some(input) = input {
                    let from = self.run.scene.pictures(&input);
                    let text = self.run.scene.text(&input);
                    let shown = if from.is_empty() {
                        self.run.scene.render(text, &input, self.run.scene.loops > 0 && all.varies, name)
                    } else {
                        from
                    };
                    for one in given.iter().filter(|it| is_picture(it.val.first())) {
                        self.run.scene.draw(one.val.first(), shown);
                    }
                    all.pics |= shown;
                }
                all
            }
            _ => all,
        }
    }

    /// Runs one of the program's own functions.
    pub(super) fn own(&mut self, func: &Func, given: &[Given<'_>]) -> Val {
        let mut all = Val::default();
        for one in given {
            all.join(&one.val);
        }
        if self.calls >= CALLS {
            return all;
        }
        self.calls += 1;
        let mut kept = Vec::new();
        let positional = given.iter().filter(|it| it.keyword.is_none());
        let named = given.iter().filter_map(|it| Some((it.keyword.clone()?, it.val.clone())));
        let bound: Vec<(String, Val)> =
            func.params.iter().cloned().zip(positional.map(|it| it.val.clone())).chain(named).collect();
        for (name, val) in bound {
            kept.push((name.clone(), self.vars.insert(name, val)));
        }
        let outer = std::mem::take(&mut self.returned);
        let inline = Rc::clone(&func.inline);
        if !inline.is_empty() {
            self.statement(&inline, func.from, func.from);
        }
        self.block(func.from, func.to);
        let mut returned = std::mem::replace(&mut self.returned, outer);
        for (name, val) in kept {
            match val {
                Some(val) => self.vars.insert(name, val),
                None => self.vars.remove(&name),
            };
        }
        self.calls -= 1;
        returned.varies |= all.varies;
        returned
    }

    pub(super) fn open(&mut self, receiver: &Val, given: &[Given<'_>]) -> Val {
        let is_method = !receiver.strs.is_empty();
        let path = if is_method {
            receiver.first().to_owned()
        } else {
            given.first().map(|it| it.val.first().to_owned()).unwrap_or_default()
        };
        let mode = given
            .iter()
            .skip(usize::from(!is_method))
            .find(|it| it.keyword.as_deref().is_none_or(|it| it == "mode"));
        let mode = mode.map(|it| it.val.first().to_owned()).unwrap_or_default();
        let varies = given.first().is_some_and(|it| it.val.varies);
        if mode.len() < 5 && mode.contains(['w', 'a', 'x']) {
            return Val { writes: Some(path), varies, ..Val::default() };
        }
        let text = self.run.scene.text(&path);
        let pics = self.run.scene.pictures(&path);
        self.tally.read(text, &path);
        Val { text, pics, varies, strs: vec![path], ..Val::default() }
    }

    pub(super) fn write(&mut self, name: &str, receiver: &Val, given: &[Given<'_>]) {
        let (path, content) = if name.starts_with("shutil") || name.starts_with("os.") {
            let from = given.first().map(|it| it.val.first().to_owned()).unwrap_or_default();
            let to = given.get(1).map(|it| it.val.first().to_owned()).unwrap_or_default();
            let known = self.run.scene.known(&from);
            if known.as_ref().is_some_and(|it| !it.pictures.is_empty()) {
                self.run.scene.draw(&to, known.map(|it| it.pictures).unwrap_or_default());
                return;
            }
            (to, Val { text: known.and_then(|it| it.text), ..Val::default() })
        } else {
            let mut path = receiver.writes.clone().unwrap_or_else(|| receiver.first().to_owned());
            if path.is_empty() {
                // `tree.write(path)`, `json.dump(what, file)`.
                let file = given.iter().find_map(|it| it.val.writes.clone());
                let named = given.first().map(|it| it.val.first()).filter(|it| !extension(it).is_empty());
                path = file.or_else(|| named.map(str::to_owned)).unwrap_or_default();
            }
            (path, given.first().map(|it| it.val.clone()).unwrap_or_default())
        };
        if path.is_empty() {
            return;
        }
        let from = content.text.filter(|it| *it != Text::Task).or_else(|| {
            // Text of its own file is what is changed in place.
            receiver.text.filter(|_| content.changed)
        });
        let literal = (from.is_none() && !content.strs.is_empty()).then(|| content.strs.join(""));
        let made = Made {
            content: literal.as_deref(),
            from,
            verbatim: from.is_some()
                && !content.changed
                && (name.starts_with("shutil") || name.starts_with("os.")),
            varies: content.varies || receiver.varies,
            amends: false,
        };
        let text = self.run.scene.write(&path, &made);
        self.tally.wrote = true;
        self.tally.wrote_answer |= text.is_answer();
    }

    pub(super) fn save(&mut self, receiver: &Val, given: &[Given<'_>]) {
        let Some(at) = given.iter().position(|it| {
            is_picture(it.val.first()) || matches!(&*extension(it.val.first()), "pdf" | "svg")
        }) else {
            return;
        };
        let path = given[at].val.first().to_owned();
        let mut shown = receiver.clone();
        for (other, one) in given.iter().enumerate() {
            if other != at {
                shown.join(&one.val);
            }
        }
        shown.pics |= self.tally.plotted;
        let pics = shown.pics;
        if pics.is_empty() {
            self.tally.drew = true;
            self.run.scene.draw(&path, Pictures::TRIAL);
        } else if shown.diff {
            self.run.scene.draw(&path, pics | Pictures::DIFFERENCE);
            self.tally.compared |= pics;
        } else {
            if pics.any(Pictures::SOURCE_PART) {
                self.tally.cut = true;
            }
            if pics.sides() > 1 {
                self.run.scene.join(&[pics], &path);
            }
            self.run.scene.draw(&path, pics);
        }
    }

    pub(super) fn command(&mut self, given: &[Given<'_>]) {
        let Some(first) = given.first() else { return };
        self.tally.commands = true;
        let cwd =
            given.iter().find(|it| it.keyword.as_deref() == Some("cwd")).map(|it| it.val.first().to_owned());
        let outer = self.run.scene.cwd.clone();
        if let Some(cwd) = cwd.filter(|it| !it.is_empty()) {
            self.run.scene.cwd = self.run.scene.resolve(&cwd);
        }
        let mut argv = first.val.items.clone();
        if argv.is_empty() && given.len() > 1 && given[1].keyword.is_none() && !first.val.strs.is_empty() {
            argv = given
                .iter()
                .filter(|it| it.keyword.is_none())
                .map(|it| Arg { text: it.val.first().to_owned(), varies: it.val.varies })
                .collect();
        }
        if argv.is_empty() {
            let script = first.val.first().to_owned();
            if first.val.varies && self.run.scene.loops > 0 {
                self.tally.swept_command = true;
            }
            self.run.script(&script, &Sink::Piped);
        } else {
            let stdin = given.iter().find(|it| it.keyword.as_deref() == Some("input"));
            let stdin = stdin.map(|it| Stream {
                text: it.val.text,
                verbatim: !it.val.changed,
                varies: it.val.varies,
                content: it.val.strs.first().map(|it| it.as_str().into()),
                ..Stream::default()
            });
            let out = self.run.start(&argv, &stdin.unwrap_or_default(), &Sink::Piped);
            self.tally.read(out.text, &out.path);
        }
        self.run.scene.cwd = outer;
    }
}
