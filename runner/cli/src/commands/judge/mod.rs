//! `proctor judge`: marks what was rendered. A stage of its own: it reads a run, and can be done again.

mod agreeing;
mod blind;
mod vision;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use clap::Args;
use proctor_judge::human::Rater;
use proctor_judge::pixel::{Reference, Settings, Standing, Verdict};
use proctor_judge::pixel::{judge as judge_trial, look, pictures};
use proctor_judge::{Failure as NoPicture, JudgeError};
use proctor_report::counted;
use proctor_store::{RunDir, TrialDir};
use proctor_tasks::Task;
use serde_json::json;

use super::print_json;
use crate::asking::Answering;
use crate::environment::Environment;
use crate::failure::{Failure, Kind, chain};
use crate::laboratory::processors;
use crate::rendering::by_id;

const JUDGE_EXAMPLES: &str = "\
Examples:
  proctor judge runs/first
  proctor judge runs/first --tasks tasks/samples -j 4
  proctor judge runs/first --judge openai/gpt-5.5 --repeat 3 --order-swap
  proctor judge runs/first --export-blind for-raters --sample 50
  proctor judge runs/first --import-blind for-raters --rater ann
  proctor judge runs/first --agreement

Writes verdict.json and score.json of every trial that has an outcome. What was judged before from the same pictures and
the same points is left alone. Marks of the pixel judge are not comparable with those of a vision model, nor with the paper.";

/// Arguments of `judge`.
#[derive(Debug, Args)]
#[command(after_help = JUDGE_EXAMPLES)]
pub(crate) struct JudgeArgs {
    /// The run; its artifacts must have been rendered
    run: PathBuf,
    /// Who judges: `pixel`, which needs no model; PROVIDER/NAME, a vision model; or script:FILE, a scripted one
    #[arg(long, value_name = "JUDGE", default_value = "pixel")]
    judge: Judge,
    /// The task packages of the run; where they were when it was started, if not given
    #[arg(long, value_name = "PATH", num_args = 1..)]
    tasks: Vec<PathBuf>,
    /// Tasks judged at a time, as many as there are processors if not given; of a vision model requests, 4 if not given
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Say how far the judges agree that have marked this run, instead of judging
    #[arg(long)]
    agreement: bool,
    /// Write a folder for people to judge: pictures in a mixed order, without a word on whose work they are, a page that shows
    /// them, and a sheet to fill in. The key stays in the run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["agreement", "import_blind"], help_heading = "People")]
    export_blind: Option<PathBuf>,
    /// What the items are mixed by
    #[arg(long, value_name = "N", default_value_t = 0, requires = "export_blind", help_heading = "People")]
    seed: u64,
    /// Draw so many items
    #[arg(long, value_name = "N", requires = "export_blind", help_heading = "People")]
    sample: Option<NonZeroUsize>,
    /// Take over the sheet of such a folder as the marks of the judge `human-NAME`
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "agreement",
        requires = "rater",
        help_heading = "People"
    )]
    import_blind: Option<PathBuf>,
    /// Who filled it in
    #[arg(long, value_name = "NAME", requires = "import_blind", help_heading = "People")]
    rater: Option<Rater>,
    /// Print a line of JSON per trial, or what else is told as JSON
    #[arg(long)]
    json: bool,
    /// File with more providers
    #[arg(long, value_name = "FILE", help_heading = "Vision model")]
    providers: Option<PathBuf>,
    /// Level of reasoning that is asked for; `none` asks for none
    #[arg(long, value_name = "LEVEL", default_value = "xhigh", help_heading = "Vision model")]
    reasoning: Option<String>,
    /// Most tokens of a reply, reasoning included
    #[arg(long, value_name = "N", default_value_t = 64_000, help_heading = "Vision model")]
    max_output_tokens: u32,
    /// A field of each request, such as temperature=0; may be given again
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Vision model")]
    set: Vec<String>,
    /// Answers for each trial; the marks are those of the first, the others show how steady the judge is
    #[arg(long, value_name = "K", default_value = "1", help_heading = "Vision model")]
    repeat: NonZeroUsize,
    /// Ask once more with candidate and reference in the other order
    #[arg(long, help_heading = "Vision model")]
    order_swap: bool,
}

/// Who judges.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Judge {
    /// Compares with the hidden reference, pixel by pixel; needs no model.
    Pixel,
    /// Looks at the pictures.
    Vision(Answering),
}

