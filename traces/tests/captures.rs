//! The captures of real runs that lie beside the repository give exactly the calls that a careful reading finds: stream
//! and session files joined. The captures are no part of the repository; where there are none this says so, and the true
//! tests are `generations` and `joined`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::path::{Path, PathBuf};

use pretty_assertions::assert_eq;
use proctor_traces::{Arrivals, Call, Nesting, SourceFile, Trace, Usage};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/agent-sessions")
}

fn source(path: &Path, arrivals: Option<Arrivals>) -> SourceFile {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    SourceFile { name, bytes: std::fs::read(path).unwrap(), format: None, arrivals }
}

fn sessions(dir: &Path, found: &mut Vec<SourceFile>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sessions(&path, found);
        } else {
            found.push(source(&path, None));
        }
    }
}

fn join(run: &Path) -> Trace {
    let times = std::fs::read(run.join("stdout.times")).ok().map(|it| Arrivals::parse(&it));
    let mut files = vec![source(&run.join("stdout.jsonl"), times)];
    if run.join("session").is_dir() {
        sessions(&run.join("session"), &mut files);
    }
    Trace::of_one_session(&files, None).unwrap_or_else(|error| panic!("{}: {error}", run.display()))
}

/// A call as the table below writes it.
fn show(call: &Call) -> String {
    let key = call.command().or_else(|| call.path().map(str::to_owned)).unwrap_or_else(|| "…".to_owned());
    let exit = call.exit_code.map(|code| format!(" {code}")).unwrap_or_default();
    let inside = match call.nesting {
        Nesting::Top => String::new(),
        Nesting::Program => format!(" in {}", call.parent.as_ref().unwrap().0),
        Nesting::SubAgent => " by a sub-agent".to_owned(),
    };
    let images = if call.images.is_empty() { String::new() } else { format!(" +{}", call.images.len()) };
    let name = call.name.as_str();
    let status = serde_json::to_value(call.status).unwrap();
    format!("{name} `{key}` {}{exit}{images}{inside}", status.as_str().unwrap())
}

const PAGE: &str = "printf '<!doctype html><title>t</title><h1>Hi</h1>' > artifact.html && ls -la";

