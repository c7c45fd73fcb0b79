//! Scores of a made-up run, each worked out by hand: what is recovered, what failed, what nobody scored, a task without
//! Derived points, and a tie.

use std::fs;
use std::path::Path;

use proctor_store::{PointKind, RunDir, RunRecord};
use proctor_traces::{Digest, Ending};
use serde_json::{Value, json};

use crate::fixture::{Made, id, method, record, write};
use crate::{json as printed, proctor, text};

/// Category, mode, difficulty, operation, source, and how many Direct, Derived and Invariant points a task has.
const TASKS: [([&str; 5], [usize; 3]); 5] = [
    (["business_webpage", "html", "easy", "relabel", "s0"], [2, 1, 1]),
    (["circuit", "circuitikz", "hard", "rewire", "s1"], [1, 2, 1]),
    // No Derived points: it has no part in Derived.
    (["flowchart", "dot", "easy", "relabel", "s2"], [1, 0, 2]),
    (["flowchart", "dot", "medium", "rewire", "s2"], [2, 2, 2]),
    (["chemical_diagram", "tikz", "medium", "relabel", "s4"], [1, 1, 1]),
];

/// How many points of each kind hold, and both ratings.
type Held = ([usize; 3], [u8; 2]);

/// Of each task by two methods, how it ended and what of it holds.
fn made() -> [(&'static str, [Made; 5]); 2] {
    let scored = |task: usize, ending, held: Held| marked(Made::rendered(ending), task, held);
    let done = |task, held| scored(task, Ending::Completed, held);
    // A mark is missing: it is not scored, which is not zero.
    let mut unscored = done(4, ([1, 1, 1], [5, 5]));
    if let Some((points, _)) = &mut unscored.marks {
        points[1].1 = None;
    }
    let a = [
        done(0, ([2, 1, 1], [5, 4])),
        scored(1, Ending::TimedOut, ([1, 1, 0], [3, 3])),
        done(2, ([1, 0, 1], [4, 4])),
        Made::ended(Ending::NoArtifact),
        unscored,
    ];
    let b = [
        done(0, ([1, 0, 1], [4, 4])),
        Made::ended(Ending::TimedOut),
        done(2, ([1, 0, 2], [4, 5])),
        done(3, ([2, 1, 2], [3, 2])),
        done(4, ([0, 0, 1], [2, 3])),
    ];
    [("a", a), ("b", b)]
}

fn marked(made: Made, task: usize, (held, ratings): Held) -> Made {
    let kinds = PointKind::ALL.into_iter().zip(TASKS[task].1).zip(held);
    let points = kinds.flat_map(|((kind, count), held)| (0..count).map(move |at| (kind, Some(at < held))));
    Made { marks: Some((points.collect(), Some(ratings))), ..made }
}

fn plan(name: &str, methods: &[&str], tasks: usize) -> RunRecord {
    let methods = methods.iter().map(|it| method(it, "codex@1.0.0")).collect();
    let mut record = record(tasks, methods, 1);
    name.clone_into(&mut record.name);
    for (task, ([category, mode, difficulty, operation, source], _)) in record.tasks.iter_mut().zip(TASKS) {
        let facts = &mut task.facts;
        for (field, text) in [
            (&mut facts.category, category),
            (&mut facts.mode, mode),
            (&mut facts.difficulty, difficulty),
            (&mut facts.operation, operation),
            (&mut facts.source, source),
        ] {
            text.clone_into(field);
        }
    }
    record
}

fn run(root: &Path) -> RunDir {
    let record = plan("main", &["a", "b"], 5);
    let run = RunDir::open_or_create(root, &record).unwrap();
    for (name, trials) in made() {
        for (task, made) in trials.iter().enumerate() {
            write(&run, &record, &id(task, name, "1"), made);
        }
    }
    run
}

/// `[numerator, denominator]` of the five scores.
fn fractions(line: &Value, population: &str) -> Vec<[f64; 2]> {
    ["direct", "derived", "invariant", "visual_quality", "domain_quality"]
        .iter()
        .map(|score| {
            let it = &line[population][score];
            let [top, bottom] = ["numerator", "denominator"].map(|part| it[part].as_f64().unwrap());
            let value = it["value"].as_f64();
            assert_eq!(value, (bottom > 0.0).then(|| top / bottom), "{population} {score}");
            [top, bottom]
        })
        .collect()
}

fn table(tables: &Value, number: u8) -> &Value {
    let found = tables.as_array().unwrap().iter().find(|it| it["number"] == number);
    found.unwrap_or_else(|| panic!("there is no table {number}"))
}

#[test]
fn both_populations_are_as_worked_out_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let report = printed(&["report", path, "--tables", "--json", "--csv", dir.path().to_str().unwrap()]);
    let tables = &report["tables"];
    let [a, b] = [0, 1].map(|at| &table(tables, 1)["lines"][at]);
    // a: 2+1+1 of all 7 Direct points, the failure and what is unscored being zero; 1+1 of 6 Derived ones.
    assert_eq!(fractions(a, "auto_zero"), [[4., 7.], [2., 6.], [2., 7.], [12., 5.], [11., 5.]]);
    // Without the unscored task, which has one point of each kind.
    assert_eq!(fractions(a, "auto_zero_resolved"), [[4., 6.], [2., 5.], [2., 6.], [12., 4.], [11., 4.]]);
    // The first three tasks alone, what was recovered after its deadline among them.
    assert_eq!(fractions(a, "completed_only"), [[4., 4.], [2., 3.], [2., 4.], [12., 3.], [11., 3.]]);
    assert_eq!(fractions(b, "auto_zero"), [[4., 7.], [1., 6.], [6., 7.], [13., 5.], [14., 5.]]);
    assert_eq!(fractions(b, "completed_only"), [[4., 6.], [1., 4.], [6., 6.], [13., 4.], [14., 4.]]);
    // Recovered is scored, and not in budget; unscored is in budget, and not scored.
    let counts = |it: &Value| {
        ["registered", "scored", "recovered", "unresolved"].map(|name| it[name].as_u64().unwrap())
    };
    assert_eq!((counts(a), counts(b)), ([5, 3, 1, 1], [5, 4, 0, 0]));
    assert_eq!((&a["completed"]["numerator"], &b["completed"]["numerator"]), (&3.into(), &4.into()));
    // A tie has two that are best. Completed-only has a as the best in Direct, and is not ranked.
    assert_eq!(a["best"], json!(["direct", "derived"]));
    assert_eq!(b["best"], json!(["direct", "invariant", "visual_quality", "domain_quality"]));
    assert_eq!(report["points"], json!({"tasks": 5, "points": [7, 6, 7], "without_derived": 1}));
    let unscored = json!([{"trial": "vao/task-0004/a/1", "method": "a", "why": "unjudged"}]);
    assert_eq!(report["unresolved"], unscored);

    // The paper's numbers; what no task is of has no table.
    let numbers: Vec<Option<u64>> =
        tables.as_array().unwrap().iter().map(|it| it["number"].as_u64()).collect();
    let there = [1, 14, 17, 19, 22, 23, 24, 25, 26, 27, 28, 29, 30].map(Some);
    assert_eq!(numbers, [&there[..], &[None, None]].concat());
    let [a, b] = [0, 1].map(|at| &table(tables, 17)["lines"][at]);
    assert_eq!(fractions(a, "auto_zero"), [[1., 3.], [0., 2.], [1., 4.], [4., 2.], [4., 2.]]);
    assert_eq!(fractions(a, "completed_only"), [[1., 1.], [0., 0.], [1., 2.], [4., 1.], [4., 1.]]);
    assert_eq!(fractions(b, "auto_zero"), [[3., 3.], [1., 2.], [4., 4.], [7., 2.], [7., 2.]]);
    let easy = &table(tables, 24)["lines"][1];
    assert_eq!(fractions(easy, "auto_zero"), [[2., 3.], [0., 1.], [3., 3.], [8., 2.], [9., 2.]]);
    let relabel = &tables[13]["lines"][0];
    assert_eq!((&tables[13]["by"], &tables[13]["group"]), (&json!("operation"), &json!("relabel")));
    assert_eq!(fractions(relabel, "auto_zero")[..1], [[3., 4.]]);

    let lines = fs::read_to_string(dir.path().join("scores.csv")).unwrap();
    assert_eq!(lines.lines().count(), 1 + 15 * 2 * 3 * 5);
    assert!(lines.contains("17,category,flowchart,b,false,auto_zero,direct,3.0,3.0,1.0,true\n"), "{lines}");
}

