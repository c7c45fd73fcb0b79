//! How far the judges of a run agree, with each other and with themselves.

use std::process::ExitCode;

use proctor_judge::vision::{Spread, steadiness};
use proctor_report::{JudgeAgreement, agreement, counted, judges, of_pixels};
use proctor_store::RunDir;
use serde_json::json;

use super::JudgeArgs;
use crate::commands::print_json;
use crate::failure::Failure;

pub(super) fn run(args: &JudgeArgs) -> Result<ExitCode, Failure> {
    let run = RunDir::open(&args.run)?;
    let pairs = agreement(&run)?;
    let steady = steadiness(&run)?;
    if args.json {
        print_json(&json!({ "pairs": pairs, "steadiness": steady }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let judges = judges(&run)?;
    if judges.len() < 2 && steady.is_empty() {
        let names: Vec<&str> = judges.keys().map(String::as_str).collect();
        let named = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        return Err(Failure::input(format!("two judges are needed; this run was judged by {named}"))
            .hint("`proctor judge RUN --judge …` adds one beside the others"));
    }
    for line in pairs.iter().flat_map(lines) {
        println!("{line}");
    }
    let remark = of_pixels(judges.keys().map(String::as_str)).trim_start();
    if !remark.is_empty() {
        println!("{remark}");
    }
    for it in &steady {
        println!("{} against its own first answer", it.judge);
        for (name, spread) in [("again    ", &it.again), ("swapped  ", &it.swapped)] {
            if spread.answers > 0 {
                println!("  {name} {}", spread_in_words(spread));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn spread_in_words(it: &Spread) -> String {
    let shift = it.shift.map_or_else(|| "–".to_owned(), |it| format!("{it:+.3}"));
    format!(
        "same mark {} (n = {}), points that hold {shift}, mean distance of ratings {} (n = {})",
        figure(it.same),
        it.points,
        figure(it.rating_distance),
        it.ratings
    )
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |it| format!("{it:.3}"))
}

fn lines(pair: &JudgeAgreement) -> Vec<String> {
    let left_out = match pair.without_picture {
        0 => String::new(),
        some => format!(" ({some} without a picture left out)"),
    };
    let mut lines = vec![
        format!(
            "{} and {}, over {} that both have marked{left_out}",
            pair.one,
            pair.other,
            counted(pair.trials, "trial")
        ),
        format!(
            "  points    same mark {}, kappa {} (n = {})",
            figure(pair.same),
            figure(pair.kappa),
            pair.points
        ),
    ];
    for (kind, it) in &pair.by_kind {
        let name = format!("{kind:?}").to_lowercase();
        let (same, kappa) = (figure(it.same), figure(it.kappa));
        lines.push(format!("    {name:9} same mark {same}, kappa {kappa} (n = {})", it.points));
    }
    for (name, it) in [("VQ", &pair.visual_quality), ("DQ", &pair.domain_quality)] {
        lines.push(format!(
            "  {name}        same {}, weighted kappa {}, mean distance {} (n = {})",
            figure(it.same),
            figure(it.weighted_kappa),
            figure(it.distance),
            it.ratings
        ));
    }
    lines.push(format!(
        "  methods   Spearman {}, Kendall {} (n = {})",
        figure(pair.spearman),
        figure(pair.kendall),
        pair.methods
    ));
    lines
}
