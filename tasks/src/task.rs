//! A package as it is loaded from its folder.

use std::path::{Path, PathBuf};

use proctor_traces::Digest;

use crate::annotations::Annotations;
use crate::error::TaskError;
use crate::files::PackageFiles;
use crate::id::TaskId;
use crate::package::{Metadata, Solver, TaskFile};
use crate::pictures::Pictures;
use crate::render_mode::{RenderMode, RenderSettings};
use crate::toml_text;
use crate::turn::{Artifact, Input, PromptSource, Turn};

/// The file that makes a folder a package.
pub(crate) const TASK_FILE: &str = "task.toml";
/// The picture that the solver sees, in the package and in the workspace.
pub const SOURCE_PICTURE: &str = "source.png";
pub(crate) const TARGET_PICTURE: &str = "hidden/target.png";
pub(crate) const ANNOTATIONS: &str = "hidden/annotations.toml";
pub(crate) const HIDDEN_PICTURES: &str = "hidden/pictures.toml";
pub(crate) const SCRIPT: &str = "script.toml";

/// A task package.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its folder.
    pub dir: PathBuf,
    /// What the solver is told.
    pub solver: Solver,
    /// What describes the task.
    pub metadata: Metadata,
    /// What marks it.
    pub hidden: Hidden,
    /// How its programs become pictures.
    pub render: RenderSettings,
    pub(crate) files: PackageFiles,
    digest: Digest,
}

/// The part of a package that is never mounted, never in an image and never in a prompt.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// What a correct edit does, and how it is marked.
    pub annotations: Annotations,
    /// The image that made the stored pictures, if that was recorded.
    pub pictures: Option<Pictures>,
    /// The program of the source picture.
    pub source_program: PathBuf,
    /// The program of the reference target.
    pub target_program: PathBuf,
    /// The reference target.
    pub target_picture: PathBuf,
}

impl Task {
    /// Loads the package in `dir`: both TOML files, both programs and both pictures must be there, and nothing in the
    /// folder may be a link, a special file or too large. Whether its parts agree is said by [`crate::check`].
    pub fn load(dir: &Path) -> Result<Self, TaskError> {
        let task = Self::load_unrendered(dir)?;
        for name in [SOURCE_PICTURE, TARGET_PICTURE] {
            if !task.files.contains(name) {
                let hint =
                    format!("render it from its program: proctor tasks check --update {}", dir.display());
                return Err(missing(dir, name, hint));
            }
        }
        Ok(task)
    }

    /// Loads a package whose pictures need not be there yet: an author renders them from the programs.
    pub fn load_unrendered(dir: &Path) -> Result<Self, TaskError> {
        let files = PackageFiles::list(dir)?;
        if !files.contains(TASK_FILE) {
            return Err(TaskError::NoTask { path: dir.to_owned() });
        }
        let TaskFile { solver, metadata, render } = read(&files, TASK_FILE)?;
        // A path such as `.` has no name of its own.
        let absolute = dir.canonicalize().map_err(|error| TaskError::io(dir, error))?;
        if absolute.file_name().and_then(|name| name.to_str()) != Some(metadata.id.as_str()) {
            return Err(TaskError::FolderName { dir: dir.to_owned(), id: metadata.id });
        }
        if !files.contains(ANNOTATIONS) {
            return Err(missing(
                dir,
                ANNOTATIONS,
                "write what a correct edit does and how it is marked".to_owned(),
            ));
        }
        let annotations = read(&files, ANNOTATIONS)?;
        let pictures =
            if files.contains(HIDDEN_PICTURES) { Some(read(&files, HIDDEN_PICTURES)?) } else { None };
        let mode = solver.rendering_target;
        let [source_program, target_program] = program_names(mode);
        for name in [&source_program, &target_program] {
            if !files.contains(name) {
                let hint = format!("rendering_target = \"{mode}\" needs a program with this name");
                return Err(missing(dir, name, hint));
            }
        }
        let hidden = Hidden {
            annotations,
            pictures,
            source_program: files.path(&source_program),
            target_program: files.path(&target_program),
            target_picture: files.path(TARGET_PICTURE),
        };
        let digest = files.digest()?;
        Ok(Self { dir: dir.to_owned(), solver, metadata, hidden, render, files, digest })
    }

    /// Its name.
    pub fn id(&self) -> &TaskId {
        &self.metadata.id
    }

    /// How its artifact is rendered.
    pub fn mode(&self) -> RenderMode {
        self.solver.rendering_target
    }

    /// The digest of all files of the package as they were when it was loaded.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The picture that the solver sees.
    pub fn source_picture(&self) -> PathBuf {
        self.files.path(SOURCE_PICTURE)
    }

    /// What a scripted model plays, if the package says.
    pub fn script(&self) -> Option<PathBuf> {
        self.files.contains(SCRIPT).then(|| self.files.path(SCRIPT))
    }