impl FromStr for Judge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pixel" => Ok(Self::Pixel),
            model => model.parse().map(Self::Vision).map_err(|_| {
                "a judge is `pixel`, PROVIDER/NAME (a vision model), or script:FILE (a scripted one)"
                    .to_owned()
            }),
        }
    }
}

pub(crate) async fn run(args: &JudgeArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    if args.agreement {
        return agreeing::run(args);
    }
    if let Some(to) = &args.export_blind {
        return blind::export(args, to);
    }
    if let (Some(from), Some(rater)) = (&args.import_blind, &args.rater) {
        return blind::import(args, from, rater);
    }
    match &args.judge {
        Judge::Pixel => by_pixels(args),
        Judge::Vision(who) => vision::run(args, who, environment).await,
    }
}

fn by_pixels(args: &JudgeArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let tasks: Vec<_> = packages(&run, &args.tasks)?.into_iter().map(Arc::new).collect();
    let jobs = args.jobs.map_or_else(processors, NonZeroUsize::get);
    let mut tally = Tally::default();
    let mut printed = Ok(());
    each_trial(&run, &by_id(&tasks), jobs, |trial, came_of_it| {
        tally.count(came_of_it);
        if printed.is_ok() {
            printed = tell(trial, came_of_it, args.json);
        }
    })?;
    printed?;
    if !args.json {
        println!("{}", tally.sentence());
    }
    Ok(if tally.errors == 0 { ExitCode::SUCCESS } else { Kind::Incomplete.into() })
}

/// The task packages: those that were named, or those that the run was planned with.
pub(super) fn packages(run: &RunDir, named: &[PathBuf]) -> Result<Vec<Task>, Failure> {
    if !named.is_empty() {
        return Ok(proctor_tasks::discover(named)?);
    }
    let plan = run.record()?.plan.unwrap_or_default();
    let planned = plan.pointer("/tasks/paths").cloned().unwrap_or_default();
    let paths: Vec<PathBuf> = serde_json::from_value(planned).unwrap_or_default();
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        return Err(Failure::input(format!(
            "{}: the run's task packages are not there any more",
            path.display()
        ))
        .hint("say where they are now: --tasks PATH"));
    }
    if paths.is_empty() {
        return Err(
            Failure::input("the run does not say where its task packages are").hint("give --tasks PATH")
        );
    }
    Ok(proctor_tasks::discover(&paths)?)
}

