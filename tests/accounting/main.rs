//! The accounts of made-up runs, by the real program: sets counted by hand, the paper's own counts, and the same table
//! computed once more by a script that shares no code with it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test that is how a failure shows")]

mod fixture;
mod scores;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::{BUDGET_MS, Dice, Made, chance, id, method, record, write};
use proctor_store::{Holder, PointKind, RunDir};
use proctor_traces::{Ending, Limit, ModelCause};
use serde_json::Value;

fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().with_file_name("proctor");
    assert!(program.exists(), "build it first: cargo build -p proctor");
    program
}

fn proctor(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = proctor(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// The class of every trial, from `trials.csv`.
fn classes(run: &Path, options: &[&str]) -> BTreeMap<String, String> {
    let out = tempfile::tempdir().unwrap();
    let (run, folder) = (run.to_str().unwrap(), out.path().to_str().unwrap());
    let all = [&["report", run, "--json", "--csv", folder][..], options].concat();
    json(&all);
    let table = fs::read_to_string(out.path().join("trials.csv")).unwrap();
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = head.iter().position(|it| *it == "class").unwrap();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[0].to_owned(), cells[place].to_owned())
        })
        .collect()
}

fn said() -> String {
    "it said so".to_owned()
}

/// One trial for every rule, with the set that it belongs to: by default, with `--provider-errors fail`, and with
/// `--recover any`.
fn rules() -> Vec<(&'static str, Option<Made>, [&'static str; 3])> {
    let marks =
        |made: Made| Made { marks: Some((vec![(PointKind::Direct, Some(true))], Some([4, 5]))), ..made };
    let unsure = |made: Made| Made { marks: Some((vec![(PointKind::Direct, None)], Some([4, 5]))), ..made };
    let crashed = || Ending::AgentError { message: said() };
    let outage = || Ending::ModelError { cause: ModelCause::Provider, message: said() };
    let refused = || Ending::ModelError { cause: ModelCause::Request, message: said() };
    let limit = || Ending::LimitExceeded { limit: Limit::DiskBytes };
    vec![
        ("completed, judged", Some(marks(Made::rendered(Ending::Completed))), ["J", "J", "J"]),
        ("completed, unjudged", Some(Made::rendered(Ending::Completed)), ["U", "U", "U"]),
        ("completed, judged in part", Some(unsure(Made::rendered(Ending::Completed))), ["U", "U", "U"]),
        ("completed, does not render", Some(Made::broken(Ending::Completed)), ["F", "F", "F"]),
        (
            "completed, not rendered yet",
            Some(Made { artifact: true, ..Made::ended(Ending::Completed) }),
            ["U", "U", "U"],
        ),
        ("no artifact", Some(Made::ended(Ending::NoArtifact)), ["F", "F", "F"]),
        ("timed out, judged", Some(marks(Made::rendered(Ending::TimedOut))), ["R", "R", "R"]),
        ("timed out, unjudged", Some(Made::rendered(Ending::TimedOut)), ["U", "U", "U"]),
        ("timed out, does not render", Some(Made::broken(Ending::TimedOut)), ["F", "F", "F"]),
        ("timed out, nothing left", Some(Made::ended(Ending::TimedOut)), ["F", "F", "F"]),
        ("crashed, nothing left", Some(Made::ended(crashed())), ["F", "F", "F"]),
        ("crashed, good artifact", Some(marks(Made::rendered(crashed()))), ["F", "F", "R"]),
        ("crashed, good artifact, unjudged", Some(Made::rendered(crashed())), ["F", "F", "U"]),
        ("out of memory, good artifact", Some(marks(Made::rendered(Ending::OutOfMemory))), ["F", "F", "R"]),
        ("limit, good artifact", Some(marks(Made::rendered(limit()))), ["F", "F", "R"]),
        ("limit, nothing left", Some(Made::ended(limit())), ["F", "F", "F"]),
        ("the provider was down", Some(Made::ended(outage())), ["U", "F", "U"]),
        ("the provider refused", Some(Made::ended(refused())), ["F", "F", "F"]),
        (
            "our failure",
            Some(Made::ended(Ending::InfraError { stage: said(), message: said() })),
            ["U", "U", "U"],
        ),
        ("never run", None, ["U", "U", "U"]),
    ]
}

