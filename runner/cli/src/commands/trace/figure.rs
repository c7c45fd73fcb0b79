//! `proctor trace figure`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::{Choice, Strategies, counted};

use super::stats::RunArgs;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Examples:
  proctor trace figure runs/campaign -o figure6.svg
  proctor trace figure runs/campaign -o figure6.svg --tasks 40 --seed 3 --methods A,B

Writes the picture, and beside it a CSV of what is drawn. The tasks are drawn by category and difficulty from those of which
every method left a trace; the same seed gives the same tasks and the same bytes.";

/// Arguments of `trace figure`.
#[derive(Debug, Args)]
pub(crate) struct FigureArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Where the picture goes; its data goes beside it
    #[arg(short, long, value_name = "FILE.svg")]
    output: PathBuf,
    /// Tasks, at most
    #[arg(long, default_value_t = Choice::TASKS, value_name = "N")]
    tasks: usize,
    /// Seed of the sample
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Methods, in this order, instead of all
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…")]
    methods: Vec<String>,
}

pub(super) fn figure(args: &FigureArgs) -> Result<ExitCode, Failure> {
    if args.output.extension().is_none_or(|it| it != "svg") {
        let said = format!("{}: the picture is SVG", args.output.display());
        return Err(Failure::input(said).hint("end its name with .svg"));
    }
    if args.tasks == 0 {
        return Err(Failure::input("--tasks 0: a figure of no tasks shows nothing").hint("--tasks N, from 1"));
    }
    if let Some(twice) = args.methods.iter().enumerate().find(|(at, it)| args.methods[..*at].contains(it)) {
        return Err(Failure::input(format!("--methods names `{}` twice", twice.1)));
    }
    let read = args.run.read()?;
    let choice = Choice { tasks: args.tasks, seed: args.seed, methods: args.methods.clone() };
    let figure = Strategies::read(&read.run, &read.rows, &read.verdicts, &choice, read.reading)
        .map_err(|error| Failure::input(error.to_string()))?;
    for problem in &figure.problems {
        eprintln!("{problem}");
    }
    let data = args.output.with_extension("csv");
    let svg = figure.svg();
    args.run.write(&args.output, |to| to.write_all(svg.as_bytes()))?;
    args.run.write(&data, |to| figure.write_csv(to))?;
    println!(
        "{} and {}: {} × {}",
        args.output.display(),
        data.display(),
        counted(figure.tasks.len(), "task"),
        counted(figure.panels.len(), "method")
    );
    if let Some(said) = figure.left_out_text() {
        println!("{said}");
    }
    read.warn();
    Ok(ExitCode::SUCCESS)
}
