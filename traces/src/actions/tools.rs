//! A tool call to facts: what each kind of tool is given.

use std::collections::HashMap;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::Value;

use super::facts::Fact;
use super::ledger::extension;
use super::program::{Step, steps};
use super::scene::{Made, Scene, is_picture};
use super::shell::{Run, Sink};
use super::{patch, prose};
use crate::{Call, ToolKind, ToolStatus};

/// Whether harness, policy or user refused a call, or it failed before it did anything.
pub(crate) fn refused(call: &Call) -> bool {
    static SAID: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
        ["Rejected(", "CreateProcess", "No such tool available", "requested permissions"].map(Finder::new)
    });
    let head = call.output.get(..2048).unwrap_or(&call.output).as_bytes();
    call.status == ToolStatus::Declined || SAID.iter().any(|words| words.find(head).is_some())
}

/// Whether an edit did not take place.
fn failed_edit(call: &Call) -> bool {
    call.status == ToolStatus::Failed
        || call.output.get(..4096).unwrap_or(&call.output).contains("apply_patch verification failed")
}

/// Reads a call and, where its own words do not say enough, the operations inside it.
pub(crate) fn read(scene: &mut Scene, call: &Call, children: &[&Call]) {
    if call.polls.is_some() {
        return;
    }
    scene.in_vain = refused(call);
    match call.kind() {
        ToolKind::Shell => {
            let script = call.command().unwrap_or_default();
            let dir = ["workdir", "cwd", "dir_path", "directory"]
                .iter()
                .find_map(|it| call.input.get(*it)?.as_str());
            // Claude's shell stays where it went; the others start anew.
            let stays = call.name == "Bash";
            shell(scene, &script, dir, stays);
        }
        ToolKind::Read | ToolKind::ViewImage => {
            for path in paths(call) {
                look_at(scene, &path, call.kind() == ToolKind::ViewImage);
            }
        }
        ToolKind::Write => {
            let content = text_of(&call.input, &["content", "contents", "text", "file_text"]);
            if let Some(path) = call.path() {
                scene.in_vain |= call.status == ToolStatus::Failed;
                scene.write(path, &Made { content: content.as_deref(), ..Made::default() });
            }
        }
        ToolKind::Edit => {
            scene.in_vain |= failed_edit(call);
            edit(scene, call);
        }
        ToolKind::Plan => {
            for text in strings(&call.input) {
                plan(scene, text);
            }
        }
        ToolKind::Program => program(scene, call, children),
        ToolKind::Delegate => {
            let prompt = text_of(&call.input, &["prompt", "message", "task", "input"]).unwrap_or_default();
            scene.say(&prompt);
            for (fact, words) in prose::handed_over(&prompt) {
                scene.note(fact, words);
            }
        }
        ToolKind::Search => {
            let greps = call.name.to_lowercase().contains("grep") || call.name == "search_file_content";
            let aims = call.path().or_else(|| call.input.get("glob").and_then(Value::as_str));
            if let (true, Some(path)) = (greps, aims) {
                scene.read(path);
            }
        }
        ToolKind::Poll | ToolKind::Other => {}
    }
    scene.in_vain = false;
}

fn shell(scene: &mut Scene, script: &str, dir: Option<&str>, stays: bool) {
    let before = scene.cwd.clone();
    if let Some(dir) = dir {
        let resolved = scene.resolve(dir);
        scene.cwd = if resolved == "." { String::new() } else { resolved };
    }
    Run::new(scene, Vec::new(), 0).script(script, &Sink::Shown);
    // Outside of the workspace it does not stay.
    if !stays || scene.cwd.starts_with(['/', '~']) || dir.is_some() {
        scene.cwd = before;
    }
}

/// A file is opened, by whichever tool.
fn look_at(scene: &mut Scene, path: &str, as_picture: bool) {
    if as_picture || is_picture(path) || extension(path) == "pdf" {
        scene.view(path);
    } else {
        scene.read(path);
    }
}

fn paths(call: &Call) -> Vec<String> {
    if let Some(path) = call.path() {
        return vec![path.to_owned()];
    }
    let many = call.input.get("paths").and_then(Value::as_array);
    let many = many.map(|all| all.iter().filter_map(Value::as_str).take(32).map(str::to_owned).collect());
    many.unwrap_or_else(|| call.images.iter().filter_map(|it| it.path.clone()).collect())
}