    /// The turns of a trial: in this suite one.
    pub fn turns(&self) -> Vec<Turn> {
        let source =
            Input { host: self.source_picture(), inside: SOURCE_PICTURE.to_owned(), is_source_picture: true };
        // Only what is really among the package's own files; `check` names the others.
        let assets = self.solver.public_assets.iter().filter(|name| self.is_public(name)).map(|name| Input {
            host: self.files.path(name),
            inside: name.clone(),
            is_source_picture: false,
        });
        vec![Turn {
            inputs: std::iter::once(source).chain(assets).collect(),
            operations: Vec::new(),
            prompt: PromptSource::Template,
            budget: None,
            artifact: Artifact::program(self.mode()),
        }]
    }

    /// Whether `name` is a file of `public/`. Names come from listing the folder, so they hold no `..`.
    pub(crate) fn is_public(&self, name: &str) -> bool {
        name.starts_with("public/") && self.files.contains(name)
    }
}

/// The names of the source and the target program.
pub(crate) fn program_names(mode: RenderMode) -> [String; 2] {
    ["source", "target"].map(|which| format!("hidden/{which}.{}", mode.extension()))
}

fn read<T: serde::de::DeserializeOwned>(files: &PackageFiles, name: &str) -> Result<T, TaskError> {
    toml_text::parse(&files.path(name), &files.text(name)?)
}

fn missing(dir: &Path, name: &str, hint: String) -> TaskError {
    TaskError::Missing { dir: dir.to_owned(), name: name.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::fixture::Package;

    #[test]
    fn a_turn_names_what_the_solver_gets_and_nothing_else() {
        let package = Package::new();
        let turns = package.load().turns();
        let inside: Vec<&str> = turns[0].inputs.iter().map(|input| input.inside.as_str()).collect();
        assert_eq!(inside, ["source.png", "public/logo.txt"]);
        assert_eq!(turns[0].artifact.name, "artifact.html");
        assert_eq!(turns.len(), 1);
    }

    #[test]
    fn an_asset_outside_public_is_never_an_input() {
        for asset in ["hidden/target.png", "public/../hidden/target.png", "/etc/passwd", "public/none"] {
            let package = Package::new();
            package.edit("task.toml", "public/logo.txt", asset);
            let turns = package.load().turns();
            assert_eq!(turns[0].inputs.len(), 1, "{asset}");
        }
    }

    #[test]
    fn the_digest_follows_every_file() {
        let package = Package::new();
        let before = package.load().digest();
        assert_eq!(package.load().digest(), before);
        package.put("script/draft-1.html", "<p>86</p>");
        assert_ne!(package.load().digest(), before);
    }

    #[test]
    fn what_is_missing_is_named_with_a_way_out() {
        let package = Package::new();
        std::fs::remove_file(package.dir.join("source.png")).unwrap();
        let error = Task::load(&package.dir).unwrap_err();
        assert!(matches!(&error, TaskError::Missing { name, .. } if name == "source.png"), "{error:?}");
        assert!(Task::load_unrendered(&package.dir).is_ok());
        std::fs::remove_file(package.dir.join("hidden/target.html")).unwrap();
        assert!(matches!(Task::load_unrendered(&package.dir), Err(TaskError::Missing { .. })));
    }

    #[test]
    fn a_mistake_is_reported_with_file_place_and_hint() {
        let package = Package::new();
        package.edit("task.toml", "difficulty = \"hard\"", "difficulty = \"hart\"");
        let report = miette::Report::new(Task::load(&package.dir).unwrap_err());
        let text = format!("{report:?}");
        assert!(text.contains("task.toml"), "{text}");
        assert!(text.contains("did you mean `hard`?"), "{text}");
        assert!(text.contains("difficulty = \"hart\""), "{text}");
    }

    #[test]
    fn folder_and_name_must_agree() {
        let package = Package::new();
        package.edit("task.toml", "id = \"sample\"", "id = \"other\"");
        assert!(matches!(Task::load(&package.dir), Err(TaskError::FolderName { .. })));
        package.edit("task.toml", "id = \"other\"", "id = \"../other\"");
        assert!(matches!(Task::load(&package.dir), Err(TaskError::Toml { .. })));
    }

    #[test]
    fn a_link_in_a_package_is_refused() {
        let package = Package::new();
        std::os::unix::fs::symlink("/etc/passwd", package.dir.join("public/passwd")).unwrap();
        assert!(matches!(Task::load(&package.dir), Err(TaskError::Refused { .. })));
    }

    #[test]
    fn rubbish_never_panics() {
        for rubbish in
            [b"\xff\xfe".as_slice(), b"", b"[solver", b"solver = 3", b"\0\0\0", b"[solver]\ninstruction = 1"]
        {
            for file in ["task.toml", "hidden/annotations.toml", "hidden/pictures.toml"] {
                let package = Package::new();
                package.put(file, rubbish);
                assert!(Task::load(&package.dir).is_err(), "{file} {rubbish:?}");
            }
        }
    }
}
