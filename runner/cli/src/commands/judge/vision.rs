//! Judging by a vision model: asks, and asks again where a reply cannot be read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use proctor_gateway::client::{Form, Part, Patience, Reply, Stop};
use proctor_judge::JudgeError;
use proctor_judge::vision::{
    Answered, Case, Piece, Question, Settings, Standing, Unscored, Verdict, answer_schema, case, look,
    prompt_digest, write,
};
use proctor_store::{RunDir, TrialDir};
use proctor_tasks::Task;
use serde_json::{Map, Value, json};

use super::{JudgeArgs, packages};
use crate::asking::{Answering, Asking, Terms};
use crate::commands::print_json;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, chain};
use crate::rendering::by_id;

/// Replies that could not be read are asked for again so often (VAO-Bench, B.3).
const PARSING_RETRIES: u32 = 2;
/// Most of a reply that is kept, in bytes.
const REPLY_CAP: usize = 256 << 10;
/// Trials judged at a time, if nobody says how many.
const JOBS: usize = 4;

/// A judge with its way to the model.
struct Judge {
    asking: Asking,
    settings: Settings,
    /// The answers that are wanted of each trial, each by whether the order of the pictures is swapped.
    answers: Vec<bool>,
}

/// What came of a trial.
enum CameOfIt {
    Judged(Box<Verdict>),
    Current(Box<Verdict>),
    Pending,
    NotTheSolvers(&'static str),
    Error(String),
}

pub(super) async fn run(
    args: &JudgeArgs,
    who: &Answering,
    environment: &Environment,
) -> Result<std::process::ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let tasks: Vec<Arc<Task>> = packages(&run, &args.tasks)?.into_iter().map(Arc::new).collect();
    let judge = Judge::open(args, who, environment).await?;
    let tasks = by_id(&tasks);
    let mut by_task: BTreeMap<String, Vec<TrialDir>> = BTreeMap::new();
    for folder in run.trials_on_disk()? {
        by_task.entry(folder.id().task().to_owned()).or_default().push(folder);
    }
    let mut tally: HashMap<&'static str, usize> = HashMap::new();
    for (name, folders) in &by_task {
        let reference = match tasks.get(name).map(|task| case(task)) {
            Some(Ok(reference)) => Ok(reference),
            Some(Err(error)) => Err(chain(&error)),
            None => Err("its task is not among the packages".to_owned()),
        };
        let jobs = args.jobs.map_or(JOBS, std::num::NonZeroUsize::get);
        let judged = folders.iter().map(|folder| {
            let (judge, reference) = (&judge, &reference);
            async move {
                let came_of_it = match reference {
                    Ok(reference) => judge
                        .one(folder, reference)
                        .await
                        .unwrap_or_else(|error| CameOfIt::Error(chain(&error))),
                    Err(message) => CameOfIt::Error(message.clone()),
                };
                (folder, came_of_it)
            }
        });
        let mut judged = stream::iter(judged).buffered(jobs);
        while let Some((folder, came_of_it)) = judged.next().await {
            *tally.entry(came_of_it.name()).or_default() += 1;
            tell(folder, &came_of_it, args.json)?;
        }
    }
    let unfinished = ["error", "unscored"].iter().any(|it| tally.contains_key(it));
    if !args.json {
        println!("{}", sentence(&tally, &judge.settings));
    }
    Ok(if unfinished { Kind::Incomplete.into() } else { std::process::ExitCode::SUCCESS })
}

impl Judge {
    async fn open(args: &JudgeArgs, who: &Answering, environment: &Environment) -> Result<Self, Failure> {
        let extra = extra(args)?;
        let reasoning = args.reasoning.clone().filter(|it| it != "none");
        let terms = Terms {
            max_output_tokens: args.max_output_tokens,
            reasoning: reasoning.clone(),
            extra: extra.clone(),
        };
        let asking =
            Asking::open(who, args.providers.as_deref(), terms, Patience::default(), environment).await?;
        let settings = Settings {
            model: who.to_string(),
            reasoning,
            max_output_tokens: args.max_output_tokens,
            extra: extra.into_iter().collect(),
            prompts: prompt_digest(),
        };
        let mut answers = vec![false; args.repeat.get()];
        answers.extend(args.order_swap.then_some(true));
        Ok(Self { asking, settings, answers })
    }

    async fn one(&self, folder: &TrialDir, reference: &Case<'_>) -> Result<CameOfIt, JudgeError> {
        let work = match look(folder, reference, &self.settings, &self.answers)? {
            Standing::Pending => return Ok(CameOfIt::Pending),
            Standing::NotTheSolvers(ending) => return Ok(CameOfIt::NotTheSolvers(ending)),
            Standing::Current(verdict) => return Ok(CameOfIt::Current(verdict)),
            Standing::Due(work) => work,
        };
        let (mut pictures, mut answered) = (Vec::new(), Vec::new());
        for swapped in self.answers.iter().filter(|_| work.asks()) {
            let question = reference.question(folder, &work, *swapped)?;
            answered.push(self.answer(&question, *swapped).await);
            if pictures.is_empty() {
                pictures = question.pictures;
            }
        }
        let verdict = write(folder, reference, work, &self.settings, pictures, answered)?;
        Ok(CameOfIt::Judged(Box::new(verdict)))
    }