#[test]
fn marks_of_another_picture_are_no_marks() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let of = |task: usize, candidate: Value| {
        let path = run.trial(&id(task, "b", "1")).score_path();
        let mut score: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        score["candidate"] = candidate;
        fs::write(path, score.to_string()).unwrap();
    };
    let picture = Digest::of(b"as it is now");
    let place = run.trial(&id(0, "b", "1")).render().join("render.json");
    let mut rendering: Value = serde_json::from_slice(&fs::read(&place).unwrap()).unwrap();
    rendering["digest"] = json!(picture);
    fs::write(place, rendering.to_string()).unwrap();
    // One of this picture, one of an older picture, and one of when there was none.
    of(0, json!({ "picture": picture }));
    of(3, json!({ "picture": Digest::of(b"an older one") }));
    let report = printed(&["report", path, "--tables", "--json"]);
    let b = &table(&report["tables"], 1)["lines"][1];
    // Without task 3 of the sums worked out above: its 2, 1 and 2 points, and its 3 and 2.
    assert_eq!(fractions(b, "completed_only"), [[2., 4.], [0., 2.], [4., 4.], [10., 3.], [12., 3.]]);
    let unresolved = report["unresolved"].to_string();
    assert!(unresolved.contains("task-0003/b/1") && !unresolved.contains("task-0000/b/1"), "{unresolved}");
    of(0, json!("no_picture"));
    let report = printed(&["report", path, "--tables", "--json"]);
    assert!(report["unresolved"].to_string().contains("task-0000/b/1"), "{}", report["unresolved"]);
    let said = text(&proctor(&["report", path, "--tables"]));
    assert!(said.contains("task-0003/b/1: the marks of a judge are of another picture"), "{said}");
}

