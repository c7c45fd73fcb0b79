//! Measures the strategy actions against labels: `cargo run -p proctor-traces --example measure-actions -- FILE… [--errors]`.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;

use proctor_traces::actions::Action;
use proctor_traces::actions::measure::{Agreement, Corpus, Judged, Table};

fn main() -> Result<(), Box<dyn Error>> {
    let (flags, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|it| it.starts_with("--"));
    let errors = flags.iter().any(|it| it == "--errors");
    let mut rules = Agreement::default();
    let mut people = Agreement::default();
    let mut flagged = [Table::default(); 4];
    for path in &files {
        let corpus = Corpus::read(&fs::read_to_string(path)?)?;
        for judged in corpus.judged() {
            let said: BTreeSet<Action> = judged.said.actions.iter().copied().collect();
            rules.add(&said, &judged.label.actions);
            if let Some(second) = &judged.entry.second {
                people.add(&second.actions, &judged.label.actions);
            }
            let (ours, theirs) = (judged.said.designated, judged.label.designated);
            flagged[0].add(ours.write, theirs.write);
            flagged[1].add(ours.render, theirs.render);
            flagged[2].add(ours.preview, theirs.preview);
            flagged[3].add(judged.said.first, judged.label.first);
            if errors && !judged.is_right() {
                report(&corpus.head.session, &judged);
            }
        }
    }
    print(&rules, &people, &flagged);
    Ok(())
}

fn print(rules: &Agreement, people: &Agreement, flagged: &[Table; 4]) {
    println!(
        "{:<22}{:>6}{:>7}{:>7}{:>7}{:>7}   two labellers {:>6}{:>7}",
        "action", "calls", "prec", "rec", "F1", "kappa", "F1", "kappa"
    );
    for action in Action::ALL {
        let (ours, theirs) = (rules.of(action), people.of(action));
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
        rules.calls,
        "",
        figure(rules.macro_f1()),
        figure(rules.mean_kappa()),
        figure(people.macro_f1()),
        figure(people.mean_kappa())
    );
    println!(
        "same set of actions: {} of {}; two labellers: {} of {}",
        rules.same, rules.calls, people.same, people.calls
    );
    for (name, table) in ["write", "render", "preview", "first"].into_iter().zip(flagged) {
        println!(
            "designated {name:<8}{:>6}{}{}{}",
            table.both + table.only_true,
            figure(table.precision()),
            figure(table.recall()),
            figure(table.f1())
        );
    }
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| format!("{:>7}", "–"), |it| format!("{it:>7.3}"))
}

fn report(session: &str, judged: &Judged<'_>) {
    let names =
        |all: &mut dyn Iterator<Item = &Action>| all.map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    println!("{session} {} {}", judged.entry.id.0, judged.entry.name);
    println!(
        "  label: {} {:?} first {}",
        names(&mut judged.label.actions.iter()),
        judged.label.designated,
        judged.label.first
    );
    println!(
        "  rules: {} {:?} first {}",
        names(&mut judged.said.actions.iter()),
        judged.said.designated,
        judged.said.first
    );
    for reason in &judged.said.reasons {
        println!("    {}: {} ({})", reason.action, reason.because, reason.evidence);
    }
    let input: String = judged.entry.input.to_string().chars().take(300).collect();
    println!("  input: {input}");
}
