//! What an agent leaves is hostile: whatever it is, the room is removed and the trial has its outcome.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::Run;

const WRITE: &str = "echo 'digraph { a }' > artifact.dot";

/// The run's own checks see to it that no room, container or socket is left.
fn survives(script: &str) {
    let trial = Run::over_one().shell(&format!("{WRITE}\n{script}")).go().with_code(0).trial();
    assert_eq!(trial.ending(), "completed", "{script}");
    assert_eq!(trial.artifact(), b"digraph { a }\n", "{script}");
    for entry in walkdir::WalkDir::new(trial.path("artifacts")) {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert!(entry.file_type().is_dir() || entry.file_type().is_file(), "{entry:?}");
        assert_eq!(mode & 0o6022, 0, "{entry:?} has mode {mode:o}");
        let name = entry.file_name().to_str().unwrap_or_else(|| panic!("{entry:?} is no text"));
        assert!(!name.contains(char::is_control), "{entry:?}");
    }
}

#[test]
fn folders_without_permissions() {
    survives("mkdir -p a/b ~/c; touch a/b/x; chmod 000 a/b a ~/c artifact.dot");
    survives("chmod 000 /work $HOME");
}

#[test]
fn names_that_are_no_names() {
    survives(
        r#"python3 - <<'EOF'
import os
for name in (b"a\nb", b"\xff\xfe", b"n" * 255, b"-rf", b" ", b"\x1b[2J", b"\xe2\x80\xae", "é".encode() * 127):
    os.mkdir(name)
    open(name + b"/" + name, "w").write("x")
EOF"#,
    );
}

/// A tree of folders with long names, and a file at the bottom.
fn deep(levels: u32) -> String {
    format!(
        r#"python3 - <<'EOF'
import os
for _ in range({levels}):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("bottom", "w").write("x")
EOF"#
    )
}

#[test]
fn a_tree_about_as_deep_as_a_path_can_be() {
    survives(&deep(15));
}

#[test]
fn a_tree_deeper_than_any_path_is_more_than_can_be_counted() {
    let run = Run::over_one().shell(&format!("{WRITE}\n{}\nsleep 300", deep(1500)));
    let trial = run.go().with_code(0).trial();
    assert_eq!(trial.ending(), "limit_exceeded");
    assert_eq!(trial.artifact(), b"digraph { a }\n");
}

#[test]
fn links_devices_and_sparse_files() {
    survives(
        "ln -s / root; ln -s /etc/shadow shadow; ln -s loop loop; mkfifo fifo; ln artifact.dot hard; \
         truncate -s 900M sparse; touch suid; chmod 7777 suid; \
         python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"",
    );
}

#[test]
fn a_workspace_that_the_agent_has_emptied() {
    survives("rm -f TASK.md source.png; rm -rf $HOME/.[a-z]* $HOME/*");
}
