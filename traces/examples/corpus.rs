//! Makes a corpus file of a labelled session: `cargo run -p proctor-traces --example corpus -- SESSION -o FILE`.
//!
//! SESSION has the folder of a trial in `trial/`, labels in `labels.jsonl` and, where there is a second labeller, in
//! `labels-second.jsonl`: one object a line with `call_id`, `actions`, `designated` and `first_write`.

#![expect(clippy::print_stderr, reason = "a program for people")]

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use proctor_traces::actions::measure::{Entry, Head, Label};
use proctor_traces::actions::{Action, Designated, Session};
use proctor_traces::{SourceFile, Trace};
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    call_id: String,
    actions: BTreeSet<Action>,
    designated: Designated,
    first_write: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [session, flag, output] = args.as_slice() else { return Err("usage: corpus SESSION -o FILE".into()) };
    if flag != "-o" {
        return Err("usage: corpus SESSION -o FILE".into());
    }
    let folder = Path::new(session);
    let trace = trace(&folder.join("trial"))?;
    let first = labels(&folder.join("labels.jsonl"))?;
    let second = labels(&folder.join("labels-second.jsonl")).unwrap_or_default();
    let told = Session::of_trace(&trace, None);
    let root = told.root.clone().unwrap_or_else(|| "/work".to_owned());
    let name = folder.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    let head = Head { session: name, root, artifact: artifact(&folder.join("trial"))? };
    let mut out = fs::File::create(output)?;
    writeln!(out, "{}", serde_json::to_string(&head)?)?;
    let mut unmatched: BTreeSet<&String> = first.keys().collect();
    for call in told.calls.iter() {
        let mut entry = Entry::of_call(call, told.changed.get(&call.id).copied());
        unmatched.remove(&call.id.0);
        entry.label = first.get(&call.id.0).cloned();
        entry.second = second.get(&call.id.0).cloned();
        writeln!(out, "{}", serde_json::to_string(&entry)?)?;
    }
    for id in unmatched {
        eprintln!("{session}: label of {id}, which is no call of the trace");
    }
    Ok(())
}

fn labels(path: &Path) -> Result<HashMap<String, Label>, Box<dyn Error>> {
    let mut all = HashMap::new();
    for line in fs::read_to_string(path)?.lines().filter(|it| !it.trim().is_empty()) {
        let Line { call_id, actions, designated, first_write } = serde_json::from_str(line)?;
        all.insert(call_id, Label { actions, designated, first: first_write });
    }
    Ok(all)
}

fn artifact(trial: &Path) -> Result<String, Box<dyn Error>> {
    for entry in fs::read_dir(trial.join("artifacts"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("artifact.") {
            return Ok(name);
        }
    }
    Err("no artifact".into())
}

fn trace(trial: &Path) -> Result<Trace, Box<dyn Error>> {
    let mut files = vec![file(&trial.join("trace.jsonl"))?];
    let mut folders: Vec<PathBuf> = vec![trial.join("raw/session")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder)?.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "jsonl") {
                files.push(file(&path)?);
            }
        }
    }
    let exchanges = fs::read(trial.join("model/exchanges.jsonl")).ok();
    Ok(Trace::read(&files, exchanges.as_deref())?)
}

fn file(path: &Path) -> Result<SourceFile, Box<dyn Error>> {
    Ok(SourceFile { name: path.display().to_string(), bytes: fs::read(path)?, format: None, arrivals: None })
}
