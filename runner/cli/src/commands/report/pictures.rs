//! `proctor report RUN --pictures source|target`: how near the pictures are (Table 13).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use proctor_judge::Picture;
use proctor_judge::compare::compare;
use proctor_judge::metrics::{Means, Metrics, means};
use proctor_report::{Line, RenderState, Row, Rows, Sheet, agreeing, counted, judge};
use proctor_store::RunDir;
use proctor_tasks::Task;
use serde::Serialize;
use serde_json::json;

use super::{Against, ReportArgs, write_into};
use crate::commands::judge::packages;
use crate::commands::print_json;
use crate::failure::{Failure, Kind, chain};
use crate::laboratory::processors;
use crate::rendering::by_id;

/// The rendering modes in the order of the paper's tables.
const MODES: [&str; 5] = ["html", "dot", "tikz", "circuitikz", "python"];

/// What there is to measure of a trial.
enum Found {
    /// The measures; none of a failure.
    Known(Option<Metrics>),
    /// It is not known yet whether there is a picture.
    Open,
    /// It cannot be measured.
    Error(String),
}

/// Means of a method, by rendering mode; without a mode those of all.
#[derive(Serialize)]
struct Group {
    method: String,
    mode: Option<String>,
    /// Trials without a picture so far, and not by fault of the method: in no mean.
    open: usize,
    #[serde(flatten)]
    means: Means,
}

pub(super) fn run(
    args: &ReportArgs,
    path: &Path,
    rows: &Rows,
    against: Against,
) -> Result<ExitCode, Failure> {
    let run = RunDir::open(path)?;
    let tasks: Vec<Arc<Task>> = packages(&run, &args.packages)?.into_iter().map(Arc::new).collect();
    let (_, verdicts) = judge(rows, args.provider_errors.into(), args.recover.into());
    let places = match &args.filter {
        Some(filter) => rows.select(&verdicts, filter)?,
        None => (0..rows.rows.len()).collect(),
    };
    // Pictures of a baseline lie in its own folder.
    let baseline = args.baseline.as_ref().map(|it| RunDir::open(it)).transpose()?;
    let own = run.record()?.methods.len();
    let chosen: Vec<(&Row, &RunDir)> = places
        .iter()
        .map(|at| &rows.rows[*at])
        .map(|row| (row, baseline.as_ref().filter(|_| row.method >= own).unwrap_or(&run)))
        .collect();
    let found = measured(&chosen, &by_id(&tasks), against);
    let errors: Vec<String> = chosen
        .iter()
        .zip(&found)
        .filter_map(|((row, _), it)| match it {
            Found::Error(message) => Some(format!("{}: {message}", row.trial)),
            _ => None,
        })
        .collect();
    let groups = grouped(rows, &chosen, &found);
    let open = groups.iter().filter(|it| it.mode.is_none()).any(|it| it.open > 0);
    let name = if against == Against::Source { "source" } else { "target" };
    if args.json {
        print_json(&json!({
            "run": rows.record.name, "against": name, "problems": rows.problems, "errors": errors, "groups": groups,
        }))?;
    } else {
        for problem in rows.problems.iter().chain(&errors) {
            println!("PROBLEM  {problem}");
        }
        let sheet = sheet(&groups, against);
        println!("{}", if args.markdown { sheet.markdown() } else { sheet.text() });
    }
    write_into(args, "pictures.csv", |file| write(&groups, file))?;
    let incomplete = !errors.is_empty() || (open && !args.allow_incomplete);
    Ok(if incomplete { Kind::Incomplete.into() } else { ExitCode::SUCCESS })
}

/// Measures all, several at a time.
fn measured(rows: &[(&Row, &RunDir)], tasks: &HashMap<String, Arc<Task>>, against: Against) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let found: Vec<Mutex<Option<Found>>> = rows.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..processors().min(rows.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let (Some((row, run)), Some(place)) = (rows.get(at), found.get(at)) else { break };
                    let it = measure(row, run, tasks, against);
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(it);
                }
            });
        }
    });
    let take = |it: Mutex<Option<Found>>| it.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_iter().map(|it| take(it).unwrap_or(Found::Open)).collect()
}