#[test]
fn tables_are_for_people_too() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let output = proctor(&["report", path, "--tables", "1,23"]);
    assert_eq!(output.status.code(), Some(4), "a trial is unscored");
    let shown = text(&output);
    // 4/7 and 4/4 of a, over 7 and 4 points, and the line below it without what is unscored.
    for part in
        ["Table 1. All tasks", "0.571*/1.000", "7/4", "0.667", "2.400/4.000", "2.600*/3.250", "60.0 %"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("/1.000*") && shown.contains("a †"), "{shown}");
    assert!(shown.contains("Table 23.") && shown.contains("6/3") && shown.contains("7/6"), "{shown}");
    assert!(shown.contains("Unscored: 1 trial") && shown.contains("vao/task-0004/a/1"), "{shown}");
    assert!(shown.contains("1 task without Derived") && !shown.contains("Table 14"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let markdown = text(&proctor(&["report", path, "--tables", "14-31", "--markdown", "--allow-incomplete"]));
    assert!(markdown.contains("### Table 17. Flowcharts and workflows") && !markdown.contains("Table 1."));
    let wrong = proctor(&["report", path, "--tables", "13"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong).contains("they are 1, 14 to 31"), "{}", text(&wrong));
}

fn score<'a>(found: &'a Value, name: &str, pairs: &str) -> &'a Value {
    let all = found["scores"].as_array().unwrap();
    all.iter().find(|it| it["name"] == name && it["pairs"] == pairs).unwrap()
}

