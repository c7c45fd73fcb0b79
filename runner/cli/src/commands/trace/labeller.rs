//! Asking a model for labels.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use proctor_gateway::client::{Part, Patience, Stop};
use proctor_traces::actions::labeller::{LabelQuestion, instructions};
use proctor_traces::actions::{Action, Session};

use serde_json::Map;

use crate::asking::{Answering, Asking, Terms};
use crate::environment::Environment;
use crate::failure::{Failure, chain};

/// Answers that could not be read are asked for again so often.
const PARSING_RETRIES: u32 = 2;

/// Who labels instead of the rules.
#[derive(Debug, Args)]
pub(crate) struct LabellerArgs {
    /// Let a model label the calls instead of the rules; PROVIDER/NAME, or script:FILE
    #[arg(long, value_name = "MODEL")]
    labeller: Option<Answering>,
    /// File with more providers
    #[arg(long, value_name = "FILE", requires = "labeller")]
    providers: Option<PathBuf>,
    /// Level of reasoning that the model is asked for
    #[arg(long, value_name = "LEVEL", requires = "labeller")]
    reasoning: Option<String>,
}

impl LabellerArgs {
    /// A labeller, if one is asked for.
    pub(super) async fn open(&self, environment: &Environment) -> Result<Option<Labeller>, Failure> {
        let Some(who) = &self.labeller else { return Ok(None) };
        let terms = Terms { max_output_tokens: 32_000, reasoning: self.reasoning.clone(), extra: Map::new() };
        let providers = self.providers.as_deref();
        Asking::open(who, providers, terms, Patience::default(), environment)
            .await
            .map(|it| Some(Labeller(it)))
    }
}

/// A model that labels calls.
pub(super) struct Labeller(Asking);

impl Labeller {
    /// The actions of every outer call of a session, in order.
    pub(super) async fn label(&self, session: &Session<'_>) -> Result<Vec<BTreeSet<Action>>, Failure> {
        let mut labels = Vec::new();
        for question in session.label_questions() {
            labels.extend(self.answer(&question).await?);
        }
        Ok(labels)
    }

    async fn answer(&self, question: &LabelQuestion) -> Result<Vec<BTreeSet<Action>>, Failure> {
        let asked = self.0.question(instructions(), vec![Part::Text(question.text.clone())]);
        let mut wrong = String::new();
        for _ in 0..=PARSING_RETRIES {
            let reply = self.0.ask(&asked).await;
            let reply =
                reply.map_err(|error| Failure::missing(format!("asking the labeller: {}", chain(&error))))?;
            match question.read(&reply.text) {
                Ok(labels) => return Ok(labels),
                Err(_) if reply.stop == Stop::Length => {
                    "the reply was cut at its limit of tokens".clone_into(&mut wrong);
                }
                Err(error) => wrong = error.to_string(),
            }
        }
        Err(Failure::missing(format!("the labeller's reply cannot be used: {wrong}")))
    }
}
