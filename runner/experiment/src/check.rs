//! What no type can say: how the settings of an experiment go together.

use std::collections::{BTreeMap, BTreeSet};

use proctor_harnesses::{HarnessName, split_command_line};
use proctor_store::MethodId;
use proctor_tasks::Ablation;
use proctor_tasks::toml_text::Step::{self, Index, Key};
use proctor_tasks::toml_text::nearest;

use crate::experiment::{Method, ModelId, Needs, OnMissing, Schedule, Track};
use crate::resolve::Layers;
use crate::{Experiment, ExperimentError};

/// Fields of a request that hold the question itself, or what follows from other settings.
const OURS: [&str; 9] =
    ["model", "messages", "input", "instructions", "prompt", "image", "contents", "stream", "n"];

/// Refuses what cannot be run whatever is installed.
pub(crate) fn check(experiment: &Experiment, layers: &Layers<'_>) -> Result<(), ExperimentError> {
    let mut names: BTreeMap<&MethodId, usize> = BTreeMap::new();
    for (index, method) in experiment.methods.iter().enumerate() {
        let about = About { layers, index, method };
        if names.insert(&method.id, index).is_some() {
            return Err(match (&method.harness, about.is_typed()) {
                (Some(harness), true) => {
                    ExperimentError::input(format!("--harness {harness} is given twice"))
                }
                _ => about
                    .error("id", format!("two methods are named `{}`", method.id))
                    .with_hint("give one of them an `id` of its own"),
            });
        }
        about.answerer()?;
        about.alone()?;
        about.ceilings(experiment)?;
    }
    for (index, method) in experiment.methods.iter().enumerate() {
        if let Some(needs) = &method.needs {
            let about = About { layers, index, method };
            about.needs(needs, experiment)?;
            if method.ablation == Some(Ablation::A2) {
                about.second_stage(needs, experiment)?;
            }
        }
    }
    names_of_providers(&experiment.schedule, experiment, layers)?;
    names_of_models(experiment, layers)?;
    if experiment.ceilings.max_cost.is_some() {
        if let Some(method) = experiment.methods.iter().find(|method| !is_priced(experiment, method)) {
            let message = unpriced("max_cost of the run", method);
            let path = [Key("ceilings"), Key("max_cost")];
            return Err(at(layers, "ceilings.max_cost", &path, message).with_hint(price_hint(method)));
        }
    }
    Ok(())
}

/// Bounds of providers that no method asks are a slip. A file may have more than the methods that were typed over its own.
pub(crate) fn names_of_providers(
    schedule: &Schedule,
    experiment: &Experiment,
    layers: &Layers<'_>,
) -> Result<(), ExperimentError> {
    let setting = "schedule.provider_jobs";
    if matches!(layers.origins.get(setting), Some(crate::Origin::File { .. }))
        && are_typed(experiment, layers)
    {
        return Ok(());
    }
    let asked: BTreeSet<&str> = models(experiment).map(ModelId::provider).collect();
    match schedule.provider_jobs.keys().find(|name| !asked.contains(name.as_str())) {
        Some(name) => {
            let path = [Key("schedule"), Key("provider_jobs"), Key(name)];
            let message = format!("provider_jobs: no method asks a provider `{name}`");
            Err(at(layers, setting, &path, message).with_hint(meant(name, asked)))
        }
        None => Ok(()),
    }
}

/// The same of prices.
fn names_of_models(experiment: &Experiment, layers: &Layers<'_>) -> Result<(), ExperimentError> {
    if are_typed(experiment, layers) {
        return Ok(());
    }
    let used: BTreeSet<String> = models(experiment).map(ToString::to_string).collect();
    let scripted = models(experiment).any(ModelId::is_script);
    // `script` stands for whatever model its agent asks for.
    let is_used = |model: &&ModelId| used.contains(&model.to_string()) || scripted && model.is_script();
    match experiment.prices.keys().find(|model| !is_used(model)) {
        Some(model) => {
            let name = model.to_string();
            let message = format!("prices: no method uses a model `{name}`");
            let hint = meant(&name, used.iter().map(String::as_str));
            Err(at(layers, &format!("prices.{name}"), &[Key("prices"), Key(&name)], message).with_hint(hint))
        }
        None => Ok(()),
    }
}

