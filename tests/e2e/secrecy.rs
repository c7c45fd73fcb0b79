//! Hidden stays hidden (DESIGN §3.5): a live room is searched from its inside for all that a solver must not see.

use std::fs;

use proctor_tasks::Task;

use crate::support::{Run, sample, world};

/// Works until the test has looked around.
const WAITING: &str =
    "echo 'digraph { a }' > artifact.dot; touch ready; until [ -e stop ]; do sleep 0.1; done";

/// Prints the files of the room that hold one of the patterns on stdin. The patterns are in no command line, or the
/// search would find itself.
const SEARCH: &str = r#"
patterns=$(cat)
look() { LC_ALL=C grep -laF -s --devices=skip -f - "$@" <<< "$patterns"; }
look -r /bin /boot /etc /home /lib /lib64 /opt /root /run /sbin /srv /tmp /usr /var /work
for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/mountinfo; do look "$file"; done
true
"#;

#[test]
fn what_is_hidden_is_nowhere_in_a_live_room() {
    let task = Task::load(&sample("flow-approval")).unwrap();
    let run = Run::over_one().shell(WAITING).args(["--budget", "600s"]);
    let mut live = run.start();
    let workspace = live.workspace_with("ready");

    let found = search(&run, &hidden(&task));
    // What the solver is told is found, so the search does search.
    let told = search(&run, &[task.solver.instruction.trim().lines().next().unwrap().to_owned()]);
    fs::write(workspace.join("stop"), "").unwrap();
    live.end().with_code(0);
    assert_eq!(found, Vec::<String>::new());
    assert!(told.iter().any(|file| file == "/work/TASK.md"), "{told:?}");
}

/// Texts that give the task, its place or its answer away.
fn hidden(task: &Task) -> Vec<String> {
    let metadata = &task.metadata;
    let mut texts = vec![
        metadata.id.to_string(),
        metadata.source_artifact_id.clone(),
        metadata.canary.clone(),
        metadata.operation.clone(),
    ];
    let annotations = &task.hidden.annotations;
    texts.extend(annotations.scoring_points.iter().map(|point| point.description.clone()));
    texts.extend(annotations.stable_invariants.iter().cloned());
    // Lines that are in the target program only.
    let read = |path: &std::path::Path| fs::read_to_string(path).unwrap();
    let source = read(&task.hidden.source_program);
    let target = read(&task.hidden.target_program);
    texts.extend(
        target
            .lines()
            .filter(|line| line.trim().len() > 12 && !source.contains(line.trim()))
            .map(|line| line.trim().to_owned()),
    );
    let texts: Vec<String> =
        texts.into_iter().flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(texts.len() > 8 && texts.iter().all(|text| text.len() > 3), "{texts:?}");
    texts
}

fn search(run: &Run, patterns: &[String]) -> Vec<String> {
    let containers = world::containers_of(&run.out());
    let [container] = containers.as_slice() else { panic!("one room is open: {containers:?}") };
    let found =
        world::docker_with_input(&["exec", "-i", container, "bash", "-c", SEARCH], &patterns.join("\n"));
    found.lines().map(str::to_owned).collect()
}
