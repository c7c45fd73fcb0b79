//! `proctor trace import`.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proctor_report::counted;
use proctor_traces::{Trace, TraceEvent};

use super::{ImportArgs, failure, files};
use crate::commands::print_json;
use crate::failure::Failure;
use crate::writing::{refuse_inputs, write_from};

pub(super) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let subject = &args.subject;
    if args.output == Path::new("-") {
        let events = subject.read()?.to_events();
        return match lines(BufWriter::new(io::stdout().lock()), &events) {
            // A reader that has left has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::internal(format!("writing to stdout: {error}")))
            }
            _ => Ok(ExitCode::SUCCESS),
        };
    }
    let mut written: Vec<(PathBuf, Trace)> = Vec::new();
    if is_folder(&args.output) {
        let traces = Trace::of_sessions(&files(&subject.paths, subject.format)?);
        std::fs::create_dir_all(&args.output).map_err(|source| proctor_store::StoreError::Io {
            action: "creating",
            path: args.output.clone(),
            source,
        })?;
        let mut taken = HashSet::new();
        for trace in traces.map_err(|error| failure(&error))? {
            written.push((args.output.join(name_of(&trace, &mut taken)), trace));
        }
    } else {
        written.push((args.output.clone(), subject.read()?));
    }
    for (path, _) in &written {
        refuse_inputs(&subject.paths, path)?;
    }
    for (path, trace) in &written {
        write_from(&subject.paths, path, |to| lines(to, &trace.to_events()))?;
    }
    if args.json {
        let sources: Vec<_> = written.iter().flat_map(|(_, trace)| &trace.sources).collect();
        print_json(&sources)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (path, trace) in &written {
        tell(path, trace);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a trace per session is wanted.
fn is_folder(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// The name of a session's trace: that of its first file.
fn name_of(trace: &Trace, taken: &mut HashSet<String>) -> String {
    let first = trace.sources.first().map(|it| Path::new(&it.name)).and_then(Path::file_name);
    let first = first.unwrap_or_default().to_string_lossy();
    let stem = first.trim_end_matches(".zst").trim_end_matches(".jsonl").trim_end_matches(".json");
    let names = std::iter::once(format!("{stem}.trace.jsonl"))
        .chain((2..).map(|number| format!("{stem}-{number}.trace.jsonl")));
    let mut free = names.filter(|name| !taken.contains(name));
    let name = free.next().unwrap_or_default();
    taken.insert(name.clone());
    name
}

fn tell(path: &Path, trace: &Trace) {
    for source in &trace.sources {
        let counts = &source.counts;
        let format = source.format.map_or_else(|| "unreadable".to_owned(), |format| format.to_string());
        println!(
            "{}: {format}, {}; {} read, {} unknown, {} malformed",
            source.name,
            counted(source.calls, "call"),
            counted(counts.read, "record"),
            counts.unknown_total(),
            counts.malformed
        );
        if let Some(error) = &source.error {
            println!("  {error}");
        }
    }
    println!("{}: {}", path.display(), counted(trace.calls.len(), "call"));
}

fn lines(mut target: impl Write, events: &[TraceEvent]) -> io::Result<()> {
    for event in events {
        serde_json::to_writer(&mut target, event)?;
        target.write_all(b"\n")?;
    }
    target.flush()
}