/// Whether the methods were typed, not read.
fn are_typed(experiment: &Experiment, layers: &Layers<'_>) -> bool {
    let typed = |method: &Method, key| {
        let origin = layers.origins.get(&format!("methods.{}.{key}", method.id));
        matches!(origin, Some(crate::Origin::Flag(_)))
    };
    experiment.methods.iter().any(|method| typed(method, "harness") || typed(method, "model"))
}

fn models(experiment: &Experiment) -> impl Iterator<Item = &ModelId> {
    experiment.methods.iter().filter_map(|method| method.model.as_ref())
}

fn meant<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match (nearest(wrong, known.iter().copied()).first(), known.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "leave it out".to_owned(),
        (None, known) => format!("there is: {}", known.join(", ")),
    }
}

/// A method, where it may be complained about.
struct About<'a> {
    layers: &'a Layers<'a>,
    index: usize,
    method: &'a Method,
}

impl About<'_> {
    fn is_typed(&self) -> bool {
        ["harness", "track"].iter().any(|key| {
            let origin = self.layers.origins.get(&format!("methods.{}.{key}", self.method.id));
            matches!(origin, Some(crate::Origin::Flag(_)))
        })
    }

    fn error(&self, key: &str, message: String) -> ExperimentError {
        let path = [Key("methods"), Index(self.index), Key(key)];
        match self.layers.place.filter(|_| !self.is_typed()) {
            Some(place) => place.error(&path, message),
            None => ExperimentError::input(message),
        }
    }

    /// Harness, model and command line go together.
    fn answerer(&self) -> Result<(), ExperimentError> {
        let Method { id, track, harness, model, command, .. } = self.method;
        match (track, harness) {
            (Track::Agent, None) => {
                return Err(self
                    .error("id", format!("method `{id}` names no agent"))
                    .with_hint("harness = \"codex\", or track = \"native\""));
            }
            (Track::Native | Track::Direct, Some(_)) => {
                return Err(self
                    .error("harness", format!("method `{id}`: on the track `{track}` no agent answers"))
                    .with_hint("leave out `harness`, or name track = \"agent\""));
            }
            (Track::Native | Track::Direct, None) if model.is_none() => {
                return Err(self
                    .error("track", format!("method `{id}` names no model"))
                    .with_hint("model = \"PROVIDER/NAME\""));
            }
            _ => {}
        }
        let is_command = harness.as_ref().is_some_and(|harness| harness.name == HarnessName::Command);
        if is_command != command.is_some() {
            return Err(self
                .error("harness", format!("method `{id}`: `command` and harness = \"command\" go together"))
                .with_hint("harness = \"command\" with command = \"bash /work/agent.sh\""));
        }
        if let Some(Err(error)) = command.as_deref().map(split_command_line) {
            let name = if self.is_typed() { "--command" } else { "command" };
            return Err(self.error("command", format!("{name}: {error}")));
        }
        match harness {
            Some(harness) if model.is_none() && harness.harness().wire().is_some() => {
                let message = if self.is_typed() {
                    format!("--harness {} needs a --model", harness.name)
                } else {
                    format!("method `{id}`: {} needs a model", harness.name)
                };
                Err(self
                    .error("harness", message)
                    .with_hint("`--model script` plays the tasks' own scripts; a real one is PROVIDER/NAME"))
            }
            _ => Ok(()),
        }
    }

    /// What goes with tracks on which a model answers alone, and with which of them.
    fn alone(&self) -> Result<(), ExperimentError> {
        let Method { id, track, ablation, endpoint, reasoning, max_output_tokens, request, .. } = self.method;
        let (native, direct) = (*track == Track::Native, *track == Track::Direct);
        let given = [
            ("ablation", ablation.is_some(), native || direct),
            ("endpoint", endpoint.is_some(), direct),
            ("reasoning", reasoning.is_some(), native),
            ("max_output_tokens", max_output_tokens.is_some(), native),
            ("request", !request.is_empty(), native || direct),
        ];
        if let Some((key, ..)) = given.iter().find(|(_, given, belongs)| *given && !belongs) {
            return Err(self.error(key, format!("method `{id}`: `{key}` is nothing on the track `{track}`")));
        }
        if let Some(field) = request.keys().find(|field| OURS.contains(&field.as_str())) {
            return Err(
                self.error("request", format!("method `{id}`: `{field}` of the request is said by us"))
            );
        }
        let second_stage = *ablation == Some(Ablation::A2);
        match (&self.method.needs, ablation) {
            (_, Some(Ablation::A1 | Ablation::A2 | Ablation::B)) if direct => Err(self
                .error("ablation", format!("method `{id}`: on the track `direct` there is no program"))
                .with_hint("ablation = \"c\" is for both tracks")),
            (None, _) if second_stage => Err(self
                .error("ablation", format!("method `{id}`: `a2` edits what a method of `a1` made"))
                .with_hint("needs = { method = \"…\", on_missing = \"empty\" }")),
            (Some(_), _) if (native || direct) && !second_stage => Err(self.error(
                "needs",
                format!("method `{id}`: on the track `{track}` only ablation `a2` takes an artifact"),
            )),
            _ => Ok(()),
        }
    }

    /// The second stage edits what a first one made, and an empty program if that is what it made (C.2).
    fn second_stage(&self, needs: &Needs, experiment: &Experiment) -> Result<(), ExperimentError> {
        let id = &self.method.id;
        let first = experiment.methods.iter().find(|method| method.id == needs.method);
        if first.is_none_or(|method| method.ablation != Some(Ablation::A1)) {
            return Err(self
                .error("needs", format!("method `{id}`: `{}` is no method of ablation `a1`", needs.method)));
        }
        if needs.on_missing != OnMissing::Empty || needs.artifact.is_some() || needs.rename.is_some() {
            return Err(self
                .error(
                    "needs",
                    format!("method `{id}`: `a2` starts from the program of `a1`, or from an empty one"),
                )
                .with_hint(format!("needs = {{ method = \"{}\", on_missing = \"empty\" }}", needs.method)));
        }
        Ok(())
    }

    /// Costs can be bounded only where they are known.
    fn ceilings(&self, experiment: &Experiment) -> Result<(), ExperimentError> {
        let Method { max_trial_cost, max_cost, .. } = self.method;
        let bounds = [("max_trial_cost", max_trial_cost), ("max_cost", max_cost)];
        match bounds.into_iter().find(|(_, bound)| bound.is_some()) {
            Some((key, _)) if !is_priced(experiment, self.method) => {
                Err(self.error(key, unpriced(key, self.method)).with_hint(price_hint(self.method)))
            }
            _ => Ok(()),
        }
    }

    /// What a method needs must come from another one, and not in a circle.
    fn needs(&self, needs: &Needs, experiment: &Experiment) -> Result<(), ExperimentError> {
        let id = &self.method.id;
        let find = |id: &MethodId| experiment.methods.iter().find(|method| method.id == *id);
        let mut next = Some(needs);
        let mut steps = 0;
        while let Some(needs) = next {
            let Some(other) = find(&needs.method) else {
                let known: Vec<&str> = experiment.methods.iter().map(|method| method.id.as_str()).collect();
                return Err(self
                    .error("needs", format!("method `{id}` needs `{}`, which is no method", needs.method))
                    .with_hint(format!("there is: {}", known.join(", "))));
            };
            steps += 1;
            if other.id == *id || steps > experiment.methods.len() {
                return Err(self.error("needs", format!("method `{id}` needs itself, in the end")));
            }
            next = other.needs.as_ref();
        }
        for name in [&needs.artifact, &needs.rename].into_iter().flatten() {
            let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
            if name.len() > 200 || name.contains(char::is_control) || !name.split('/').all(plain) {
                return Err(self
                    .error(
                        "needs",
                        format!(
                            "method `{id}` needs `{}`, which is no path in a workspace",
                            name.escape_debug()
                        ),
                    )
                    .with_hint("name a file without `..` and without a slash before it"));
            }
        }
        Ok(())
    }
}

/// Whether the costs of a method's trials can be told. Controls, scripts and recordings cost nothing.
fn is_priced(experiment: &Experiment, method: &Method) -> bool {
    let is_free = |model: &ModelId| model.is_script() || model.recording().is_some();
    method.model.as_ref().is_none_or(|model| is_free(model) || experiment.prices.contains_key(model))
}

fn unpriced(what: &str, method: &Method) -> String {
    format!("{what} cannot be held: method `{}` has a model without a price", method.id)
}

fn price_hint(method: &Method) -> String {
    let model = method.model.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("[prices.\"{model}\"] with `input` and `output` in US dollars per million tokens")
}

fn at(layers: &Layers<'_>, setting: &str, path: &[Step<'_>], message: String) -> ExperimentError {
    let in_file = matches!(layers.origins.get(setting), Some(crate::Origin::File { .. }));
    match layers.place.filter(|_| in_file) {
        Some(place) => place.error(path, message),
        None => ExperimentError::input(message),
    }
}