#[test]
fn every_rule_puts_its_trial_where_a_person_would() {
    let dir = tempfile::tempdir().unwrap();
    let rules = rules();
    let record = record(rules.len(), vec![method("m", "codex@1.0.0")], 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    for (task, (_, made, _)) in rules.iter().enumerate() {
        if let Some(made) = made {
            write(&run, &record, &id(task, "m", "1"), made);
        }
    }
    for (at, options) in [&[][..], &["--provider-errors", "fail"], &["--recover", "any"]].iter().enumerate() {
        let found = classes(run.root(), options);
        for (task, (rule, _, expected)) in rules.iter().enumerate() {
            assert_eq!(found[&id(task, "m", "1").to_string()], expected[at], "{rule} with {options:?}");
        }
    }
    let path = run.root().to_str().unwrap();
    let figures = &json(&["report", path, "--json"])["methods"][0]["figures"];
    // Counted on the list above, by hand.
    assert_eq!(figures["classes"], serde_json::json!({"J": 1, "R": 1, "F": 11, "U": 7}));
    let counts = ["completed", "timeouts", "failures", "unresolved", "completed_with_recovery"];
    let counts = counts.map(|name| figures[name]["numerator"].as_u64().unwrap());
    assert_eq!(counts, [3, 4, 9, 4, 4]);
    let causes = serde_json::json!({"model": 1, "code": 4, "render": 1, "limit": 3});
    assert_eq!((&figures["failures_by_cause"], &figures["salvageable"]), (&causes, &4.into()));
    // A failure on each point and on both ratings is zero: 20 tasks, of which only those with marks tell their points.
    let direct = &figures["means"]["auto_zero_direct"];
    assert_eq!((&direct["numerator"], &direct["denominator"]), (&2.0.into(), &6.0.into()));
    let quality = &figures["means"]["completed_only_visual_quality"];
    assert_eq!((&quality["value"], &quality["denominator"]), (&4.0.into(), &2.0.into()));
    let shown = text(&proctor(&["report", path, "--by", "category,difficulty,mode,operation"]));
    assert!(shown.contains("15.0 %") && shown.contains("3/20"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
}

#[test]
fn the_papers_counts_give_the_papers_percentages_and_the_curve_ends_there() {
    let dir = tempfile::tempdir().unwrap();
    let completed = [
        ("codex-gpt", 1525, 0.96949),
        ("codex-glm", 1032, 0.65607),
        ("cc-glm", 72, 0.04577),
        ("native-gpt", 1529, 0.97203),
        ("native-glm", 793, 0.50413),
    ];
    let methods = completed.iter().map(|(name, ..)| method(name, "codex@1.0.0")).collect();
    let record = record(1573, methods, 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    let mut dice = Dice(3);
    for (name, count, _) in completed {
        for task in 0..1573 {
            let made = if task < count {
                Made { agent_ms: 1000 + dice.below(BUDGET_MS), ..Made::rendered(Ending::Completed) }
            } else {
                Made { agent_ms: BUDGET_MS + 3, ..Made::ended(Ending::TimedOut) }
            };
            write(&run, &record, &id(task, name, "1"), &made);
        }
    }
    let report = json(&["report", run.root().to_str().unwrap(), "--json"]);
    for (at, (name, count, rate)) in completed.into_iter().enumerate() {
        let completed = &report["methods"][at]["figures"]["completed"];
        assert_eq!(
            (&completed["numerator"], &completed["denominator"]),
            (&count.into(), &1573.into()),
            "{name}"
        );
        let value = completed["value"].as_f64().unwrap();
        assert!((value - rate).abs() < 5e-6, "{name}: {value}");
        let curve = &report["curves"][at];
        let last = curve["steps"].as_array().unwrap().last().unwrap();
        assert_eq!((&last[1], &curve["completed"]["value"]), (&count.into(), &completed["value"]), "{name}");
        assert!(last[0].as_f64().unwrap() <= curve["budget_s"].as_f64().unwrap());
    }
}

/// Compares `proctor report` with the script, figure by figure.
fn compare(run: &Path, options: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("accounting/recompute.py");
    let output = Command::new("python3").arg(script).arg(run).args(options).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours = json(&[&["report", run.to_str().unwrap(), "--json"][..], options].concat());
    assert_eq!(theirs["judged"] == true, ours["rules"]["basis"] == "judge");
    let methods = ours["methods"].as_array().unwrap();
    assert_eq!(methods.len(), theirs["methods"].as_object().unwrap().len());
    for method in methods {
        let name = method["method"].as_str().unwrap();
        let (theirs, ours) = (&theirs["methods"][name], &method["figures"]);
        for same in ["registered", "classes", "superseded", "throttled"] {
            assert_eq!(theirs[same], ours[same], "{name} {same} {options:?}");
        }
        for rate in ["completed", "completed_with_recovery", "timeouts", "failures", "unresolved"] {
            assert_eq!(theirs[rate], ours[rate]["numerator"], "{name} {rate} {options:?}");
            assert_eq!(theirs["registered"], ours[rate]["denominator"], "{name} {rate}");
        }
        for mean in ["time_s", "time_with_recovery_s", "tool_calls", "cost_usd"] {
            near(&theirs[mean], &ours["means"][mean], &format!("{name} {mean} {options:?}"));
        }
        for population in ["auto_zero", "auto_zero_resolved", "completed_only"] {
            for score in ["direct", "derived", "invariant", "visual_quality", "domain_quality"] {
                let key = format!("{population}_{score}");
                near(&theirs[population][score], &ours["means"][&key], &format!("{name} {key} {options:?}"));
            }
        }
    }
}

fn near(theirs: &Value, ours: &Value, what: &str) {
    for part in ["numerator", "denominator", "value"] {
        match (theirs[part].as_f64(), ours[part].as_f64()) {
            (Some(theirs), Some(ours)) => {
                assert!(
                    (theirs - ours).abs() <= 1e-9 * theirs.abs().max(1.0),
                    "{what} {part}: {theirs} {ours}"
                );
            }
            (theirs, ours) => assert_eq!(theirs, ours, "{what} {part}"),
        }
    }
}

#[test]
fn a_script_that_shares_no_code_comes_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    for (name, judged, attempts) in [("judged", true, 2), ("unjudged", false, 1)] {
        let run = chance(&dir.path().join(name), 60, 3, attempts, judged);
        // Reruns, done and pending; what cannot be read; an outcome of another trial; a picture of another artifact.
        let record = run.record().unwrap();
        let trials: Vec<_> =
            record.trials().unwrap().into_iter().filter(|it| run.trial(it).is_done()).collect();
        let again = run.rerun(&trials[0], "a reason").unwrap();
        write(&run, &record, &again, &Made::rendered(Ending::Completed));
        let again = run.rerun(&again, "another reason").unwrap();
        write(&run, &record, &again, &Made::ended(Ending::NoArtifact));
        run.rerun(&trials[1], "it is still to be run").unwrap();
        let file = |at: usize, name: &str| run.trial(&trials[at]).path().join(name);
        fs::write(file(2, "outcome.json"), "{").unwrap();
        fs::copy(file(4, "outcome.json"), file(3, "outcome.json")).unwrap();
        for (at, trial) in trials.iter().enumerate().skip(10).step_by(17) {
            let picture = run.trial(trial).render().join("output.png");
            if at % 2 == 0 && picture.exists() {
                fs::remove_file(picture).unwrap();
            }
        }
        for options in [&[][..], &["--provider-errors", "fail"], &["--recover", "any"]] {
            compare(run.root(), options);
        }
        let shown = text(&proctor(&["report", run.root().to_str().unwrap()]));
        assert!(shown.matches("PROBLEM").count() >= 2, "{shown}");
    }
}

#[test]
fn while_trials_are_unresolved_the_exit_code_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let record = record(2, vec![method("m", "codex@1.0.0")], 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    let path = run.root().to_str().unwrap();
    write(&run, &record, &id(0, "m", "1"), &Made::rendered(Ending::Completed));
    assert_eq!(proctor(&["report", path]).status.code(), Some(4));
    assert_eq!(proctor(&["report", path, "--allow-incomplete"]).status.code(), Some(0));
    assert_eq!(proctor(&["report", path, "--where", "ending == 'completed'"]).status.code(), Some(0));
    let shown = text(&proctor(&["report", path]));
    assert!(shown.contains("UNRESOLVED  1 trial is in U") && shown.contains("No judge has run"), "{shown}");
    for (wrong, hint) in [("endin == 'x'", "it has agent_s"), ("ending ==", "is no expression")] {
        let output = proctor(&["report", path, "--where", wrong]);
        assert!(output.status.code() == Some(2) && text(&output).contains(hint), "{}", text(&output));
    }
}

#[test]
fn a_control_that_fails_is_told_before_anything_else() {
    let dir = tempfile::tempdir().unwrap();
    let methods = vec![method("oracle", "oracle@1"), method("nop", "nop@1"), method("m", "codex@1.0.0")];
    let record = record(2, methods, 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    for task in 0..2 {
        write(&run, &record, &id(task, "m", "1"), &Made::rendered(Ending::Completed));
        write(&run, &record, &id(task, "nop", "1"), &Made::ended(Ending::NoArtifact));
        write(&run, &record, &id(task, "oracle", "1"), &Made::rendered(Ending::Completed));
    }
    let path = run.root().to_str().unwrap();
    let good = text(&proctor(&["report", path]));
    assert!(good.starts_with("Run made") && good.contains("oracle (control)"), "{good}");
    write(&run, &record, &id(1, "oracle", "1"), &Made::broken(Ending::Completed));
    write(&run, &record, &id(1, "nop", "1"), &Made::rendered(Ending::Completed));
    let bad = text(&proctor(&["report", path]));
    assert!(
        bad.starts_with("!! CONTROL FAILED  oracle: the reference itself completed only 1 of 2"),
        "{bad}"
    );
    assert!(bad.contains("CONTROL FAILED  nop: 1 of 2 completed"), "{bad}");
}

#[test]
fn what_no_process_would_start_is_left_out_of_what_is_left_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let names = ["draw", "edit", "polish", "frugal"];
    let mut record = record(4, names.iter().map(|it| method(it, "codex@1.0.0")).collect(), 1);
    record.methods[1].settings.insert("needs".into(), "artifact of draw".into());
    record.methods[2].settings.insert("needs".into(), "artifact of edit".into());
    // As the plan of a run has it, with much else that does not count here.
    record.plan = Some(serde_json::json!({
        "methods": [
            {"id": "draw", "budget": "20m", "needs": null, "max_tokens": null, "max_cost": null},
            {"id": "edit", "needs": {"method": "draw", "artifact": null, "as": "x", "same": "task+attempt", "on_missing": "skip"}},
            {"id": "polish", "needs": {"method": "edit", "on_missing": "empty"}},
            {"id": "frugal", "max_tokens": 100, "max_cost": null},
        ],
        "ceilings": {"max_tokens": null, "max_cost": null},
    }));
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    let path = run.root().to_str().unwrap();
    let put = |task, method, made: Made| write(&run, &record, &id(task, method, "1"), &made);
    // Task 0 is drawn, task 1 is not, tasks 2 and 3 are to come.
    put(0, "draw", Made::rendered(Ending::Completed));
    put(1, "draw", Made::ended(Ending::NoArtifact));
    put(0, "frugal", Made { tokens: [90, 0, 10], ..Made::rendered(Ending::Completed) });
    let status = json(&["status", path, "--json"]);
    let left_out = |method: usize| {
        ["pending", "left_out_needs", "left_out_ceiling"]
            .map(|it| status["methods"][method][it].as_u64().unwrap())
    };
    assert_eq!([0, 1, 2, 3].map(left_out), [[2, 0, 0], [4, 1, 0], [4, 1, 0], [3, 0, 3]]);
    let told = text(&proctor(&["status", path]));
    assert!(told.contains("8 trials left"), "{told}");
    assert!(
        told.contains(
            "5 trials left out: 2 need what another did not leave, 3 are over a ceiling of the plan"
        ),
        "{told}"
    );
}

#[test]
fn who_was_given_what_is_made_again_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = record(2, vec![method("draw", "codex@1.0.0"), method("edit", "codex@1.0.0")], 1);
    record.methods[1].settings.insert("needs".into(), "artifact of draw".into());
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    let path = run.root().to_str().unwrap();
    for (task, name) in [(0, "draw"), (1, "draw"), (0, "edit"), (1, "edit")] {
        write(&run, &record, &id(task, name, "1"), &Made::rendered(Ending::Completed));
    }
    // Task 0 was edited from what was drawn, task 1 from what was drawn before.
    for (task, from) in [(0, "vao/task-0000/draw/1"), (1, "vao/task-0001/draw/1.7")] {
        let file = run.trial(&id(task, "edit", "1")).path().join("outcome.json");
        let mut outcome: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        outcome["consumed"] = serde_json::json!({"trial": from, "artifact": "artifact.html", "name": "source.html", "digest": null});
        fs::write(&file, outcome.to_string()).unwrap();
    }
    let rerun = |filter: &str, more: &[&str]| {
        let all = [&["rerun", path, "--where", filter, "--reason", "why not", "--dry-run"], more].concat();
        proctor(&all)
    };
    let told = text(&rerun("method == 'draw'", &[]));
    assert!(told.contains("note: 1 trial of edit was given what was left before"), "{told}");
    assert!(told.contains("vao/task-0000/edit/1") && !told.contains("vao/task-0001/edit/1"), "{told}");
    // Who is made again as well is given what is new.
    assert!(!text(&rerun("true", &[])).contains("note: "));
    let answer: Value = serde_json::from_slice(&rerun("method == 'draw'", &["--json"]).stdout).unwrap();
    assert_eq!(answer["consumers"][0]["given"], "vao/task-0000/draw/1");
}

#[test]
fn a_run_stands_as_its_leases_say_and_a_rerun_makes_a_trial_pending() {
    let dir = tempfile::tempdir().unwrap();
    let record = record(4, vec![method("m", "codex@1.0.0")], 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    let path = run.root().to_str().unwrap();
    let failure = Ending::AgentError { message: "a\u{1b}[31mloud message".into() };
    write(&run, &record, &id(0, "m", "1"), &Made::rendered(Ending::Completed));
    write(&run, &record, &id(1, "m", "1"), &Made::ended(failure));
    let us = Holder::this_process(Some("7_1".into())).unwrap();
    let lease = |task: usize, holder: &Holder| {
        let folder = run.trial(&id(task, "m", "1")).path().to_owned();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("lease"), serde_json::to_vec(holder).unwrap()).unwrap();
    };
    lease(2, &us);
    lease(3, &Holder { start: us.start + 1, ..us.clone() });
    let status = json(&["status", path, "--json"]);
    let counts = ["planned", "done", "running", "pending", "interrupted", "completed", "failed"];
    let counts = counts.map(|name| status["methods"][0][name].as_u64().unwrap());
    assert_eq!(counts, [4, 2, 1, 1, 1, 1, 1]);
    let workers = status["workers"].as_array().unwrap();
    assert_eq!(
        (workers.len(), &workers[0]["state"], &workers[0]["job"]),
        (2, &"alive".into(), &"7_1".into())
    );
    // Three left of about a minute each, one at a time.
    assert!((60.0..130.0).contains(&status["eta_s"].as_f64().unwrap()), "{status}");
    assert_eq!(status["last_failures"][0]["message"], "a [31mloud message");
    assert!(text(&proctor(&["status", path])).contains("2 trials left, 1 of them begun and left"));

    let chosen = ["rerun", path, "--where", "ending == 'agent_error'", "--reason", "a reason"];
    let dry = text(&proctor(&[&chosen[..], &["--dry-run"]].concat()));
    assert!(dry.contains("would be made again as vao/task-0001/m/1.1"), "{dry}");
    assert!(!run.trial(&id(1, "m", "1.1")).path().exists());
    let made = text(&proctor(&chosen));
    // A run that keeps no plan is not to be joined.
    assert!(
        made.contains("1 trial is pending now. The process that is at work") && !made.contains("--join"),
        "{made}"
    );
    let figures = &json(&["report", path, "--json"])["methods"][0]["figures"];
    assert_eq!((&figures["superseded"], &figures["unresolved_by_reason"]["pending"]), (&1.into(), &3.into()));
    // Asked again, it is pending and not done: nothing is to be made again.
    assert!(
        text(&proctor(&["rerun", path, "--where", "task == 'task-0001'", "--reason", "x"]))
            .contains("no trial")
    );
}

#[test]
fn parts_of_a_run_are_merged_and_a_conflict_names_both() {
    let dir = tempfile::tempdir().unwrap();
    let record = record(3, vec![method("m", "codex@1.0.0")], 1);
    let part = |name: &str, done: &[(usize, Made)]| {
        let run = RunDir::open_or_create(&dir.path().join(name), &record).unwrap();
        for (task, made) in done {
            write(&run, &record, &id(*task, "m", "1"), made);
        }
        run.root().to_str().unwrap().to_owned()
    };
    let good = || Made::rendered(Ending::Completed);
    let a = part("a", &[(0, good()), (1, good())]);
    let b = part("b", &[(1, good()), (2, good())]);
    let c = part("c", &[(2, Made::ended(Ending::NoArtifact))]);
    let out = dir.path().join("all").to_str().unwrap().to_owned();
    let merged = json(&["merge", &a, &b, "-o", &out, "--json"]);
    assert_eq!(merged["done"], 3);
    assert_eq!(json(&["report", &out, "--json"])["methods"][0]["figures"]["completed"]["numerator"], 3);
    let refused = proctor(&["merge", &b, &c, "-o", dir.path().join("none").to_str().unwrap()]);
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("/b/trials/vao/task-0002") && said.contains("/c/trials/vao/task-0002"), "{said}");
}
