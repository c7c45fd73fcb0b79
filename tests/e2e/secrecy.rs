//! Hidden stays hidden: what the solver must not know is nowhere in a living room, whatever agent sits in it.

use std::collections::BTreeMap;
use std::fs;

use proctor_tasks::Task;
use proctor_traces::Digest;

use crate::support::{Package, Run, sample, world};

const TASK: &str = "flow-approval";

/// Searches everything that the agent's user can read; what is searched for comes on stdin, so that it is not found in
/// the search itself. Prints where each needle was found.
const SEARCH: &str = r#"
import hashlib, json, os, stat, sys
given = json.loads(sys.stdin.read())
texts = {text: text.encode() for text in given["texts"]}
digests = set(given["digests"])
roots, names = given["contents"], given["names"]
found, looked = [], 0

def note(what, where): found.append([what, where])

def search(data, where):
    for text, needle in texts.items():
        if needle in data: note(text, where)

own = {os.getpid()}
for root in roots:
    for folder, folders, files in os.walk(root):
        if folder.startswith("/proc/") and folder.split("/")[2] == str(os.getpid()): folders[:] = []; continue
        for name in folders + files:
            path = os.path.join(folder, name)
            search(path.encode("utf8", "surrogateescape"), "the name " + path)
            try:
                if os.path.islink(path): search(os.readlink(path).encode(), "the link " + path)
                if not stat.S_ISREG(os.lstat(path).st_mode): continue
                with open(path, "rb") as file: data = file.read()
            except OSError: continue
            looked += 1
            search(data, path)
            if hashlib.sha256(data).hexdigest() in digests: note("digest", path)
for id in filter(str.isdigit, os.listdir("/proc")):
    if int(id) == os.getpid(): continue
    for name in ("environ", "cmdline", "mountinfo", "mounts", "cgroup", "comm", "status"):
        try: search(open("/proc/%s/%s" % (id, name), "rb").read(), "/proc/%s/%s" % (id, name))
        except OSError: pass
for folder, folders, files in os.walk("/"):
    if folder == "/": folders[:] = [f for f in folders if f not in ("proc", "sys")]
    for name in folders + files:
        for text, needle in texts.items():
            if text in names and needle in name.encode("utf8", "surrogateescape"): note(text, os.path.join(folder, name))
print(json.dumps({"found": found, "looked": looked}))
"#;

/// Prints the image's own files that hold one of the patterns on stdin. Not by the program above: they are many.
const SEARCH_IMAGE: &str = "patterns=$(cat); LC_ALL=C grep -rlaF -s --devices=skip -f - /bin /boot /lib /lib64 /sbin /srv /usr <<< \"$patterns\"";

/// Does nothing in the room until it is told to stop.
const WAIT: &str = "touch ready; while [ ! -e stop ]; do sleep 0.05; done";

#[test]
fn nothing_hidden_is_in_the_room_of_a_command() {
    search_room(
        Run::over_one().shell(WAIT),
        &["/work", "/home", "/run", "/opt", "/tmp", "/dev/shm", "/etc", "/var", "/root"],
        true,
    );
}

#[test]
fn nothing_hidden_is_in_the_room_of_a_real_cli() {
    let package = Package::of(TASK).with(
        "script.toml",
        &format!("[[step]]\ntext = \"I wait.\"\ncalls = [{{ shell = '{WAIT}', timeout = \"120s\" }}]\n"),
    );
    for cli in ["codex", "claude-code"] {
        let run = Run::over(&[package.path()]).args(["--harness", cli, "--model", "script", "--no-render"]);
        search_room(run, &["/work", "/home", "/run", "/tmp", "/dev/shm"], false);
    }
}

