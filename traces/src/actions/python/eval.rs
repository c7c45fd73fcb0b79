//! Expressions.

use super::calls::Deed;
use super::lex::Token;
use super::read::{DEEPEST, Reader};
use super::tokens::{close, names, sliced_area, split, top_level};
use super::value::{Val, percent, within_cap};
use crate::actions::ledger::extension;
use crate::actions::programs::Arg;
use crate::actions::scene::is_picture;

impl Reader<'_, '_> {
    /// What is known of the value of an expression.
    pub(super) fn eval(&mut self, tokens: &[Token], depth: u32) -> Val {
        if depth > DEEPEST || !self.run.scene.spend() {
            return Val::default();
        }
        self.bind_comprehensions(tokens, depth);
        let mut all = Val::default();
        let mut last = Val::default();
        let mut pending: Option<&'static str> = None;
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                Token::Op(op @ ("-" | "!=" | "==" | "^" | "+" | "/" | "%" | "<" | ">" | "<=" | ">=")) => {
                    pending = Some(op);
                    // By a number it is a change of scale, by what was measured it is data.
                    self.tally.divides |=
                        *op == "/" && matches!(tokens.get(at + 1), Some(Token::Name(_) | Token::Op("(")));
                    at += 1;
                    continue;
                }
                Token::Op("(" | "[" | "{") | Token::Text { .. } | Token::Number(_) | Token::Name(_) => {}
                Token::Op(",") => {
                    all.absorb(std::mem::take(&mut last));
                    pending = None;
                    at += 1;
                    continue;
                }
                Token::Op(_) => {
                    pending = None;
                    at += 1;
                    continue;
                }
            }
            if tokens[at].name().is_some_and(|it| {
                matches!(
                    it,
                    "for"
                        | "in"
                        | "if"
                        | "else"
                        | "and"
                        | "or"
                        | "not"
                        | "is"
                        | "lambda"
                        | "await"
                        | "as"
                        | "yield"
                )
            }) {
                at += 1;
                pending = None;
                continue;
            }
            let (val, next) = self.primary(tokens, at, depth);
            let next = next.max(at + 1);
            match pending.take() {
                Some("-" | "^") => self.meet(&mut last, &val),
                // What a pixel is asked for is no longer the pixel.
                Some("!=" | "==") => {
                    self.meet(&mut last, &val);
                    last.pixels = false;
                }
                Some("<" | ">" | "<=" | ">=") => {
                    last.join(&val);
                    last.pixels = false;
                }
                Some("+") if !last.strs.is_empty() && !val.strs.is_empty() && last.items.is_empty() => {
                    let both = self.built(format!("{}{}", last.first(), val.first()));
                    last.join(&val);
                    last.strs = vec![both];
                }
                Some("/") if !last.strs.is_empty() && !val.strs.is_empty() => {
                    let both = self.built(format!("{}/{}", last.first().trim_end_matches('/'), val.first()));
                    let found = self.literal(&both, false);
                    last.join(&val);
                    last.join(&found);
                    last.strs = vec![both];
                }
                Some("%") if !last.strs.is_empty() => {
                    let value = val.strs.first().cloned();
                    let filled: Vec<String> =
                        last.strs.iter().map(|it| self.built(percent(it, value.as_deref()))).collect();
                    last.join(&Val { strs: Vec::new(), ..val });
                    let found = self.literal(filled.first().map_or("", String::as_str), false);
                    last.join(&Val { strs: Vec::new(), ..found });
                    last.strs = filled;
                }
                _ => last.absorb(val),
            }
            at = next;
        }
        all.absorb(last);
        all
    }

    /// Two values are set against each other.
    pub(super) fn meet(&mut self, last: &mut Val, val: &Val) {
        let both = last.pics | val.pics;
        if !last.pics.is_empty() && !val.pics.is_empty() && both.sides() > 1 {
            self.tally.compared |= both;
            last.diff = true;
        }
        last.join(val);
    }

    /// `for x in y` inside an expression binds before what stands in front of it is read.
    pub(super) fn bind_comprehensions(&mut self, tokens: &[Token], depth: u32) {
        let mut level = 0_i32;
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                Token::Op("(" | "[" | "{") => level += 1,
                Token::Op(")" | "]" | "}") => level -= 1,
                Token::Name(name) if level == 0 && name == "for" && at > 0 => {
                    let rest = &tokens[at + 1..];
                    let Some(within) = rest.iter().position(|it| it.name() == Some("in")) else { break };
                    let from = &rest[within + 1..];
                    let end =
                        top_level(from, |it| matches!(it.name(), Some("for" | "if"))).unwrap_or(from.len());
                    let val = self.eval(&from[..end], depth + 1);
                    for name in names(&rest[..within]) {
                        self.vars.insert(name, Val { items: Vec::new(), ..val.clone() });
                    }
                    at += within + end;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// One operand with what is called on it and taken out of it; where it ends.
    pub(super) fn primary(&mut self, tokens: &[Token], from: usize, depth: u32) -> (Val, usize) {
        let mut at = from;
        let mut name = String::new();
        let mut val = match &tokens[at] {
            Token::Text { value, formatted } => {
                at += 1;
                let text = value.clone();
                if self.tally.words.len() < 1 << 14 {
                    let end = text.char_indices().nth(400).map_or(text.len(), |(end, _)| end);
                    self.tally.words.push_str(&text[..end]);
                    self.tally.words.push(' ');
                }
                self.literal(&text, *formatted)
            }
            Token::Number(number) => {
                at += 1;
                Val { strs: vec![number.clone()], ..Val::default() }
            }
            Token::Name(first) => {
                at += 1;
                name.clone_from(first);
                let weight = self.vars.get(first).map_or(0, Val::weight);
                if self.run.scene.spend_on(weight) {
                    self.vars.get(first).cloned().unwrap_or_default()
                } else {
                    Val::default()
                }
            }
            Token::Op("[") => {
                let end = close(tokens, at);
                let inner = tokens.get(at + 1..end).unwrap_or_default();
                at = end + 1;
                self.list(inner, depth)
            }
            Token::Op(_) => {
                let end = close(tokens, at);
                let inner = tokens.get(at + 1..end).unwrap_or_default();
                at = end + 1;
                self.eval(inner, depth + 1)
            }
        };
        while let Some(token) = tokens.get(at) {
            match token {
                Token::Op(".") => {
                    let Some(attribute) = tokens.get(at + 1).and_then(Token::name) else { break };
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.push_str(attribute);
                    if name == "sys.argv" {
                        val = Val { items: self.argv.clone(), ..Val::default() };
                    }
                    if matches!(attribute, "ttflist" | "fontManager") {
                        self.tally.deed(Deed::Font, &Val::default());
                    }
                    if matches!(attribute, "__version__" | "version") {
                        self.tally.versions += 1;
                    }
                    if matches!(
                        attribute,
                        "size" | "shape" | "width" | "height" | "mode" | "dtype" | "format"
                    ) {
                        val = Val { varies: val.varies, ..Val::default() };
                    }
                    at += 2;
                }
                Token::Op("(") => {
                    let end = close(tokens, at);
                    let inner = tokens.get(at + 1..end).unwrap_or_default();
                    val = self.called(&name, val, inner, depth);
                    name = format!("{}()", name.rsplit('.').next().unwrap_or_default());
                    at = end + 1;
                }
                Token::Op("[") => {
                    let end = close(tokens, at);
                    let inner = tokens.get(at + 1..end).unwrap_or_default();
                    val = self.subscript(val, inner, depth);
                    at = end + 1;
                }
                _ => break,
            }
            if name.len() > 200 {
                name.clear();
            }
        }
        (val, at)
    }

    /// A list: its elements are the words of a command line, should it be one.
    pub(super) fn list(&mut self, inner: &[Token], depth: u32) -> Val {
        let parts = split(inner, ",");
        let comprehends = top_level(inner, |it| it.name() == Some("for")).is_some();
        if comprehends || parts.len() > 200 {
            return self.eval(inner, depth + 1);
        }
        let mut all = Val::default();
        let mut items = Vec::new();
        for part in parts {
            let starred = part.first().is_some_and(|it| it.is("*"));
            let part = if starred { &part[1..] } else { part };
            let val = self.eval(part, depth + 1);
            if !val.items.is_empty() {
                items.extend(val.items.iter().cloned());
            } else if starred {
                items.push(Arg { text: "*".to_owned(), varies: val.varies });
            } else {
                let text = if val.strs.is_empty() { "*" } else { val.first() };
                items.push(Arg { text: text.to_owned(), varies: val.varies });
            }
            all.join(&val);
        }
        items.truncate(Val::MOST_ITEMS);
        all.items = items;
        all
    }

    pub(super) fn subscript(&mut self, val: Val, inner: &[Token], depth: u32) -> Val {
        let index = self.eval(inner, depth + 1);
        let slices = top_level(inner, |it| it.is(":")).is_some();
        let mut out = val;
        if let (false, Some(Token::Number(number)), 1) = (slices, inner.first(), inner.len()) {
            if let Some(item) = number.parse::<usize>().ok().and_then(|it| out.items.get(it)).cloned() {
                return Val { varies: item.varies, ..self.literal(&item.text, false) };
            }
        }
        if slices && !out.items.is_empty() {
            // Some of the program's own words: any of them.
            for item in out.items.clone().iter().skip(1).take(Val::MOST_STRS) {
                let one = self.literal(&item.text, false);
                out.join(&one);
            }
        }
        if !out.pics.is_empty() {
            self.tally.indexed = true;
            if slices {
                out.pics = if inner.iter().any(|it| matches!(it, Token::Op(":" | ","))) && sliced_area(inner)
                {
                    out.pics.part()
                } else {
                    out.pics
                };
            } else if split(inner, ",").len() > 1 && !inner.iter().any(|it| it.is("...")) {
                out.pixels = true;
            }
        }
        out.varies |= index.varies;
        out.diff |= index.diff;
        out
    }

    /// A text that was put together: cut where it is too long, and paid for by its length, so that a program that makes
    /// much of little is not read for longer than any other.
    pub(super) fn built(&mut self, text: String) -> String {
        self.run.scene.spend_on(text.len());
        within_cap(text)
    }

    /// A string: what file it names, if it names one.
    pub(super) fn literal(&mut self, text: &str, formatted: bool) -> Val {
        if text.len() > 300 || text.contains('\n') {
            return Val { varies: formatted && self.formatted_varies(text), ..Val::of_str(text.to_owned()) };
        }
        let mut val = Val::default();
        if formatted {
            let (strs, varies) = self.fill(text);
            val.strs = strs.into_iter().map(|it| self.built(it)).collect();
            val.varies = varies;
        } else {
            val.strs.push(text.to_owned());
        }
        for path in val.strs.clone() {
            if path.contains(char::is_whitespace) && !path.contains('/') {
                continue;
            }
            if is_picture(&path) || matches!(&*extension(&path), "pdf") {
                let pics = self.run.scene.pictures(&path);
                val.pics |= pics;
                self.tally.touched |= pics;
            }
        }
        val
    }

    pub(super) fn formatted_varies(&self, text: &str) -> bool {
        self.fill(&text.chars().take(4000).collect::<String>()).1
    }

    /// The alternatives of a formatted string.
    pub(super) fn fill(&self, text: &str) -> (Vec<String>, bool) {
        let mut all = vec![String::new()];
        let mut varies = false;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            for one in &mut all {
                one.push_str(before);
            }
            if let Some(after) = after.strip_prefix('{') {
                for one in &mut all {
                    one.push('{');
                }
                rest = after;
                continue;
            }
            let (inner, tail) = after.split_once('}').unwrap_or((after, ""));
            let name: String = inner.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let plain = inner == name || inner.split(':').next() == Some(&name);
            let var = self.vars.get(&name);
            varies |= var.is_some_and(|it| it.varies);
            let values: Vec<String> = match var {
                Some(var) if plain && !var.strs.is_empty() => var.strs.clone(),
                _ => vec!["*".to_owned()],
            };
            all = all
                .iter()
                .flat_map(|head| values.iter().map(move |it| format!("{head}{it}")))
                .map(within_cap)
                .take(Val::MOST_STRS)
                .collect();
            rest = tail;
        }
        for one in &mut all {
            one.push_str(&rest.replace("}}", "}"));
        }
        (all, varies)
    }
}
