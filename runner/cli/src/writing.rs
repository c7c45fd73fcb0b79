//! Files that were asked for by name: whole or as they were before, and never in the place of what is read.

use std::io;
use std::path::{Path, PathBuf};

use proctor_store::write_in_pieces;

use crate::failure::Failure;

/// Writes `output`, which is worked out from `inputs`: files, folders of trials, or runs.
pub(crate) fn write_from(
    inputs: &[PathBuf],
    output: &Path,
    fill: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), Failure> {
    refuse_inputs(inputs, output)?;
    Ok(write_in_pieces(output, fill)?)
}

/// An output that is there already must be none of the inputs, and nothing of the evidence in them.
pub(crate) fn refuse_inputs(inputs: &[PathBuf], output: &Path) -> Result<(), Failure> {
    let Ok(there) = output.canonicalize() else { return Ok(()) };
    for input in inputs.iter().filter_map(|input| input.canonicalize().ok()) {
        let Ok(inside) = there.strip_prefix(&input) else { continue };
        // In a run's own folder, figures of it may lie and be made again.
        let is_run = input.join("run.json").is_file();
        if !is_run || inside == Path::new("run.json") || inside.starts_with("trials") {
            let said = format!("{}: that is what is read, and is not written over", output.display());
            return Err(Failure::input(said).hint("name another file with -o or --csv"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_read_is_not_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("run/trials/a")).unwrap();
        for name in ["run/run.json", "run/trials/a/trace.jsonl", "run/figure.svg", "session.jsonl"] {
            fs::write(at(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(at("session.jsonl"), at("link")).unwrap();
        let refused = |input: &str, output: &str| refuse_inputs(&[at(input)], &at(output)).is_err();
        assert!(refused("session.jsonl", "session.jsonl"));
        assert!(refused("session.jsonl", "link"));
        assert!(refused("run/trials/a", "run/trials/a/trace.jsonl"));
        assert!(refused("run", "run/run.json") && refused("run", "run/trials/a/trace.jsonl"));
        assert!(!refused("run", "run/figure.svg") && !refused("run", "run/new.svg"));
        assert!(!refused("session.jsonl", "other.jsonl"));
    }
}
