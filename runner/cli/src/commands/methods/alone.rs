//! Methods of the tracks on which a model answers alone.

use std::sync::Arc;

use proctor_engine::{self as engine, Direct, Method, Model, ModelSource, Native};
use proctor_experiment::{self as experiment, Endpoint, ModelId, Track};
use proctor_gateway::client::{LimitField, PictureEndpoint};
use proctor_gateway::{Provider, wire_name};
use proctor_traces::WireFormat;

use super::{method as method_of, provider, upstream_of};
use crate::asking::wire_of;
use crate::environment::Environment;
use crate::failure::Failure;

/// A method with nothing but who answers and how it is asked.
pub(super) fn resolve(method: &experiment::Method, environment: &Environment) -> Result<Method, Failure> {
    let id = &method.id;
    let model =
        method.model.as_ref().ok_or_else(|| Failure::input(format!("method `{id}` names no model")))?;
    if model.recording().is_some() {
        return Err(Failure::input(format!("method `{id}`: recordings are played to agents"))
            .hint("name a model, or `script`"));
    }
    let (model, wire, limit_field) = if model.is_script() {
        let name = Some(model.name()).filter(|name| !name.is_empty()).unwrap_or("scripted");
        let scripted = Model {
            provider: ModelId::SCRIPT.to_owned(),
            name: name.to_owned(),
            source: ModelSource::Script,
        };
        (scripted, WireFormat::OpenaiResponses, LimitField::default())
    } else {
        let provider = provider(model.provider(), method.providers.as_deref())?;
        let wire = wire(method, &provider)?;
        let upstream = upstream_of(model.provider(), &provider, environment)?;
        let live = Model {
            provider: model.provider().to_owned(),
            name: model.name().to_owned(),
            source: ModelSource::Live(Arc::new(upstream)),
        };
        (live, wire, provider.limit_field)
    };
    let track = match method.track {
        Track::Direct => engine::Track::Direct(Direct {
            endpoint: match method.endpoint.unwrap_or_default() {
                Endpoint::Edits => PictureEndpoint::Edits,
                Endpoint::Generations => PictureEndpoint::Generations,
            },
            request: method.request.clone(),
            ablation: method.ablation,
        }),
        Track::Native | Track::Agent => engine::Track::Native(Native {
            wire,
            limit_field,
            max_output_tokens: method.max_output_tokens.map(|it| u32::try_from(it.get()).unwrap_or(u32::MAX)),
            reasoning: method.reasoning.clone(),
            request: method.request.clone(),
            ablation: method.ablation,
        }),
    };
    Ok(Method { model: Some(model), ..method_of(id.clone(), track) })
}

/// In which words a model of `provider` is asked by `method`.
pub(super) fn wire(method: &experiment::Method, provider: &Provider) -> Result<WireFormat, Failure> {
    let found = match method.track {
        Track::Direct => Some(WireFormat::OpenaiImages).filter(|wire| provider.speaks(*wire)),
        Track::Native | Track::Agent => wire_of(&provider.wire),
    };
    found.ok_or_else(|| {
        let spoken: Vec<&str> = provider.wire.iter().map(|wire| wire_name(*wire)).collect();
        Failure::input(format!(
            "method `{}`: its provider speaks {}, none of which the track `{}` asks in",
            method.id,
            spoken.join(" and "),
            method.track
        ))
    })
}
