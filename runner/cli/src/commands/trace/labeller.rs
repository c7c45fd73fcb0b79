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
use crate::printing::in_a_line;

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
        let place = &question.place;
        let (mut wrong, mut last) = (String::new(), String::new());
        for _ in 0..=PARSING_RETRIES {
            let reply = self.0.ask(&asked).await;
            let reply = reply.map_err(|error| {
                Failure::unanswered(format!("asking the labeller about {place}: {}", chain(&error)))
            })?;
            match question.read(&reply.text) {
                // A reply that was cut may hold a draft, and not the answer.
                _ if reply.stop == Stop::Length => {
                    "the reply was cut at its limit of tokens".clone_into(&mut wrong);
                }
                Ok(labels) => return Ok(labels),
                Err(error) => wrong = error.to_string(),
            }
            last = reply.text;
        }
        let message = format!(
            "the labeller's reply about {place} cannot be used: {wrong}; it ends with: {}",
            tail(&last)
        );
        Err(Failure::unanswered(message).hint("nothing of it was used; the same command asks again"))
    }
}

/// The end of a reply, where its answer should be.
fn tail(reply: &str) -> String {
    /// In characters.
    const SHOWN: usize = 400;
    let line = in_a_line(reply);
    let skipped = line.chars().count().saturating_sub(SHOWN);
    let mark = if skipped > 0 { "…" } else { "" };
    format!("{mark}{}", line.chars().skip(skipped).collect::<String>())
}
