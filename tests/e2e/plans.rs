//! Plans: what is said of them without an engine; runs that are joined and extended.

use std::fs;
use std::path::Path;

use proctor_experiment::{Experiment, ExperimentFile, Flags, resolve};
use proctor_store::RunDir;
use serde_json::Value;

use crate::support::{Run, Trial, proctor, root, sample, samples};

/// What `proctor run …` says without an engine and without keys, and its exit status.
fn say(here: &Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = proctor()
        .current_dir(here)
        .env("DOCKER_HOST", "unix:///no/such/socket")
        .env_remove("OPENAI_API_KEY")
        .arg("run")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace(&*samples().to_string_lossy(), "[samples]");
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    (text(&output.stdout), text(&output.stderr), output.status.code())
}

fn refusal(here: &Path, arguments: &[&str]) -> String {
    let (stdout, stderr, code) = say(here, arguments);
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    stderr
}

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = text.replace("SAMPLES", &samples().to_string_lossy());
    fs::write(folder.path().join("e.toml"), text).unwrap();
    folder
}

const SMALL: &str = "[tasks]\npaths = [\"SAMPLES\"]\ncategory = [\"flowchart\", \"dashboard\"]\n\n\
                     [[methods]]\nharness = \"nop\"\n\n[[methods]]\nharness = \"codex\"\nmodel = \"openai/x\"\njobs = 3\n";

