//! One module per verb.

pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod harness;
pub(crate) mod image;
pub(crate) mod judge;
pub(crate) mod merge;
pub(crate) mod methods;
pub(crate) mod preflight;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod rerun;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod slurm;
pub(crate) mod status;
pub(crate) mod sweep;
pub(crate) mod tasks;
pub(crate) mod trace;

use serde::Serialize;

use crate::failure::Failure;
use crate::printing::harmless_json;

/// Prints one JSON document on a line of its own.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string(value).map_err(|error| Failure::internal(format!("writing JSON: {error}")))?;
    println!("{}", harmless_json(text));
    Ok(())
}