fn edit(scene: &mut Scene, call: &Call) {
    let whole = call
        .input
        .as_str()
        .map(str::to_owned)
        .or_else(|| text_of(&call.input, &["input", "patch", "patchText", "patch_text"]));
    if let Some(text) = whole.filter(|it| it.contains("***")) {
        patch::apply(scene, &text);
        return;
    }
    let Some(path) = call.path() else {
        // A stream tells no more than which files were changed.
        let changes = call.input.get("changes").and_then(Value::as_array).into_iter().flatten();
        for change in changes.take(64) {
            if let Some(path) = change.get("path").and_then(Value::as_str) {
                patch::change(scene, path, None, None, None);
            }
        }
        return;
    };
    let old = text_of(&call.input, &["old_string", "oldString", "old_str", "old_text", "oldText"]);
    let new = text_of(&call.input, &["new_string", "newString", "new_str", "new_text", "newText"]);
    if old.as_deref() == Some("") && new.is_some() {
        scene.write(path, &Made { content: new.as_deref(), ..Made::default() });
    } else {
        patch::change(scene, path, None, old.as_deref(), new.as_deref());
    }
}

/// A plan says more than what is done next only where it says what stays or what a value becomes.
fn plan(scene: &mut Scene, text: &str) {
    let lower = text.to_lowercase();
    let firm = ["unchanged", "stays", "must stay", "preserve", "->", "→", " becomes "]
        .iter()
        .any(|it| lower.contains(it))
        || (lower.contains(" from ") && lower.contains(" to "));
    if firm {
        scene.say(text);
    }
}

fn program(scene: &mut Scene, call: &Call, children: &[&Call]) {
    let code = call
        .input
        .as_str()
        .map(str::to_owned)
        .or_else(|| text_of(&call.input, &["code", "input", "source", "script"]));
    let mut whole = true;
    let mut any = false;
    if failed_edit(call) && call.output.contains("apply_patch") {
        scene.in_vain = true;
    }
    for step in code.as_deref().map(steps).unwrap_or_default() {
        match step {
            // A few words before a result are its heading.
            Step::Says(text) if text.split_whitespace().count() > 5 => scene.say(&text),
            Step::Says(_) => {}
            Step::Tool { name, arguments } => {
                any = true;
                whole &= operation(scene, &name, &arguments);
            }
        }
    }
    if !whole || !any {
        for child in children {
            let vain = scene.in_vain;
            read(scene, child, &[]);
            scene.in_vain = vain;
        }
    }
}

/// One operation of a program; whether its arguments were known.
fn operation(scene: &mut Scene, name: &str, arguments: &HashMap<String, String>) -> bool {
    let given = |keys: &[&str]| keys.iter().find_map(|it| arguments.get(*it));
    match ToolKind::of(name) {
        ToolKind::Shell => match given(&["cmd", "command", "input"]) {
            Some(script) => {
                shell(scene, script, given(&["workdir"]).map(String::as_str), false);
                true
            }
            None => false,
        },
        ToolKind::ViewImage | ToolKind::Read => match given(&["path", "file_path", "input"]) {
            Some(path) => {
                look_at(scene, path, ToolKind::of(name) == ToolKind::ViewImage);
                true
            }
            None => false,
        },
        ToolKind::Edit => match given(&["input", "patch"]) {
            Some(text) => {
                patch::apply(scene, text);
                true
            }
            None => false,
        },
        ToolKind::Plan => {
            for text in arguments.values() {
                plan(scene, text);
            }
            true
        }
        ToolKind::Delegate => {
            if let Some(prompt) = given(&["prompt", "message", "input"]) {
                scene.say(prompt);
                for (fact, words) in prose::handed_over(prompt) {
                    scene.note(fact, words);
                }
            }
            true
        }
        ToolKind::Write | ToolKind::Poll | ToolKind::Program | ToolKind::Search | ToolKind::Other => true,
    }
}

fn text_of(input: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().find_map(|it| input.get(*it))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|it| it.as_str().or_else(|| it.get("text")?.as_str()));
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// All strings in a value, not deeper than a plan goes.
fn strings(input: &Value) -> Vec<&str> {
    fn collect<'v>(value: &'v Value, depth: u32, all: &mut Vec<&'v str>) {
        if all.len() > 200 || depth > 5 {
            return;
        }
        match value {
            Value::String(text) => all.push(text),
            Value::Array(parts) => parts.iter().for_each(|it| collect(it, depth + 1, all)),
            Value::Object(fields) => fields.values().for_each(|it| collect(it, depth + 1, all)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    collect(input, 0, &mut all);
    all
}

/// What a call's own arguments say of the fact that a render was seen: that it succeeded.
pub(crate) fn showed(call: &Call) -> bool {
    !refused(call) && (!call.images.is_empty() || call.status == ToolStatus::Ok)
}

/// Whether the facts of a call can have come about at all.
pub(crate) fn took_place(call: &Call, fact: Fact) -> bool {
    match fact {
        Fact::ChangedArtifact => {
            let edits = matches!(call.kind(), ToolKind::Edit | ToolKind::Write);
            !refused(call) && (!edits || !failed_edit(call))
        }
        _ => !refused(call),
    }
}