/// Every capture, by the calls that a careful reading of its files finds.
#[expect(clippy::too_many_lines, reason = "a table")]
fn expected(run: &str) -> (Vec<String>, Option<(u64, u64)>) {
    let shell = |tool: &str, command: &str, end: &str| format!("{tool} `{command}` {end}");
    let first = |tool: &str| shell(tool, "echo one > a.txt; echo first-output", "ok 0");
    let long = |tool: &str, seconds: &str, end: &str| {
        shell(tool, &format!("echo started; sleep {seconds}; echo finished"), end)
    };
    let tokens = |requests: u64, claude: bool| {
        // The scripted server counts 1000, 1100, 1200 … prompt tokens, 900 of them cached, which Anthropic counts apart.
        let input = (0..requests).map(|n| 1000 + 100 * n + if claude { 900 } else { 0 }).sum();
        Some((input, 50 * requests))
    };
    let (codex, claude) = ("exec_command", "Bash");
    match run {
        "codex/docker-ok" => (
            vec![
                shell(codex, PAGE, "ok 0"),
                shell("view_image", "/work/ref.png", "ok +1"),
                shell(codex, "echo oops >&2; exit 3", "failed 3"),
                shell(codex, "sleep 1; echo second", "ok 0"),
            ],
            tokens(4, false),
        ),
        "codex/code-mode" => (
            vec![
                shell("exec", "…", "ok"),
                shell(codex, "echo hello > index.html; ls", "ok 0 in call_00000000"),
                shell("exec", "…", "ok +1"),
                shell("view_image", "/work/ref.png", "ok +1 in call_00010000"),
                shell("exec", "…", "ok"),
                shell(codex, "sleep 2; echo slept", "ok 0 in call_00020000"),
            ],
            tokens(4, false),
        ),
        "codex/parallel-calls" => (
            vec![shell(codex, "sleep 2; echo A", "ok 0"), shell(codex, "sleep 2; echo B", "ok 0")],
            tokens(2, false),
        ),
        // It outlived its 10 s, and Codex killed it when the turn ended.
        "codex/long-command-abandoned" => {
            (vec![shell(codex, "sleep 14; echo end", "unfinished")], tokens(2, false))
        }
        "codex/sigint-during-tool" => {
            (vec![first(codex), long(codex, "47.315", "unfinished")], tokens(2, false))
        }
        "codex/sigkill-during-tool" => {
            (vec![first(codex), long(codex, "47.776", "unfinished")], tokens(2, false))
        }
        "codex/docker-kill" | "codex/docker-kill-TERM-init" => {
            (vec![first(codex), long(codex, "47.123", "unfinished")], tokens(2, false))
        }
        "codex/401" => (vec![], None),
        "codex/429-once" => (vec![shell(codex, PAGE, "ok 0")], tokens(1, false)),
        "codex/truncate-once" => (
            vec![shell(codex, PAGE, "ok 0"), shell("view_image", "/work/ref.png", "ok +1")],
            tokens(3, false),
        ),
        "claude-code/docker-ok" => (
            vec![
                shell(claude, PAGE, "ok 0"),
                shell("Read", "/work/ref.png", "ok +1"),
                shell(claude, "echo oops >&2; exit 3", "failed 3"),
                shell(claude, "sleep 1; echo second", "ok 0"),
            ],
            tokens(4, true),
        ),
        "claude-code/parallel-calls" => (
            vec![shell(claude, "sleep 2; echo A", "ok 0"), shell(claude, "sleep 2; echo B", "ok 0")],
            tokens(2, true),
        ),
        // It went to the background after 3 s and came to its end there. The third request counts 1100 again.
        "claude-code/bash-timeout-backgrounded-two-results" => {
            (vec![shell(claude, "echo a; sleep 20; echo b", "ok 0")], Some((5900, 150)))
        }
        // Claude Code calls it refused, but it had been at work for four seconds.
        "claude-code/sigint-during-tool" => {
            (vec![first(claude), long(claude, "47.545", "unfinished")], tokens(2, true))
        }
        "claude-code/docker-kill" => {
            (vec![first(claude), long(claude, "47.123", "unfinished")], tokens(2, true))
        }
        // On SIGTERM it still tells that its command was killed, on stdout only.
        "claude-code/docker-kill-TERM-init" => {
            (vec![first(claude), long(claude, "47.123", "failed 137")], tokens(2, true))
        }
        "claude-code/partial-messages" => (vec![shell(claude, "echo hi", "ok 0")], tokens(2, true)),
        "claude-code/401-max-retries-1" => (vec![shell(claude, PAGE, "ok 0")], tokens(1, true)),
        "claude-code/429-once" => {
            (vec![shell(claude, PAGE, "ok 0"), shell("Read", "/work/ref.png", "ok +1")], tokens(3, true))
        }
        "opencode/docker-ok" => {
            (vec![shell("bash", PAGE, "ok 0"), shell("read", "/work/ref.png", "ok +1")], Some((3000, 150)))
        }
        // OpenCode tells of a call when it is over.
        "opencode/sigkill-during-tool" => (vec![], None),
        "gemini/docker-ok" => (
            vec![shell("run_shell_command", PAGE, "ok"), shell("read_file", "/work/ref.png", "ok +1")],
            Some((3000, 150)),
        ),
        "gemini/401" => (vec![], Some((0, 0))),
        "qwen/docker-ok" => (
            vec![shell("run_shell_command", PAGE, "ok 0"), shell("read_file", "/work/ref.png", "ok")],
            Some((3000, 150)),
        ),
        "pi/docker-ok" => {
            (vec![shell("bash", PAGE, "ok 0"), shell("read", "/work/ref.png", "ok +1")], Some((3000, 150)))
        }
        "pi/500-forever" => (vec![shell("bash", PAGE, "ok 0")], Some((1000, 50))),
        other => panic!("{other} is not in the table: read it, and write down its calls"),
    }
}

#[test]
fn every_capture_has_the_calls_that_a_careful_reading_finds() {
    let root = root();
    if !root.is_dir() {
        println!("NOT RUN: there are no captures beside this repository");
        return;
    }
    let mut runs = 0;
    for harness in std::fs::read_dir(&root).unwrap().map(|it| it.unwrap().path()) {
        for run in std::fs::read_dir(&harness).unwrap().map(|it| it.unwrap().path()) {
            let name = run.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let trace = join(&run);
            let calls: Vec<String> = trace.calls.iter().map(show).collect();
            let tokens = trace
                .usage
                .agent()
                .map(|Usage { input_tokens, output_tokens, .. }| (input_tokens, output_tokens));
            assert_eq!((&name, calls, tokens), (&name, expected(&name).0, expected(&name).1));
            for report in &trace.sources {
                assert_eq!(
                    (report.counts.unknown_total(), report.counts.malformed, &report.error),
                    (0, 0, &None),
                    "{name}"
                );
            }
            check_times(&name, &trace);
            runs += 1;
        }
    }
    assert!(runs >= 25, "only {runs} captures");
}

/// Calls that ran have times, ends are not before starts, and the stream never saw less than the session.
fn check_times(name: &str, trace: &Trace) {
    for call in &trace.calls {
        let id = &call.id.0;
        assert!(call.start.is_some(), "{name}: {id} has no start");
        if let Some(end) = call.end {
            assert!(call.start.unwrap().ms <= end.ms, "{name}: {id} ends before it starts");
        }
    }
    for (index, call) in trace.calls.iter().enumerate() {
        assert!(
            trace.calls[..index].iter().all(|before| before.seq < call.seq && before.id != call.id),
            "{name}"
        );
    }
}
