//! `proctor trace import`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use proctor_report::counted;
use proctor_traces::TraceEvent;

use super::ImportArgs;
use crate::commands::print_json;
use crate::failure::Failure;

pub(super) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let trace = args.subject.read()?;
    write(&args.output, &trace.to_events())?;
    if args.output == Path::new("-") {
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        print_json(&trace.sources)?;
        return Ok(ExitCode::SUCCESS);
    }
    for source in &trace.sources {
        let counts = &source.counts;
        let format = source.format.map_or_else(|| "unreadable".to_owned(), |format| format.to_string());
        println!(
            "{}: {format}, {}; {} read, {} unknown, {} malformed",
            super::timeline::printable(&source.name),
            counted(source.calls, "call"),
            counted(counts.read, "record"),
            counts.unknown_total(),
            counts.malformed
        );
        if let Some(error) = &source.error {
            println!("  {}", super::timeline::printable(error));
        }
    }
    println!("{}: {}", args.output.display(), counted(trace.calls.len(), "call"));
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, events: &[TraceEvent]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::input(format!("writing {}: {error}", path.display()));
    if path == Path::new("-") {
        return lines(io::stdout().lock(), events).map_err(failed);
    }
    lines(File::create(path).map_err(failed)?, events).map_err(failed)
}

fn lines(target: impl Write, events: &[TraceEvent]) -> io::Result<()> {
    let mut target = BufWriter::new(target);
    for event in events {
        serde_json::to_writer(&mut target, event)?;
        target.write_all(b"\n")?;
    }
    target.flush()
}
