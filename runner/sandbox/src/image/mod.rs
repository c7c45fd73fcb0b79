//! The toolchain image: what it is made of, how it is identified, how it is built where it is missing.
//!
//! The files of `images/` are compiled into the program, so an installed binary can build the image on any machine with
//! a container engine. An image is named by the digest of those files and identified, beside that, by the digest of
//! the list of packages that really are in it: the same recipe a month later gives newer packages, and pictures may
//! differ by them. Both digests are labels of the image, so that asking for them costs one request and no container.

mod base;
mod build;
mod context;
mod inputs;
mod packages;
mod steps;
mod tool;
mod wheels;

use std::collections::HashMap;
use std::fmt;

use bollard::Docker;
use proctor_traces::Digest;
pub use proctor_traces::ImageIdentity;
use serde::Serialize;

pub use build::{BuildOptions, build};
pub use inputs::{expected_reference, inputs_digest};
pub use packages::packages;

/// Label that holds the digest of the files the image was built from.
pub const INPUTS_LABEL: &str = "proctor.inputs";

/// Label that holds the digest of the package list inside the image.
pub const PACKAGES_LABEL: &str = "proctor.packages";

/// How many characters of an instruction progress shows.
const SHOWN: usize = 80;

/// Whether the image of this program's recipe is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ImageStatus {
    /// It can be used at once.
    Present(ImageIdentity),
    /// It has to be built first.
    Absent {
        /// The reference it will have.
        expected: String,
    },
}

/// What happens during [`build()`]; `Display` gives one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildEvent {
    /// A base image that was already there, or was pulled, is used.
    BaseFound {
        /// Its reference.
        reference: String,
    },
    /// The base image is asked for at its registry.
    BasePulling {
        /// Its reference.
        reference: String,
    },
    /// No registry gave the base image, so it is put together from Debian's packages.
    BaseBootstrapping {
        /// Why it could not be pulled.
        why: String,
    },
    /// Python packages are downloaded.
    WheelsDownloading {
        /// How many are still missing.
        missing: usize,
        /// How many the image needs.
        total: usize,
    },
    /// The engine begins a step of the Dockerfile.
    Step {
        /// Counted from 1.
        index: u32,
        /// How many steps there are.
        total: u32,
        /// The instruction, as written, on one line.
        instruction: String,
        /// Set on a second event for the same step when its layer was already there.
        cached: bool,
    },
    /// A line that a step, or a tool that was started, printed; without its line end, at most 500 characters.
    Output(String),
    /// The package list was read and the image is being labelled.
    Labelling {
        /// How many packages it lists.
        packages: usize,
    },
}

impl fmt::Display for BuildEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BaseFound { reference } => write!(f, "base image {reference}"),
            Self::BasePulling { reference } => write!(f, "pulling base image {reference}"),
            Self::BaseBootstrapping { why } => {
                write!(f, "no registry gave the base image ({why}); bootstrapping it from Debian packages")
            }
            Self::WheelsDownloading { missing, total } => {
                write!(f, "downloading {missing} of {total} Python packages")
            }
            Self::Step { index, total, instruction, cached } => {
                let cached = if *cached { " (cached)" } else { "" };
                // The whole instruction may be a shell program of ten lines.
                let mut shown: String = instruction.chars().take(SHOWN).collect();
                if shown.len() < instruction.len() {
                    shown.push('…');
                }
                write!(f, "step {index}/{total}: {shown}{cached}")
            }
            Self::Output(line) => f.write_str(line),
            Self::Labelling { packages } => write!(f, "labelling the image ({packages} packages)"),
        }
    }
}

