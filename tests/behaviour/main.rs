//! How agents work, by the real program over made-up runs: Table 4 counted by hand, two methods side by side against sums
//! made by hand, Figure 6 twice.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test that is how a failure shows")]

#[path = "../accounting/fixture.rs"]
#[expect(dead_code, reason = "the tests of the accounts use all of it")]
mod fixture;
#[path = "../accounting/sessions.rs"]
mod sessions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fixture::{Made, id, method, record, write};
use proctor_store::RunDir;
use proctor_traces::Ending;
use serde_json::{Value, json};

fn proctor(arguments: &[&str]) -> Output {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().with_file_name("proctor");
    assert!(program.exists(), "build it first: cargo build -p proctor");
    Command::new(program).args(arguments).output().unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    let output = proctor(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {said}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned()
}

/// A trace of calls: name, input, start and end in seconds; without an end it is cut off.
fn trace(calls: &[(&str, Value, u64, Option<u64>)]) -> String {
    let mut events = vec![(0, "guest", json!({"kind": "turn_started"}))];
    let mut before = 0;
    for (at, (name, input, start, end)) in calls.iter().enumerate() {
        let usage = Value::Null;
        events.push((before, "gateway", json!({"kind": "model_request", "exchange": at, "wire": "openai_responses", "model": null, "bytes": 1})));
        events.push((*start, "gateway", json!({"kind": "model_response", "exchange": at, "status": 200, "end": "complete", "usage": usage})));
        events.push((
            *start,
            "agent_stream",
            json!({"kind": "tool_started", "id": format!("c{at}"), "name": name, "input": input}),
        ));
        let status = if end.is_some() { "ok" } else { "unfinished" };
        before = end.unwrap_or(*start);
        events.push((before, "agent_stream", json!({"kind": "tool_finished", "id": format!("c{at}"), "status": status, "output": "", "output_bytes": 0, "truncated": false})));
    }
    let mut lines = String::new();
    for (seq, (seconds, source, kind)) in events.into_iter().enumerate() {
        let mut event = json!({"seq": seq, "at": "2026-11-30T10:00:00.000Z", "offset_ms": seconds * 1000, "turn": 1, "source": source});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        lines.push_str(&event.to_string());
        lines.push('\n');
    }
    lines
}

fn shell(script: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": script}))
}

/// Looks, writes, and, if asked for, renders, looks at it and edits.
fn calls(renders: bool) -> Vec<(&'static str, Value, u64, Option<u64>)> {
    let at = |(name, input): (&'static str, Value), start, end| (name, input, start, end);
    let mut calls = vec![
        at(("Read", json!({"file_path": "source.png"})), 10, Some(11)),
        at(("Write", json!({"file_path": "artifact.html", "content": "<p>one</p>"})), 30, Some(32)),
    ];
    if renders {
        calls.extend([
            at(shell("chromium --headless --screenshot=out.png artifact.html"), 40, Some(44)),
            at(("Read", json!({"file_path": "out.png"})), 50, Some(51)),
            at(
                ("Edit", json!({"file_path": "artifact.html", "old_string": "one", "new_string": "two"})),
                60,
                Some(62),
            ),
            at(shell("sleep 100"), 70, None),
        ]);
    }
    calls
}

/// Two methods at four tasks of two sources. The first renders everywhere, the second never; the second has no trace of the
/// last task, and the last but one was broken off by our side.
fn small(root: &Path) -> RunDir {
    let record = record(4, vec![method("first", "codex@1.0.0"), method("second", "claude-code@2.0.0")], 1);
    let run = RunDir::open_or_create(root, &record).unwrap();
    for task in 0..4 {
        let trial = id(task, "first", "1");
        let seconds = 100 + 10 * task as u64;
        write(&run, &record, &trial, &Made { agent_ms: seconds * 1000, ..Made::rendered(Ending::Completed) });
        fs::write(run.trial(&trial).path().join("trace.jsonl"), trace(&calls(true))).unwrap();
        let trial = id(task, "second", "1");
        let made = match task {
            0 => Made { agent_ms: 80_000, ..Made::rendered(Ending::Completed) },
            1 => Made { agent_ms: 1_800_000, ..Made::ended(Ending::TimedOut) },
            2 => Made::ended(Ending::InfraError { stage: "engine".into(), message: "gone".into() }),
            _ => Made { agent_ms: 60_000, ..Made::rendered(Ending::Completed) },
        };
        write(&run, &record, &trial, &made);
        if task < 3 {
            fs::write(run.trial(&trial).path().join("trace.jsonl"), trace(&calls(false))).unwrap();
        }
    }
    run
}

#[test]
fn a_small_run_has_the_figures_that_a_person_counts() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let csv = dir.path().join("figures.csv");
    let report = json_of(&["trace", "stats", path, "--json", "--csv", csv.to_str().unwrap()]);
    let [first, second] = [&report["methods"][0], &report["methods"][1]];
    assert_eq!((&first["episodes"], &first["untraced"]), (&json!(4), &json!(0)));
    // The one broken off by our side has no part; the one without a trace is told.
    assert_eq!((&second["episodes"], &second["untraced"]), (&json!(2), &json!(1)));
    let value = |it: &Value, name: &str| it["means"][name]["value"].as_f64();
    for (name, ours, theirs) in [
        ("calls", Some(6.0), Some(2.0)),
        ("writes", Some(2.0), Some(1.0)),
        ("renders", Some(1.0), Some(0.0)),
        ("previews", Some(1.0), Some(0.0)),
        ("cycles", Some(1.0), Some(0.0)),
        ("unfinished_calls", Some(1.0), Some(0.0)),
        ("calibrations", Some(0.0), Some(0.0)),
        ("other_calls", Some(1.0), Some(0.0)),
        ("action_edit_answer", Some(2.0), Some(1.0)),
        ("first_write_s", Some(32.0), Some(32.0)),
        ("first_render_s", Some(44.0), None),
        ("agent_s", Some(115.0), Some(940.0)),
        // Of 460 s: looks 4 × 1, edits 4 × 4, renders and looks at them 4 × 5; the sleep takes what is left after 70 s.
        ("share_understanding", Some(4.0 / 460.0), Some(2.0 / 1880.0)),
        ("share_editing", Some(16.0 / 460.0), Some(4.0 / 1880.0)),
        ("share_comparison", Some(20.0 / 460.0), Some(0.0)),
        ("share_other", Some(180.0 / 460.0), Some(0.0)),
        ("share_model", Some(4.0 * 60.0 / 460.0), Some(2.0 * 29.0 / 1880.0)),
        ("share_idle", Some(0.0), Some((1880.0 - 64.0) / 1880.0)),
        ("led_understanding", Some(44.0 / 460.0), Some(22.0 / 1880.0)),
        ("led_closing", Some(0.0), Some((1880.0 - 64.0) / 1880.0)),
    ] {
        for (it, expected) in [(first, ours), (second, theirs)] {
            let found = value(it, name);
            let same = match (found, expected) {
                (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(same, "{name} of {}: {found:?}, not {expected:?}", it["method"]);
        }
    }
    let text = fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("method,control,figure,numerator,denominator,value,low,high\n"), "{text}");
    assert!(text.contains("\nfirst,false,renders,4.0,4.0,1.0,1.0,1.0\n"), "{text}");
    assert!(text.contains("\nsecond,false,first_render_s,0.0,0.0,,,\n"), "{text}");
    let printed = said(&proctor(&["trace", "stats", path]));
    assert!(printed.contains("1 executed trial left no trace") && printed.contains("–"), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 100), "{printed}");
}

#[test]
fn labels_are_kept_beside_the_trial_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let kept = run.trial(&id(0, "first", "1")).path().join("actions.jsonl");
    proctor(&["trace", "stats", path, "--no-keep"]);
    assert!(!kept.exists());
    let first = said(&proctor(&["trace", "stats", path]));
    let lines = fs::read_to_string(&kept).unwrap();
    assert_eq!(lines.lines().count(), 7);
    // What is found is believed, until it is to be made anew.
    fs::write(&kept, lines.replace("\"renders\":1", "\"renders\":5")).unwrap();
    assert_ne!(said(&proctor(&["trace", "stats", path])), first);
    assert_eq!(said(&proctor(&["trace", "stats", path, "--anew"])), first);
    assert_eq!(fs::read_to_string(&kept).unwrap(), lines);
}

