//! What was typed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_harnesses::HarnessId;
use proctor_tasks::{Ablation, Category, Difficulty, ImageDelivery, RenderMode};

use crate::experiment::{ModelId, OperationName, Track};
use crate::value::{AtATime, Attempts, Cpus, Inodes, Pids, Retries, Size, Span, TaskCount, Tokens, Usd};

/// What was typed; everything that was not is none, empty or false. Paths are relative to where it was typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the flag of its name, which the command line documents")]
pub struct Flags {
    pub attempts: Option<Attempts>,
    pub no_render: bool,

    pub paths: Vec<PathBuf>,
    pub ids: Vec<String>,
    pub ids_file: Option<PathBuf>,
    pub globs: Vec<String>,
    pub exclude: Vec<String>,
    pub category: Vec<Category>,
    pub mode: Vec<RenderMode>,
    pub difficulty: Vec<Difficulty>,
    pub operation: Vec<OperationName>,
    pub sample: Option<TaskCount>,
    pub seed: Option<u64>,
    pub limit: Option<TaskCount>,

    pub harnesses: Vec<HarnessId>,
    pub track: Option<Track>,
    pub ablation: Option<Ablation>,
    pub model: Option<ModelId>,
    pub command: Option<String>,
    pub budget: Option<Span>,
    pub image_delivery: Option<ImageDelivery>,
    pub tell_budget: bool,
    pub providers: Option<PathBuf>,
    pub max_trial_tokens: Option<Tokens>,
    pub max_trial_cost: Option<Usd>,

    pub jobs: Option<AtATime>,
    pub provider_jobs: BTreeMap<String, AtATime>,
    pub launch_interval: Option<Span>,
    pub render_jobs: Option<AtATime>,
    pub overcommit: bool,

    pub retries: Option<Retries>,
    pub backoff: Option<Span>,

    pub memory: Option<Size>,
    pub cpus: Option<Cpus>,
    pub pids: Option<Pids>,
    pub disk: Option<Size>,
    pub inodes: Option<Inodes>,

    pub max_tokens: Option<Tokens>,
    pub max_cost: Option<Usd>,
}

impl Flags {
    /// Whether tasks are named one by one. Then nothing else of a file's selection holds but its paths: who names tasks
    /// means these tasks.
    pub(crate) fn names_tasks(&self) -> bool {
        !self.ids.is_empty() || self.ids_file.is_some()
    }

    /// The flags that say what is run, not how much at a time: those that a process which joins a run cannot have.
    pub(crate) fn of_the_plan(&self) -> Vec<&'static str> {
        let typed = [
            ("--attempts", self.attempts.is_some()),
            ("--no-render", self.no_render),
            ("--tasks", !self.paths.is_empty()),
            ("--task", !self.ids.is_empty()),
            ("--ids", self.ids_file.is_some()),
            ("--glob", !self.globs.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--category", !self.category.is_empty()),
            ("--mode", !self.mode.is_empty()),
            ("--difficulty", !self.difficulty.is_empty()),
            ("--operation", !self.operation.is_empty()),
            ("--sample", self.sample.is_some()),
            ("--seed", self.seed.is_some()),
            ("--limit", self.limit.is_some()),
            ("--harness", !self.harnesses.is_empty()),
            ("--track", self.track.is_some()),
            ("--ablation", self.ablation.is_some()),
            ("--model", self.model.is_some()),
            ("--command", self.command.is_some()),
            ("--budget", self.budget.is_some()),
            ("--image-delivery", self.image_delivery.is_some()),
            ("--tell-budget", self.tell_budget),
            ("--providers", self.providers.is_some()),
            ("--max-trial-tokens", self.max_trial_tokens.is_some()),
            ("--max-trial-cost", self.max_trial_cost.is_some()),
            ("--retries", self.retries.is_some()),
            ("--backoff", self.backoff.is_some()),
            ("--memory", self.memory.is_some()),
            ("--cpus", self.cpus.is_some()),
            ("--pids", self.pids.is_some()),
            ("--disk", self.disk.is_some()),
            ("--inodes", self.inodes.is_some()),
            ("--max-tokens", self.max_tokens.is_some()),
            ("--max-cost", self.max_cost.is_some()),
        ];
        typed.into_iter().filter(|(_, typed)| *typed).map(|(name, _)| name).collect()
    }
}
