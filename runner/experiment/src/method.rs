//! The methods of an experiment: those of the file, or one for each harness that was typed.

use std::path::Path;

use proctor_harnesses::{HarnessId, HarnessName};
use proctor_store::MethodId;
use proctor_tasks::Ablation;
use proctor_tasks::toml_text::Step::{Index, Key};

use crate::experiment::{Endpoint, Method, ModelId, Track};
use crate::file::{DefaultsTable, MethodTable};
use crate::resolve::{Flag, Layers};
use crate::value::{AtATime, Span};
use crate::{ExperimentError, ExperimentFile, Flags, Origin};

/// Time per trial (VAO-Bench, section 4).
const BUDGET: Span = Span::from_secs(1800);

/// Trials of a method without an agent at a time (B.1: "concurrency 10 and a 250 ms request launch interval").
const ALONE_JOBS: AtATime = AtATime::clamped(10);
/// Time between the starts of two of them.
const ALONE_INTERVAL: Span = Span::from_millis(250);

/// The methods. What was typed replaces those of the file as a whole; budgets and the like are laid over each.
pub(crate) fn methods(
    layers: &mut Layers<'_>,
    file: &ExperimentFile,
    flags: &Flags,
) -> Result<Vec<Method>, ExperimentError> {
    if let Some(track) = flags.track.filter(|track| *track != Track::Agent) {
        if !flags.harnesses.is_empty() || flags.command.is_some() {
            return Err(ExperimentError::input(format!("on the track `{track}` no agent answers"))
                .with_hint("leave out --harness and --command"));
        }
        let table = MethodTable {
            track: Some(track),
            model: flags.model.clone(),
            ablation: flags.ablation,
            ..MethodTable::default()
        };
        return Ok(vec![one(layers, &file.defaults, &table, None, flags)?]);
    }
    if flags.ablation.is_some() {
        return Err(ExperimentError::input("--ablation goes with --track")
            .with_hint("--track native or --track direct; in a file: ablation = \"c\""));
    }
    if flags.harnesses.is_empty() {
        if let Some(name) = typed_without_harness(flags) {
            return Err(ExperimentError::input(format!("{name} goes with --harness")).with_hint(
                "--harness, --model and --command together replace the methods of an experiment",
            ));
        }
        if file.methods.is_empty() {
            return Err(ExperimentError::input("no method is named").with_hint(
                "name an agent with --harness, or an experiment file with [[methods]]: proctor run FILE.toml",
            ));
        }
        let each = file.methods.iter().enumerate();
        return each.map(|(index, table)| one(layers, &file.defaults, table, Some(index), flags)).collect();
    }
    let commands = flags.harnesses.iter().any(|id| id.name == HarnessName::Command);
    if commands != flags.command.is_some() {
        return Err(ExperimentError::input("--command and --harness command go together")
            .with_hint("--harness command --command 'bash /work/agent.sh'"));
    }
    let each = flags.harnesses.iter().map(|harness| {
        let command = flags.command.clone().filter(|_| harness.name == HarnessName::Command);
        let table = MethodTable {
            harness: Some(harness.clone()),
            model: flags.model.clone(),
            command,
            ..MethodTable::default()
        };
        one(layers, &file.defaults, &table, None, flags)
    });
    each.collect()
}

fn typed_without_harness(flags: &Flags) -> Option<&'static str> {
    let typed = [("--model", flags.model.is_some()), ("--command", flags.command.is_some())];
    typed.into_iter().find(|(_, typed)| *typed).map(|(name, _)| name)
}