#[test]
fn two_methods_are_compared_on_the_same_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let by =
        |cluster: &str| printed(&["report", path, "--compare", "a", "b", "--cluster", cluster, "--json"]);
    let (tasks, sources) = (by("task"), by("source"));
    // The last task is left out, since one of its trials is unscored.
    assert_eq!((&tasks["pairs"], &tasks["left_out"]), (&5.into(), &1.into()));
    let near = |it: &Value, value: f64| (it.as_f64().unwrap() - value).abs() < 1e-12;
    let counts = |it: &Value| ["clusters", "wins", "losses", "ties"].map(|name| it[name].as_u64().unwrap());

    // +1, +1, 0, -2 of 6 points.
    let direct = score(&tasks, "direct", "auto_zero");
    assert!(near(&direct["first"], 4.0 / 6.0) && near(&direct["difference"]["value"], 0.0));
    assert_eq!((counts(direct), direct["test"]["p"].as_f64()), ([4, 2, 1, 1], Some(1.0)));
    // The task without Derived points is not even a tie: +1, +1, -1 of 5.
    let derived = score(&tasks, "derived", "auto_zero");
    assert!(near(&derived["difference"]["value"], 0.2));
    assert_eq!(counts(derived), [3, 2, 1, 0]);
    // 0, 0, -1, -2 of 6: of the four sums of ±1 ±2, two are as far from zero as -3. Both tasks have one source.
    let invariant = score(&tasks, "invariant", "auto_zero");
    assert!(near(&invariant["difference"]["value"], -0.5) && near(&invariant["test"]["p"], 0.5));
    assert_eq!(counts(invariant), [4, 0, 2, 2]);
    let invariant = score(&sources, "invariant", "auto_zero");
    assert!(near(&invariant["test"]["p"], 1.0));
    assert_eq!(counts(invariant), [3, 0, 2, 2]);
    let [low, high] = [0, 1].map(|at| invariant["difference"]["interval"][at].as_f64().unwrap());
    assert!((-1.0..-0.5).contains(&low) && high.abs() < 1e-12, "{low} {high}");
    // Where both are scored there are two tasks: +1 and 0 of 3 points.
    let direct = score(&tasks, "direct", "both_scored");
    assert!(near(&direct["difference"]["value"], 1.0 / 3.0));
    assert_eq!(counts(direct), [2, 1, 0, 1]);
    // b alone completed the fourth.
    let completed = score(&tasks, "completed", "auto_zero");
    assert!(near(&completed["difference"]["value"], -0.25) && counts(completed) == [4, 0, 1, 3]);

    // The other way round everything has the other sign.
    let turned = printed(&["report", path, "--compare", "b", "a", "--cluster", "task", "--json"]);
    let invariant = score(&turned, "invariant", "auto_zero");
    assert!(near(&invariant["difference"]["value"], 0.5) && counts(invariant) == [4, 2, 0, 2]);
    let output = proctor(&["report", path, "--compare", "a", "b"]);
    let shown = text(&output);
    assert_eq!(output.status.code(), Some(4), "{shown}");
    assert!(shown.contains("1 of 5 pairs left out") && shown.contains("-0.500"), "{shown}");
    let wrong = proctor(&["report", path, "--compare", "a", "c"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong).contains("it has a, b"), "{}", text(&wrong));
}

#[test]
fn a_baseline_from_another_run_stands_beside_on_the_tasks_of_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let main = run(&dir.path().join("main"));
    let plan = plan("explicit", &["c"], 4);
    let explicit = RunDir::open_or_create(&dir.path().join("explicit"), &plan).unwrap();
    let all = [([2, 1, 1], [5, 5]), ([1, 2, 1], [5, 5]), ([1, 0, 2], [5, 5]), ([2, 2, 2], [5, 5])];
    for (task, held) in all.into_iter().enumerate() {
        let made = marked(Made::rendered(Ending::Completed), task, held);
        write(&explicit, &plan, &id(task, "c", "1"), &made);
    }
    let list = dir.path().join("subset.txt");
    fs::write(&list, "# two of four\ntask-0000\nvao/task-0002\ntask-0009\n").unwrap();
    let [list, main, path] = [&list, main.root(), explicit.root()].map(|it| it.to_str().unwrap());
    let with = ["report", path, "--subset", list, "--baseline", main];
    let report = printed(&[&with[..], &["--tables", "1", "--json"]].concat());
    let lines = report["tables"][0]["lines"].as_array().unwrap();
    let names: Vec<&str> = lines.iter().map(|it| it["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "a@main", "b@main"]);
    assert_eq!(fractions(&lines[0], "auto_zero"), [[3., 3.], [1., 1.], [3., 3.], [10., 2.], [10., 2.]]);
    assert_eq!(fractions(&lines[1], "auto_zero"), [[3., 3.], [1., 1.], [2., 3.], [9., 2.], [8., 2.]]);
    assert_eq!(fractions(&lines[2], "auto_zero"), [[2., 3.], [0., 1.], [3., 3.], [8., 2.], [9., 2.]]);
    assert_eq!(report["problems"], json!(["1 task of the subset is not in the run: task-0009"]));
    let compared = printed(&[&with[..], &["--compare", "c", "a@main", "--json"]].concat());
    assert_eq!(compared["pairs"], 2);
    assert_eq!(score(&compared, "invariant", "auto_zero")["wins"], 1);
    let wrong = proctor(&["report", path, "--subset", main]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}
