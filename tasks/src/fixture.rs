//! A small package for tests, made anew in a folder of its own.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use proctor_traces::Digest;
use tempfile::TempDir;

use crate::task::Task;

pub(crate) const TASK: &str = r#"[solver]
instruction = "Change the threshold from 80 to 90."
language = "html"
rendering_target = "html"
allowed_dependencies = ["d3"]
public_assets = ["public/logo.txt"]

[metadata]
id = "sample"
suite = "vao"
category = "dashboard"
subtype = "monitoring"
operation = "threshold_change"
difficulty = "hard"
source_artifact_id = "artifact-17a4"
source_batch = "batch-2026-11"
dataset_version = "1"
licence = "MIT"
canary = "canary 5d1e0d0e-7a53"
"#;

pub(crate) const ANNOTATIONS: &str = r#"target_objects = ["the threshold"]
expected_delta = ["The threshold reads 90 instead of 80."]
required_synchronized_updates = ["The count of warnings falls from two to one."]
stable_invariants = ["All values stay as they are."]
synchronized_updates_applied = ["The count of warnings falls from two to one."]

[[scoring_points]]
id = "d1"
type = "direct"
description = "The threshold is 90."
evidence = "90 in the head."
region = { unit = "px", x = 0, y = 0, w = 20, h = 10 }

[[scoring_points]]
id = "v1"
type = "derived"
description = "One warning is counted."
evidence = "1 in the tile."

[[scoring_points]]
id = "i1"
type = "invariant"
description = "The four values are unchanged."
evidence = "42, 74, 86, 95."
"#;

/// A package named `sample` that has nothing wrong with it.
pub(crate) struct Package {
    _root: TempDir,
    pub(crate) dir: PathBuf,
}

impl Package {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sample");
        write(&dir, "sample");
        Self { _root: root, dir }
    }

    /// Replaces text in one of its files.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let path = self.dir.join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replace(from, to)).unwrap();
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.dir.join(name), content).unwrap();
    }

    pub(crate) fn load(&self) -> Task {
        Task::load(&self.dir).unwrap()
    }
}

/// Writes a good package called `id` into `dir`.
pub(crate) fn write(dir: &Path, id: &str) {
    for folder in ["hidden", "public", "script"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let png = |shade| {
        let mut bytes = Cursor::new(Vec::new());
        let picture = image::GrayImage::from_pixel(40, 30, image::Luma([shade]));
        picture.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    fs::write(dir.join("task.toml"), TASK.replace("id = \"sample\"", &format!("id = \"{id}\""))).unwrap();
    fs::write(dir.join("public/logo.txt"), "logo").unwrap();
    fs::write(dir.join("source.png"), png(10)).unwrap();
    fs::write(dir.join("hidden/target.png"), png(200)).unwrap();
    fs::write(dir.join("hidden/annotations.toml"), ANNOTATIONS).unwrap();
    fs::write(dir.join("hidden/source.html"), "<p>80</p>").unwrap();
    fs::write(dir.join("hidden/target.html"), "<p>90</p>").unwrap();
    fs::write(dir.join("script/draft-1.html"), "<p>85</p>").unwrap();
    let script = "[[step]]\ncalls = [{ write = \"artifact.html\", from = \"script/draft-1.html\" }]\n";
    fs::write(dir.join("script.toml"), script).unwrap();
    let image = crate::PictureImage { inputs: Digest::of(b"i"), packages: Digest::of(b"p") };
    crate::Pictures::update(dir, image, [&png(10), &png(200)], [b"<p>80</p>", b"<p>90</p>"]).unwrap();
}
