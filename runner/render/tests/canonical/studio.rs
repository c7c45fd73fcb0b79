//! A renderer for tests, and a way to be sure that it leaves nothing behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine as _;
use proctor_render::{RenderJob, RenderRecord, RenderStatus, Renderer, RendererOptions, Rendering};
use proctor_sandbox::{DockerSandbox, Limits, OWNER_LABEL, User};
use proctor_tasks::{RenderMode, RenderSettings};
use proctor_traces::{Digest, ImageIdentity};

/// A renderer with a folder for artifacts, and an owner of its own.
pub(crate) struct Studio {
    renderer: Renderer,
    folder: tempfile::TempDir,
    owner: Owner,
    image: String,
}

/// Removes what a failed test leaves.
struct Owner(String);

impl Drop for Owner {
    fn drop(&mut self) {
        for id in containers(&self.0) {
            docker(&["rm", "-f", &id]);
        }
    }
}

/// Containers of an owner, running or not.
fn containers(owner: &str) -> Vec<String> {
    let label = format!("label={OWNER_LABEL}={owner}");
    docker(&["ps", "-a", "-q", "--filter", &label]).lines().map(str::to_owned).collect()
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker")
        .args(arguments)
        .output()
        .expect("these tests need the `docker` program and an engine behind it");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "these tests need a container engine: docker {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The newest image of the toolchain.
fn image() -> ImageIdentity {
    let images = docker(&[
        "image",
        "ls",
        "--no-trunc",
        "--format",
        "{{.ID}} {{.Repository}}:{{.Tag}}",
        "proctor/toolchain",
    ]);
    // Docker lists the newest first.
    let newest =
        images.lines().next().expect("these tests need the toolchain image: run `proctor image build`");
    let (id, reference) = newest.split_once(' ').unwrap();
    let digest = Digest::of(id.as_bytes());
    ImageIdentity { reference: reference.to_owned(), id: id.to_owned(), inputs: digest, packages: digest }
}

impl Studio {
    pub(crate) async fn open() -> Self {
        Self::with(1).await
    }

    pub(crate) async fn with(concurrency: usize) -> Self {
        Self::start(concurrency, RendererOptions::default_limits(2)).await
    }

    pub(crate) async fn with_memory(memory_bytes: u64) -> Self {
        Self::start(1, Limits { memory_bytes, ..RendererOptions::default_limits(2) }).await
    }

    async fn start(concurrency: usize, limits: Limits) -> Self {
        let address =
            std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
        let folder = tempfile::Builder::new().prefix("pr").tempdir_in("/tmp").unwrap();
        let (scratch, cache) = (folder.path().join("s"), folder.path().join("cache"));
        std::fs::create_dir(&scratch).unwrap();
        let sandbox = DockerSandbox::connect(&address, &cache)
            .await
            .unwrap_or_else(|error| panic!("these tests need a container engine: {error}"));
        let owner = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let image = image();
        let id = image.id.clone();
        let options = RendererOptions {
            image,
            labels: BTreeMap::from([(OWNER_LABEL.to_owned(), owner.clone())]),
            user: User { uid: 1000, gid: 1000 },
            scratch,
            limits,
            concurrency,
        };
        Self { renderer: Renderer::new(Arc::new(sandbox), options), folder, owner: Owner(owner), image: id }
    }

    /// Puts an artifact down.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) async fn render(&self, job: RenderJob) -> Rendering {
        self.renderer.render(job).await.unwrap_or_else(|error| panic!("a failure of ours: {error:?}"))
    }

    pub(crate) async fn draw(&self, mode: RenderMode, content: impl AsRef<[u8]>) -> Rendering {
        self.draw_with(mode, content, RenderSettings::default()).await
    }

    pub(crate) async fn draw_with(
        &self,
        mode: RenderMode,
        content: impl AsRef<[u8]>,
        settings: RenderSettings,
    ) -> Rendering {
        let digest = Digest::of(content.as_ref()).short();
        let source = self.file(&format!("{digest}.{}", mode.extension()), content);
        self.render(RenderJob::new(source, mode, settings, "test")).await
    }

    /// How many containers it has.
    pub(crate) fn rooms(&self) -> usize {
        containers(&self.owner.0).len()
    }

    /// Kills them, as a machine in trouble would.
    pub(crate) fn kill_rooms(&self) {
        for id in containers(&self.owner.0) {
            docker(&["kill", &id]);
        }
    }

    /// The picture that a solver's preview command gives for `artifact`.
    pub(crate) fn preview(&self, mode: RenderMode, settings: &RenderSettings, artifact: &Path) -> Vec<u8> {
        let command = proctor_tasks::render_command(mode, settings);
        let mount = format!("{}:/work/{}:ro", artifact.display(), mode.artifact_name());
        let script =
            format!("({command}) >/dev/null 2>&1; base64 {}", proctor_tasks::preview_name(mode, settings));
        let text =
            docker(&["run", "--rm", "--network", "none", "-v", &mount, &self.image, "sh", "-c", &script]);
        base64::engine::general_purpose::STANDARD.decode(text.replace('\n', "")).unwrap()
    }

    /// Closes the renderer, and so ends the test; no container of it may be left.
    pub(crate) async fn close(self) {
        let Self { renderer, folder, owner, .. } = self;
        let owner = &owner.0;
        renderer.close().await.unwrap();
        assert_eq!(containers(owner), Vec::<String>::new(), "containers were left");
        let left = std::fs::read_dir(folder.path().join("s")).unwrap().count();
        assert_eq!(left, 0, "folders were left");
    }
}

/// Checks what must hold of every rendering.
#[track_caller]
pub(crate) fn expect(rendering: &Rendering, status: RenderStatus) -> &RenderRecord {
    let record = &rendering.record;
    assert_eq!(record.status, status, "{record:#?}");
    assert_eq!(rendering.status, status);
    assert_eq!(rendering.png.is_some(), status.is_rendered());
    assert_eq!(record.digest, rendering.png.as_deref().map(Digest::of));
    record
}
