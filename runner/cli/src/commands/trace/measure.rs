//! `proctor trace measure`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use proctor_traces::actions::Action;
use proctor_traces::actions::measure::{Agreement, Corpus, Judged, Table};
use serde_json::{Value, json};

use super::labeller::LabellerArgs;
use super::timeline::printable;
use crate::commands::print_json;
use crate::environment::Environment;
use crate::failure::Failure;

/// Arguments of `trace measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Sessions that were labelled by hand
    #[arg(required = true, value_name = "CORPUS")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    labeller: LabellerArgs,
    /// List each call that is not as labelled
    #[arg(long)]
    errors: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "errors")]
    json: bool,
}

/// What came of all files.
#[derive(Default)]
struct Measured {
    said: Agreement,
    people: Agreement,
    flags: BTreeMap<&'static str, Table>,
}

pub(super) async fn measure(args: &MeasureArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let labeller = args.labeller.open(environment).await?;
    let mut measured = Measured::default();
    for path in &args.files {
        let wrong = |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let corpus = Corpus::read(&text).map_err(|error| wrong(&error))?;
        let mut judged = corpus.judged();
        if let Some(labeller) = &labeller {
            let session = corpus.session();
            let labels = labeller.label(&session).await?;
            let outer = session.calls.iter().filter(|it| it.is_outer()).map(|it| it.id.clone());
            let by_call: BTreeMap<String, BTreeSet<Action>> = outer.map(|it| it.0).zip(labels).collect();
            for it in &mut judged {
                it.said.actions = by_call.get(&it.entry.id.0).into_iter().flatten().copied().collect();
            }
        }
        for it in &judged {
            measured.count(it, labeller.is_none());
            if args.errors && !is_right(it, labeller.is_none()) {
                print_error(&corpus.head.session, it);
            }
        }
    }
    if args.json {
        print_json(&measured.to_json())?;
    } else {
        measured.print();
    }
    Ok(ExitCode::SUCCESS)
}

/// A model is asked for actions only; flags are the rules' own.
fn is_right(judged: &Judged<'_>, with_flags: bool) -> bool {
    let same = judged.said.actions.iter().copied().collect::<BTreeSet<_>>() == judged.label.actions;
    if with_flags { judged.is_right() } else { same }
}

impl Measured {
    fn count(&mut self, judged: &Judged<'_>, with_flags: bool) {
        let said: BTreeSet<Action> = judged.said.actions.iter().copied().collect();
        self.said.add(&said, &judged.label.actions);
        if let Some(second) = &judged.entry.second {
            self.people.add(&second.actions, &judged.label.actions);
        }
        if with_flags {
            let (ours, theirs) = (judged.said.designated, judged.label.designated);
            let flags = [
                ("write", ours.write, theirs.write),
                ("render", ours.render, theirs.render),
                ("preview", ours.preview, theirs.preview),
                ("first", judged.said.first, judged.label.first),
            ];
            for (name, said, truth) in flags {
                self.flags.entry(name).or_default().add(said, truth);
            }
        }
    }

    fn to_json(&self) -> Value {
        let table = |it: Table| {
            json!({
                "labelled": it.both + it.only_true, "precision": it.precision(), "recall": it.recall(),
                "f1": it.f1(), "kappa": it.kappa(),
            })
        };
        let actions: serde_json::Map<String, Value> = Action::ALL
            .into_iter()
            .map(|action| {
                let value = json!({"measured": table(self.said.of(action)), "two_labellers": table(self.people.of(action))});
                (action.to_string(), value)
            })
            .collect();
        let whole = |it: &Agreement| json!({"calls": it.calls, "same_set": it.same, "macro_f1": it.macro_f1(), "mean_kappa": it.mean_kappa()});
        let flags: serde_json::Map<String, Value> =
            self.flags.iter().map(|(name, it)| ((*name).to_owned(), table(*it))).collect();
        json!({
            "actions": actions, "measured": whole(&self.said), "two_labellers": whole(&self.people),
            "designated": flags,
        })
    }

    fn print(&self) {
        println!(
            "{:<22}{:>6}{:>7}{:>7}{:>7}{:>7}   two labellers {:>6}{:>7}",
            "action", "calls", "prec", "rec", "F1", "kappa", "F1", "kappa"
        );
        for action in Action::ALL {
            let (ours, theirs) = (self.said.of(action), self.people.of(action));
            println!(
                "{:<22}{:>6}{}{}{}{}                 {}{}",
                action.as_str(),
                ours.both + ours.only_true,
                figure(ours.precision()),
                figure(ours.recall()),
                figure(ours.f1()),
                figure(ours.kappa()),
                figure(theirs.f1()),
                figure(theirs.kappa())
            );
        }
        println!(
            "{:<22}{:>6}{:>14}{}{}                 {}{}",
            "mean",
            self.said.calls,
            "",
            figure(self.said.macro_f1()),
            figure(self.said.mean_kappa()),
            figure(self.people.macro_f1()),
            figure(self.people.mean_kappa())
        );
        println!(
            "same set of actions: {} of {}; two labellers: {} of {}",
            self.said.same, self.said.calls, self.people.same, self.people.calls
        );
        for (name, table) in &self.flags {
            println!(
                "designated {name:<8}{:>6}{}{}{}",
                table.both + table.only_true,
                figure(table.precision()),
                figure(table.recall()),
                figure(table.f1())
            );
        }
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| format!("{:>7}", "–"), |it| format!("{it:>7.3}"))
}

fn print_error(session: &str, judged: &Judged<'_>) {
    let names =
        |all: &mut dyn Iterator<Item = &Action>| all.map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    println!("{} {} {}", printable(session), printable(&judged.entry.id.0), printable(&judged.entry.name));
    println!(
        "  label: {} {:?} first {}",
        names(&mut judged.label.actions.iter()),
        judged.label.designated,
        judged.label.first
    );
    println!(
        "  said:  {} {:?} first {}",
        names(&mut judged.said.actions.iter()),
        judged.said.designated,
        judged.said.first
    );
    for reason in &judged.said.reasons {
        println!("    {}: {} ({})", reason.action, reason.because, printable(&reason.evidence));
    }
    let input: String = judged.entry.input.to_string().chars().take(300).collect();
    println!("  input: {}", printable(&input));
}
