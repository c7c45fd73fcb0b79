//! What can be typed after `proctor run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use proctor_experiment::{
    AtATime, Attempts, Cpus, Flags, Inodes, OperationName, Pids, Retries, Size, Span, TaskCount, Tokens,
    Track, Usd, ValueError,
};
use proctor_harnesses::HarnessId;
use proctor_tasks::{Ablation, Category, Difficulty, ImageDelivery, RenderMode};

use crate::args::{ModelArgs, mode, one_of};

const EXAMPLES: &str = "\
Examples:
  The bundled tasks with the real Codex CLI and the scripted model, no key needed:
    proctor run --tasks tasks/samples --harness codex --model script --out runs/first

  One task, Claude Code, a real provider:
    export ANTHROPIC_API_KEY=…
    proctor run --tasks tasks/samples --task dashboard-threshold --harness claude-code \\
        --model anthropic/claude-opus-5-5 --out runs/claude

  Any program of the image as the agent, 60 seconds each, four at a time (the prompt is on its stdin):
    proctor run --tasks my-tasks --harness command --command 'python3 -c \"…\"' \\
        --budget 60s -j 4 --out runs/mine

  A model without an agent, which returns the program in its one reply:
    proctor run --tasks tasks/samples --track native --model openai/gpt-5.5 --out runs/native

  An experiment from a file: what it comes to, a pilot of 20 tasks, what the rest will cost, all of it:
    proctor run main.toml --print-plan
    proctor run main.toml --sample 20 --out runs/pilot
    proctor run main.toml --print-plan --pilot runs/pilot
    proctor run main.toml --out runs/main

  Another process, here or on a machine that shares the folder, takes part in it:
    proctor run --join runs/main -j 8

The same command again continues a run: what has an outcome is not run again.";

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// What is to be run (docs/experiment.md); flags win over what it says
    #[arg(value_name = "EXPERIMENT.toml", conflicts_with = "join")]
    pub(crate) experiment: Option<PathBuf>,
    #[command(flatten)]
    tasks: TaskArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// Results directory: new, empty, or a run to continue
    #[arg(long, value_name = "DIR", required_unless_present_any = ["print_plan", "join"], help_heading = "Run")]
    pub(crate) out: Option<PathBuf>,
    /// Take part in a run that another process has started: all but the pace is as it says
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "extend", "print_plan"], help_heading = "Run")]
    pub(crate) join: Option<PathBuf>,
    /// Add to the run in --out what this plan has more: methods, tasks, attempts
    #[arg(long, requires = "out", help_heading = "Run")]
    pub(crate) extend: bool,
    /// Make the run, or extend it, and start nothing: others join it
    #[arg(long, requires = "out", conflicts_with = "print_plan", help_heading = "Run")]
    pub(crate) no_start: bool,
    /// Print every setting with where it came from, the trials, and an estimate; run nothing
    #[arg(long, help_heading = "Run")]
    pub(crate) print_plan: bool,
    /// Run whose figures the estimate is made of; that in --out if not given
    #[arg(long, value_name = "RUN", requires = "print_plan", help_heading = "Run")]
    pub(crate) pilot: Option<PathBuf>,
    /// Attempts per task and method [default: 1]
    #[arg(long, value_name = "N", help_heading = "Run")]
    attempts: Option<Attempts>,
    /// Tries after a failure that is not the agent's [default: 3]
    #[arg(long, value_name = "N", help_heading = "Run")]
    retries: Option<Retries>,
    /// Pause before such a try [default: 5s]
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    backoff: Option<Span>,
    /// Do not render what the agents leave
    #[arg(long, help_heading = "Run")]
    no_render: bool,
    #[command(flatten)]
    pace: PaceArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    ceilings: CeilingArgs,
    /// Print outcomes and summary, or the plan, as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Which tasks. Each filter narrows; then comes the sample, then the limit.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tasks")]
