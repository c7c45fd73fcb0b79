//! The rules as tables, printed from the code that applies them. `docs/accounting.md` holds these very texts.

use proctor_traces::{Ending, Limit, ModelCause};

use crate::accounting::{
    Basis, Cause, Class, Coverage, Open, Picture, ProviderErrors, Recover, Rules, Verdict,
};
use crate::row::Judged;
use crate::sheet::{Line, Sheet};

/// Every kind of ending, with its name in the tables; none is a trial without an outcome.
fn endings() -> Vec<(&'static str, Option<Ending>)> {
    let message = String::new;
    let model = |cause| Ending::ModelError { cause, message: message() };
    vec![
        ("pending", None),
        ("cancelled", Some(Ending::Cancelled)),
        ("infra_error", Some(Ending::InfraError { stage: message(), message: message() })),
        ("model_error, provider", Some(model(ModelCause::Provider))),
        ("model_error, request", Some(model(ModelCause::Request))),
        ("model_error, replay", Some(model(ModelCause::Replay))),
        ("timed_out", Some(Ending::TimedOut)),
        ("limit_exceeded", Some(Ending::LimitExceeded { limit: Limit::DiskBytes })),
        ("out_of_memory", Some(Ending::OutOfMemory)),
        ("agent_error", Some(Ending::AgentError { message: message() })),
        ("no_artifact", Some(Ending::NoArtifact)),
        ("completed", Some(Ending::Completed)),
    ]
}

/// The columns: state of the picture, and of the marks.
const COLUMNS: [(&str, Picture, Judged); 4] = [
    ("rendered, judged", Picture::Rendered, Judged::Yes),
    ("rendered, unjudged", Picture::Rendered, Judged::No),
    ("not rendered yet", Picture::Unknown, Judged::No),
    ("not renderable", Picture::Impossible, Judged::No),
];

/// The table ending × (judged, unjudged, not rendered yet, not renderable) under some rules, in which a judge has run.
pub fn classification_table(provider_errors: ProviderErrors, recover: Recover) -> Sheet {
    let rules = Rules { provider_errors, recover, basis: Basis::Judge };
    let mut head = vec!["ending"];
    head.extend(COLUMNS.iter().map(|(name, ..)| *name));
    let mut sheet = Sheet::new("What a trial counts as", &head);
    for (name, ending) in endings() {
        let cells = COLUMNS.iter().map(|(_, picture, judged)| match &ending {
            None => said(Verdict {
                class: Class::U,
                coverage: Coverage::Unresolved(Open::Pending),
                open: Some(Open::Pending),
                salvageable: false,
            }),
            // There is nothing to render.
            Some(Ending::NoArtifact) if *picture != Picture::Impossible => "–".to_owned(),
            Some(ending) => said(rules.classify(ending, *picture, *judged)),
        });
        sheet.lines.push(Line::Cells(name.to_owned(), cells.collect()));
    }
    sheet
}

fn said(verdict: Verdict) -> String {
    let coverage = match verdict.coverage {
        Coverage::Completed => "completed",
        Coverage::TimedOut => "timed out",
        Coverage::Failed(Cause::Model) => "failed: model",
        Coverage::Failed(Cause::Code) => "failed: code",
        Coverage::Failed(Cause::Render) => "failed: render",
        Coverage::Failed(Cause::Limit) => "failed: limit",
        Coverage::Unresolved(_) => "unresolved",
    };
    let good = if verdict.salvageable && verdict.class == Class::F { ", salvageable" } else { "" };
    format!("{:?}; {coverage}{good}", verdict.class)
}

/// The error policy: which ending is tried again, is final, is rendered and judged, and counts as what.
pub fn retry_table() -> Sheet {
    let head = ["ending", "tried again", "final", "rendered and judged", "counts as"];
    let mut sheet = Sheet::new("Error policy", &head);
    for (name, ending) in endings() {
        let Some(ending) = ending else { continue };
        let again = if ending.is_retried() { "yes, after a pause" } else { "no" };
        let (last, judged) = match &ending {
            Ending::Cancelled => ("never: the next start resumes it", "no"),
            it if it.is_retried() => ("when its tries are used up", "no"),
            Ending::NoArtifact => ("yes", "there is nothing"),
            _ => ("yes", "if it left an artifact"),
        };
        let rules = Rules {
            provider_errors: ProviderErrors::Unresolved,
            recover: Recover::Timeouts,
            basis: Basis::Judge,
        };
        let verdicts = COLUMNS.map(|(_, picture, marks)| rules.classify(&ending, picture, marks).class);
        let mut classes: Vec<Class> = match &ending {
            Ending::NoArtifact => vec![Class::F],
            _ => verdicts.to_vec(),
        };
        classes.sort_unstable();
        classes.dedup();
        let classes: Vec<String> = classes.iter().map(|class| format!("{class:?}")).collect();
        let cells = [again, last, judged].map(str::to_owned).into_iter().chain([classes.join(" or ")]);
        sheet.lines.push(Line::Cells(name.to_owned(), cells.collect()));
    }
    sheet
}

