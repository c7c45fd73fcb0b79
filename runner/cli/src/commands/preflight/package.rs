//! The built-in task package, put on disk where the engine can load it like any other.

use std::path::Path;

use proctor_tasks::Task;

use crate::failure::Failure;

/// The number that the source picture shows, and nothing else that the agent gets to see.
pub(super) const NUMBER: &str = "4817";
/// What the command of the instruction prints; its own text does not hold these words.
pub(super) const PRINTED: &str = "preflight ok";
/// Lines of the long answer.
pub(super) const LINES: u32 = 120;
/// Its last line.
pub(super) const LAST_LINE: &str = "The long answer ends here";

/// The package's folder, which is its name.
const NAME: &str = "four-proofs";

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../../preflight/four-proofs/", $name)).as_slice())),*]
    };
}

/// Every file of the package.
const FILES: [(&str, &[u8]); 9] = embedded![
    "task.toml",
    "source.png",
    "script.toml",
    "script/artifact.dot",
    "hidden/annotations.toml",
    "hidden/pictures.toml",
    "hidden/source.dot",
    "hidden/target.dot",
    "hidden/target.png",
];

/// Writes the package below `folder` and loads it.
pub(super) fn unpack(folder: &Path) -> Result<Task, Failure> {
    let package = folder.join(NAME);
    for (name, bytes) in FILES {
        let path = package.join(name);
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        written
            .and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| Failure::internal(format!("writing {}: {error}", path.display())))?;
    }
    Ok(Task::load(&package)?)
}

#[cfg(test)]
mod tests {
    use proctor_gateway::{Call, Script};

    use super::*;

    #[test]
    fn the_package_is_whole_and_nothing_is_wrong_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let task = unpack(folder.path()).unwrap();
        let findings = proctor_tasks::check(&task);
        assert!(findings.is_empty(), "{findings:?}");
        let instruction = &task.solver.instruction;
        assert!(!instruction.contains(NUMBER), "only the picture may tell");
        assert!(!instruction.contains(PRINTED), "only the command may print it");
        assert!(instruction.contains(LAST_LINE) && instruction.contains(&format!("`{LINES}.`")));
    }

    #[test]
    fn its_script_does_what_the_instruction_asks_for() {
        let folder = tempfile::tempdir().unwrap();
        let task = unpack(folder.path()).unwrap();
        let script = Script::load(&task.script().unwrap()).unwrap();
        let [command, look, write, last] = script.steps() else { panic!("{} steps", script.steps().len()) };
        assert!(
            matches!(&command.calls[..], [Call::Shell { command, .. }] if command.contains("preflight %s"))
        );
        assert!(matches!(&look.calls[..], [Call::ViewImage { path }] if path == "source.png"));
        assert!(matches!(&write.calls[..], [Call::Write { path, .. }] if path == "artifact.dot"));
        assert!(last.calls.is_empty() && last.text.as_ref().unwrap().len() > 8000);
    }
}