#[test]
fn a_plan_is_printed_with_the_origin_of_each_setting() {
    let folder = folder_with(SMALL);
    let (stdout, stderr, code) =
        say(folder.path(), &["e.toml", "--print-plan", "-j", "4", "--attempts", "2"]);
    let lacks = "warning: there is no key for provider `openai` (export OPENAI_API_KEY=…; it stays outside every container)";
    assert_eq!((stderr.as_str(), code), (lacks, Some(0)));
    let row = |setting: &str| {
        let line = stdout.lines().find(|line| line.contains(setting));
        let line = line.unwrap_or_else(|| panic!("no {setting} in\n{stdout}"));
        line.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(row("tasks.category"), "tasks.category | flowchart, dashboard | e.toml:3");
    assert_eq!(row("schedule.jobs"), "schedule.jobs | 4 | --jobs");
    assert_eq!(row("methods.codex-openai-x.jobs"), "methods.codex-openai-x.jobs | 3 | e.toml:11");
    assert_eq!(row("methods.*.budget"), "methods.*.budget | 1800s | default");
    assert!(stdout.contains("8 trials: 2 tasks × 2 methods × 2 attempts; 0 done."), "{stdout}");
}

#[test]
fn a_printed_plan_is_read_back() {
    let folder = folder_with(SMALL);
    let (stdout, _, _) = say(folder.path(), &["e.toml", "--print-plan", "--json", "--limit", "1"]);
    let printed: Value = serde_json::from_str(&stdout.replace("[samples]", "/samples")).unwrap();
    let plan: Experiment = serde_json::from_value(printed["plan"].clone()).unwrap();
    assert_eq!(plan.methods.len(), 2);
    assert_eq!(printed["origins"]["tasks.limit"], "--limit");
    assert_eq!(printed["tasks"], serde_json::json!(["dashboard-threshold"]));
    assert_eq!(
        printed["trials"][1],
        serde_json::json!({"method": "codex-openai-x", "planned": 1, "done": 0})
    );
}

#[test]
fn experiments_that_cannot_be_run() {
    let folder = folder_with(&SMALL.replace("flowchart", "flowcart"));
    insta::assert_snapshot!(refusal(folder.path(), &["e.toml", "--print-plan"]), @r#"
        proctor::experiment

          × e.toml: unknown variant `flowcart`, expected one of `business_webpage`,
          │ `scientific_document`, `dashboard`, `flowchart`, `architecture`,
          │ `circuit`, `statistical_chart`, `mathematical_figure`, `chemical_diagram`
           ╭─[e.toml:3:13]
         2 │ paths = ["[samples]"]
         3 │ category = ["flowcart", "dashboard"]
           ·             ─────┬────
           ·                  ╰── here
         4 │
           ╰────
          help: did you mean `flowchart`?
        "#);
    let folder = folder_with(SMALL);
    let here = folder.path();
    insta::assert_snapshot!(refusal(here, &["e.toml", "--print-plan", "--mode", "tikz"]), @r#"
        error: no task is left: `mode` = tikz keeps none of the 2 tasks that were left before it
        hint: `proctor tasks stats PATH` counts tasks by category, mode, difficulty and operation
        "#);
    insta::assert_snapshot!(refusal(here, &["e.toml", "--print-plan", "--task", "flow-aproval"]), @r#"
        error: there is no task `flow-aproval`
        hint: nearest: flow-approval
        "#);
    insta::assert_snapshot!(refusal(here, &["e.toml", "--print-plan", "--sample", "3"]), @r#"
        error: a sample of 3 cannot be drawn from 2 tasks
        hint: ask for fewer, or take away a filter
        "#);
    insta::assert_snapshot!(refusal(here, &["e.toml", "--print-plan", "--difficulty", "hart"]), @r#"
        error: invalid value 'hart' for '--difficulty <NAME>': it is one of easy, medium, hard

        For more information, try '--help'.
        "#);
    insta::assert_snapshot!(refusal(here, &["none.toml", "--print-plan"]), @"error: none.toml: cannot be read: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal(here, &["--print-plan", "--harness", "nop"]), @r#"
        error: no tasks are named
        hint: name packages, or folders of them, with --tasks or as `paths` under [tasks] of the experiment
        "#);
    insta::assert_snapshot!(refusal(here, &["e.toml", "--print-plan", "--model", "a/b"]), @r#"
        error: --model goes with --harness
        hint: --harness, --model and --command together replace the methods of an experiment
        "#);
    insta::assert_snapshot!(refusal(here, &["--join", "none"]), @r#"
        error: reading none/run.json: No such file or directory (os error 2)
        hint: is this the folder of a run?
        "#);
    insta::assert_snapshot!(refusal(here, &["e.toml", "--out", "x", "--max-cost", "3"]), @r#"
        error: max_cost of the run cannot be held: method `codex-openai-x` has a model without a price
        hint: [prices."openai/x"] with `input` and `output` in US dollars per million tokens
        "#);

    let alone = "[tasks]\npaths = [\"SAMPLES\"]\n[[methods]]\ntrack = \"direct\"\nmodel = \"anthropic/x\"\n";
    let folder = folder_with(alone);
    insta::assert_snapshot!(refusal(folder.path(), &["e.toml", "--out", "x"]), @"error: method `direct-anthropic-x`: its provider speaks anthropic_messages, none of which the track `direct` asks in");
    assert!(!folder.path().join("x").exists());
}

#[test]
fn the_examples_are_experiments() {
    let folder = root().join("docs/examples");
    for (name, methods) in [("vao.toml", 10), ("ablation.toml", 2), ("ablations.toml", 5)] {
        let file = ExperimentFile::load(&folder.join(name)).unwrap();
        let experiment = resolve(Some(&file), &Flags::default(), &folder).unwrap().experiment;
        assert_eq!(experiment.methods.len(), methods, "{name}");
        let (stdout, stderr, code) = say(&folder, &[name, "--print-plan"]);
        // A plan is made anywhere: what this machine lacks to run it is told, and no more.
        assert_eq!(code, Some(0), "{stderr}{stdout}");
        assert!(stderr.lines().all(|line| line.starts_with("warning: ")), "{stderr}");
    }
}

#[test]
fn a_plan_says_what_a_run_would_refuse_and_what_this_machine_lacks() {
    let folder = folder_with(
        "[tasks]\npaths = [\"SAMPLES\"]\n[[methods]]\nharness = \"codex@0.0.1\"\nmodel = \"openai/x\"\n",
    );
    let (stdout, stderr, code) = say(folder.path(), &["e.toml", "--print-plan", "--json"]);
    let plan: Value = serde_json::from_str(&stdout).unwrap();
    assert!(stderr.contains("warning: codex@0.0.1 is not installed (`proctor harness install"), "{stderr}");
    assert_eq!((plan["lacks"].as_array().unwrap().len(), code), (stderr.lines().count(), Some(0)));
    insta::assert_snapshot!(refusal(folder.path(), &["e.toml", "--print-plan", "--harness", "codex", "--model", "opnai/x"]), @r#"
        error: there is no provider `opnai`
        hint: known: script, anthropic, deepseek, gemini, litellm, moonshot, openai, openrouter, vllm, xai, zai; more with --providers FILE
        "#);
}

#[test]
fn a_run_whose_tasks_have_moved_or_whose_plan_is_torn_says_how_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let tasks = |name: &str| here.join(name);
    std::os::unix::fs::symlink(sample("flow-approval").parent().unwrap(), tasks("tasks")).unwrap();
    let start = ["--harness", "nop", "--no-render", "--out", "r", "--no-start", "--limit", "1", "--tasks"];
    let make = |more: &[&str]| {
        let made = proctor().current_dir(here).arg("run").args(start).args(more).output().unwrap();
        (String::from_utf8_lossy(&made.stderr).into_owned(), made.status.code())
    };
    assert_eq!(make(&["tasks"]), (String::new(), Some(0)));
    fs::rename(tasks("tasks"), tasks("moved")).unwrap();
    let (_, stderr, code) = say(here, &["--join", "r"]);
    assert!(code == Some(2) && stderr.contains("with --tasks FOLDER --out r; it continues"), "{stderr}");
    // Which is true.
    assert_eq!(make(&["moved"]), (String::new(), Some(0)));
    let (changed, _) = make(&["moved", "--budget", "60s"]);
    assert!(changed.contains("\n  method nop: budget was 1800 s, now 60 s\n"), "{changed}");
    let plan = fs::read(here.join("r/run.json")).unwrap();
    fs::write(here.join("r/run.json"), &plan[..plan.len() / 2]).unwrap();
    let (_, stderr, code) = say(here, &["--join", "r"]);
    assert!(code == Some(2) && stderr.contains("with --no-start and another --out, writes"), "{stderr}");
}

#[test]
fn a_run_can_be_made_without_starting_it() {
    let run = Run::over(&[&sample("flow-approval")]).args(["--harness", "nop", "--no-render"]);
    let made = run.args(["--no-start"]);
    let ended = made.go().with_code(0);
    assert!(ended.trials().is_empty() && !made.stderr().contains("begins"), "{}", made.stderr());
    let out = made.out().to_string_lossy().into_owned();
    let joined = proctor().args(["run", "--join", &out]).output().unwrap();
    assert_eq!(joined.status.code(), Some(0), "{}", String::from_utf8_lossy(&joined.stderr));
    assert_eq!(RunDir::open(&made.out()).unwrap().trials_on_disk().unwrap().len(), 1);
}

#[test]
fn a_run_is_extended_only_when_that_is_said_and_joined_by_its_plan() {
    let run = Run::over(&[&sample("flow-approval")]).args(["--harness", "nop", "--no-render"]);
    run.go().with_code(0);
    let out = run.out().to_string_lossy().into_owned();
    let record = RunDir::open(&run.out()).unwrap().record().unwrap();
    let plan: Experiment = serde_json::from_value(record.plan.clone().unwrap()).unwrap();
    assert_eq!((plan.render, plan.methods.len()), (false, 1));

    let more = run.args(["--harness", "oracle", "--attempts", "2"]);
    more.go().with_code(2);
    let refused = more.stderr().replace(&out, "[out]");
    assert!(refused.contains("method oracle") && refused.contains("--extend adds it"), "{refused}");

    // Its plan grows, and whoever joins it runs what is open.
    let extended = more.args(["--extend"]);
    let mut live = extended.start();
    live.wait_for(|run| run.stderr().contains("added: "));
    let trials = live.end().with_code(0).trials();
    assert_eq!(trials.len(), 4);
    let record = RunDir::open(&extended.out()).unwrap().record().unwrap();
    assert_eq!((record.attempts, record.methods.len(), record.extended.len()), (2, 2, 1));
    let plan: Experiment = serde_json::from_value(record.plan.unwrap()).unwrap();
    assert_eq!((plan.attempts.get(), plan.methods.len()), (2, 2));

    let planned = |arguments: &[&str]| {
        let task = sample("flow-approval").to_string_lossy().into_owned();
        let all = ["--tasks", &task, "--harness", "nop", "--attempts", "3", "--print-plan", "--json"];
        let (stdout, stderr, code) = say(root(), &[&all[..], arguments].concat());
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        serde_json::from_str::<Value>(&stdout).unwrap()
    };
    let own = planned(&["--out", &out]);
    assert_eq!(own["trials"][0], serde_json::json!({"method": "nop", "planned": 3, "done": 2}));
    assert_eq!(
        (&own["estimate"]["methods"][0]["trials"], &own["estimate"]["methods"][0]["pilot_trials"]),
        (&1.into(), &2.into())
    );
    let other = planned(&["--pilot", &out]);
    assert_eq!(other["estimate"]["methods"][0]["trials"], 3);

    fs::remove_dir_all(trials[0].path("")).unwrap();
    let joined = proctor().args(["run", "--join", &out, "-j", "2", "--json"]).output().unwrap();
    assert_eq!(joined.status.code(), Some(0), "{}", String::from_utf8_lossy(&joined.stderr));
    assert_eq!(RunDir::open(&extended.out()).unwrap().trials_on_disk().unwrap().len(), 4);
    let refused = proctor().args(["run", "--join", &out, "--budget", "5s"]).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("--join takes everything from the run, --budget too"), "{refused}");
}

#[test]
fn a_method_starts_from_what_another_left() {
    let folder = root().join("docs/examples");
    let run = Run::of_experiment(&folder.join("ablation.toml"));
    let trials = run.args(["--no-render", "-j", "2"]).go().with_code(0).trials();
    assert_eq!(trials.iter().map(Trial::ending).collect::<Vec<_>>(), ["completed"; 4]);
    let edited = trials.iter().filter(|trial| trial.outcome.trial.method().as_str() == "a2");
    for trial in edited {
        let text = fs::read_to_string(trial.path("artifacts/artifact.html")).unwrap();
        assert!(text.ends_with("<!-- edited -->\n") && text.len() > 100, "{text}");
        assert_eq!(trial.outcome.consumed.as_ref().unwrap().name, "source.html");
    }
}
