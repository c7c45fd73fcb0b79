//! The deadline holds whatever the agent does: it ignores TERM, detaches a child, and rewrites the artifact every 20 ms
//! with the time inside. What is collected was written before the room was frozen, and nothing is written after it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use proctor_traces::FreezeKind;

use crate::support::{Run, Trial, unique, world};

/// Two stubborn writers: the agent by renaming, its detached grandchild in place and to a file of its own. `MORE` is
/// what else the agent does before it settles down.
const AGENT: &str = r#"
import os, signal, time
MARKER = "@MARKER@"
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass

def text():
    return b"digraph { t%d }" % time.time_ns()

def detached():
    if os.fork(): return
    os.setsid()
    if os.fork(): os._exit(0)
    while True:
        for name in ("artifact.dot", "child.dot"):
            try:
                file = os.open(name, os.O_WRONLY | os.O_CREAT)
                os.pwrite(file, text(), 0)
                os.close(file)
            except OSError: pass
        time.sleep(0.02)

def rewrite():
    while True:
        try:
            draft = "draft%d" % os.getpid()
            with open(draft, "wb") as file: file.write(text())
            os.replace(draft, "artifact.dot")
        except OSError: pass
        time.sleep(0.02)

detached()
# What comes next may leave no room for it.
while not os.path.exists("child.dot"): time.sleep(0.001)
@MORE@
rewrite()
"#;

/// Children that take all memory there is, one after another, each killed for it.
const EATERS: &str = r#"
if not os.fork():
    # A process that ignores this is not told how its children end.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        if not os.fork():
            hoard = []
            while True: hoard.append(bytearray(b"x" * (1 << 20)))
        _, status = os.wait()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9: open("at-the-limit", "a").close()
"#;

/// As many processes as the room may have, all of them writers.
const BOMB: &str = r#"
for _ in range(400):
    try:
        if not os.fork(): break
    except OSError: open("at-the-limit", "a").close()
"#;

#[test]
fn a_stubborn_agent_is_frozen_in_time() {
    let trial = stopped_in_time("", ["--memory", "512m"]);
    assert_eq!(trial.outcome.freeze, Some(FreezeKind::Paused));
}

// The guest may be too busy to tell what the room has used: that the limit was met is told by the agent itself.

#[test]
fn at_the_memory_limit_too() {
    let trial = stopped_in_time(EATERS, ["--memory", "96m"]);
    assert!(trial.path("artifacts/workspace/at-the-limit").exists());
}

#[test]
fn under_a_fork_bomb_too() {
    let trial = stopped_in_time(BOMB, ["--pids", "64"]);
    assert!(trial.path("artifacts/workspace/at-the-limit").exists());
}

fn stopped_in_time<const N: usize>(more: &str, limits: [&str; N]) -> Trial {
    let marker = unique("stubborn-");
    let agent = AGENT.replace("@MARKER@", &marker).replace("@MORE@", more);
    let run = Run::over_one().python(&agent).args(["--budget", "3s"]).args(limits);
    let mut live = run.start();
    let workspace = live.workspace_with("child.dot");
    let ended = AtomicBool::new(false);
    let (seen, trial) = std::thread::scope(|scope| {
        let observer = scope.spawn(|| observe(&workspace, &ended));
        let done = live.end().with_code(0);
        ended.store(true, Ordering::Relaxed);
        (observer.join().unwrap(), done.trial())
    });
    assert_eq!(trial.ending(), "timed_out");
    assert!(trial.outcome.overrun_ms.is_some_and(|ms| ms >= 0), "{:?}", trial.outcome.overrun_ms);
    let frozen = trial.outcome.frozen_at.unwrap().as_millis();

    // What is inside the artifact was written before.
    let artifact = trial.artifact();
    assert!(written_at(&artifact) <= frozen, "{} > {frozen}", written_at(&artifact));
    // The detached child was alive to the end, and is in what was kept as well.
    let child = trial.bytes("artifacts/workspace/child.dot");
    assert!(written_at(&child) <= frozen, "{} > {frozen}", written_at(&child));
    // The deadline is the budget after the start, by the wall clock as well; three readings of it, each cut to 1 ms.
    let started = trial.outcome.started_at.unwrap().as_millis();
    let overrun = frozen - started - 3000;
    assert!(
        trial.outcome.overrun_ms.unwrap().abs_diff(overrun) <= 3,
        "{:?}, not {overrun}",
        trial.outcome.overrun_ms
    );
    assert!(
        written_at(&child) > started + 1000,
        "the child wrote until the end: {}",
        written_at(&child) - started
    );

    // Somebody who watched the workspace from outside saw it standing still from then on.
    let after: Vec<&Sight> = seen.iter().filter(|sight| sight.at > frozen).collect();
    // Who reads a failure wants to know how the room was stopped.
    let how = trial.notices().join("; ");
    let Some(first) = after.first() else { panic!("nobody looked between the freeze and the end") };
    assert_eq!(first.files.get("artifact.dot").map(|(_, bytes)| bytes), Some(&artifact), "{how}");
    for sight in &after {
        // Files may be gone already, but none is another than at first.
        for (name, (changed, bytes)) in &sight.files {
            assert!(*changed <= frozen, "{name} changed at {changed}, frozen at {frozen}: {how}");
            assert_eq!(first.files.get(name).map(|(_, bytes)| bytes), Some(bytes), "{name}: {how}");
        }
    }
    assert_eq!(world::processes_with(&marker), Vec::<u32>::new(), "processes are left");
    trial
}

/// The time that a writer put into its file, in ms. Every file is whole: writes of the same length, or renamed.
fn written_at(bytes: &[u8]) -> i64 {
    let text = std::str::from_utf8(bytes).unwrap();
    let nanos = text.strip_prefix("digraph { t").and_then(|rest| rest.strip_suffix(" }"));
    nanos.unwrap_or_else(|| panic!("torn: {text}")).parse::<i64>().unwrap() / 1_000_000
}

/// The workspace at one moment.
struct Sight {
    /// When looking began, in ms.
    at: i64,
    /// When each file was changed, in ms, and what is in it.
    files: BTreeMap<String, (i64, Vec<u8>)>,
}

/// Looks at the workspace all the time, until it is gone.
fn observe(workspace: &Path, ended: &AtomicBool) -> Vec<Sight> {
    let mut seen = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        // Whatever vanishes while it is looked at is removed with the room: that sight is none.
        let Some(files) = look(workspace) else { continue };
        seen.push(Sight { at: i64::try_from(at).unwrap(), files });
    }
    seen
}

fn look(workspace: &Path) -> Option<BTreeMap<String, (i64, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    let paths: Vec<PathBuf> =
        fs::read_dir(workspace).ok()?.map(|entry| Some(entry.ok()?.path())).collect::<Option<_>>()?;
    for path in paths {
        let changed = path.symlink_metadata().ok()?;
        let changed = changed.ctime() * 1000 + changed.ctime_nsec() / 1_000_000;
        let name = path.file_name()?.to_string_lossy().into_owned();
        files.insert(name, (changed, fs::read(&path).ok()?));
    }
    // The removal of the room goes on file by file.
    ["TASK.md", "artifact.dot", "source.png"].iter().all(|name| files.contains_key(*name)).then_some(files)
}
