//! What all tests need: runs of the binary in folders of their own ([`Run`]), readers of what they leave ([`Trial`]),
//! task packages to change ([`Package`]), an agent whose evidence can be told from that of any other try ([`SIGNS`]), and looks at the engine and at this machine's processes ([`world`]).

mod package;
mod run;
mod signed;
mod trial;
pub(crate) mod world;

pub(crate) use package::Package;
pub(crate) use run::{Ended, Live, Run, proctor};
pub(crate) use signed::{SIGNS, is_legal, is_whole, record_of, signature_in};
pub(crate) use trial::{Trial, read_trace};

use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// The sample packages.
pub(crate) fn samples() -> PathBuf {
    root().join("tasks/samples")
}

/// One sample package.
pub(crate) fn sample(id: &str) -> PathBuf {
    samples().join("vao").join(id)
}

/// A name that nothing else on this machine has.
pub(crate) fn unique(prefix: &str) -> String {
    let folder =
        tempfile::Builder::new().prefix(prefix).rand_bytes(12).tempdir().expect("a temporary folder");
    folder.path().file_name().expect("it has a name").to_string_lossy().into_owned()
}

/// The names in a folder, in order; none if it is not there.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// `text` as one word of a command line.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