#[test]
fn two_methods_are_compared_within_pairs() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let csv = dir.path().join("pairs.csv");
    let arguments =
        ["trace", "compare", path, "--methods", "first,second", "--json", "--csv", csv.to_str().unwrap()];
    let compared = json_of(&arguments);
    assert_eq!(
        (&compared["pairs"], &compared["tasks"], &compared["sources"]),
        (&json!(4), &json!(4), &json!(2))
    );
    let differences: BTreeMap<&str, &Value> = compared["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it))
        .collect();
    let of = |name: &str| {
        let it = differences[name];
        let number = |it: &Value| it.as_f64().unwrap();
        (number(&it["difference"]["denominator"]), number(&it["difference"]["value"]))
    };
    // Tasks 0, 1 and 3; task 2 is not resolved. Completed: 0, 1, 0.
    assert_eq!(of("completed"), (3.0, 1.0 / 3.0));
    // 100 − 80, 110 − 1800, 130 − 60 seconds.
    assert_eq!(of("time_s"), (3.0, (20.0 - 1690.0 + 70.0) / 3.0));
    // Traces on both sides: tasks 0 and 1.
    assert_eq!((of("calls"), of("renders"), of("writes")), ((2.0, 4.0), (2.0, 1.0), (2.0, 1.0)));
    // Tasks 0 and 1 are of one source: of a single cluster nothing is known.
    assert_eq!(differences["calls"]["difference"]["interval"], Value::Null);
    let turned = json_of(&["trace", "compare", path, "--methods", "second,first", "--json"]);
    assert_eq!(turned["differences"][1]["difference"]["value"], json!(-(20.0 - 1690.0 + 70.0) / 3.0));
    let text = fs::read_to_string(&csv).unwrap();
    assert!(
        text.starts_with("first,second,figure,pairs,first_mean,second_mean,difference,low,high\n"),
        "{text}"
    );
    for (methods, words) in [
        ("first", "--methods names 1 methods"),
        ("first,third", "no method `third`; it has first, second"),
        ("first,first", "is both of the methods"),
    ] {
        let refused = proctor(&["trace", "compare", path, "--methods", methods]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(said(&refused).contains(words), "{}", said(&refused));
    }
}

#[test]
fn the_figure_shows_the_same_tasks_of_every_method_in_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let run = sessions::campaign(&dir.path().join("run"), 30);
    let path = run.root().to_str().unwrap();
    let draw = |name: &str, more: &[&str]| -> (PathBuf, String) {
        let picture = dir.path().join(name);
        let mut arguments = vec!["trace", "figure", path, "-o", picture.to_str().unwrap()];
        arguments.extend(more);
        let output = proctor(&arguments);
        assert!(output.status.success(), "{}", said(&output));
        (picture.with_extension("csv"), fs::read_to_string(&picture).unwrap())
    };
    let (data, first) = draw("one.svg", &["--tasks", "9", "--no-keep"]);
    let (again, second) = draw("two.svg", &["--tasks", "9"]);
    let (third, kept) = draw("three.svg", &["--tasks", "9"]);
    assert_eq!((&first, &second), (&second, &kept));
    let data = fs::read_to_string(data).unwrap();
    assert_eq!(data, fs::read_to_string(again).unwrap());
    assert_eq!(data, fs::read_to_string(third).unwrap());
    assert_ne!(draw("other.svg", &["--tasks", "9", "--seed", "5"]).1, first);
    let mut rows: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut methods = BTreeMap::new();
    for line in data.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let known =
            rows.entry((cells[6].to_owned(), cells[0].to_owned())).or_insert_with(|| cells[2].to_owned());
        assert_eq!(known, cells[2], "one task per row");
        methods.entry(cells[6].to_owned()).or_insert_with(Vec::new).push(cells[2].to_owned());
    }
    assert_eq!((rows.len(), methods.len()), (45, 5));
    let order = |name: &str| {
        let mut tasks = methods[name].clone();
        tasks.dedup();
        tasks
    };
    assert!(methods.keys().all(|it| order(it) == order("cc-slow")), "the same order in every panel");
    let chosen = draw("chosen.svg", &["--methods", "cc-slow,codex-swift"]).1;
    assert!(chosen.find(">cc-slow<").unwrap() < chosen.find(">codex-swift<").unwrap());
    assert!(!chosen.contains("codex-steady"));
    for (arguments, words) in [
        (vec!["-o", "x.png"], "the picture is SVG"),
        (vec!["-o", "x.svg", "--tasks", "0"], "--tasks N, from 1"),
        (vec!["-o", "x.svg", "--methods", "cc-slow,cc-slow"], "names `cc-slow` twice"),
        (vec!["-o", "x.svg", "--methods", "nobody"], "no method `nobody`"),
    ] {
        let refused = proctor(&[vec!["trace", "figure", path], arguments].concat());
        assert!(refused.status.code() == Some(2) && said(&refused).contains(words), "{}", said(&refused));
    }
}

