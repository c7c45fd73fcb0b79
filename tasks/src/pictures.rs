//! `hidden/pictures.toml`: which image made the stored pictures. Written by `proctor tasks check --update`, never by hand.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use proctor_traces::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::TaskError;
use crate::files::MAX_FILE_BYTES;
use crate::task::{HIDDEN_PICTURES, SOURCE_PICTURE, TARGET_PICTURE};
use crate::toml_text;

/// The record of the two stored pictures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pictures {
    /// The toolchain image that made them. Bytes must match under an image of this identity; under another one a
    /// difference is only a warning.
    pub image: PictureImage,
    /// `source.png`.
    pub source: PictureRecord,
    /// `hidden/target.png`.
    pub target: PictureRecord,
}

/// What identifies a toolchain image, whatever machine built it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureImage {
    /// The digest of what the image was built from.
    pub inputs: Digest,
    /// The digest of the list of packages in it.
    pub packages: Digest,
}

/// One stored picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PictureRecord {
    /// The digest of the file.
    pub digest: Digest,
    /// The digest of the program that it was rendered from.
    pub program: Digest,
}

/// How a stored picture relates to its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureState {
    /// The file and its program are those of the record.
    Current,
    /// The program changed since the picture was made.
    ProgramChanged,
    /// The file is not the one that was made.
    PictureChanged,
}

impl PictureRecord {
    /// Compares the record with what is stored now.
    pub fn state(&self, picture: Digest, program: Digest) -> PictureState {
        if self.program != program {
            PictureState::ProgramChanged
        } else if self.digest != picture {
            PictureState::PictureChanged
        } else {
            PictureState::Current
        }
    }
}

impl Pictures {
    /// Reads the record of the package in `dir`; `None` if it has none.
    pub fn load(dir: &Path) -> Result<Option<Self>, TaskError> {
        let file = dir.join(HIDDEN_PICTURES);
        match fs::read_to_string(&file) {
            Ok(text) => toml_text::parse(&file, &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(TaskError::io(&file, error)),
        }
    }

    /// Stores new pictures of the package in `dir`, made under `image` from the programs
    /// `source_program` and `target_program`, and writes the record. Returns the record.
    pub fn update(
        dir: &Path,
        image: PictureImage,
        [source, target]: [&[u8]; 2],
        [source_program, target_program]: [&[u8]; 2],
    ) -> Result<Self, TaskError> {
        let record = Self {
            image,
            source: PictureRecord { digest: Digest::of(source), program: Digest::of(source_program) },
            target: PictureRecord { digest: Digest::of(target), program: Digest::of(target_program) },
        };
        for bytes in [source, target] {
            if bytes.len() as u64 > MAX_FILE_BYTES {
                return Err(TaskError::refused(
                    dir,
                    "a picture is larger than a package's file may be",
                    "draw less",
                ));
            }
        }
        replace(&dir.join(SOURCE_PICTURE), source)?;
        replace(&dir.join(TARGET_PICTURE), target)?;
        replace(&dir.join(HIDDEN_PICTURES), record.to_toml().as_bytes())?;
        Ok(record)
    }

    fn to_toml(&self) -> String {
        let section = |name: &str, record: &PictureRecord| {
            format!("\n[{name}]\ndigest = \"{}\"\nprogram = \"{}\"\n", record.digest, record.program)
        };
        [
            "# Written by `proctor tasks check --update`: the image that made the stored pictures.\n"
                .to_owned(),
            format!(
                "\n[image]\ninputs = \"{}\"\npackages = \"{}\"\n",
                self.image.inputs, self.image.packages
            ),
            section("source", &self.source),
            section("target", &self.target),
        ]
        .concat()
    }
}

/// Puts a whole file in place at once, so that an interrupted update never leaves half a picture.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), TaskError> {
    let wrong = |source| TaskError::Write { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let mut file = fs::File::create(&temporary).map_err(wrong)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(wrong)?;
    fs::rename(&temporary, path).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("hidden")).unwrap();
        assert_eq!(Pictures::load(dir.path()).unwrap(), None);
        let image = PictureImage { inputs: Digest::of(b"i"), packages: Digest::of(b"p") };
        let written = Pictures::update(dir.path(), image, [b"s", b"t"], [b"a", b"b"]).unwrap();
        assert_eq!(Pictures::load(dir.path()).unwrap(), Some(written));
        assert_eq!(fs::read(dir.path().join("hidden/target.png")).unwrap(), b"t");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[test]
    fn a_change_of_the_program_explains_a_change_of_the_picture() {
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let record = PictureRecord { digest: one, program: one };
        assert_eq!(record.state(one, one), PictureState::Current);
        assert_eq!(record.state(two, one), PictureState::PictureChanged);
        assert_eq!(record.state(two, two), PictureState::ProgramChanged);
    }
}
