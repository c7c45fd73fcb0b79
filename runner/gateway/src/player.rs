//! The scripted model: finds a request's place in the script and plays what stands there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::answer::{Answer, Outcome};
use crate::body::{Broken, Source};
use crate::client::PictureEndpoint;
use crate::conversation::Conversation;
use crate::multipart;
use crate::record::Ticket;
use crate::reply::Reply;
use crate::script::{FaultKind, Place, Script, Step};
use crate::tools::NoTool;
use crate::wire::{Route, error_body};

/// What is said where the script has nothing more to say.
const EXHAUSTED: &str = "The script ends here.";
/// What is said to requests that offer no tools: titles, topics, summaries that a harness asks for on the side.
const SIDE_ANSWER: &str = "A scripted answer";

/// A script and the only thing that is not in the requests: how often a step with a limited fault was reached.
pub(crate) struct Player {
    script: Arc<Script>,
    visits: Vec<AtomicU32>,
    /// How often each answer to requests without tools was given.
    given: Vec<AtomicU32>,
}

impl Player {
    pub(crate) fn new(script: Arc<Script>) -> Self {
        let visits = script.steps().iter().map(|_| AtomicU32::new(0)).collect();
        let given = script.answers().iter().map(|_| AtomicU32::new(0)).collect();
        Self { script, visits, given }
    }

    /// `path` is the one that was asked, without the query.
    pub(crate) async fn answer(&self, route: Route, path: &str, body: &Bytes, ticket: &Ticket) -> Outcome {
        match route {
            Route::Generate(wire) => self.generate(wire, path, body, ticket).await,
            Route::Picture(endpoint) => self.picture(endpoint, body).await,
            Route::Fetch => refuse(WireFormat::OpenaiImages, "a script has all its pictures".to_owned()),
            Route::CountTokens(WireFormat::GeminiGenerate) => {
                Outcome::Answer(Answer::json(200, &json!({"totalTokens": 1000})))
            }
            Route::CountTokens(_) => Outcome::Answer(Answer::json(200, &json!({"input_tokens": 1000}))),
            Route::Models => Outcome::Answer(Answer::json(200, &models())),
            Route::Alive => Outcome::Answer(Answer::json(200, &json!({"status": "ok"}))),
        }
    }

    async fn generate(&self, wire: WireFormat, path: &str, body: &Bytes, ticket: &Ticket) -> Outcome {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return refuse(wire, "the request body is not JSON".to_owned());
        };
        let conversation = Conversation::of(wire, path, &value);
        if conversation.tools.is_empty() {
            let mut texts = String::new();
            collect_texts(&value, &mut texts);
            let Some((step, fault)) = self.plain_answer(&texts) else {
                let reply = plain(&conversation, SIDE_ANSWER);
                return Outcome::Answer(answer(wire, &conversation, &reply, Duration::ZERO));
            };
            let text = step.text.as_deref().unwrap_or_default();
            let reply = Reply { usage: step.usage, ..plain(&conversation, text) };
            return play(wire, || answer(wire, &conversation, &reply, step.chunk_delay), step, fault).await;
        }
        ticket.step(Some((conversation.prompts, conversation.results)));
        let Some(place) = self.script.place(conversation.prompts, conversation.results) else {
            let reply = plain(&conversation, EXHAUSTED);
            return Outcome::Answer(answer(wire, &conversation, &reply, Duration::ZERO));
        };
        match self.reply(&conversation, place) {
            Ok(reply) => {
                let full = || answer(wire, &conversation, &reply, place.step.chunk_delay);
                play(wire, full, place.step, self.fault(place)).await
            }
            Err(error) => refuse(wire, error.to_string()),
        }
    }

    /// Answers a request for a picture: with one, or without if the script has but words for it.
    async fn picture(&self, endpoint: PictureEndpoint, body: &Bytes) -> Outcome {
        let wire = WireFormat::OpenaiImages;
        let mut texts = String::new();
        match endpoint {
            PictureEndpoint::Edits => {
                let Some(parts) = multipart::parts(body) else {
                    return refuse(wire, "the request body is no form".to_owned());
                };
                for part in parts.iter().filter(|part| part.file.is_none()) {
                    texts.push_str(&String::from_utf8_lossy(part.content));
                    texts.push('\n');
                }
            }
            PictureEndpoint::Generations => match serde_json::from_slice::<Value>(body) {
                Ok(value) => collect_texts(&value, &mut texts),
                Err(_) => return refuse(wire, "the request body is not JSON".to_owned()),
            },
        }
        let Some((step, fault)) = self.plain_answer(&texts) else {
            return Outcome::Answer(Answer::json(200, &json!({"created": 0, "data": []})));
        };
        let data = step.picture.iter().map(|bytes| json!({"b64_json": BASE64_STANDARD.encode(bytes)}));
        let (input, output) = (step.usage.input_tokens, step.usage.output_tokens);
        let value = json!({
            "created": 0,
            "data": data.collect::<Vec<_>>(),
            "usage": {"input_tokens": input, "output_tokens": output, "total_tokens": input + output},
        });
        play(wire, || Answer::json(200, &value), step, fault).await
    }

    /// The answer to a request without tools that is due, and what goes wrong with it.
    fn plain_answer(&self, texts: &str) -> Option<(&Step, Option<&FaultKind>)> {
        self.script.answers().iter().zip(&self.given).find_map(|(answer, given)| {
            if !answer.contains.iter().all(|it| texts.contains(it.as_str())) {
                return None;
            }
            let before = given.fetch_add(1, Ordering::Relaxed);
            if answer.times.is_some_and(|times| before >= times) {
                return None;
            }
            let fault = answer.step.fault.as_ref();
            let due = fault.filter(|it| it.times.is_none_or(|times| before < times));
            Some((&answer.step, due.map(|it| &it.kind)))
        })
    }

    /// The fault at this place, if it is still due.
    fn fault<'a>(&self, place: Place<'a>) -> Option<&'a FaultKind> {
        let fault = place.step.fault.as_ref()?;
        let before = self.visits.get(place.index)?.fetch_add(1, Ordering::Relaxed);
        fault.times.is_none_or(|times| before < times).then_some(&fault.kind)
    }

    fn reply(&self, conversation: &Conversation, place: Place<'_>) -> Result<Reply, NoTool> {
        let Conversation { prompts, results, tools, .. } = conversation;
        let step = place.step;
        // A call's id is made of its own position, so a client that repeats a request gets the same ids again.
        let calls = step.calls.iter().skip(place.answered).enumerate().map(|(at, call)| {
            let id = format!("{prompts}_{}", u64::from(*results) + at as u64);
            Ok((id, call.on_wire(&self.script, tools)?))
        });
        Ok(Reply {
            calls: calls.collect::<Result<_, _>>()?,
            reasoning: step.reasoning.clone(),
            usage: step.usage,
            text: step.text.clone(),
            ..plain(conversation, "")
        })
    }
}