/// All tables, as they stand in `docs/accounting.md`: the rules by default, and what an option changes.
pub fn policy_text(form: fn(&Sheet) -> String) -> String {
    let default = classification_table(ProviderErrors::Unresolved, Recover::Timeouts);
    let mut parts = vec![form(&default)];
    for (title, provider_errors, recover) in [
        ("What --provider-errors fail changes", ProviderErrors::Fail, Recover::Timeouts),
        ("What --recover any changes", ProviderErrors::Unresolved, Recover::Any),
    ] {
        let mut other = classification_table(provider_errors, recover);
        title.clone_into(&mut other.title);
        let was = default.lines.iter().map(line).collect::<Vec<_>>();
        other.lines.retain(|it| !was.contains(&line(it)));
        parts.push(form(&other));
    }
    parts.push(form(&retry_table()));
    parts.join("\n")
}

fn line(line: &Line) -> String {
    match line {
        Line::Section(name) => name.clone(),
        Line::Cells(name, cells) => format!("{name}|{}", cells.join("|")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(sheet: &Sheet, name: &str) -> Vec<String> {
        let line = sheet.lines.iter().find_map(|it| match it {
            Line::Cells(found, cells) if found == name => Some(cells.clone()),
            _ => None,
        });
        line.unwrap_or_default()
    }

    /// The rule of the paper and of DESIGN §5, cell by cell; written down by hand.
    #[test]
    fn every_cell_of_the_table_is_as_the_rules_want_it() {
        let table = classification_table(ProviderErrors::Unresolved, Recover::Timeouts);
        let open = ["U; unresolved"; 4];
        let failed = |why: &str| {
            let good = format!("F; failed: {why}, salvageable");
            let bad = format!("F; failed: {why}");
            vec![good.clone(), good, bad.clone(), bad]
        };
        for name in ["pending", "cancelled", "infra_error", "model_error, provider"] {
            assert_eq!(cells(&table, name), open, "{name}");
        }
        assert_eq!(cells(&table, "model_error, request"), failed("model"));
        assert_eq!(cells(&table, "model_error, replay"), failed("model"));
        assert_eq!(
            cells(&table, "timed_out"),
            ["R; timed out", "U; timed out", "U; timed out", "F; timed out"]
        );
        assert_eq!(cells(&table, "limit_exceeded"), failed("limit"));
        assert_eq!(cells(&table, "out_of_memory"), failed("limit"));
        assert_eq!(cells(&table, "agent_error"), failed("code"));
        assert_eq!(cells(&table, "no_artifact"), ["–", "–", "–", "F; failed: code"]);
        assert_eq!(
            cells(&table, "completed"),
            ["J; completed", "U; completed", "U; unresolved", "F; failed: render"]
        );
        assert_eq!(table.lines.len(), 12);
    }

    #[test]
    fn the_options_change_what_they_say_and_nothing_else() {
        let default = classification_table(ProviderErrors::Unresolved, Recover::Timeouts);
        let changed = |sheet: &Sheet| -> Vec<String> {
            let names = endings().into_iter().map(|(name, _)| name);
            names.filter(|name| cells(sheet, name) != cells(&default, name)).map(str::to_owned).collect()
        };
        let fail = classification_table(ProviderErrors::Fail, Recover::Timeouts);
        assert_eq!(changed(&fail), ["model_error, provider"]);
        assert_eq!(cells(&fail, "model_error, provider")[3], "F; failed: model");
        let any = classification_table(ProviderErrors::Unresolved, Recover::Any);
        let failures =
            ["model_error, request", "model_error, replay", "limit_exceeded", "out_of_memory", "agent_error"];
        assert_eq!(changed(&any), failures);
        assert_eq!(
            cells(&any, "out_of_memory"),
            ["R; failed: limit", "U; failed: limit", "U; failed: limit", "F; failed: limit"]
        );
    }

    #[test]
    fn without_a_judge_a_picture_is_the_score() {
        for judged in [Judged::No, Judged::Partly, Judged::Yes] {
            let of = |basis| {
                let rules =
                    Rules { provider_errors: ProviderErrors::Unresolved, recover: Recover::Timeouts, basis };
                let of = |ending| rules.classify(ending, Picture::Rendered, judged).class;
                [of(&Ending::Completed), of(&Ending::TimedOut)]
            };
            assert_eq!(of(Basis::Rendering), [Class::J, Class::R]);
            let scored = judged == Judged::Yes;
            assert_eq!(of(Basis::Judge), if scored { [Class::J, Class::R] } else { [Class::U; 2] });
        }
    }

    #[test]
    fn what_is_tried_again_is_what_is_not_the_agents() {
        let table = retry_table();
        let again: Vec<&str> = endings()
            .into_iter()
            .filter(|(name, _)| cells(&table, name).first().is_some_and(|it| it.starts_with("yes")))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(again, ["infra_error", "model_error, provider"]);
        assert_eq!(cells(&table, "completed")[3], "J or F or U");
    }

    /// `UPDATE_DOCS=1` writes them anew.
    #[test]
    fn the_page_shows_the_tables_of_the_code() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/accounting.md");
        let page = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = page.split_once("<!-- tables -->\n").unwrap();
        let (shown, after) = rest.split_once("<!-- end of tables -->\n").unwrap();
        let tables = format!("\n{}\n", policy_text(Sheet::markdown));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let new = format!("{before}<!-- tables -->\n{tables}<!-- end of tables -->\n{after}");
            std::fs::write(&path, new).unwrap();
        } else {
            assert_eq!(shown, tables, "docs/accounting.md is out of date; UPDATE_DOCS=1 writes it anew");
        }
    }
}