fn measure(row: &Row, run: &RunDir, tasks: &HashMap<String, Arc<Task>>, against: Against) -> Found {
    let Some(ended) = row.ended() else { return Found::Open };
    match ended.render {
        RenderState::NotTried => return Found::Open,
        RenderState::Rendered => {}
        RenderState::NoArtifact | RenderState::Failed(_) => {
            // What our side, the provider or the user broke off is no failure of the method.
            let theirs = proctor_judge::is_the_solvers(&ended.ending);
            return if theirs { Found::Known(None) } else { Found::Open };
        }
    }
    let Some(task) = tasks.get(row.trial.task()) else {
        return Found::Error("its task is not among the packages".to_owned());
    };
    let reference = match against {
        Against::Source => task.source_picture(),
        Against::Target => task.hidden.target_picture.clone(),
    };
    let read = |path: &Path| Picture::read(path).map_err(|it| format!("{}: {}", path.display(), chain(&it)));
    let metrics = read(&reference).and_then(|reference| {
        let candidate = read(&run.trial(&row.trial).render().join("output.png"))?;
        compare(&reference.0, &candidate.0).map_err(|it| chain(&it))
    });
    match metrics {
        Ok(compared) => Found::Known(Some(compared.comparison.metrics)),
        Err(message) => Found::Error(message),
    }
}

/// Every method by mode, and then all of it.
fn grouped(rows: &Rows, chosen: &[(&Row, &RunDir)], found: &[Found]) -> Vec<Group> {
    let mut by: BTreeMap<(usize, usize, Option<&str>), Vec<&Found>> = BTreeMap::new();
    for ((row, _), it) in chosen.iter().zip(found) {
        let mode = row.task.facts.mode.as_str();
        let place = MODES.iter().position(|it| *it == mode).unwrap_or(MODES.len());
        by.entry((row.method, place, Some(mode))).or_default().push(it);
        by.entry((row.method, usize::MAX, None)).or_default().push(it);
    }
    by.into_iter()
        .map(|((method, _, mode), found)| {
            let known = found.iter().filter_map(|it| match it {
                Found::Known(metrics) => Some(*metrics),
                Found::Open | Found::Error(_) => None,
            });
            let means = means(known);
            Group {
                method: rows.record.methods[method].id.to_string(),
                mode: mode.map(str::to_owned),
                open: found.len() - means.registered,
                means,
            }
        })
        .collect()
}

fn sheet(groups: &[Group], against: Against) -> Sheet {
    let (title, other) = match against {
        Against::Source => ("Table 13. Reconstruction by rendering mode", "source picture"),
        Against::Target => ("Pictures against the reference, by rendering mode", "reference target"),
    };
    let head = ["method", "E", "rendered", "SSIM", "SSIM-0", "PSNR", "MAE", "MSE", "equal"];
    let mut sheet = Sheet::new(title, &head);
    let mut last = None;
    for it in groups {
        if last != Some(&it.method) {
            sheet.lines.push(Line::Section(it.method.clone()));
            last = Some(&it.method);
        }
        let figure = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
        };
        let Means { registered, rendered, ssim, ssim_0, psnr, equal, mae, mse } = it.means;
        let cells = vec![
            registered.to_string(),
            rendered.to_string(),
            figure(ssim, 4),
            figure(ssim_0, 4),
            figure(psnr, 2),
            figure(mae, 5),
            figure(mse, 5),
            equal.to_string(),
        ];
        sheet.lines.push(Line::Cells(format!("  {}", it.mode.as_deref().unwrap_or("all")), cells));
    }
    sheet.notes.push(format!(
        "Against the {other}, on one canvas (docs/judging.md). Means of per-picture values over what was rendered; SSIM-0 counts a failure as 0. Pictures that equal the {other} (equal) have no PSNR and are not in its mean."
    ));
    let open: usize = groups.iter().filter(|it| it.mode.is_none()).map(|it| it.open).sum();
    if open > 0 {
        sheet.notes.push(format!(
            "{} left out of all means: it is not known whether {} a picture.",
            counted(open, "trial"),
            agreeing(open, "it has", "they have")
        ));
    }
    sheet
}

fn write(groups: &[Group], to: &mut dyn std::io::Write) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut to = std::io::BufWriter::new(to);
    writeln!(to, "method,mode,registered,rendered,open,ssim,ssim_0,psnr,mae,mse,equal")?;
    for it in groups {
        let Means { registered, rendered, ssim, ssim_0, psnr, equal, mae, mse } = it.means;
        let figures = [ssim, ssim_0, psnr, mae, mse];
        let figures = figures.map(|it| it.map_or_else(String::new, |it| it.to_string())).join(",");
        // Neither names of methods nor those of modes have anything that would have to be quoted.
        let mode = it.mode.as_deref().unwrap_or_default();
        writeln!(to, "{},{mode},{registered},{rendered},{},{figures},{equal}", it.method, it.open)?;
    }
    to.flush()
}
