//! `make bench`: what a trial and a rendering cost, beside the bare engine and the bare tools, in one run on one machine.
//!
//! Both sides of every ratio take turns (A B A B …), so that whatever else the machine does falls on both. A ratio is
//! that of the medians. The aims are those of the project; a figure that misses its aim is marked, and is no error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is this program's work")]

mod bare;
mod behaviour;
mod campaign;
mod figures;
#[path = "../accounting/fixture.rs"]
#[expect(clippy::unwrap_used, dead_code, reason = "the tests of the accounts use all of it")]
mod fixture;
mod metrics;
mod overrun;
mod reading;
mod rendering;
mod service;
#[path = "../accounting/sessions.rs"]
#[expect(clippy::unwrap_used, reason = "the tests use it too")]
mod sessions;
mod traces;
mod trials;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use proctor_sandbox::DockerSandbox;
use proctor_sandbox::image::{self, ImageStatus};
use proctor_traces::ImageIdentity;

use crate::figures::Report;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// Measures proctor beside the bare container engine and the bare tools.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program to measure; the one beside this program if not given
    #[arg(long)]
    proctor: Option<PathBuf>,
    /// Folder with task packages
    #[arg(long, default_value = "tasks/samples")]
    tasks: PathBuf,
    /// Folder for results, on the disk that is to be measured
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
    /// What is measured
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "trials,overrun,rendering,service,campaign,reading,traces,behaviour,metrics"
    )]
    only: Vec<Part>,
    /// Trials of a turn
    #[arg(long, default_value_t = 20)]
    trials: u32,
    /// Turns of each side
    #[arg(long, default_value_t = 3)]
    turns: u32,
    /// Renderings of each side, and per artifact
    #[arg(long, default_value_t = 9)]
    renderings: u32,
    /// A Python with scikit-image 0.25.2, for what is measured beside it
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Write everything as JSON, each single measurement included
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Trials,
    Overrun,
    Rendering,
    Service,
    Campaign,
    Reading,
    Traces,
    Behaviour,
    Metrics,
}

/// What every part needs.
pub(crate) struct Bench {
    pub(crate) sandbox: DockerSandbox,
    pub(crate) image: ImageIdentity,
    pub(crate) proctor: PathBuf,
    pub(crate) tasks: PathBuf,
    pub(crate) scratch: tempfile::TempDir,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Outcome<()> {
    let bench = open(arguments).await?;
    let mut report = Report::new(&bench).await?;
    for part in &arguments.only {
        match part {
            Part::Trials => trials::measure(&bench, arguments.turns, arguments.trials, &mut report).await?,
            Part::Overrun => overrun::measure(&bench, &mut report).await?,
            Part::Rendering => rendering::measure(&bench, arguments.renderings, &mut report).await?,
            Part::Service => service::measure(&bench, &mut report).await?,
            Part::Campaign => campaign::measure(&bench, arguments.turns, &mut report).await?,
            Part::Metrics => {
                metrics::measure(&bench, &arguments.python, arguments.renderings, &mut report)?;
            }
            Part::Behaviour => behaviour::measure(&bench, arguments.turns, &mut report)?,
            Part::Traces => traces::measure(&bench, arguments.turns, &mut report)?,
            Part::Reading => reading::measure(&bench, arguments.turns, &mut report)?,
        }
    }
    println!("{}", report.table());
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report)?)?;
    }
    Ok(())
}

async fn open(arguments: &Arguments) -> Outcome<Bench> {
    let beside = std::env::current_exe()?.with_file_name("proctor");
    let proctor = arguments.proctor.clone().unwrap_or(beside);
    if !proctor.is_file() {
        let hint = "build it first: cargo build --release -p proctor";
        return Err(format!("there is no {}; {hint}", proctor.display()).into());
    }
    // A short path: sockets lie below it.
    let scratch = tempfile::Builder::new().prefix("pb-").tempdir_in(&arguments.scratch)?;
    let sandbox = DockerSandbox::connect(&engine(), &scratch.path().join("cache")).await?;
    let ImageStatus::Present(image) = image::status(sandbox.client()).await? else {
        return Err("the toolchain image has not been built: proctor image build".into());
    };
    Ok(Bench { sandbox, image, proctor, tasks: arguments.tasks.clone(), scratch })
}

fn engine() -> String {
    std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned())
}

impl Bench {
    /// A new folder below the scratch folder.
    pub(crate) fn folder(&self, prefix: &str) -> Outcome<PathBuf> {
        Ok(tempfile::Builder::new().prefix(prefix).tempdir_in(self.scratch.path())?.keep())
    }

    /// The sample packages.
    pub(crate) fn packages(&self) -> Outcome<Vec<proctor_tasks::Task>> {
        Ok(proctor_tasks::discover(std::slice::from_ref(&self.tasks))?)
    }

    /// Where the packages are.
    pub(crate) fn tasks(&self) -> &Path {
        &self.tasks
    }
}

/// Tells what is being done, for it takes minutes.
pub(crate) fn say(what: &str) {
    eprintln!("bench: {what}");
}