struct TaskArgs {
    /// Task packages, or folders of them
    #[arg(long = "tasks", value_name = "PATH", num_args = 1..)]
    paths: Vec<PathBuf>,
    /// Only this task; may be repeated
    #[arg(long = "task", value_name = "ID")]
    ids: Vec<String>,
    /// Only the tasks that this file names, one a line; # begins a comment
    #[arg(long = "ids", value_name = "FILE")]
    ids_file: Option<PathBuf>,
    /// Only tasks whose name matches, as in 'chart-*'; may be repeated
    #[arg(long = "glob", value_name = "PATTERN")]
    globs: Vec<String>,
    /// Not these tasks: a name or a pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Only these categories
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = category)]
    category: Vec<Category>,
    /// Only these rendering modes
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = mode)]
    mode: Vec<RenderMode>,
    /// Only these difficulties
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = difficulty)]
    difficulty: Vec<Difficulty>,
    /// Only these operations
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    operation: Vec<OperationName>,
    /// Draw so many of them, in proportion to batches, categories and difficulties
    #[arg(long, value_name = "N")]
    sample: Option<TaskCount>,
    /// Another seed draws others [default: 0]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// At most so many: the first by name
    #[arg(long, value_name = "N")]
    limit: Option<TaskCount>,
}

/// Which method. Harness or track, model and command line replace the methods of an experiment; the rest is laid over each.
#[derive(Debug, Args)]
struct MethodArgs {
    /// The agent: codex, claude-code, opencode, gemini, qwen, pi, command, oracle or nop; NAME@VERSION for a version; may be repeated
    #[arg(long = "harness", value_name = "NAME[@VERSION]", help_heading = "Method")]
    harnesses: Vec<HarnessId>,
    /// A model without an agent, asked once: native (it returns a program) or direct (it returns a picture)
    #[arg(long, value_name = "TRACK", conflicts_with = "harnesses", help_heading = "Method")]
    track: Option<Track>,
    /// What it is given otherwise than in the main experiment: a1, b or c (docs/tracks.md)
    #[arg(long, value_name = "NAME", requires = "track", value_parser = ablation, help_heading = "Method")]
    ablation: Option<Ablation>,
    #[command(flatten)]
    model: ModelArgs,
    /// Command line of `--harness command`; it is not given to a shell
    #[arg(long, value_name = "LINE", help_heading = "Method")]
    command: Option<String>,
    /// How the source picture reaches the agent [default: workspace]
    #[arg(long, value_enum, help_heading = "Method")]
    image_delivery: Option<Delivery>,
    /// Name the budget in TASK.md
    #[arg(long, help_heading = "Method")]
    tell_budget: bool,
    /// Time per trial, as in 1800s, 30m or 90 [default: 1800s]
    #[arg(long, value_name = "TIME", help_heading = "Method")]
    budget: Option<Span>,
}

/// How much at a time.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
struct PaceArgs {
    /// Trials at a time, if so many rooms fit into memory [default: 1]
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<AtATime>,
    /// Trials at a time that ask one provider, as in openai=10; may be repeated
    #[arg(long, value_name = "PROVIDER=N", value_delimiter = ',', value_parser = provider_jobs)]
    provider_jobs: Vec<(String, AtATime)>,
    /// Time between the starts of two trials, at least
    #[arg(long, value_name = "TIME")]
    launch_interval: Option<Span>,
    /// Renderings at a time [default: 2]
    #[arg(long, value_name = "N")]
    render_jobs: Option<AtATime>,
    /// Open more rooms than fit into memory if all were full
    #[arg(long)]
    overcommit: bool,
}

/// Bounds of a room.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Memory per trial [default: 4g]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// Processors per trial; two, or as many as there are, if not given
    #[arg(long, value_name = "N")]
    cpus: Option<Cpus>,
    /// Processes and threads per trial [default: 512]
    #[arg(long, value_name = "N")]
    pids: Option<Pids>,
    /// Disk per trial: workspace and HOME together, counted every second (an unlinked file that is kept open is not
    /// seen) [default: 4g]
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// Files and folders per trial in workspace and HOME [default: 200000]
    #[arg(long, value_name = "N")]
    inodes: Option<Inodes>,
}

