//! Bad input and missing equipment: one clear message with a hint on stderr, the documented exit status, and nothing
//! half-made.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Package, proctor, sample};

/// Runs the program over a results directory that must not come to be, and returns all that it says. Paths of this
/// machine are replaced.
struct Attempt {
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
    /// Where the program is started. Packages are named from there: messages are broken into lines by their length.
    here: PathBuf,
}

impl Attempt {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("e2e-").tempdir().unwrap();
        Self { folder, environment: Vec::new(), here: PathBuf::from("/") }
    }

    fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    fn inside(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.here);
        self
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// `proctor run` over the sample task with these arguments.
    fn run(&self, arguments: &[&str]) -> String {
        let task = sample("flow-approval").to_string_lossy().into_owned();
        self.run_over(&task, arguments)
    }

    fn run_over(&self, tasks: &str, arguments: &[&str]) -> String {
        let out = self.out().to_string_lossy().into_owned();
        let all = [&["run", "--tasks", tasks, "--out", &out, "--no-render"], arguments].concat();
        let answer = self.say(&all);
        assert!(!self.out().exists(), "something was made all the same");
        answer
    }

    fn say(&self, arguments: &[&str]) -> String {
        let mut command = proctor();
        for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
            command.env_remove(key);
        }
        let output = command
            .args(arguments)
            .current_dir(&self.here)
            .envs(self.environment.iter().cloned())
            .output()
            .unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let code = output.status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let text = format!("{stdout}{stderr}exit status {code}");
        let text = text.replace(&*self.folder.path().to_string_lossy(), "[folder]");
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }
}

const ORACLE: [&str; 2] = ["--harness", "oracle"];

#[test]
fn an_unknown_task() {
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "oracle", "--task", "no-such"]), @r#"
        error: there is no task `no-such`
        hint: there is: flow-approval
        exit status 2
        "#);
}

