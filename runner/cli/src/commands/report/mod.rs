//! `proctor report`: a run accounted for.

mod contrast;
mod pictures;
mod rows;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use proctor_report::{
    Grouping, Options, ProviderErrors, Recover, Report, ReportError, ScoreTable, Sheet, TableNumbers,
    agreeing, counted, draw, judge, policy_text, write_curves, write_score_tables,
};
use proctor_store::{StoreError, write_in_pieces};
use serde_json::json;

use super::print_json;
use crate::failure::{Failure, Kind};

const REPORT_EXAMPLES: &str = "\
Examples:
  proctor report runs/campaign --by category,difficulty
  proctor report runs/campaign --where 'mode == \"html\" and difficulty in [\"medium\", \"hard\"]' --markdown
  proctor report runs/campaign --csv figures --curve completions.svg --allow-incomplete
  proctor report runs/campaign --tables 14-31          # the paper's tables of scores; --tables alone: all
  proctor report runs/campaign --compare codex-gpt claude-code-glm
  proctor report runs/explicit --subset ablation.txt --baseline runs/campaign --tables 1
  proctor report runs/reconstruct --pictures source    # Table 13

docs/accounting.md says what counts as what; --policy prints its tables. The exit code is 4 while trials are unresolved.";

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// The run
    #[arg(required_unless_present = "policy")]
    pub(crate) run: Option<PathBuf>,
    /// Tables by these as well
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…")]
    pub(crate) by: Vec<By>,
    /// Only trials for which this expression holds, over the columns of `trials.csv`
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// The tables of scores by the paper's numbers instead, as in `1,14-31,operations`; all of them if none is given
    #[arg(long, value_name = "NUMBERS", num_args = 0..=1, default_missing_value = "1,14-31,operations", help_heading = "Scores")]
    pub(crate) tables: Option<TableNumbers>,
    /// Two methods on the same tasks instead: differences, intervals, p
    #[arg(long, num_args = 2, value_names = ["METHOD", "METHOD"], conflicts_with_all = ["tables", "pictures", "curve"], help_heading = "Scores")]
    pub(crate) compare: Option<Vec<String>>,
    /// What --compare draws as a whole
    #[arg(long, value_enum, default_value = "source", requires = "compare", help_heading = "Scores")]
    pub(crate) cluster: Clusters,
    /// SSIM, PSNR, MAE and MSE of the pictures instead, by rendering mode, against this picture of the task (Table 13: source)
    #[arg(long, value_enum, value_name = "AGAINST", conflicts_with_all = ["tables", "curve"], help_heading = "Scores")]
    pub(crate) pictures: Option<Against>,
    /// The task packages, for --pictures; where they were when the run was started, if not given
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "pictures", help_heading = "Scores")]
    pub(crate) packages: Vec<PathBuf>,
    /// Only the tasks that this file names, one a line or as a JSON list
    #[arg(long, value_name = "FILE", help_heading = "Scores")]
    pub(crate) subset: Option<PathBuf>,
    /// Put the methods of this run beside those of RUN, on the tasks of both
    #[arg(long, value_name = "RUN", help_heading = "Scores")]
    pub(crate) baseline: Option<PathBuf>,
    /// Where outages of the provider go that outlasted all tries
    #[arg(long, value_enum, default_value = "unresolved", help_heading = "Rules")]
    pub(crate) provider_errors: Outages,
    /// What is recovered if it left an artifact that renders
    #[arg(long, value_enum, default_value = "timeouts", help_heading = "Rules")]
    pub(crate) recover: Recovered,
    /// Succeed although trials are unresolved
    #[arg(long, help_heading = "Rules")]
    pub(crate) allow_incomplete: bool,
    /// Whose marks count, by the name that the judge has in score.json; if not given, whoever judged first
    #[arg(long, value_name = "JUDGE", help_heading = "Rules")]
    pub(crate) judge: Option<String>,
    /// Print what counts as what, and nothing of a run
    #[arg(long, help_heading = "Rules", conflicts_with_all = ["run", "json", "csv", "curve"])]
    pub(crate) policy: bool,
    /// Print JSON
    #[arg(long, help_heading = "Output", conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print Markdown
    #[arg(long, help_heading = "Output")]
    pub(crate) markdown: bool,
    /// Write figures.csv, trials.csv and curve.csv into this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw completions over time: .svg with its .csv beside it, or the data as .json or .csv; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) curve: Vec<PathBuf>,
}

/// What tables are made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// Artifact category
    Category,
    /// Difficulty
    Difficulty,
    /// Rendering mode
    Mode,
    /// Operation
    Operation,
}

/// What is drawn as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clusters {
    /// All tasks on one source artifact
    Source,
    /// Each task
    Task,
}

/// What a picture is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Against {
    /// The source picture: how well it was reconstructed
    Source,
    /// The reference target
    Target,
}

/// Where outages of the provider go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Outages {
    /// Into U: they say nothing about the method
    Unresolved,
    /// Into F, as the paper reads
    Fail,
}