    /// Asks until a reply can be read, a few times.
    async fn answer(&self, question: &Question, swapped: bool) -> Answered {
        let parts = question.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Part::Text(text.clone()),
            Piece::Png(bytes) => Part::Picture { media_type: "image/png", bytes: bytes.clone().into() },
        });
        let mut asked = self.asking.question(question.system.clone(), parts.collect());
        asked.form = Some(Form { name: "verdict".to_owned(), schema: answer_schema() });
        let mut answered = Answered {
            swapped,
            reading: None,
            unscored: None,
            reply: String::new(),
            served_model: None,
            usage: None,
            took_ms: 0,
            failures: Vec::new(),
        };
        for _ in 0..=PARSING_RETRIES {
            let reply = match self.asking.ask(&asked).await {
                Ok(reply) => reply,
                Err(error) => {
                    answered.unscored = Some(Unscored::NoReply { message: chain(&error) });
                    return answered;
                }
            };
            let read = read(question, &reply);
            take_over(&mut answered, reply);
            match read {
                Ok(reading) => {
                    (answered.reading, answered.unscored) = (Some(reading), None);
                    return answered;
                }
                Err(unscored) => {
                    answered.failures.push(unscored.to_string());
                    answered.unscored = Some(unscored);
                }
            }
        }
        answered
    }
}

/// Takes over what a reply says of itself: the last one is kept, time and tokens of all add up.
fn take_over(answered: &mut Answered, reply: Reply) {
    let mut end = reply.text.len().min(REPLY_CAP);
    while !reply.text.is_char_boundary(end) {
        end -= 1;
    }
    reply.text[..end].clone_into(&mut answered.reply);
    answered.served_model = reply.served_model;
    let took = u64::try_from(reply.took.as_millis()).unwrap_or(u64::MAX);
    answered.took_ms = answered.took_ms.saturating_add(took);
    answered.failures.extend(reply.failures);
    if let Some(usage) = reply.usage {
        *answered.usage.get_or_insert_default() += usage;
    }
}

fn read(question: &Question, reply: &Reply) -> Result<proctor_judge::vision::Reading, Unscored> {
    match reply.stop {
        Stop::Refusal => Err(Unscored::Refusal),
        Stop::Length => Err(Unscored::Truncated),
        Stop::Complete | Stop::Other(_) => question.read(&reply.text),
    }
}

/// `--set KEY=VALUE`: a value is JSON if it is, else text.
fn extra(args: &JudgeArgs) -> Result<Map<String, Value>, Failure> {
    args.set
        .iter()
        .map(|setting| {
            let (key, value) =
                setting.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                    Failure::input(format!("--set {setting}: it is KEY=VALUE, as in temperature=0"))
                })?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            Ok((key.to_owned(), value))
        })
        .collect()
}

impl CameOfIt {
    fn name(&self) -> &'static str {
        match self {
            Self::Judged(verdict) | Self::Current(verdict) if !verdict.is_scored() => "unscored",
            Self::Judged(_) => "judged",
            Self::Current(_) => "current",
            Self::Pending => "pending",
            Self::NotTheSolvers(_) => "not_judged",
            Self::Error(_) => "error",
        }
    }
}

fn tell(folder: &TrialDir, came_of_it: &CameOfIt, json: bool) -> Result<(), Failure> {
    let trial = folder.id();
    if json {
        let mut line = json!({ "trial": trial, "state": came_of_it.name() });
        match came_of_it {
            CameOfIt::Judged(verdict) => line["verdict"] = json!(verdict),
            CameOfIt::NotTheSolvers(ending) => line["ending"] = json!(ending),
            CameOfIt::Error(message) => line["message"] = json!(message),
            CameOfIt::Current(_) | CameOfIt::Pending => {}
        }
        return print_json(&line);
    }
    match came_of_it {
        CameOfIt::Judged(verdict) => println!("{trial}: {}", in_words(verdict)),
        CameOfIt::Error(message) => eprintln!("{trial}: error: {message}"),
        CameOfIt::NotTheSolvers(ending) => println!("{trial}: not judged: {ending}"),
        CameOfIt::Current(_) | CameOfIt::Pending => {}
    }
    Ok(())
}

fn in_words(verdict: &Verdict) -> String {
    if verdict.failure.is_some() {
        return "no picture: no point holds".to_owned();
    }
    let Some(first) = verdict.answers.first() else { return "unscored".to_owned() };
    let Some(reading) = &first.reading else {
        let why = first.unscored.as_ref().map_or_else(String::new, |it| format!(": {it}"));
        return format!("unscored{why}");
    };
    let holding = reading.points.iter().filter(|it| it.satisfied).count();
    let others = verdict.answers.iter().skip(1).filter_map(|it| it.reading.as_ref());
    let differing = others
        .flat_map(|it| it.points.iter().zip(&reading.points))
        .filter(|(other, first)| other.satisfied != first.satisfied)
        .count();
    let spread = if verdict.answers.len() > 1 {
        format!("; {differing} marks differ in {} more answers", verdict.answers.len() - 1)
    } else {
        String::new()
    };
    format!(
        "{holding} of {} points, visual {}, domain {}{spread}",
        reading.points.len(),
        reading.visual_quality.rating.get(),
        reading.domain_quality.rating.get()
    )
}

fn sentence(tally: &HashMap<&'static str, usize>, settings: &Settings) -> String {
    let all = [
        ("judged", "judged"),
        ("current", "judged before"),
        ("unscored", "unscored"),
        ("pending", "without an outcome"),
        ("not_judged", "that the solver is not to be judged by"),
        ("error", "with errors"),
    ];
    let some: Vec<String> =
        all.iter().filter_map(|(name, what)| Some(format!("{} {what}", tally.get(name)?))).collect();
    let counts = if some.is_empty() { "no trials".to_owned() } else { some.join(", ") };
    format!("{counts}. Judge: {}", settings.signature())
}
