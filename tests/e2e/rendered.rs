//! A whole run rendered again, with artifacts among the others that mean harm.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proctor_render::RenderRecord;
use proctor_traces::Digest;
use serde_json::Value;

use crate::support::{Package, Run, proctor};

/// A sample of each mode, and two artifacts of that mode with what they come to.
const SAMPLES: [(&str, [(&str, &str); 2]); 5] = [
    (
        "webpage-cta",
        [
            ("<!doctype html><script>alert(1); for (;;) {}</script>", "timeout"),
            ("<!doctype html><body style='background: navy'>", "blank"),
        ],
    ),
    (
        "flow-approval",
        [("digraph { a -> ", "artifact_error"), ("digraph { node [image=\"/etc/passwd\"] }", "blank")],
    ),
    (
        "chart-visitors",
        [
            ("import os\nwhile True: os.fork()", "pids_limit"),
            ("import matplotlib.pyplot as plt\nplt.close('all')", "no_output"),
        ],
    ),
    (
        "math-optimum",
        [
            ("\\documentclass{standalone}\\begin{document}\\def\\x{\\relax\\x}\\x\\end{document}", "timeout"),
            (
                "\\documentclass{standalone}\\usepackage{no-such-package-xyz}\\begin{document}x\\end{document}",
                "artifact_error",
            ),
        ],
    ),
    (
        "circuit-divider",
        [
            ("\\documentclass{standalone}\\begin{document}\\input{|\"id\"}\\end{document}", "artifact_error"),
            ("no document at all", "artifact_error"),
        ],
    ),
];

fn again(run: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = proctor().arg("render").arg(run).args(more).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn artifacts_that_mean_harm_are_told_apart_and_harm_no_other() {
    let packages = SAMPLES.map(|(id, _)| {
        let package = Package::of(id);
        let settings = fs::read_to_string(package.path().join("task.toml")).unwrap();
        package.with("task.toml", &format!("{settings}\n[render]\ntimeout_seconds = 6\n"))
    });
    let paths = packages.each_ref().map(Package::path);
    let run = Run::over(&paths).args(["--harness", "oracle", "--no-render", "--attempts", "5", "-j", "2"]);
    let trials = run.go().with_code(0).trials();
    assert_eq!(trials.len(), 25);
    let mut expected = BTreeMap::new();
    for trial in &trials {
        let id = &trial.outcome.trial;
        let hostile = SAMPLES.iter().find(|(task, _)| *task == id.task()).unwrap().1;
        let attempt: usize = id.attempt().to_string().parse().unwrap();
        let status = if let 2 | 4 = attempt {
            let (artifact, status) = hostile[attempt / 2 - 1];
            replace(&trial.path(""), artifact);
            status
        } else {
            "rendered"
        };
        expected.insert(id.to_string(), status);
    }

    let (code, printed) = again(&run.out(), &["-j", "3", "--json"]);
    assert_eq!(code, Some(0), "{printed}");
    let mut found = BTreeMap::new();
    for line in printed.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(line["state"], "now", "{line}");
        found.insert(line["trial"].as_str().unwrap().to_owned(), line["status"].as_str().unwrap().to_owned());
    }
    let expected: BTreeMap<String, String> =
        expected.into_iter().map(|(id, status)| (id, status.to_owned())).collect();
    assert_eq!(found, expected);
    for trial in &trials {
        let name = trial.outcome.trial.to_string();
        let record: RenderRecord = serde_json::from_slice(&trial.bytes("render/render.json")).unwrap();
        assert_eq!(record.status.is_rendered(), trial.path("render/output.png").is_file(), "{name}");
        if record.status.is_rendered() {
            let package = packages.iter().find(|it| it.path().ends_with(trial.outcome.trial.task())).unwrap();
            let target = fs::read(package.path().join("hidden/target.png")).unwrap();
            assert!(trial.bytes("render/output.png") == target, "{name}: the target, byte for byte");
        }
    }

    // What is there already is left alone, and what a trial without an outcome is costs nobody else anything.
    fs::write(trials[0].path("outcome.json"), "{ torn").unwrap();
    fs::remove_file(trials[2].path("render/output.png")).unwrap();
    let (code, printed) = again(&run.out(), &[]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("1 artifact now: 1 rendered; 23 as before; 1 with errors."), "{printed}");
    assert!(printed.contains(&format!("{}: error: ", trials[0].outcome.trial)), "{printed}");
}

/// Puts another artifact where the trial's was, as if the agent had left it.
fn replace(folder: &Path, artifact: &str) {
    let path = folder.join("outcome.json");
    let mut outcome: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let it = &mut outcome["artifacts"][0];
    it["digest"] = Digest::of(artifact.as_bytes()).to_string().into();
    it["bytes"] = artifact.len().into();
    fs::write(folder.join("artifacts").join(it["name"].as_str().unwrap()), artifact).unwrap();
    fs::write(path, outcome.to_string()).unwrap();
}