/// Why there is no image. [`ImageError::hint`] says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The engine refused or failed.
    #[error("the container engine failed while {doing}")]
    Engine {
        /// What was asked of it.
        doing: &'static str,
        /// Its answer.
        #[source]
        source: bollard::errors::Error,
    },
    /// The engine runs on a processor that the locked packages are not for.
    #[error("the toolchain image is for x86-64, but the container engine runs on {found}")]
    Architecture {
        /// What the engine said.
        found: String,
    },
    /// A base image was named that is neither present nor to be had.
    #[error("base image `{reference}` is not present and could not be pulled: {why}")]
    Base {
        /// As given.
        reference: String,
        /// The last answer.
        why: String,
    },
    /// A program that the build needs is not installed.
    #[error("`{program}` is needed to build the toolchain image and was not found")]
    Missing {
        /// Its name.
        program: &'static str,
        /// How to get it.
        hint: &'static str,
    },
    /// A program that the build needs failed.
    #[error("`{program}` failed ({status}):\n{tail}")]
    Tool {
        /// Its name.
        program: &'static str,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        tail: String,
        /// What usually helps.
        hint: &'static str,
    },
    /// After a download some wheels are still not there.
    #[error("{} Python package(s) could not be downloaded with the expected content: {}", missing.len(), missing.join(", "))]
    Wheels {
        /// Names and versions.
        missing: Vec<String>,
    },
    /// A row of the lock file is not `name==version --hash=sha256:…`.
    #[error("requirements.lock has a row that names no single wheel: `{row}`")]
    Lock {
        /// The row, cut.
        row: String,
    },
    /// A step of the Dockerfile failed.
    #[error("building the image failed at {step}: {message}\n{tail}")]
    Step {
        /// The step as shown.
        step: String,
        /// The engine's message.
        message: String,
        /// The last lines that the step printed.
        tail: String,
    },
    /// The image holds no usable list of its packages.
    #[error("image `{reference}` has no usable package list: {why}")]
    Packages {
        /// Which image.
        reference: String,
        /// What is wrong with it.
        why: String,
    },
    /// A local file could not be read or written.
    #[error("cannot {doing}")]
    Io {
        /// What was tried, with the path.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

impl ImageError {
    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Engine { .. } => {
                "check that the engine answers (`docker version`) and has disk space (`docker system df`)"
            }
            Self::Architecture { .. } => "use an engine on an x86-64 machine (set DOCKER_HOST)",
            Self::Base { .. } => {
                "pull or load that image first, or leave the base out: then one is bootstrapped"
            }
            Self::Missing { hint, .. } | Self::Tool { hint, .. } => hint,
            Self::Wheels { .. } => {
                "check that pip reaches a package index (`pip download numpy`), then build again; what is complete is kept"
            }
            Self::Lock { .. } => "run images/lock-requirements.sh to make the lock anew",
            Self::Step { .. } => {
                "read the lines above; steps that succeeded are cached, so building again continues there"
            }
            Self::Packages { .. } => "this is not an image that `proctor image build` made: build it",
            Self::Io { .. } => "check that the cache directory is writable and the disk is not full",
        }
    }
}

fn engine(doing: &'static str) -> impl FnOnce(bollard::errors::Error) -> ImageError {
    move |source| ImageError::Engine { doing, source }
}

/// One wheel that the lock file asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wheel {
    name: String,
    version: String,
    digest: Digest,
}

/// Whether the image of the recipe in this program is there: one request.
pub async fn status(docker: &Docker) -> Result<ImageStatus, ImageError> {
    let expected = expected_reference();
    let inspected = match docker.inspect_image(&expected).await {
        Ok(inspected) => inspected,
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => {
            return Ok(ImageStatus::Absent { expected });
        }
        Err(error) => return Err(engine("looking for the toolchain image")(error)),
    };
    let labels = inspected.config.and_then(|config| config.labels).unwrap_or_default();
    let identity = inspected.id.and_then(|id| identity_of(&expected, &id, &labels));
    Ok(match identity {
        Some(identity) if identity.inputs == inputs_digest() => ImageStatus::Present(identity),
        _ => ImageStatus::Absent { expected },
    })
}

/// Reads the labels; `None` when one is missing or is no digest.
fn identity_of(reference: &str, id: &str, labels: &HashMap<String, String>) -> Option<ImageIdentity> {
    Some(ImageIdentity {
        reference: reference.to_owned(),
        id: id.to_owned(),
        inputs: labels.get(INPUTS_LABEL)?.parse().ok()?,
        packages: labels.get(PACKAGES_LABEL)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_give_the_identity_only_when_both_are_digests() {
        let (inputs, packages) = (Digest::of(b"inputs"), Digest::of(b"packages"));
        let labels = |one: &str, two: &str| {
            HashMap::from([
                (INPUTS_LABEL.to_owned(), one.to_owned()),
                (PACKAGES_LABEL.to_owned(), two.to_owned()),
            ])
        };
        let good = labels(&inputs.to_string(), &packages.to_string());
        let expected =
            ImageIdentity { reference: "r".to_owned(), id: "sha256:1".to_owned(), inputs, packages };
        assert_eq!(identity_of("r", "sha256:1", &good), Some(expected));
        assert_eq!(identity_of("r", "i", &labels(&inputs.to_string(), "latest")), None);
        assert_eq!(identity_of("r", "i", &HashMap::new()), None);
    }

    #[test]
    fn the_tag_is_the_start_of_the_digest() {
        let (repository, tag) =
            expected_reference().split_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(repository, "proctor/toolchain");
        assert!(inputs_digest().hex().starts_with(&tag) && tag.len() == 12);
    }

    #[test]
    fn steps_read_like_progress() {
        let step =
            BuildEvent::Step { index: 5, total: 12, instruction: "RUN apt-add tex".to_owned(), cached: true };
        assert_eq!(step.to_string(), "step 5/12: RUN apt-add tex (cached)");
        let long = BuildEvent::Step { index: 1, total: 1, instruction: "é".repeat(200), cached: false };
        assert_eq!(long.to_string(), format!("step 1/1: {}…", "é".repeat(80)));
    }
}
