//! The walk over a program: statements, calls, and values with what is known of them.

use std::collections::HashMap;
use std::rc::Rc;

use super::lex::{self, Line, Token};
use super::tokens::{names, split, split_colon};
use super::value::Val;
use super::verdict::Tally;
use crate::actions::ledger::Text;
use crate::actions::programs::Arg;
use crate::actions::shell::{Run, Stream};

/// An argument of a call.
pub(super) struct Given<'t> {
    pub(super) keyword: Option<String>,
    pub(super) val: Val,
    pub(super) tokens: &'t [Token],
}

#[derive(Clone)]
pub(super) struct Func {
    pub(super) params: Vec<String>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) inline: Rc<Vec<Token>>,
}

pub(super) struct Reader<'r, 's> {
    pub(super) run: &'r mut Run<'s>,
    pub(super) lines: Rc<Vec<Line>>,
    pub(super) ends: Rc<Vec<usize>>,
    pub(super) vars: HashMap<String, Val>,
    pub(super) funcs: HashMap<String, Func>,
    pub(super) argv: Vec<Arg>,
    pub(super) tally: Tally,
    pub(super) calls: u32,
    pub(super) returned: Val,
}

/// Deepest nesting of brackets and of calls of its own functions.
pub(super) const DEEPEST: u32 = 14;
pub(super) const CALLS: u32 = 5;

/// Reads a program; `argv[0]` is its own name.
pub(crate) fn run(run: &mut Run<'_>, code: &str, argv: &[Arg], stdin: &Stream) -> Stream {
    if run.depth() > 10 {
        return Stream::default();
    }
    let source = lex::lines(code);
    let ends = Rc::new(block_ends(&source.lines));
    let mut tally = Tally::default();
    tally.words.push_str(&source.comments);
    if code.contains("stdin") {
        tally.read(stdin.text, &stdin.path);
    }
    let mut reader = Reader {
        run,
        ends,
        lines: Rc::new(source.lines),
        vars: HashMap::new(),
        funcs: HashMap::new(),
        argv: argv.to_vec(),
        tally,
        calls: 0,
        returned: Val::default(),
    };
    let all = reader.lines.len();
    reader.block(0, all);
    let Reader { tally, run, .. } = reader;
    tally.judge(run.scene, code)
}

/// For each line the first line after it that belongs to it no more.
fn block_ends(lines: &[Line]) -> Vec<usize> {
    let mut ends = vec![lines.len(); lines.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        while let Some(last) = open.last().copied().filter(|last| lines[*last].indent >= line.indent) {
            ends[last] = at;
            open.pop();
        }
        open.push(at);
    }
    ends
}

impl Reader<'_, '_> {
    pub(super) fn block(&mut self, from: usize, to: usize) {
        let lines = Rc::clone(&self.lines);
        let mut at = from;
        while at < to {
            if !self.run.scene.spend() {
                return;
            }
            let end = self.ends.get(at).copied().unwrap_or(to).min(to);
            let skip_block = self.statement(&lines[at].tokens, at + 1, end);
            at = if skip_block { end } else { at + 1 };
        }
    }

    /// Reads a statement whose block, if it has one, is `from..to`; whether that block was read with it.
    pub(super) fn statement(&mut self, tokens: &[Token], from: usize, to: usize) -> bool {
        let tokens = match tokens.first().and_then(Token::name) {
            Some("async" | "else" | "try" | "finally") => &tokens[1..],
            _ => tokens,
        };
        let tokens = if tokens.first().is_some_and(|it| it.is(":")) { &tokens[1..] } else { tokens };
        let Some(first) = tokens.first() else { return false };
        match first.name() {
            Some("import" | "from") => {
                self.import(tokens);
                false
            }
            Some("def") => {
                self.define(tokens, from, to);
                true
            }
            Some("class") => false,
            Some("for") => {
                let (head, body) = split_colon(tokens);
                self.bind_loop(&head[1..]);
                self.turn(body, from, to);
                true
            }
            Some("while") => {
                let (head, body) = split_colon(tokens);
                self.eval(&head[1..], 0);
                self.turn(body, from, to);
                true
            }
            Some("if" | "elif" | "with" | "except") => {
                let (head, body) = split_colon(tokens);
                let val = self.eval(&head[1..], 0);
                if let Some(at) = head.iter().position(|it| it.name() == Some("as")) {
                    // `with a as x, b as y`.
                    let value = self.eval(&head[1..at], 0);
                    for name in names(&head[at + 1..]) {
                        self.vars.insert(
                            name,
                            if head[0].name() == Some("with") { value.clone() } else { val.clone() },
                        );
                    }
                }
                if !body.is_empty() {
                    self.statement(body, from, from);
                }
                false
            }
            Some("return" | "yield") => {
                let val = self.eval(&tokens[1..], 0);
                self.returned.join(&val);
                false
            }
            Some("assert") => {
                let val = self.eval(&tokens[1..], 0);
                self.tally.asserts |= val.text.is_some();
                false
            }
            Some("del" | "global" | "nonlocal" | "pass" | "break" | "continue" | "raise") => false,
            _ => {
                self.simple(tokens);
                false
            }
        }
    }

