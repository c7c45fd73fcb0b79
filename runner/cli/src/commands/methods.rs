//! From what was typed to methods that can run: harness installed, model reachable, key at hand.

mod alone;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_engine::{
    self as engine, Agent, Ceiling, Method, MethodSettings, Model, ModelSource, Need, OnMissing,
};
use proctor_experiment::{self as experiment, AtATime, Experiment, ModelId, Tokens, Track, Usd};
use proctor_gateway::{NetSettings, Provider, Providers, Upstream, wire_name};
use proctor_harnesses::{Harness, HarnessId, HarnessName, Installed, installed, split_command_line};
use proctor_store::{MethodId, Price};
use proctor_traces::WireFormat;
use secrecy::SecretString;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::recordings;

/// The methods of an experiment.
pub(crate) fn of_experiment(
    experiment: &Experiment,
    environment: &Environment,
) -> Result<Vec<Arc<Method>>, Failure> {
    let methods = experiment.methods.iter().map(|method| {
        let price = method.model.as_ref().and_then(|model| experiment.prices.get(model));
        let mut one = one(method, price.copied(), environment)?;
        // `script` stands for the model that its harness asks for if nobody says which.
        let resolved = one.model.as_ref().map(ToString::to_string);
        let by_name = || experiment.prices.iter().find(|(model, _)| Some(model.to_string()) == resolved);
        one.price = one.price.or_else(|| by_name().map(|(_, price)| dollars(*price)));
        Ok(Arc::new(one))
    });
    methods.collect()
}

/// What `of_experiment` would refuse although nothing is to be run yet: a provider that there is not, or that does not
/// speak as the agent does. Returns what this machine lacks and another may have: agent CLIs and keys.
pub(crate) fn look_over(experiment: &Experiment, environment: &Environment) -> Result<Vec<String>, Failure> {
    let mut lacks = BTreeSet::new();
    for method in &experiment.methods {
        let harness = method.harness.as_ref().map(HarnessId::harness);
        if let Some(Err(failure)) = harness.as_ref().map(|it| find_installed(&**it, environment)) {
            lacks.insert(failure.in_a_line());
        }
        let is_control = harness.as_ref().is_some_and(|it| CONTROLS.contains(&it.kind()));
        // Scripts and recordings need neither provider nor key.
        let asks = |model: &&ModelId| !model.is_script() && model.recording().is_none() && !is_control;
        let Some(model) = method.model.as_ref().filter(asks) else { continue };
        let file = method.providers.as_deref();
        let provider = if let Some(harness) = &harness {
            provider_for(model.provider(), &**harness, file)?
        } else {
            let provider = provider(model.provider(), file)?;
            alone::wire(method, &provider)?;
            provider
        };
        if let Err(failure) = key(&provider, model.provider(), environment) {
            lacks.insert(failure.in_a_line());
        }
    }
    Ok(lacks.into_iter().collect())
}

fn dollars(price: experiment::Price) -> Price {
    Price {
        input: price.input.dollars(),
        cached_input: Some(price.cached_input.dollars()),
        output: price.output.dollars(),
    }
}

fn one(
    method: &experiment::Method,
    price: Option<experiment::Price>,
    environment: &Environment,
) -> Result<Method, Failure> {
    let answerer = match (method.track, method.harness.as_ref()) {
        (Track::Agent, None) => {
            return Err(Failure::input(format!("method `{}` names no agent", method.id)));
        }
        (Track::Agent, Some(harness)) => {
            let answerer =
                Answerer { harness, model: method.model.as_ref(), providers: method.providers.as_deref() };
            let mut resolved = answerer.resolve(environment)?;
            let command = method.command.as_deref().map(split_command_line).transpose();
            let command = command.map_err(|error| Failure::input(format!("--command: {error}")))?;
            if let engine::Track::Agent(agent) = &mut resolved.track {
                agent.command = command;
            }
            resolved
        }
        (Track::Native | Track::Direct, _) => alone::resolve(method, environment)?,
    };
    let settings = MethodSettings {
        image_delivery: method.image_delivery,
        tell_budget: method.tell_budget,
        ..MethodSettings::default()
    };
    Ok(Method {
        id: method.id.clone(),
        settings,
        budget: method.budget.duration(),
        price: price.map(dollars),
        ceiling: ceiling(method.max_trial_tokens, method.max_trial_cost),
        ceiling_total: ceiling(method.max_tokens, method.max_cost),
        jobs: method.jobs.map(AtATime::as_usize),
        launch_interval: method.launch_interval.map_or(Duration::ZERO, experiment::Span::duration),
        needs: method.needs.as_ref().map(need),
        ..answerer
    })
}