fn search_room(run: Run, contents: &[&str], image_too: bool) {
    let run = run.args(["--budget", "300s"]);
    let task = Task::load(&sample(TASK)).unwrap();
    let needles = needles(&task);
    let source = fs::read(sample(TASK).join("source.png")).unwrap();

    let mut live = run.start();
    let work = live.workspace_with("ready");
    let containers = world::containers_of(&run.out());
    let [container] = containers.as_slice() else { panic!("{containers:?}") };
    // As the room's own user: what it can see, the agent can.
    let user = world::docker(&["inspect", "--format", "{{.Config.User}}", container]);
    let look = |texts: &[String], names: &[String], digests: &[String]| -> Vec<(String, String)> {
        let input =
            serde_json::json!({ "texts": texts, "names": names, "digests": digests, "contents": contents });
        let exec = ["exec", "--interactive", "--user", &user, container, "python3", "-c", SEARCH];
        let answer = world::docker_with_input(&exec, &input.to_string());
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert!(answer["looked"].as_u64() > Some(2), "{answer}");
        serde_json::from_value(answer["found"].clone()).unwrap()
    };

    // What is there is found: the search works.
    let control = look(
        &["Finance director signs".to_owned(), "ready".to_owned()],
        &["TASK.md".to_owned()],
        &[Digest::of(&source).hex()],
    );
    for (what, place) in [
        ("Finance director signs", "/work/TASK.md"),
        ("ready", "the name /work/ready"),
        ("digest", "/work/source.png"),
    ] {
        assert!(control.contains(&(what.to_owned(), place.to_owned())), "{what} in {place}: {control:?}");
    }

    let found = look(&needles.texts, &needles.names, &needles.digests);
    assert!(found.is_empty(), "{found:?}");
    if image_too {
        let patterns = needles.texts.join("\n");
        let exec = [
            "exec",
            "--interactive",
            "--user",
            &user,
            container,
            "bash",
            "-c",
            &format!("{SEARCH_IMAGE}; true"),
        ];
        assert_eq!(world::docker_with_input(&exec, &patterns), "");
        // What the image does hold is found.
        assert!(world::docker_with_input(&exec, "rm -rf \"$TMPDIR\"\nGNU coreutils").contains("/usr/"));
    }
    fs::write(work.join("stop"), "").unwrap();
    let trial = live.end().with_code(0).trial();

    // Nor was any of it told to the model.
    if trial.outcome.exchanges > 0 {
        let blobs: BTreeMap<_, _> =
            trial.exchanges().into_iter().map(|it| (it.id, it.request.hex())).collect();
        for blob in blobs.values() {
            let request = String::from_utf8_lossy(&trial.bytes(&format!("model/blobs/{blob}"))).into_owned();
            for text in &needles.texts {
                assert!(!request.contains(text.as_str()), "{text} was told to the model");
            }
        }
    }
}

struct Needles {
    /// Nowhere in contents, names, environments, arguments and mounts.
    texts: Vec<String>,
    /// Nowhere in a name, the image's files included.
    names: Vec<String>,
    /// Of no file.
    digests: Vec<String>,
}

fn needles(task: &Task) -> Needles {
    let about = &task.metadata;
    let names = [
        &task.id().to_string(),
        &about.subtype,
        &about.source_artifact_id,
        &about.source_batch,
        &about.canary,
    ];
    let names: Vec<String> = names.into_iter().cloned().collect();
    let mut texts = names.clone();
    texts.push("target.png".to_owned());
    texts.push(about.operation.clone());
    let annotations = &task.hidden.annotations;
    texts.extend(annotations.scoring_points.iter().map(|point| point.description.clone()));
    texts.extend(annotations.expected_delta.iter().cloned());
    texts.extend(annotations.stable_invariants.iter().cloned());
    let programs = [&task.hidden.source_program, &task.hidden.target_program];
    let mut digests = Vec::new();
    for path in programs {
        let text = fs::read_to_string(path).unwrap();
        texts.extend(text.lines().map(str::trim).filter(|line| line.len() > 30).map(str::to_owned));
        digests.push(Digest::of(text.as_bytes()).hex());
    }
    for entry in walkdir::WalkDir::new(sample(TASK).join("hidden")).into_iter().flatten() {
        if entry.file_type().is_file() {
            digests.push(Digest::of(&fs::read(entry.path()).unwrap()).hex());
        }
    }
    assert!(texts.len() > 20, "{texts:?}");
    Needles { texts, names, digests }
}
