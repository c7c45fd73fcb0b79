//! The JSON Schemas in `schemas/` are those of the types that write and read the files.
//!
//! `UPDATE_SCHEMAS=1 cargo test -p proctor-tests --test schemas` writes them anew.

#![expect(clippy::unwrap_used, reason = "in a test that is how a failure shows")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proctor_experiment::ExperimentFile;
use proctor_judge::pixel::Verdict;
use proctor_render::RenderRecord;
use proctor_store::{LabelledCall, LabelsHead, Outcome, RunRecord, Score, TryRecord};
use proctor_tasks::{Annotations, Pictures, TaskFile};
use proctor_traces::{Exchange, Trace, TraceEvent};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Each schema by its file, with the file (or line of it) that it describes.
fn schemas() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("run.schema.json", written::<RunRecord>("run.json")),
        ("outcome.schema.json", written::<Outcome>("outcome.json")),
        ("try.schema.json", written::<TryRecord>("tries/<n>/try.json")),
        ("trace-event.schema.json", written::<TraceEvent>("a line of trace.jsonl")),
        (
            "trace.schema.json",
            written::<Trace>("what `proctor trace show --json` prints: a trace joined from all witnesses"),
        ),
        ("actions-head.schema.json", written::<LabelsHead>("the first line of actions.jsonl")),
        ("actions-call.schema.json", written::<LabelledCall>("another line of actions.jsonl")),
        ("exchange.schema.json", written::<Exchange>("a line of model/exchanges.jsonl")),
        ("render.schema.json", written::<RenderRecord>("render/render.json")),
        ("experiment.schema.json", read::<ExperimentFile>("experiment.toml")),
        ("verdict.schema.json", written::<Verdict>("verdict.json")),
        (
            "vision-verdict.schema.json",
            written::<proctor_judge::vision::Verdict>("verdict.json of a vision judge"),
        ),
        ("human-verdict.schema.json", written::<proctor_judge::human::Verdict>("verdict.json of a person")),
        (
            "blind-key.schema.json",
            written::<proctor_judge::human::Key>(
                "blind/<export>.json: whose work the items of a blind export are",
            ),
        ),
        ("score.schema.json", written::<Score>("score.json")),
        ("task.schema.json", read::<TaskFile>("task.toml")),
        ("annotations.schema.json", read::<Annotations>("hidden/annotations.toml")),
        ("pictures.schema.json", read::<Pictures>("hidden/pictures.toml")),
    ])
}

/// Of a file that proctor writes: what it always writes is required.
fn written<T: JsonSchema>(title: &str) -> String {
    schema::<T>(title, SchemaSettings::draft2020_12().for_serialize())
}

/// Of a file that people write, who may leave out what has a default.
fn read<T: JsonSchema>(title: &str) -> String {
    schema::<T>(title, SchemaSettings::draft2020_12())
}

fn schema<T: JsonSchema>(title: &str, settings: SchemaSettings) -> String {
    let mut schema: Schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../schemas")
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let mut stale = Vec::new();
    for (name, text) in schemas() {
        let path = folder().join(name);
        if update {
            fs::write(&path, text).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(stale.is_empty(), "out of date: {stale:?}; UPDATE_SCHEMAS=1 with this test writes them anew");
}

#[test]
fn every_schema_on_disk_has_a_type() {
    let known = schemas();
    for entry in fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_known = known.contains_key(name.as_str()) || name == "README.md";
        assert!(is_known, "schemas/{name} describes nothing that proctor writes or reads");
    }
}
