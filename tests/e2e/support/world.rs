//! Looks at what is outside: the engine's containers, this machine's processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::run::PATIENCE;

/// Runs the engine's own command line.
pub(crate) fn docker(arguments: &[&str]) -> String {
    docker_with_input(arguments, "")
}

/// The same, with something on stdin.
pub(crate) fn docker_with_input(arguments: &[&str], input: &str) -> String {
    use std::io::Write as _;
    let child = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the engine's command line `docker` is needed");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads its input");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Names of the containers of a run, running or not: of its agents, and of its renderings.
pub(crate) fn containers_of(out: &Path) -> Vec<String> {
    let labelled = |value: &str| {
        let filter = format!("label=proctor.run={value}");
        docker(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])
    };
    let name = out.file_name().expect("it has a name");
    let (agents, renderings) = (labelled(&out.to_string_lossy()), labelled(&name.to_string_lossy()));
    agents.lines().chain(renderings.lines()).map(str::to_owned).collect()
}

/// The processes that own the containers of a run's agents, as labels name them.
pub(crate) fn owners_of_containers_of(out: &Path) -> Vec<String> {
    let filter = format!("label=proctor.run={}", out.display());
    let format = r#"{{.Label "proctor.owner"}}"#;
    docker(&["ps", "--all", "--filter", &filter, "--format", format]).lines().map(str::to_owned).collect()
}

/// The toolchain image.
pub(crate) fn image() -> String {
    let output = super::proctor().args(["image", "status", "--json"]).output().expect("the program runs");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let id = status.pointer("/image/id");
    id.and_then(serde_json::Value::as_str).unwrap_or_else(|| panic!("no image: {status}")).to_owned()
}

/// Ids of the processes with `marker` in their command line, on the whole machine.
pub(crate) fn processes_with(marker: &str) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        // One that ends meanwhile is not there any more, which is what is asked.
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        *id != own && line.windows(marker.len()).any(|window| window == marker.as_bytes())
    })
    .collect()
}

/// Waits until no process has `marker` in its command line: nobody tells the room of a dead runner to end, it notices.
pub(crate) fn no_process_with(marker: &str) {
    let start = Instant::now();
    while !processes_with(marker).is_empty() {
        assert!(start.elapsed() < PATIENCE, "processes outlive their runner");
        std::thread::sleep(Duration::from_millis(20));
    }
}
