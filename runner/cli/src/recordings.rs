//! Recordings of trials, as models: `replay:TRIAL`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use proctor_engine::{Model, ModelSource};
use proctor_experiment::{Experiment, ModelId, Recording};
use proctor_gateway::{Cassette, Replay, ReplayMode};
use proctor_harnesses::Harness;
use proctor_store::RunDir;
use proctor_traces::{Digest, WireFormat};
use serde::Serialize;

use crate::failure::Failure;

/// A recording of a plan, for `--print-plan`.
#[derive(Serialize)]
pub(crate) struct Listed {
    /// The method that plays it.
    method: String,
    /// The recorded trial.
    trial: String,
    /// The model that was recorded.
    model: String,
    /// How many exchanges.
    exchanges: usize,
    /// Digest of the recording.
    digest: Digest,
    /// `strict` or `lenient`.
    replay: String,
}

impl std::fmt::Display for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { method, trial, model, exchanges, digest, replay } = self;
        write!(f, "{method} replays {trial}: {exchanges} exchanges of {model}, {replay}, {digest}")
    }
}

/// All recordings of an experiment, read and checked.
pub(crate) fn of_experiment(experiment: &Experiment) -> Result<Vec<Listed>, Failure> {
    let mut listed = Vec::new();
    for method in &experiment.methods {
        let Some(recording) = method.model.as_ref().and_then(ModelId::recording) else { continue };
        let (cassette, model) = load(recording)?;
        listed.push(Listed {
            method: method.id.to_string(),
            trial: recording.trial.display().to_string(),
            model,
            exchanges: cassette.len(),
            digest: cassette.digest(),
            replay: mode(recording).to_string(),
        });
    }
    Ok(listed)
}

/// The model that plays `recording` to `harness`. It goes by the name that it was recorded with: to a CLI a model of
/// another name is another model, with other tools and other words.
pub(crate) fn model(recording: Recording<'_>, harness: &dyn Harness) -> Result<Model, Failure> {
    let (cassette, name) = load(recording)?;
    if let Some(wire) = harness.wire().filter(|wire| !cassette.wires().contains(wire)) {
        let recorded: Vec<String> = cassette.wires().iter().map(|wire| written(*wire)).collect();
        return Err(Failure::input(format!(
            "{}: recorded in {}, and {} speaks {}",
            recording.trial.display(),
            recorded.join(", "),
            harness.name(),
            written(wire)
        ))
        .hint("a recording is played to the agent that it was made with"));
    }
    let replay = Replay { cassette: Arc::new(cassette), mode: mode(recording) };
    Ok(Model { provider: ModelId::REPLAY.to_owned(), name, source: ModelSource::Replay(replay) })
}

fn mode(recording: Recording<'_>) -> ReplayMode {
    if recording.lenient { ReplayMode::Lenient } else { ReplayMode::Strict }
}

fn written(wire: WireFormat) -> String {
    let name = serde_json::to_value(wire).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// The recording and the name of its model.
fn load(recording: Recording<'_>) -> Result<(Cassette, String), Failure> {
    let trial = recording.trial;
    let folder = trial.join("model");
    if !folder.join("exchanges.jsonl").exists() {
        return Err(Failure::input(format!("{}: there is no recording of a model in it", trial.display()))
            .hint("replay:TRIAL takes the folder of a trial, the one with model/exchanges.jsonl in it"));
    }
    let cassette = Cassette::load(&folder)?;
    let name = configured_model(trial).or_else(|| cassette.model().map(str::to_owned)).ok_or_else(|| {
        Failure::input(format!("{}: the recording does not say which model was asked", trial.display()))
    })?;
    Ok((cassette, name))
}

/// The model that the recorded trial's method was configured with, if it still lies in its run.
fn configured_model(trial: &Path) -> Option<String> {
    let trial = fs::canonicalize(trial).ok()?;
    // RUN/trials/<suite>/<task>/<method>/<attempt>
    let run = RunDir::open(trial.ancestors().nth(5)?).ok()?;
    let method = trial.parent()?.file_name()?.to_str()?;
    let record = run.record().ok()?.methods.into_iter().find(|it| it.id.as_str() == method)?;
    let (_, name) = record.model.as_deref()?.split_once('/')?;
    Some(name.to_owned())
}