/// Answers with what is `full`, as `step` and its fault will have it.
async fn play(
    wire: WireFormat,
    full: impl Fn() -> Answer,
    step: &Step,
    fault: Option<&FaultKind>,
) -> Outcome {
    if !step.delay.is_zero() {
        tokio::time::sleep(step.delay).await;
    }
    match fault {
        None => Outcome::Answer(full()),
        Some(FaultKind::Drop) => Outcome::Drop,
        Some(FaultKind::Hang) => Outcome::Hang,
        Some(FaultKind::Status { status, retry_after, body }) => {
            let body = match body {
                Some(body) => Answer::text(*status, "text/plain", body.clone()),
                None => Answer::json(*status, &error_body(Some(wire), *status, "A scripted fault")),
            };
            Outcome::Answer(body.with_retry_after(*retry_after))
        }
        Some(FaultKind::Truncate { after_bytes }) => {
            let end = stream::iter([Err(Broken("the script cuts the response here".to_owned()))]);
            let whole = full();
            let body = first(whole.body, *after_bytes).chain(end).boxed();
            Outcome::Answer(Answer { body, ..whole })
        }
        Some(FaultKind::Stall { after_bytes }) => {
            let whole = full();
            let body = first(whole.body, *after_bytes).chain(stream::pending()).boxed();
            Outcome::Answer(Answer { body, ..whole })
        }
    }
}

/// All texts of a request, one after the other; pictures are none.
fn collect_texts(value: &Value, texts: &mut String) {
    match value {
        Value::String(text) if !text.starts_with("data:") => {
            texts.push_str(text);
            texts.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|it| collect_texts(it, texts)),
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "data").for_each(|(_, it)| collect_texts(it, texts));
        }
        _ => {}
    }
}

fn plain(conversation: &Conversation, text: &str) -> Reply {
    let Conversation { model, prompts, results, replies, .. } = conversation;
    Reply {
        // With the number of replies: a turn that no prompt began (a finished background task) is played at the same
        // position once more, and must not look like the same message.
        id: format!("{prompts}_{results}_{replies}"),
        model: model.clone(),
        reasoning: None,
        text: Some(text.to_owned()),
        calls: Vec::new(),
        usage: proctor_traces::Usage { input_tokens: 100, output_tokens: 10, ..Default::default() },
    }
}

fn answer(wire: WireFormat, conversation: &Conversation, reply: &Reply, chunk_delay: Duration) -> Answer {
    if !conversation.stream {
        return Answer::json(200, &reply.whole(wire));
    }
    let pieces = reply.stream(wire).into_iter().enumerate();
    let body = stream::iter(pieces).then(move |(number, piece)| async move {
        if number > 0 && !chunk_delay.is_zero() {
            tokio::time::sleep(chunk_delay).await;
        }
        Ok(piece)
    });
    Answer::stream(body.boxed())
}

fn refuse(wire: WireFormat, message: String) -> Outcome {
    Outcome::Answer(Answer::refused(Some(wire), 400, message))
}

fn models() -> Value {
    json!({"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "proctor"}]})
}

/// The first `left` bytes of `body`.
fn first(body: Source, left: u64) -> Source {
    stream::unfold((body, left), |(mut body, left)| async move {
        if left == 0 {
            return None;
        }
        let piece = body.next().await?;
        let Ok(mut piece) = piece else { return Some((piece, (body, 0))) };
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - piece.len() as u64;
        Some((Ok(piece), (body, left)))
    })
    .boxed()
}