fn ceiling(tokens: Option<Tokens>, cost: Option<Usd>) -> Ceiling {
    Ceiling { tokens: tokens.map(Tokens::get), cost: cost.map(Usd::dollars) }
}

fn need(needs: &experiment::Needs) -> Need {
    Need {
        method: needs.method.clone(),
        artifact: needs.artifact.clone(),
        name: needs.rename.clone(),
        on_missing: match needs.on_missing {
            experiment::OnMissing::Empty => OnMissing::Empty,
            experiment::OnMissing::Skip => OnMissing::Skip,
            experiment::OnMissing::Fail => OnMissing::Fail,
        },
    }
}

/// They ask no model, whatever is said.
const CONTROLS: [HarnessName; 2] = [HarnessName::Oracle, HarnessName::Nop];

/// Who answers: an agent CLI and a model, as they were asked for.
pub(crate) struct Answerer<'a> {
    /// The agent CLI.
    pub(crate) harness: &'a HarnessId,
    /// The model, if one was named.
    pub(crate) model: Option<&'a ModelId>,
    /// File with more providers.
    pub(crate) providers: Option<&'a Path>,
}

impl Answerer<'_> {
    /// A method with nothing but that.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<Method, Failure> {
        let harness = self.harness.harness();
        let installed = find_installed(&*harness, environment)?;
        let model = self.model_for(&*harness, environment)?;
        let mut parts = vec![self.harness.to_string()];
        parts.extend(model.iter().flat_map(|model| [model.provider.clone(), model.name.clone()]));
        Ok(Method {
            model,
            ..method(
                MethodId::from_parts(parts.iter().map(String::as_str)),
                engine::Track::Agent(Agent { harness, installed, command: None }),
            )
        })
    }

    fn model_for(&self, harness: &dyn Harness, environment: &Environment) -> Result<Option<Model>, Failure> {
        let Some(model) = self.model.filter(|_| !CONTROLS.contains(&harness.kind())) else {
            return match harness.wire() {
                Some(_) => Err(Failure::input(format!("--harness {} needs a --model", harness.name()))
                    .hint("`--model script` plays the tasks' own scripts; a real one is PROVIDER/NAME")),
                None => Ok(None),
            };
        };
        if model.is_script() {
            let known = [model.name(), harness.default_model(), "scripted"];
            let name = known.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
            return Ok(Some(Model {
                provider: ModelId::SCRIPT.to_owned(),
                name: name.to_owned(),
                source: ModelSource::Script,
            }));
        }
        if let Some(recording) = model.recording() {
            return Ok(Some(recordings::model(recording, harness)?));
        }
        let upstream = upstream(model.provider(), harness, self.providers, environment)?;
        Ok(Some(Model {
            provider: model.provider().to_owned(),
            name: model.name().to_owned(),
            source: ModelSource::Live(Arc::new(upstream)),
        }))
    }
}

/// A method with nothing but a name and somebody who answers.
fn method(id: MethodId, track: engine::Track) -> Method {
    Method {
        id,
        track,
        model: None,
        settings: MethodSettings::default(),
        budget: Duration::ZERO,
        price: None,
        ceiling: Ceiling::default(),
        ceiling_total: Ceiling::default(),
        jobs: None,
        launch_interval: Duration::ZERO,
        needs: None,
    }
}

