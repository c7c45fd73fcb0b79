//! A model that answers questions without an agent: a gateway of its own, and a client before it. For judges and labellers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use proctor_experiment::ModelId;
use proctor_gateway::client::{AskError, LimitField, ModelClient, Part, Patience, Question, Reply};
use proctor_gateway::{
    Backend, ExchangeRecord, ExchangeSink, ExchangeStarted, Gateway, GatewayConfig, Script,
};
use proctor_traces::WireFormat;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::commands::methods::{provider, upstream_of};
use crate::environment::Environment;
use crate::failure::Failure;

/// Who is asked, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answering {
    /// A scripted model: the file.
    Script(PathBuf),
    /// A model of a provider.
    Model(ModelId),
}

impl FromStr for Answering {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("script:").filter(|file| !file.is_empty()) {
            return Ok(Self::Script(PathBuf::from(file)));
        }
        match text.parse::<ModelId>() {
            Ok(model) if !model.is_script() && model.recording().is_none() => Ok(Self::Model(model)),
            _ => Err("a model is PROVIDER/NAME; or script:FILE, a scripted one".to_owned()),
        }
    }
}

impl fmt::Display for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(_) => f.write_str("script"),
            Self::Model(model) => write!(f, "{model}"),
        }
    }
}

/// Settings of a question that the caller decides on.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Most tokens of an answer.
    pub(crate) max_output_tokens: u32,
    /// Level of reasoning; none sends nothing.
    pub(crate) reasoning: Option<String>,
    /// More fields of the request.
    pub(crate) extra: Map<String, Value>,
}

/// Somebody to ask.
pub(crate) struct Asking {
    client: ModelClient,
    model: String,
    limit_field: LimitField,
    terms: Terms,
    // Open as long as there are questions.
    _gateway: Gateway,
    _folder: TempDir,
}

/// Nothing is kept of the exchanges here: what counts of them is in what the questions were asked for.
struct NoRecord;

impl ExchangeSink for NoRecord {
    fn started(&self, _: &ExchangeStarted) {}
    fn finished(&self, _: ExchangeRecord) {}
}

impl Asking {
    /// Opens a gateway to the model.
    pub(crate) async fn open(
        who: &Answering,
        providers: Option<&Path>,
        terms: Terms,
        patience: Patience,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let (backend, wire, model, limit_field) = match who {
            Answering::Script(file) => {
                let script = Script::load(file)
                    .map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
                let wire = WireFormat::OpenaiResponses;
                (Backend::Script(Arc::new(script)), wire, "scripted".to_owned(), LimitField::default())
            }
            Answering::Model(model) => {
                let provider = provider(model.provider(), providers)?;
                let wire = wire_of(&provider.wire).ok_or_else(|| {
                    Failure::input(format!(
                        "provider `{}` speaks no wire format that questions can be asked in",
                        model.provider()
                    ))
                })?;
                let upstream = upstream_of(model.provider(), &provider, environment)?;
                (Backend::Live(Arc::new(upstream)), wire, model.name().to_owned(), provider.limit_field)
            }
        };
        let folder = tempfile::Builder::new()
            .prefix("proctor-ask-")
            .tempdir_in(environment.runtime())
            .map_err(|error| Failure::internal(format!("making a folder for a socket: {error}")))?;
        let config = GatewayConfig::new(folder.path().join("model"), backend);
        let gateway = Gateway::open(config, Arc::new(NoRecord))
            .await
            .map_err(|error| Failure::internal(format!("opening the gateway: {error}")))?;
        let client = ModelClient::new(gateway.socket(), wire, patience)
            .map_err(|error| Failure::internal(format!("preparing to ask: {error}")))?;
        Ok(Self { client, model, limit_field, terms, _gateway: gateway, _folder: folder })
    }

    /// A question by these terms.
    pub(crate) fn question(&self, system: String, parts: Vec<Part>) -> Question {
        Question {
            model: self.model.clone(),
            system: Some(system),
            parts,
            max_output_tokens: Some(self.terms.max_output_tokens),
            reasoning: self.terms.reasoning.clone(),
            form: None,
            limit_field: self.limit_field,
            extra: self.terms.extra.clone(),
        }
    }

    /// Asks it.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Reply, AskError> {
        self.client.ask(question).await
    }
}

/// The format that is asked in, of those that a provider speaks: the one that tells most of reasoning first.
pub(crate) fn wire_of(spoken: &[WireFormat]) -> Option<WireFormat> {
    let liked = [
        WireFormat::OpenaiResponses,
        WireFormat::AnthropicMessages,
        WireFormat::OpenaiChat,
        WireFormat::GeminiGenerate,
    ];
    liked.into_iter().find(|it| spoken.contains(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_is_a_model_or_a_script() {
        assert_eq!("script:a/b.toml".parse(), Ok(Answering::Script("a/b.toml".into())));
        assert!(matches!("openai/gpt-5.5".parse(), Ok(Answering::Model(_))));
        for wrong in ["script", "script:", "gpt", ""] {
            assert!(wrong.parse::<Answering>().is_err(), "{wrong}");
        }
    }
}
