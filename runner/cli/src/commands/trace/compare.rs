//! `proctor trace compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_report::comparison;

use super::stats::RunArgs;
use crate::commands::print_json;
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Examples:
  proctor trace compare runs/campaign --methods codex-openai-gpt-5.5,claude-code-zai-glm-5.3

Differences are taken within pairs: the same attempt at the same task by both. The bootstrap draws source artifacts and has a
fixed seed.";

/// Arguments of `trace compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    run: RunArgs,
    /// The two methods: the first less the second
    #[arg(long, required = true, num_args = 1.., value_delimiter = ',', value_name = "A,B")]
    methods: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
    /// Write every difference as a line of CSV too
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(super) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let [first, second] = args.methods.as_slice() else {
        let said = format!("--methods names {} methods, and two are compared", args.methods.len());
        return Err(Failure::input(said).hint("--methods A,B"));
    };
    let read = args.run.read()?;
    let compared = comparison(&read.rows, &read.verdicts, &read.behaviours()?, [first, second])
        .map_err(|error| Failure::input(error.to_string()))?;
    if args.json {
        print_json(&compared)?;
    } else if args.markdown {
        println!("{}", compared.markdown());
    } else {
        println!("{}", compared.text());
    }
    if let Some(path) = &args.csv {
        args.run.write(path, |to| compared.write_csv(to))?;
    }
    read.warn();
    Ok(ExitCode::SUCCESS)
}
