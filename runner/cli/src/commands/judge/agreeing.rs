//! How far the judges of a run agree.

use std::process::ExitCode;

use proctor_report::{JudgeAgreement, agreement, judges};
use proctor_store::RunDir;

use super::JudgeArgs;
use crate::commands::print_json;
use crate::failure::Failure;

pub(super) fn run(args: &JudgeArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let pairs = agreement(&run)?;
    if args.json {
        print_json(&pairs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let judges = judges(&run)?;
    if judges.len() < 2 {
        let names: Vec<&str> = judges.keys().map(String::as_str).collect();
        let named = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        return Err(Failure::input(format!("two judges are needed; this run was judged by {named}"))
            .hint("`proctor judge RUN --judge …` adds one beside the others"));
    }
    for pair in &pairs {
        for line in lines(pair) {
            println!("{line}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(pair: &JudgeAgreement) -> [String; 4] {
    let figure = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.3}"));
    [
        format!("{} and {}, over {} trials that both have marked", pair.one, pair.other, pair.trials),
        format!(
            "  points    same mark {}, kappa {} (n = {})",
            figure(pair.same),
            figure(pair.kappa),
            pair.points
        ),
        format!("  ratings   mean distance {} (n = {})", figure(pair.rating_distance), pair.ratings),
        format!(
            "  methods   Spearman {}, Kendall {} (n = {})",
            figure(pair.spearman),
            figure(pair.kendall),
            pair.methods
        ),
    ]
}
