//! From what was typed to methods that can run: harness installed, model reachable, key at hand.

use std::path::PathBuf;
use std::sync::Arc;

use proctor_engine::{Ceiling, Method, MethodSettings, Model, ModelSource};
use proctor_gateway::{NetSettings, Providers, Upstream};
use proctor_harnesses::{Harness, HarnessId, HarnessName, Installed, installed, split_command_line};
use proctor_store::MethodId;
use proctor_tasks::ImageDelivery;
use proctor_traces::WireFormat;

use crate::args::{Delivery, ModelArgs, RunArgs};
use crate::environment::Environment;
use crate::failure::Failure;

/// Name of the provider that plays each task's script.
pub(crate) const SCRIPT: &str = "script";

/// The methods of a run: one per harness.
pub(crate) fn of_run(args: &RunArgs, environment: &Environment) -> Result<Vec<Arc<Method>>, Failure> {
    let command = args
        .command
        .as_deref()
        .map(split_command_line)
        .transpose()
        .map_err(|error| Failure::input(format!("--command: {error}")))?;
    let names = args.harnesses.iter().map(|id| id.name);
    if command.is_some() != names.clone().any(|name| name == HarnessName::Command) {
        return Err(Failure::input("--command and --harness command go together")
            .hint("--harness command --command 'bash /work/agent.sh'"));
    }
    let settings = MethodSettings {
        image_delivery: match args.image_delivery {
            Delivery::Workspace => ImageDelivery::Workspace,
            Delivery::Attach => ImageDelivery::Attach,
            Delivery::Both => ImageDelivery::Both,
        },
        tell_budget: args.tell_budget,
        ..MethodSettings::default()
    };
    let mut methods: Vec<Arc<Method>> = Vec::new();
    for id in &args.harnesses {
        let command = command.clone().filter(|_| id.name == HarnessName::Command);
        let method = resolve(id, &args.model, command, settings.clone(), args.budget, environment)?;
        if methods.iter().any(|other| other.id == method.id) {
            return Err(Failure::input(format!("--harness {id} is given twice")));
        }
        methods.push(Arc::new(method));
    }
    Ok(methods)
}

/// One method.
pub(crate) fn resolve(
    id: &HarnessId,
    model: &ModelArgs,
    command: Option<Vec<String>>,
    settings: MethodSettings,
    budget: std::time::Duration,
    environment: &Environment,
) -> Result<Method, Failure> {
    let harness = id.harness();
    let installed = find_installed(&*harness, environment)?;
    let model = model_for(&*harness, model, environment)?;
    let mut parts = vec![id.to_string()];
    parts.extend(model.iter().flat_map(|model| [model.provider.clone(), model.name.clone()]));
    let id = MethodId::from_parts(parts.iter().map(String::as_str));
    Ok(Method {
        id,
        harness,
        installed,
        command,
        model,
        settings,
        budget,
        price: None,
        ceiling: Ceiling::default(),
        ceiling_total: Ceiling::default(),
        jobs: None,
        needs: None,
    })
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

fn model_for(
    harness: &dyn Harness,
    args: &ModelArgs,
    environment: &Environment,
) -> Result<Option<Model>, Failure> {
    let controls = [HarnessName::Oracle, HarnessName::Nop];
    let Some(text) = args.model.as_deref().filter(|_| !controls.contains(&harness.kind())) else {
        return match harness.wire() {
            Some(_) => Err(Failure::input(format!("--harness {} needs a --model", harness.name()))
                .hint("`--model script` plays the tasks' own scripts; a real one is PROVIDER/NAME")),
            None => Ok(None),
        };
    };
    let (provider, name) = text.split_once('/').unwrap_or((text, ""));
    if provider == SCRIPT {
        let name = if name.is_empty() { harness.default_model() } else { name };
        let name = if name.is_empty() { "scripted" } else { name };
        return Ok(Some(Model {
            provider: SCRIPT.into(),
            name: name.to_owned(),
            source: ModelSource::Script,
        }));
    }
    if name.is_empty() {
        return Err(Failure::input(format!("--model {text} names no model"))
            .hint("a model is PROVIDER/NAME, as in anthropic/claude-opus-5-5; or `script`"));
    }
    let upstream = upstream(provider, harness.wire(), args.providers.as_ref(), environment)?;
    Ok(Some(Model {
        provider: provider.to_owned(),
        name: name.to_owned(),
        source: ModelSource::Live(Arc::new(upstream)),
    }))
}

fn upstream(
    name: &str,
    wire: Option<WireFormat>,
    file: Option<&PathBuf>,
    environment: &Environment,
) -> Result<Upstream, Failure> {
    let mut providers = Providers::builtin();
    if let Some(file) = file {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
        let more = Providers::parse(&text)
            .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
        providers = providers.overridden_by(more);
    }
    let known: Vec<&str> = providers.names().collect();
    let provider = providers.get(name).ok_or_else(|| {
        Failure::input(format!("there is no provider `{name}`"))
            .hint(format!("known: {SCRIPT}, {}; more with --providers FILE", known.join(", ")))
    })?;
    if let Some(wire) = wire.filter(|wire| !provider.speaks(*wire)) {
        let wire = serde_json::to_value(wire).unwrap_or_default();
        return Err(Failure::input(format!(
            "provider `{name}` does not speak {wire}, which this agent does"
        ))
        .hint(
            "put a translating proxy such as LiteLLM in front, as a provider of its own (docs/litellm.md)",
        ));
    }
    let key = environment.key(&provider.key_env).ok_or_else(|| {
        Failure::missing(format!("there is no key for provider `{name}`"))
            .hint(format!("export {}=…; it stays outside every container", provider.key_env))
    })?;
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