fn find_installed(harness: &dyn Harness, environment: &Environment) -> Result<Option<Installed>, Failure> {
    let Some(spec) = harness.install() else { return Ok(None) };
    let found = installed(&environment.cache())
        .into_iter()
        .find(|it| it.manifest.name == spec.name && it.manifest.version == spec.version);
    found.map(Some).ok_or_else(|| {
        let name = format!("{}@{}", harness.name(), spec.version);
        Failure::missing(format!("{name} is not installed"))
            .hint(format!("`proctor harness install {name}` installs it"))
    })
}

fn upstream(
    name: &str,
    harness: &dyn Harness,
    file: Option<&Path>,
    environment: &Environment,
) -> Result<Upstream, Failure> {
    upstream_of(name, &provider_for(name, harness, file)?, environment)
}

/// A provider by its name, that speaks as an agent does.
fn provider_for(name: &str, harness: &dyn Harness, file: Option<&Path>) -> Result<Provider, Failure> {
    let providers = providers(file)?;
    let provider = one_of(name, &providers)?;
    match harness.wire().filter(|wire| !provider.speaks(*wire)) {
        Some(wire) => Err(no_common_format(name, &providers, harness, wire)),
        None => Ok(provider.clone()),
    }
}

/// A provider by its name: of those that are known, and of those in `file`.
pub(crate) fn provider(name: &str, file: Option<&Path>) -> Result<Provider, Failure> {
    one_of(name, &providers(file)?).cloned()
}

fn providers(file: Option<&Path>) -> Result<Providers, Failure> {
    let builtin = Providers::builtin();
    let Some(file) = file else { return Ok(builtin) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    let more =
        Providers::parse(&text).map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    Ok(builtin.overridden_by(more))
}

fn one_of<'a>(name: &str, providers: &'a Providers) -> Result<&'a Provider, Failure> {
    providers.get(name).ok_or_else(|| {
        let known: Vec<&str> = providers.names().collect();
        Failure::input(format!("there is no provider `{name}`")).hint(format!(
            "known: {}, {}; more with --providers FILE",
            ModelId::SCRIPT,
            known.join(", ")
        ))
    })
}

fn key(provider: &Provider, name: &str, environment: &Environment) -> Result<SecretString, Failure> {
    environment.key(&provider.key_env).ok_or_else(|| {
        Failure::missing(format!("there is no key for provider `{name}`"))
            .hint(format!("export {}=…; it stays outside every container", provider.key_env))
    })
}

/// The way to a provider, with its key.
pub(crate) fn upstream_of(
    name: &str,
    provider: &Provider,
    environment: &Environment,
) -> Result<Upstream, Failure> {
    let key = key(provider, name, environment)?;
    let ca_pem = match environment.ca_file() {
        Some(file) => {
            vec![
                std::fs::read(&file)
                    .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?,
            ]
        }
        None => Vec::new(),
    };
    let net = NetSettings {
        proxy: environment.proxy(),
        no_proxy: environment.no_proxy(),
        ca_pem,
        read_timeout: None,
    };
    Ok(Upstream::new(provider, key, net)?)
}

/// The agent and the provider speak different languages, and proctor translates none.
fn no_common_format(name: &str, providers: &Providers, harness: &dyn Harness, wire: WireFormat) -> Failure {
    let spoken = providers.get(name).map(|provider| &provider.wire);
    let spoken: Vec<&str> = spoken.into_iter().flatten().map(|wire| wire_name(*wire)).collect();
    let others = providers.names().filter(|other| providers.get(other).is_some_and(|it| it.speaks(wire)));
    let others: Vec<String> = others.map(|other| format!("`{other}`")).collect();
    let mend = "put a translating proxy such as LiteLLM in front, as a provider of its own (docs/litellm.md)";
    let hint = match others.as_slice() {
        [] => mend.to_owned(),
        others => format!("of the known providers, {} do; or {mend}", others.join(", ")),
    };
    Failure::input(format!(
        "harness `{}` speaks {}, and provider `{name}` only {}",
        harness.name(),
        wire_name(wire),
        spoken.join(" and ")
    ))
    .hint(hint)
}