/// What is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Recovered {
    /// What timed out
    Timeouts,
    /// Any failure
    Any,
}

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let Some(run) = args.run.as_ref().filter(|_| !args.policy) else {
        println!("{}", policy_text(if args.markdown { Sheet::markdown } else { Sheet::text }));
        return Ok(ExitCode::SUCCESS);
    };
    args.curve.iter().try_for_each(|path| CurveFormat::of(path).map(drop))?;
    let rows = rows::read(args, run)?;
    if let Some(methods) = &args.compare {
        return contrast::run(args, &rows, methods);
    }
    if let Some(against) = args.pictures {
        return pictures::run(args, run, &rows, against);
    }
    let report = Report::new(&rows, &args.options())?;
    match &args.tables {
        Some(numbers) => show_tables(args, &report, numbers)?,
        None if args.json => print_json(&report)?,
        None if args.markdown => println!("{}", report.markdown()),
        None => println!("{}", report.text()),
    }
    if let Some(folder) = args.csv.as_ref().filter(|_| args.tables.is_none()) {
        let (_, verdicts) = judge(&rows, args.provider_errors.into(), args.recover.into());
        report.write_csv(folder, &rows, &verdicts)?;
    }
    for path in &args.curve {
        write_curve(&report, path)?;
    }
    let unresolved = report.unresolved();
    if unresolved == 0 || args.allow_incomplete {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{} {} unresolved: the figures are not final (--allow-incomplete accepts that)",
        counted(unresolved, "trial"),
        agreeing(unresolved, "is", "are")
    );
    Ok(Kind::Incomplete.into())
}

fn show_tables(args: &ReportArgs, report: &Report, numbers: &TableNumbers) -> Result<(), Failure> {
    if report.judges.is_empty() {
        return Err(Failure::input("no judge has marked this run, so that there are no scores")
            .hint("`proctor judge RUN` does, without any model"));
    }
    let tables: Vec<ScoreTable> = report.score_tables(numbers);
    let sheets = report.score_sheets(&tables);
    if args.json {
        print_json(&json!({
            "run": report.run, "judges": report.judges, "rules": report.rules, "filter": report.filter,
            "alarms": report.alarms, "problems": report.problems, "points": report.points,
            "unresolved": report.unresolved_trials, "tables": tables,
        }))?;
    } else if args.markdown {
        println!("{}", report.markdown_of(&sheets));
    } else {
        println!("{}", report.text_of(&sheets));
    }
    write_into(args, "scores.csv", |file| write_score_tables(&tables, file))
}

/// Writes a file into the folder of `--csv`, if that is wanted.
fn write_into(
    args: &ReportArgs,
    name: &str,
    write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let Some(folder) = &args.csv else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|source| StoreError::Io {
        action: "creating",
        path: folder.clone(),
        source,
    })?;
    Ok(write_in_pieces(&folder.join(name), write)?)
}

impl ReportArgs {
    fn options(&self) -> Options {
        let mut by: Vec<Grouping> = Vec::new();
        for it in &self.by {
            let grouping = Grouping::from(*it);
            if !by.contains(&grouping) {
                by.push(grouping);
            }
        }
        by.extend(self.tables.iter().flat_map(TableNumbers::groupings));
        by.sort();
        by.dedup();
        Options {
            provider_errors: self.provider_errors.into(),
            recover: self.recover.into(),
            filter: self.filter.clone(),
            by,
        }
    }
}

#[derive(Clone, Copy)]
enum CurveFormat {
    Svg,
    Json,
    Csv,
}

impl CurveFormat {
    /// Told by the ending of the name.
    fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().and_then(|it| it.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("json") => Ok(Self::Json),
            Some("csv") => Ok(Self::Csv),
            _ => Err(Failure::input(format!("--curve {}: what is it to be?", path.display()))
                .hint("end its name with .svg, .json or .csv")),
        }
    }
}

fn write_curve(report: &Report, path: &Path) -> Result<(), Failure> {
    let curves = &report.curves;
    match CurveFormat::of(path)? {
        CurveFormat::Svg => {
            let drawn = draw(&report.run, report.filter.as_deref(), curves);
            write_in_pieces(path, |to| to.write_all(drawn.as_bytes()))?;
            // What is drawn lies beside the picture.
            write_in_pieces(&path.with_extension("csv"), |to| write_curves(curves, to))?;
        }
        CurveFormat::Csv => write_in_pieces(path, |to| write_curves(curves, to))?,
        CurveFormat::Json => {
            write_in_pieces(path, |to| serde_json::to_writer_pretty(to, curves).map_err(Into::into))?;
        }
    }
    Ok(())
}

impl From<By> for Grouping {
    fn from(by: By) -> Self {
        match by {
            By::Category => Self::Category,
            By::Difficulty => Self::Difficulty,
            By::Mode => Self::Mode,
            By::Operation => Self::Operation,
        }
    }
}

impl From<Outages> for ProviderErrors {
    fn from(outages: Outages) -> Self {
        match outages {
            Outages::Unresolved => Self::Unresolved,
            Outages::Fail => Self::Fail,
        }
    }
}

impl From<Recovered> for Recover {
    fn from(recovered: Recovered) -> Self {
        match recovered {
            Recovered::Timeouts => Self::Timeouts,
            Recovered::Any => Self::Any,
        }
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Accounting(_) => Self::internal(error.to_string()),
            ReportError::Filter(error) => error.into(),
        }
    }
}

impl From<proctor_report::FilterError> for Failure {
    fn from(error: proctor_report::FilterError) -> Self {
        Self::input(error.to_string())
            .hint("for instance: ending == \"timed_out\" and category in [\"flowchart\"] and agent_s > 60")
    }
}