/// Layers of one method, and the origins of its settings until its name is known.
struct MethodLayers<'a, 'b> {
    layers: &'a Layers<'b>,
    /// Where it stands in the file; it was typed if it does not.
    index: Option<usize>,
    origins: Vec<(&'static str, Origin)>,
}

impl MethodLayers<'_, '_> {
    /// The value of `key`: what was typed, else what the method says, else what holds for all.
    fn pick<T: Clone>(
        &mut self,
        key: &'static str,
        flag: Flag<T>,
        method: Option<&T>,
        defaults: Option<&T>,
    ) -> Option<T> {
        let (value, origin) = match (self.index, method) {
            // What a typed method says was typed.
            (None, Some(value)) => {
                let name = match key {
                    "harness" => "--harness",
                    "model" => "--model",
                    "track" => "--track",
                    "ablation" => "--ablation",
                    _ => "--command",
                };
                (value.clone(), Origin::Flag(name))
            }
            (Some(index), Some(_)) => {
                self.layers.choose(&[Key("methods"), Index(index), Key(key)], flag, method)?
            }
            (_, None) => self.layers.choose(&[Key("defaults"), Key(key)], flag, defaults)?,
        };
        self.origins.push((key, origin));
        Some(value)
    }
}

impl MethodLayers<'_, '_> {
    /// A recording lies where the one who named it says, so its path is made absolute; other models stay.
    fn recorded(&self, model: ModelId) -> Result<ModelId, ExperimentError> {
        let (Some(recording), Some((_, origin))) = (model.recording(), self.origins.last()) else {
            return Ok(model);
        };
        let path = self.layers.absolute(recording.trial, origin)?;
        Ok(model.recorded_at(&path.to_string_lossy()))
    }
}

fn one(
    layers: &mut Layers<'_>,
    defaults: &DefaultsTable,
    table: &MethodTable,
    index: Option<usize>,
    flags: &Flags,
) -> Result<Method, ExperimentError> {
    let mut own = MethodLayers { layers, index, origins: Vec::new() };
    let none = || ("", None);
    let track = own.pick("track", ("", None), table.track.as_ref(), None).unwrap_or_default();
    let harness = match track {
        Track::Agent => own.pick("harness", none_of(), table.harness.as_ref(), defaults.harness.as_ref()),
        Track::Native | Track::Direct => own.pick("harness", none_of(), table.harness.as_ref(), None),
    };
    let controls = [HarnessName::Oracle, HarnessName::Nop];
    let answers_itself = harness.as_ref().is_some_and(|harness| controls.contains(&harness.name));
    let model = if answers_itself {
        None
    } else {
        let model = own.pick("model", none_of(), table.model.as_ref(), defaults.model.as_ref());
        model.map(|model| own.recorded(model)).transpose()?
    };
    let id =
        table.id.clone().unwrap_or_else(|| name(track, harness.as_ref(), model.as_ref(), table.ablation));

    let alone = track != Track::Agent;
    macro_rules! pick {
        ($field:ident, $flag:expr) => {
            own.pick(stringify!($field), $flag, table.$field.as_ref(), defaults.$field.as_ref())
        };
    }
    let providers = pick!(providers, ("--providers", flags.providers.clone()));
    let providers_origin = own.origins.last().map(|(_, origin)| origin.clone());
    let providers = match (providers, providers_origin) {
        (Some(path), Some(origin)) => Some(own.layers.absolute(&path, &origin)?),
        _ => None,
    };
    let method = Method {
        track,
        harness,
        model,
        command: own.pick("command", none(), table.command.as_ref(), None),
        budget: pick!(budget, ("--budget", flags.budget)).unwrap_or(BUDGET),
        image_delivery: pick!(image_delivery, ("--image-delivery", flags.image_delivery)).unwrap_or_default(),
        tell_budget: pick!(tell_budget, ("--tell-budget", flags.tell_budget.then_some(true)))
            .unwrap_or_default(),
        providers,
        jobs: pick!(jobs, ("", None)).or(alone.then_some(ALONE_JOBS)),
        launch_interval: own
            .pick("launch_interval", none_of(), table.launch_interval.as_ref(), None)
            .or(alone.then_some(ALONE_INTERVAL)),
        ablation: own.pick("ablation", none_of(), table.ablation.as_ref(), None),
        endpoint: own
            .pick("endpoint", none_of(), table.endpoint.as_ref(), None)
            .or((track == Track::Direct).then(Endpoint::default)),
        reasoning: own.pick("reasoning", none_of(), table.reasoning.as_ref(), None),
        max_output_tokens: own.pick("max_output_tokens", none_of(), table.max_output_tokens.as_ref(), None),
        request: own.pick("request", none_of(), table.request.as_ref(), None).unwrap_or_default(),
        max_trial_tokens: pick!(max_trial_tokens, ("--max-trial-tokens", flags.max_trial_tokens)),
        max_trial_cost: pick!(max_trial_cost, ("--max-trial-cost", flags.max_trial_cost)),
        max_tokens: pick!(max_tokens, ("", None)),
        max_cost: pick!(max_cost, ("", None)),
        needs: own.pick("needs", ("", None), table.needs.as_ref(), None),
        id,
    };
    let origins = own.origins;
    layers
        .origins
        .extend(origins.into_iter().map(|(key, origin)| (format!("methods.{}.{key}", method.id), origin)));
    Ok(method)
}

/// For settings without a flag of their own.
fn none_of<T>() -> Flag<T> {
    ("", None)
}

/// The name of a method that was given none: its track unless that is `agent`, its harness, its model, its
/// ablation.
fn name(
    track: Track,
    harness: Option<&HarnessId>,
    model: Option<&ModelId>,
    ablation: Option<Ablation>,
) -> MethodId {
    let track = (track != Track::Agent).then(|| track.as_str().to_owned());
    let mut parts: Vec<String> = track.into_iter().chain(harness.map(ToString::to_string)).collect();
    if let Some(recording) = model.and_then(ModelId::recording) {
        parts.push(ModelId::REPLAY.to_owned());
        parts.extend(recorded_trial(recording.trial));
        parts.extend(recording.lenient.then(|| "lenient".to_owned()));
    } else if let Some(model) = model {
        parts.push(model.provider().to_owned());
        parts.push(match (model.name(), harness) {
            ("", Some(harness)) => scripted(harness),
            (name, _) => name.to_owned(),
        });
    }
    parts.retain(|part| !part.is_empty());
    parts.extend(ablation.map(|it| it.to_string()));
    MethodId::from_parts(parts.iter().map(String::as_str))
}

/// What a recording goes by: task and attempt, if its folder lies as the trials of a run do, else the folder's name.
fn recorded_trial(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        path.components().rev().map(|it| it.as_os_str().to_string_lossy().into_owned()).take(5).collect();
    if let [attempt, _, task, _, trials] = names.as_slice()
        && trials == "trials"
    {
        return vec![task.clone(), attempt.clone()];
    }
    names.truncate(1);
    names
}

/// The name that the scripted model goes by with `harness`.
fn scripted(harness: &HarnessId) -> String {
    match harness.harness().default_model() {
        "" => "scripted".to_owned(),
        name => name.to_owned(),
    }
}
