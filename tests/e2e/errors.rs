//! Bad input: one clear error with a hint, the documented exit code, and nothing half-made.

use std::fs;
use std::process::Output;

use crate::support::{Package, proctor, sample};

struct Case {
    folder: tempfile::TempDir,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("bad-").tempdir().unwrap() }
    }

    /// Runs `proctor run` over one sample with these arguments and variables.
    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let out = self.folder.path().join("out");
        let mut command = proctor();
        command.arg("run").arg("--out").arg(&out).args(arguments);
        command.envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// Fails the test unless it was refused with `code`, said `texts` on stderr, and made nothing.
    fn refused(&self, arguments: &[&str], variables: &[(&str, &str)], code: i32, texts: &[&str]) {
        let output = self.run(arguments, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        for text in texts {
            assert!(said.contains(text), "{arguments:?}: `{text}` is not in: {said}");
        }
        assert!(!said.contains("panicked"), "{said}");
        assert!(!self.folder.path().join("out").exists(), "{arguments:?}: something was made");
    }
}

fn one() -> String {
    sample("flow-approval").to_string_lossy().into_owned()
}

#[test]
fn what_was_typed_wrongly_is_said_with_a_hint() {
    let one = one();
    let tasks = ["--tasks", one.as_str()];
    let case = Case::new();
    let mut refused = |more: &[&str], code, texts: &[&str]| {
        let arguments: Vec<&str> = tasks.iter().chain(more).copied().collect();
        case.refused(&arguments, &[], code, texts);
    };
    refused(&["--task", "nonsense", "--harness", "nop"], 2, &["no task `nonsense`", "flow-approval"]);
    refused(&["--harness", "nonsense"], 2, &["nonsense", "codex"]);
    refused(&["--harness", "codex"], 2, &["needs a --model", "hint: `--model script`"]);
    refused(&["--harness", "codex", "--model", "nobody/x"], 2, &["no provider `nobody`", "anthropic"]);
    refused(&["--harness", "codex", "--model", "anthropic/x"], 2, &["does not speak", "LiteLLM"]);
    refused(&["--harness", "command"], 2, &["--command and --harness command go together"]);
    refused(&["--harness", "command", "--command", "echo 'x"], 2, &["--command"]);
    refused(&["--harness", "nop", "--budget", "0"], 2, &["--budget"]);
    refused(&["--harness", "nop", "--harness", "nop"], 2, &["given twice"]);
    case.refused(&["--tasks", "/nonexistent", "--harness", "nop"], &[], 2, &["/nonexistent"]);
}

#[test]
fn what_is_missing_is_said_with_how_to_get_it() {
    let one = one();
    let empty = tempfile::tempdir().unwrap();
    let cache = empty.path().to_string_lossy().into_owned();
    let case = Case::new();
    let nop = ["--tasks", one.as_str(), "--harness", "nop"];
    case.refused(&nop, &[("DOCKER_HOST", "unix:///nonexistent")], 3, &["/nonexistent", "hint: start Docker"]);
    case.refused(&nop, &[("DOCKER_HOST", "tcp://127.0.0.1:1")], 3, &["tcp", "hint:"]);
    let codex = ["--tasks", one.as_str(), "--harness", "codex", "--model", "script"];
    case.refused(
        &codex,
        &[("PROCTOR_CACHE", &cache)],
        3,
        &["is not installed", "proctor harness install codex@"],
    );
    let live = ["--tasks", one.as_str(), "--harness", "codex", "--model", "openai/x"];
    case.refused(&live, &[("OPENAI_API_KEY", "")], 3, &["no key", "export OPENAI_API_KEY"]);
}

#[test]
fn a_package_with_a_mistake_shows_the_place() {
    let package = Package::of("flow-approval");
    let path = package.path().join("task.toml");
    let text = fs::read_to_string(&path).unwrap().replace("instruction", "instrucion");
    fs::write(&path, text).unwrap();
    let tasks = package.path().to_string_lossy().into_owned();
    Case::new().refused(&["--tasks", &tasks, "--harness", "nop"], &[], 2, &["task.toml", "instrucion"]);
}

#[test]
fn a_folder_that_is_something_else_is_left_alone() {
    let case = Case::new();
    let out = case.folder.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("letter.txt"), "dear").unwrap();
    let output = case.run(&["--tasks", &one(), "--harness", "nop"], &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("holds no run of proctor") && said.contains("hint:"), "{said}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
}

#[test]
fn a_run_keeps_its_plan() {
    let case = Case::new();
    let one = one();
    let nop = ["--tasks", one.as_str(), "--harness", "nop", "--no-render"];
    assert!(case.run(&nop, &[]).status.success());
    let other: Vec<&str> = nop.iter().chain(&["--budget", "7s"]).copied().collect();
    let output = case.run(&other, &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("another plan") && said.contains("7000 ms") && said.contains("hint:"), "{said}");
}