#[test]
fn what_the_runner_counted_and_the_files_no_longer_tell_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let outcome = |method: &str, task: usize, calls: u64, versions: u64| {
        let path = run.trial(&id(task, method, "1")).path().join("outcome.json");
        let mut outcome: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        outcome["tool_calls"] = json!(calls);
        outcome["artifacts"][0]["versions"] = json!(versions);
        fs::write(path, outcome.to_string()).unwrap();
    };
    (0..4).for_each(|task| outcome("first", task, 6, 0));
    (0..4).for_each(|task| outcome("second", task, 2, 0));
    let versions = |report: &Value| report["methods"][0]["means"]["versions"]["value"].clone();
    let whole = json_of(&["trace", "stats", path, "--json"]);
    assert_eq!((&whole["problems"], versions(&whole)), (&json!([]), json!(0.0)));
    outcome("first", 0, 9, 2);
    outcome("first", 1, 6, 2);
    let report = json_of(&["trace", "stats", path, "--json"]);
    let problems = report["problems"].to_string();
    assert!(problems.contains("0 of 2 versions") && problems.contains("6 of 9 tool calls"), "{problems}");
    assert_eq!(report["problems"].as_array().unwrap().len(), 2, "{problems}");
    assert_eq!(report["methods"][0]["episodes"], 4);
    assert_eq!(report["methods"][0]["means"]["versions"]["denominator"], 2.0, "not known of two");
    let folder = run.trial(&id(0, "first", "1")).path().to_owned();
    let check = || proctor(&["trace", "check", folder.to_str().unwrap()]);
    assert!(!check().status.success());
    let text = said(&check());
    assert!(text.contains("0 of 2 versions") && text.contains("6 of 9 tool calls"), "{text}");
    outcome("first", 0, 6, 0);
    assert!(check().status.success(), "{}", said(&check()));
}