#[test]
fn no_task_at_all() {
    let empty = tempfile::tempdir().unwrap();
    let attempt = Attempt::new().inside(empty.path());
    insta::assert_snapshot!(attempt.run_over(".", &ORACLE), @r#"
        proctor::tasks::none

          × .: no task package here
          help: a package is a folder with a `task.toml`; name such a folder, or one
                that holds some

        exit status 2
        "#);
    insta::assert_snapshot!(attempt.run_over("/no/such/folder", &ORACLE), @r#"
        proctor::tasks::io

          × /no/such/folder: cannot be read
          ╰─▶ No such file or directory (os error 2)

        exit status 2
        "#);
}

#[test]
fn a_package_that_is_not_toml() {
    let broken = fs::read_to_string(sample("flow-approval").join("task.toml"))
        .unwrap()
        .replace("subtype = \"", "subtype = ");
    let package = Package::of("flow-approval").with("task.toml", &broken);
    let attempt = Attempt::new().inside(package.path().parent().unwrap());
    insta::assert_snapshot!(attempt.run_over("flow-approval", &ORACLE), @r#"
        proctor::tasks::toml

          × flow-approval/task.toml: missing opening quote, expected `"`
            ╭─[flow-approval/task.toml:11:11]
         10 │ category = "flowchart"
         11 │ subtype = approval_workflow"
            ·           ▲
            ·           ╰── here
         12 │ operation = "insert_step"
            ╰────

        exit status 2
        "#);
}

#[test]
fn a_package_with_a_wrong_word() {
    let broken = fs::read_to_string(sample("flow-approval").join("task.toml"))
        .unwrap()
        .replace("\"hard\"", "\"hart\"");
    let package = Package::of("flow-approval").with("task.toml", &broken);
    let attempt = Attempt::new().inside(package.path().parent().unwrap());
    insta::assert_snapshot!(attempt.run_over("flow-approval", &ORACLE), @r#"
        proctor::tasks::toml

          × flow-approval/task.toml: unknown variant `hart`, expected one of `easy`,
          │ `medium`, `hard`
            ╭─[flow-approval/task.toml:13:14]
         12 │ operation = "insert_step"
         13 │ difficulty = "hart"
            ·              ───┬──
            ·                 ╰── here
         14 │ source_artifact_id = "flow-source-f1218325"
            ╰────
          help: did you mean `hard`?

        exit status 2
        "#);
}

#[test]
fn a_script_that_is_wrong() {
    let package = Package::of("flow-approval")
        .with("script.toml", "[[step]]\ntext = \"x\"\ncalls = [{ shel = \"ls\" }]\n");
    let attempt = Attempt::new().inside(package.path().parent().unwrap());
    let arguments = ["--harness", "codex", "--model", "script"];
    insta::assert_snapshot!(attempt.run_over("flow-approval", &arguments), @r#"
        error: flow-approval/script.toml: line 3, column 12: unknown field `shel`, expected one of `shell`, `timeout`, `view_image`, `write`, `from`, `content`, `tool`, `arguments`
        exit status 2
        "#);
}

#[test]
fn a_results_directory_that_is_something_else() {
    let attempt = Attempt::new();
    fs::create_dir(attempt.out()).unwrap();
    fs::write(attempt.out().join("thesis.txt"), "mine").unwrap();
    let (task, out) = (sample("flow-approval"), attempt.out());
    let arguments =
        ["run", "--tasks", &task.to_string_lossy(), "--harness", "oracle", "--out", &out.to_string_lossy()];
    insta::assert_snapshot!(attempt.say(&arguments), @r#"
        error: [folder]/out is not empty and holds no run of proctor
        hint: give --out a new or empty folder
        exit status 2
        "#);
    let left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["thesis.txt"]);
}

#[test]
fn a_run_with_another_plan() {
    let attempt = Attempt::new();
    let (task, out) = (sample("flow-approval"), attempt.out());
    let (task, out) = (task.to_string_lossy(), out.to_string_lossy());
    let arguments = ["run", "--tasks", &task, "--harness", "nop", "--no-render", "--out", &out];
    assert!(attempt.say(&arguments).ends_with("exit status 0"));
    let before = fs::read(attempt.out().join("run.json")).unwrap();
    let other = [&arguments[..], &["--attempts", "2", "--budget", "60s"]].concat();
    let mut settings = insta::Settings::clone_current();
    settings.add_filter("[0-9a-f]{12}", "[digest]");
    settings.bind(|| {
        insta::assert_snapshot!(attempt.say(&other), @r#"
        error: [folder]/out holds a run with another plan:
          new attempts: was 1, now 2
          method nop: budget was 1800 s, now 60 s
        hint: a run keeps its plan: use another --out for another one, or the old arguments to continue
        exit status 2
        "#);
    });
    assert_eq!(fs::read(attempt.out().join("run.json")).unwrap(), before);
}

#[test]
fn no_engine() {
    let attempt = Attempt::new().env("DOCKER_HOST", "unix:///nonexistent/engine.sock");
    insta::assert_snapshot!(attempt.run(&ORACLE), @r#"
        error: no container engine answers at unix:///nonexistent/engine.sock: Socket not found: /nonexistent/engine.sock
        hint: start Docker (`systemctl start docker`, or as root `apt-get install docker.io && dockerd &`), or set DOCKER_HOST to the socket of an engine that runs
        exit status 3
        "#);
    insta::assert_snapshot!(Attempt::new().env("DOCKER_HOST", "tcp://127.0.0.1:1").run(&ORACLE), @r#"
        error: DOCKER_HOST=tcp://127.0.0.1:1: tcp is not supported
        hint: proctor mounts folders into containers, so it needs an engine on this machine: unix:///…
        exit status 3
        "#);
}

#[test]
fn no_key() {
    let arguments = ["--harness", "claude-code", "--model", "anthropic/claude-opus-5-5"];
    insta::assert_snapshot!(Attempt::new().run(&arguments), @r#"
        error: there is no key for provider `anthropic`
        hint: export ANTHROPIC_API_KEY=…; it stays outside every container
        exit status 3
        "#);
}

#[test]
fn no_model_and_no_such_provider() {
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "codex"]), @r#"
        error: --harness codex needs a --model
        hint: `--model script` plays the tasks' own scripts; a real one is PROVIDER/NAME
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "codex", "--model", "nobody/x"]), @r#"
        error: there is no provider `nobody`
        hint: known: script, anthropic, deepseek, gemini, litellm, moonshot, openai, openrouter, vllm, xai, zai; more with --providers FILE
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "codex", "--model", "openai"]), @r#"
        error: invalid value 'openai' for '--model <PROVIDER/NAME>': a model is PROVIDER/NAME, as in anthropic/claude-opus-5-5; or `script`; or replay:TRIAL

        For more information, try '--help'.
        exit status 2
        "#);
}

#[test]
fn an_agent_that_is_not_installed() {
    let cache = tempfile::tempdir().unwrap();
    let attempt = Attempt::new().env("PROCTOR_CACHE", cache.path().to_string_lossy());
    insta::assert_snapshot!(attempt.run(&["--harness", "codex@0.150.1", "--model", "script"]), @r#"
        error: codex@0.150.1 is not installed
        hint: `proctor harness install codex@0.150.1` installs it
        exit status 3
        "#);
}

#[test]
fn a_command_that_is_missing_or_no_command_line() {
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "command"]), @r#"
        error: --command and --harness command go together
        hint: --harness command --command 'bash /work/agent.sh'
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "command", "--command", "bash -c 'oops"]), @r#"
        error: --command: the quote ' at character 9 is never closed
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "oracle", "--command", "true"]), @r#"
        error: --command and --harness command go together
        hint: --harness command --command 'bash /work/agent.sh'
        exit status 2
        "#);
}

#[test]
fn arguments_that_make_no_sense() {
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "codecs"]), @r#"
        error: invalid value 'codecs' for '--harness <NAME[@VERSION]>': there is no harness `codecs`; there are codex, claude-code, opencode, gemini, qwen, pi, command, oracle, nop

        For more information, try '--help'.
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "nop", "--budget", "0"]), @r#"
        error: invalid value '0' for '--budget <TIME>': it must be more than nothing and at most a week

        For more information, try '--help'.
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "nop", "--memory", "1k"]), @r#"
        error: invalid value '1k' for '--memory <SIZE>': it must be at least 64m, and possible

        For more information, try '--help'.
        exit status 2
        "#);
    insta::assert_snapshot!(Attempt::new().run(&["--harness", "nop", "--harness", "nop"]), @r#"
        error: --harness nop is given twice
        exit status 2
        "#);
}

#[test]
fn show_of_what_is_no_run() {
    insta::assert_snapshot!(Attempt::new().say(&["show", "/no/such/run"]), @r#"
        error: reading /no/such/run/run.json: No such file or directory (os error 2)
        hint: is this the folder of a run?
        exit status 2
        "#);
}
