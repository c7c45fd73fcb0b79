//! `proctor`: the command line. The only place that reads the environment, prints, and exits.
//!
//! Reads top-down: [`main`] parses what was typed, [`commands`] does one thing each, [`failure`] turns what went wrong
//! into one message with a hint and a documented exit code.

#[macro_use]
mod printing;

mod args;
mod asking;
mod commands;
mod console;
mod environment;
mod failure;
mod laboratory;
mod recordings;
mod rendering;
mod writing;

use std::process::ExitCode;

use crate::args::{Cli, Verb};
use crate::environment::Environment;
use crate::failure::Failure;

/// Reading the traces of a whole campaign is mostly the making of small strings, which takes the usual allocator half again as
/// long (`make bench`, part `behaviour`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::typed();
    let environment = Environment::read();
    console::log_to_stderr(cli.verbose);
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("starting the runtime: {error}")))
        .and_then(|runtime| runtime.block_on(run(cli, &environment)));
    match result {
        Ok(_) if printing::lost() => Failure::internal("stdout could not be written").report(),
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

async fn run(cli: Cli, environment: &Environment) -> Result<ExitCode, Failure> {
    match cli.verb {
        Verb::Run(args) => commands::run::run(args, environment).await,
        Verb::Render(args) => commands::render::render(args, environment).await,
        Verb::Judge(args) => commands::judge::run(&args, environment).await,
        Verb::Compare(args) => commands::compare::run(&args),
        Verb::Tasks(verb) => commands::tasks::tasks(verb, environment).await,
        Verb::Harness(verb) => commands::harness::harness(verb, environment),
        Verb::Image(verb) => commands::image::image(verb, environment).await,
        Verb::Preflight(args) => commands::preflight::preflight(args, environment).await,
        Verb::Show(args) => commands::show::show(&args),
        Verb::Status(args) => commands::status::status(&args),
        Verb::Report(args) => commands::report::report(&args),
        Verb::Rerun(args) => commands::rerun::rerun(&args),
        Verb::Merge(args) => commands::merge::merge(&args),
        Verb::Trace(verb) => commands::trace::trace(verb, environment).await,
        Verb::Doctor(args) => commands::doctor::doctor(&args, environment).await,
        Verb::Sweep(args) => commands::sweep::sweep(&args, environment).await,
        Verb::Slurm(verb) => commands::slurm::slurm(verb).await,
    }
}
