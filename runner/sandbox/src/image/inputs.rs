//! What the image is made of: the files of `images/`, carried inside the binary so that it can build anywhere.

use proctor_traces::Digest;

use super::{ImageError, Wheel};

/// One file of the build context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Input {
    /// Path within the context, with forward slashes.
    pub(super) path: &'static str,
    pub(super) bytes: &'static [u8],
    /// The builder's `COPY` keeps modes, so scripts have to arrive executable.
    pub(super) executable: bool,
}

macro_rules! input {
    ($path:literal, $executable:literal) => {
        Input {
            path: $path,
            bytes: include_bytes!(concat!("../../../../images/", $path)),
            executable: $executable,
        }
    };
}

/// Every file that the Dockerfile copies or is. What is not here (documentation, the script that makes the lock) cannot
/// change the image and does not count for its digest.
pub(super) const INPUTS: &[Input] = &[
    input!("Dockerfile", false),
    input!("apt-packages/browser.txt", false),
    input!("apt-packages/cli.txt", false),
    input!("apt-packages/fonts.txt", false),
    input!("apt-packages/graphics.txt", false),
    input!("apt-packages/media.txt", false),
    input!("apt-packages/tex.txt", false),
    input!("requirements.lock", false),
    input!("scripts/apt-add", true),
    input!("scripts/chromium", true),
    input!("scripts/imagemagick-policy.xml", false),
    input!("scripts/list-packages", true),
    input!("scripts/lualatex", true),
    input!("scripts/warm-caches", true),
];

/// The lock file among the inputs.
pub(super) const LOCK: &str = include_str!("../../../../images/requirements.lock");

/// Repository name of the image.
pub(super) const REPOSITORY: &str = "proctor/toolchain";

/// The digest of `inputs`: names, modes and bytes, in the given order.
pub(super) fn digest_of(inputs: &[Input]) -> Digest {
    Digest::of_parts(inputs.iter().flat_map(|input| {
        let mode: &[u8] = if input.executable { b"x" } else { b"-" };
        [(input.path, input.bytes), ("mode", mode)]
    }))
}

/// The digest of the inputs that this build of the program carries.
pub fn inputs_digest() -> Digest {
    digest_of(INPUTS)
}

/// The reference under which the image of these inputs is kept: `proctor/toolchain:<first 12 hex digits>`.
pub fn expected_reference() -> String {
    format!("{REPOSITORY}:{}", inputs_digest().short())
}

/// The wheels that a lock file names, one a line: `name==version --hash=sha256:<hex>`.
pub(super) fn parse_lock(text: &str) -> Result<Vec<Wheel>, ImageError> {
    let rows = text.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(|row| {
        let wheel = row.split_once(" --hash=").and_then(|(requirement, digest)| {
            let (name, version) = requirement.trim().split_once("==")?;
            Some(Wheel {
                name: name.to_owned(),
                version: version.to_owned(),
                digest: digest.trim().parse().ok()?,
            })
        });
        wheel.ok_or_else(|| ImageError::Lock { row: row.chars().take(200).collect() })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn any_change_to_any_input_changes_the_digest() {
        let mut seen = BTreeSet::from([inputs_digest()]);
        for index in 0..INPUTS.len() {
            let mut changed = INPUTS.to_vec();
            changed[index].bytes = b"other";
            assert!(seen.insert(digest_of(&changed)), "bytes of {}", changed[index].path);
            let mut changed = INPUTS.to_vec();
            changed[index].executable = !changed[index].executable;
            assert!(seen.insert(digest_of(&changed)), "mode of {}", changed[index].path);
            let mut changed = INPUTS.to_vec();
            changed.remove(index);
            assert!(seen.insert(digest_of(&changed)), "absence of {}", INPUTS[index].path);
        }
    }

    #[test]
    fn no_file_of_the_context_is_forgotten() {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../images");
        for folder in ["apt-packages", "scripts"] {
            for entry in std::fs::read_dir(images.join(folder)).unwrap() {
                let path = format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap());
                assert!(INPUTS.iter().any(|input| input.path == path), "{path} is not embedded");
            }
        }
    }

    #[test]
    fn dockerfile_copies_only_what_the_context_has() {
        let dockerfile = std::str::from_utf8(INPUTS[0].bytes).unwrap();
        let sources = dockerfile
            .lines()
            .filter_map(|line| line.strip_prefix("COPY "))
            .filter(|rest| !rest.starts_with("--from"))
            .flat_map(|rest| {
                let words: Vec<_> = rest.split_whitespace().collect();
                words[..words.len() - 1].to_vec()
            });
        let mut count = 0;
        for source in sources {
            count += 1;
            assert!(source == "wheels" || INPUTS.iter().any(|input| input.path == source), "{source}");
        }
        assert!(count > 5, "the Dockerfile was not understood");
    }

    #[test]
    fn the_lock_names_each_package_once() {
        let wheels = parse_lock(LOCK).unwrap();
        let names: BTreeSet<_> = wheels.iter().map(|wheel| wheel.name.as_str()).collect();
        assert_eq!(names.len(), wheels.len());
        for name in ["matplotlib", "numpy", "rdkit", "schemdraw", "scikit-image"] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn rows_without_a_hash_are_refused() {
        for row in ["numpy==1.0", "numpy", "numpy==1.0 --hash=sha256:12", "numpy --hash=md5:00"] {
            assert!(matches!(parse_lock(row), Err(ImageError::Lock { .. })), "{row}");
        }
    }
}