/// What came of a trial.
enum CameOfIt {
    Judged(Box<Verdict>),
    Current,
    Pending,
    NotTheSolvers(&'static str),
    Error(String),
}

/// Judges all trials of a run, a task at a time on each of `jobs` threads, and calls `sink` for each in the order of their
/// names, as soon as that can be.
fn each_trial(
    run: &RunDir,
    tasks: &HashMap<String, Arc<Task>>,
    jobs: usize,
    mut sink: impl FnMut(&TrialDir, &CameOfIt),
) -> Result<(), Failure> {
    let mut by_task: BTreeMap<String, Vec<TrialDir>> = BTreeMap::new();
    for folder in run.trials_on_disk()? {
        by_task.entry(folder.id().task().to_owned()).or_default().push(folder);
    }
    let by_task: Vec<(String, Vec<TrialDir>)> = by_task.into_iter().collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (done, results) = mpsc::channel();
        for _ in 0..jobs.min(by_task.len()) {
            let done = done.clone();
            let (next, by_task) = (&next, &by_task);
            scope.spawn(move || {
                while let Some((name, folders)) = by_task.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if done.send((name, of_task(tasks.get(name).map(AsRef::as_ref), folders))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut waiting = HashMap::new();
        let mut told = by_task.iter().peekable();
        for (name, found) in results {
            waiting.insert(name, found);
            while let Some(found) = told.peek().and_then(|(name, _)| waiting.remove(name)) {
                let folders = told.next().map(|(_, folders)| folders.as_slice()).unwrap_or_default();
                for (folder, came_of_it) in folders.iter().zip(&found) {
                    sink(folder, came_of_it);
                }
            }
        }
    });
    Ok(())
}

/// All trials of one task; the reference is laid out only if one of them needs it.
fn of_task(task: Option<&Task>, folders: &[TrialDir]) -> Vec<CameOfIt> {
    let settings = Settings::default();
    let error = |error: &JudgeError| CameOfIt::Error(chain(error));
    let Some(task) = task else {
        let unknown = || CameOfIt::Error("its task is not among the packages".to_owned());
        return folders.iter().map(|_| unknown()).collect();
    };
    let digests = match pictures(task) {
        Ok(digests) => digests,
        Err(wrong) => return folders.iter().map(|_| error(&wrong)).collect(),
    };
    let mut reference = None;
    let mut one = |folder: &TrialDir| -> Result<CameOfIt, JudgeError> {
        Ok(match look(folder, task, digests, &settings)? {
            Standing::Pending => CameOfIt::Pending,
            Standing::NotTheSolvers(ending) => CameOfIt::NotTheSolvers(ending),
            Standing::Current => CameOfIt::Current,
            Standing::Due(work) => {
                let reference = match &mut reference {
                    Some(reference) => reference,
                    none => none.insert(Reference::of_task(task, settings)?),
                };
                CameOfIt::Judged(Box::new(judge_trial(folder, work, reference, &settings)?))
            }
        })
    };
    folders.iter().map(|folder| one(folder).unwrap_or_else(|wrong| error(&wrong))).collect()
}

fn tell(folder: &TrialDir, came_of_it: &CameOfIt, json: bool) -> Result<(), Failure> {
    let trial = folder.id();
    if json {
        let (state, more) = match came_of_it {
            CameOfIt::Judged(verdict) => ("judged", json!({ "verdict": verdict })),
            CameOfIt::Current => ("current", json!({})),
            CameOfIt::Pending => ("pending", json!({})),
            CameOfIt::NotTheSolvers(ending) => ("not_judged", json!({ "ending": ending })),
            CameOfIt::Error(message) => ("error", json!({ "message": message })),
        };
        let mut line = json!({ "trial": trial, "state": state });
        if let (Some(line), serde_json::Value::Object(more)) = (line.as_object_mut(), more) {
            line.extend(more);
        }
        return print_json(&line);
    }
    match came_of_it {
        CameOfIt::Judged(verdict) => println!("{trial}: {}", in_words(verdict)),
        CameOfIt::Error(message) => eprintln!("{trial}: error: {message}{}", hint(message)),
        CameOfIt::NotTheSolvers(ending) => println!("{trial}: not judged: {ending}"),
        CameOfIt::Current | CameOfIt::Pending => {}
    }
    Ok(())
}

/// What to do about an error, where there is one thing to do.
fn hint(message: &str) -> &'static str {
    if message == JudgeError::NotRendered.to_string() { "; `proctor render RUN` does that" } else { "" }
}

fn in_words(verdict: &Verdict) -> String {
    let score = verdict.score();
    let holding = score.points.iter().filter(|point| point.satisfied == Some(true)).count();
    let open = verdict.points.len() - score.points.len();
    let points = format!("{holding} of {}, {open} undecided", counted(score.points.len(), "point"));
    let Some(findings) = &verdict.findings else {
        let why = match &verdict.failure {
            Some(NoPicture::Render(status)) => status,
            _ => "no_artifact",
        };
        return format!("{points}; no picture: {why}");
    };
    if findings.blank {
        return format!("{points}; blank");
    }
    let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    format!(
        "{points}; in-box {} (normalised {}), out-of-box {}",
        or_dash(findings.in_box.map(|it| it.ssim)),
        or_dash(findings.in_box.map(|it| it.normalised)),
        or_dash(findings.out_of_box.map(|it| it.score)),
    )
}

/// How many came to what.
#[derive(Default)]
struct Tally {
    judged: usize,
    current: usize,
    pending: usize,
    not_judged: usize,
    errors: usize,
}

impl Tally {
    fn count(&mut self, came_of_it: &CameOfIt) {
        *match came_of_it {
            CameOfIt::Judged(_) => &mut self.judged,
            CameOfIt::Current => &mut self.current,
            CameOfIt::Pending => &mut self.pending,
            CameOfIt::NotTheSolvers(_) => &mut self.not_judged,
            CameOfIt::Error(_) => &mut self.errors,
        } += 1;
    }

    fn sentence(&self) -> String {
        let Self { judged, current, pending, not_judged, errors } = self;
        let all = [
            (judged, "judged"),
            (current, "judged before"),
            (pending, "without an outcome"),
            (not_judged, "that the solver is not to be judged by"),
            (errors, "with errors"),
        ];
        let some: Vec<String> = all
            .iter()
            .filter(|(count, _)| **count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let counts = if some.is_empty() { "no trials".to_owned() } else { some.join(", ") };
        format!("{counts}. Pixel judge: its marks are not comparable with the paper's.")
    }
}
