//! `proctor trace export`.

use std::io::Write as _;
use std::process::ExitCode;

use clap::ValueEnum;
use proctor_traces::Trace;
use proctor_traces::export::to_csv;

use super::{ExportArgs, label, parquet, read};
use crate::failure::Failure;
use crate::writing::{refuse_inputs, write_from};

/// The form of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Agent Trajectory Interchange Format v1.8
    Atif,
    /// OpenTelemetry spans (OTLP JSON, conventions for generative AI)
    Otlp,
    /// Trace events of Chrome, for Perfetto
    Perfetto,
    /// One row for each call
    Csv,
    /// One row for each call
    Parquet,
}

pub(super) fn export(args: &ExportArgs) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.output {
        refuse_inputs(&args.paths, path)?;
    }
    let is_table = matches!(args.format, Form::Csv | Form::Parquet);
    let bytes = if is_table {
        let mut traces = Vec::new();
        for path in &args.paths {
            traces.push((label(path), read(std::slice::from_ref(path), None)?));
        }
        table(args.format, &traces)?
    } else {
        let name = args.paths.first().map(|path| label(path)).unwrap_or_default();
        document(args.format, &name, &read(&args.paths, None)?)?
    };
    match &args.output {
        Some(path) => write_from(&args.paths, path, |to| to.write_all(&bytes))?,
        None => std::io::stdout().lock().write_all(&bytes).or_else(|error| match error.kind() {
            // A reader that has left has seen enough.
            std::io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(Failure::internal(format!("writing to stdout: {error}"))),
        })?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(form: Form, traces: &[(String, Trace)]) -> Result<Vec<u8>, Failure> {
    let traces = traces.iter().map(|(label, trace)| (label.as_str(), trace));
    if form == Form::Csv {
        to_csv(traces).map_err(|error| Failure::internal(format!("writing CSV: {error}")))
    } else {
        parquet::to_parquet(traces).map_err(|error| Failure::internal(format!("writing Parquet: {error}")))
    }
}

fn document(form: Form, label: &str, trace: &Trace) -> Result<Vec<u8>, Failure> {
    let value = match form {
        Form::Otlp => trace.to_otlp(label),
        Form::Perfetto => trace.to_perfetto(label),
        Form::Atif | Form::Csv | Form::Parquet => trace.to_atif("unknown"),
    };
    let mut bytes =
        serde_json::to_vec(&value).map_err(|error| Failure::internal(format!("writing JSON: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}