/// Bounds of what models may be used. Costs need prices, which an experiment file has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Ceilings")]
#[expect(clippy::struct_field_names, reason = "the flags are named so")]
struct CeilingArgs {
    /// Tokens of the whole run: no trial is started once it has used them
    #[arg(long, value_name = "N")]
    max_tokens: Option<Tokens>,
    /// US dollars for the whole run
    #[arg(long, value_name = "USD")]
    max_cost: Option<Usd>,
    /// Tokens of one trial: it is stopped when it has used more
    #[arg(long, value_name = "N")]
    max_trial_tokens: Option<Tokens>,
    /// US dollars for one trial
    #[arg(long, value_name = "USD")]
    max_trial_cost: Option<Usd>,
}

/// How the source picture reaches the agent.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Delivery {
    /// As a file of the workspace, to be looked at
    Workspace,
    /// Attached to the prompt
    Attach,
    /// Both
    Both,
}

impl RunArgs {
    /// What of it lays over an experiment.
    pub(super) fn flags(&self) -> Flags {
        let Self { tasks, method, pace, limits, ceilings, .. } = self;
        Flags {
            attempts: self.attempts,
            no_render: self.no_render,
            paths: tasks.paths.clone(),
            ids: tasks.ids.clone(),
            ids_file: tasks.ids_file.clone(),
            globs: tasks.globs.clone(),
            exclude: tasks.exclude.clone(),
            category: tasks.category.clone(),
            mode: tasks.mode.clone(),
            difficulty: tasks.difficulty.clone(),
            operation: tasks.operation.clone(),
            sample: tasks.sample,
            seed: tasks.seed,
            limit: tasks.limit,
            harnesses: method.harnesses.clone(),
            track: method.track,
            ablation: method.ablation,
            model: method.model.model.clone(),
            command: method.command.clone(),
            budget: method.budget,
            image_delivery: method.image_delivery.map(|delivery| match delivery {
                Delivery::Workspace => ImageDelivery::Workspace,
                Delivery::Attach => ImageDelivery::Attach,
                Delivery::Both => ImageDelivery::Both,
            }),
            tell_budget: method.tell_budget,
            providers: method.model.providers.clone(),
            max_trial_tokens: ceilings.max_trial_tokens,
            max_trial_cost: ceilings.max_trial_cost,
            jobs: pace.jobs,
            provider_jobs: pace.provider_jobs.iter().cloned().collect(),
            launch_interval: pace.launch_interval,
            render_jobs: pace.render_jobs,
            overcommit: pace.overcommit,
            retries: self.retries,
            backoff: self.backoff,
            memory: limits.memory,
            cpus: limits.cpus,
            pids: limits.pids,
            disk: limits.disk,
            inodes: limits.inodes,
            max_tokens: ceilings.max_tokens,
            max_cost: ceilings.max_cost,
        }
    }
}

fn category(text: &str) -> Result<Category, String> {
    one_of(text, &Category::ALL, Category::as_str)
}

fn difficulty(text: &str) -> Result<Difficulty, String> {
    one_of(text, &Difficulty::ALL, Difficulty::as_str)
}

fn provider_jobs(text: &str) -> Result<(String, AtATime), String> {
    let (provider, jobs) = text.split_once('=').ok_or("it is PROVIDER=N, as in openai=10")?;
    match provider {
        "" => Err("it names no provider".to_owned()),
        _ => Ok((provider.to_owned(), jobs.parse().map_err(|error: ValueError| error.to_string())?)),
    }
}

fn ablation(text: &str) -> Result<Ablation, String> {
    one_of(text, &[Ablation::A1, Ablation::A2, Ablation::B, Ablation::C], Ablation::as_str)
}