    pub(super) fn turn(&mut self, body: &[Token], from: usize, to: usize) {
        self.run.scene.loops += 1;
        if !body.is_empty() {
            self.statement(body, from, from);
        }
        self.block(from, to);
        self.run.scene.loops -= 1;
    }

    pub(super) fn import(&mut self, tokens: &[Token]) {
        self.tally.imports += 1;
        let modules: Vec<&str> = tokens.iter().filter_map(Token::name).collect();
        let artifact_stem = self.run.scene.ledger.artifact.strip_suffix(".py").map(str::to_owned);
        if let Some(stem) = artifact_stem {
            if modules.get(1) == Some(&stem.as_str()) {
                let artifact = self.run.scene.ledger.artifact.clone();
                let shown = self.run.scene.render(Some(Text::Artifact), &artifact, false, "import");
                super::draw_outputs(self.run.scene, "", &[], shown);
            }
        }
    }

    pub(super) fn define(&mut self, tokens: &[Token], from: usize, to: usize) {
        let Some(name) = tokens.get(1).and_then(Token::name) else { return };
        let (head, body) = split_colon(tokens);
        let close = head.iter().rposition(|it| it.is(")")).unwrap_or(head.len());
        let params = split(head.get(3..close).unwrap_or_default(), ",");
        for param in &params {
            // What a parameter is if nothing is given for it.
            if let (Some(name), Some(equals)) =
                (param.first().and_then(Token::name), param.iter().position(|it| it.is("=")))
            {
                let val = self.eval(&param[equals + 1..], 0);
                self.vars.insert(name.to_owned(), val);
            }
        }
        let params = params
            .into_iter()
            .filter_map(|it| it.iter().find_map(Token::name).map(str::to_owned))
            .filter(|it| it != "self")
            .collect();
        self.funcs.insert(name.to_owned(), Func { params, from, to, inline: Rc::new(body.to_vec()) });
    }

    pub(super) fn bind_loop(&mut self, head: &[Token]) {
        let Some(at) = head.iter().position(|it| it.name() == Some("in")) else { return };
        let mut val = self.eval(&head[at + 1..], 0);
        val.varies = true;
        val.items.clear();
        for name in names(&head[..at]) {
            self.vars.insert(name, val.clone());
        }
    }

    pub(super) fn simple(&mut self, tokens: &[Token]) {
        let mut depth = 0_i32;
        let mut equals: Option<(usize, bool)> = None;
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Op("(" | "[" | "{") => depth += 1,
                Token::Op(")" | "]" | "}") => depth -= 1,
                Token::Op("=") if depth == 0 => equals = Some((at, false)),
                Token::Op("+=" | "-=" | "|=" | "*=" | "/=" | "&=") if depth == 0 => equals = Some((at, true)),
                _ => {}
            }
        }
        let Some((at, amends)) = equals else {
            let val = self.eval(tokens, 0);
            // `x.paste(y)`: what goes in stays in.
            if let (Some(name), true) =
                (tokens.first().and_then(Token::name), tokens.get(1).is_some_and(|it| it.is(".")))
            {
                if let Some(var) = self.vars.get_mut(name) {
                    let keep =
                        (std::mem::take(&mut var.strs), std::mem::take(&mut var.items), var.writes.take());
                    var.join(&Val { strs: Vec::new(), items: Vec::new(), writes: None, ..val });
                    (var.strs, var.items, var.writes) = keep;
                }
            }
            return;
        };
        let value_tokens = &tokens[at + 1..];
        let targets = split(&tokens[..at], "=");
        let values = split(value_tokens, ",");
        for target in targets {
            let parts = split(target, ",");
            if parts.len() > 1 && parts.len() == values.len() {
                for (part, value) in parts.iter().zip(&values) {
                    let val = self.eval(value, 0);
                    self.assign(part, val, amends);
                }
            } else {
                let val = self.eval(value_tokens, 0);
                for part in parts {
                    self.assign(part, val.clone(), amends);
                }
            }
        }
    }

    pub(super) fn assign(&mut self, target: &[Token], mut val: Val, amends: bool) {
        let Some(name) = target.iter().find_map(Token::name) else { return };
        // A part of something is set.
        let part = target.len() > 1 && target.iter().any(|it| it.is("[") || it.is("."));
        if self.run.scene.loops > 0 {
            let known = self.vars.contains_key(name);
            val.varies |= !known && val.varies;
        }
        match self.vars.get_mut(name) {
            Some(var) if part || amends => {
                val.strs.clear();
                var.join(&val);
            }
            _ => {
                self.vars.insert(name.to_owned(), val);
            }
        }
    }
}