#[test]
fn a_run_that_goes_on_says_that_its_figures_are_not_final() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let picture = dir.path().join("x.svg");
    let figure = ["trace", "figure", path, "-o", picture.to_str().unwrap()];
    let compare = ["trace", "compare", path, "--methods", "first,second"];
    let not_final = "7 of 8 trials have ended: the figures are not final";
    for verb in [&["trace", "stats", path][..], &compare, &figure] {
        assert!(!said(&proctor(verb)).contains("not final"), "all of it has ended");
    }
    fs::remove_file(run.trial(&id(1, "second", "1")).path().join("outcome.json")).unwrap();
    for verb in [&["trace", "stats", path][..], &["trace", "stats", path, "--markdown"], &compare] {
        let output = proctor(verb);
        let printed = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
        assert!(printed.contains(not_final), "{printed}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(not_final));
    }
    // A pair is one of two that have ended.
    let compared = json_of(&[&compare[..], &["--json"]].concat());
    assert_eq!((&compared["pairs"], &compared["tasks"]), (&json!(3), &json!(3)));
    assert_eq!(compared["not_final"], json!(not_final));
    let drawn = said(&proctor(&figure));
    assert!(drawn.contains(not_final) && drawn.contains("(2 of 4 tasks)"), "{drawn}");
    assert!(drawn.contains("1 method") || drawn.contains("2 methods"), "{drawn}");
    assert!(fs::read_to_string(&picture).unwrap().contains(not_final));
}

#[test]
fn what_is_written_is_whole_and_never_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let run = small(&dir.path().join("run"));
    let path = run.root().to_str().unwrap();
    let trial = run.trial(&id(0, "first", "1"));
    let journal = trial.path().join("trace.jsonl");
    let (trial, journal) = (trial.path().to_str().unwrap().to_owned(), journal.to_str().unwrap().to_owned());
    let record = format!("{path}/run.json");
    let before = (fs::read(&journal).unwrap(), fs::read(&record).unwrap());
    for verb in [
        vec!["trace", "import", &journal, "-o", &journal],
        vec!["trace", "export", "--format", "csv", &trial, "-o", &journal],
        vec!["trace", "stats", path, "--csv", &record],
        vec!["trace", "compare", path, "--methods", "first,second", "--csv", &journal],
    ] {
        let refused = proctor(&verb);
        assert!(said(&refused).contains("is what is read"), "{verb:?}: {}", said(&refused));
        assert_eq!(refused.status.code(), Some(2));
    }
    assert_eq!(before, (fs::read(&journal).unwrap(), fs::read(&record).unwrap()));
    for form in ["csv", "atif", "otlp", "perfetto", "parquet"] {
        let full = proctor(&["trace", "export", "--format", form, &trial, "-o", "/dev/full"]);
        assert_eq!(full.status.code(), Some(1), "{form}: {}", said(&full));
    }
}

#[test]
fn a_run_without_traces_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let record = record(2, vec![method("m", "codex@1.0.0")], 1);
    let run = RunDir::open_or_create(&dir.path().join("run"), &record).unwrap();
    write(&run, &record, &id(0, "m", "1"), &Made::ended(Ending::Completed));
    let path = run.root().to_str().unwrap();
    assert!(said(&proctor(&["trace", "stats", path])).contains("no trial of this run has a trace"));
    let picture = dir.path().join("x.svg");
    let refused = proctor(&["trace", "figure", path, "-o", picture.to_str().unwrap()]);
    assert!(said(&refused).contains("no method of this run left traces"), "{}", said(&refused));
    assert!(!picture.exists());
}
