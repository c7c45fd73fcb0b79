//! Canonical rendering beside the bare tools: pages beside a one-shot browser that is started by `docker exec` in a
//! container that runs already, everything else beside the tool in a container of its own.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::exec::StartExecResults;
use bollard::models::{ContainerCreateBody, ExecConfig, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptions, RemoveContainerOptionsBuilder, StartContainerOptions,
};
use futures_util::StreamExt as _;
use proctor_render::{RenderJob, Renderer, RendererOptions};
use proctor_sandbox::{OWNER_LABEL, User};
use proctor_store::Owner;
use proctor_tasks::{RenderMode, Task, preview_name, render_command};
use proctor_traces::Digest;

use crate::bare::{Errand, Settings};
use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say};

/// Most that a page should take in a warm browser, in one-shot browsers.
const PAGE: f64 = 0.8;

/// The flags of the canonical browser, less those that drive it frame by frame.
const BROWSER: &[&str] = &[
    "chromium-headless-shell",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-lcd-text",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--user-data-dir=/tmp/profile",
];

pub(crate) async fn measure(bench: &Bench, renderings: u32, report: &mut Report) -> Outcome<()> {
    let tasks = bench.packages()?;
    let renderer = renderer(bench, 1)?;
    let measured = async {
        for mode in RenderMode::ALL {
            let mut of_mode = tasks.iter().filter(|task| task.mode() == mode);
            if mode == RenderMode::Html {
                pages(bench, &renderer, of_mode.collect(), renderings, report).await?;
            } else if let Some(task) = of_mode.next() {
                tool(bench, &renderer, task, renderings, report).await?;
            }
        }
        Ok(())
    };
    let measured = measured.await;
    renderer.close().await?;
    measured
}

/// A renderer of so many artifacts at a time.
pub(crate) fn renderer(bench: &Bench, concurrency: usize) -> Outcome<Renderer> {
    let scratch = bench.folder("r-")?;
    let options = RendererOptions {
        image: bench.image.clone(),
        labels: BTreeMap::from([(OWNER_LABEL.to_owned(), Owner::this_process()?.to_string())]),
        user: User { uid: 1000, gid: 1000 },
        scratch,
        limits: RendererOptions::default_limits(2),
        concurrency,
    };
    Ok(Renderer::new(Arc::new(bench.sandbox.clone()), options))
}

/// Both sides of a comparison, and whether they made the same picture every time.
struct Sides {
    bare: Samples,
    ours: Samples,
    same: u32,
    of: u32,
}

impl Sides {
    fn new() -> Self {
        Self { bare: Samples::default(), ours: Samples::default(), same: 0, of: 0 }
    }

    fn push(&mut self, bare: (Duration, Digest), ours: (Duration, Digest)) {
        self.bare.push_ms(bare.0);
        self.ours.push_ms(ours.0);
        self.same += u32::from(bare.1 == ours.1);
        self.of += 1;
    }

    fn into_row(self, what: String, aim: Option<Aim>) -> Row {
        let remark = format!("same bytes {} of {}", self.same, self.of);
        Row { what, unit: "ms", bare: Some(self.bare), ours: self.ours, aim, remark }
    }
}

/// A rendering of ours: its time, the digest of its picture, and the picture's size.
async fn render(renderer: &Renderer, task: &Task) -> Outcome<(Duration, Digest, (u32, u32))> {
    let source = &task.hidden.target_program;
    let job = RenderJob::new(source, task.mode(), task.render.clone(), "bench");
    let start = Instant::now();
    let rendering = renderer.render(job).await?;
    let took = start.elapsed();
    let record = rendering.record;
    match (record.digest, record.width, record.height) {
        (Some(digest), Some(width), Some(height)) => Ok((took, digest, (width, height))),
        _ => Err(format!("{}: {:?}: {:?}", task.id(), record.status, record.message).into()),
    }
}

async fn pages(
    bench: &Bench,
    renderer: &Renderer,
    tasks: Vec<&Task>,
    renderings: u32,
    report: &mut Report,
) -> Outcome<()> {
    let docker = bench.sandbox.client();
    let folder = bench.folder("html-")?;
    fs::set_permissions(&folder, Permissions::from_mode(0o777))?;
    let room = Idle::start(docker, &bench.image.id, &folder).await?;
    let measured = async {
        let mut all = Sides::new();
        for task in tasks {
            say(&format!("rendering {}", task.id()));
            fs::copy(&task.hidden.target_program, folder.join("artifact.html"))?;
            let mut sides = Sides::new();
            // The first of each is not counted: a cold browser, and cold files.
            let (.., size) = render(renderer, task).await?;
            room.screenshot(docker, &folder, size).await?;
            for _ in 0..renderings {
                let bare = room.screenshot(docker, &folder, size).await?;
                let (took, digest, _) = render(renderer, task).await?;
                sides.push(bare, (took, digest));
                all.push(bare, (took, digest));
            }
            report.add(sides.into_row(format!("html: {}", task.id()), None));
        }
        report.add(all.into_row("html: all of them".to_owned(), Some(Aim::Ratio(PAGE))));
        Ok(())
    };
    let measured = measured.await;
    room.remove(docker).await?;
    measured
}

async fn tool(
    bench: &Bench,
    renderer: &Renderer,
    task: &Task,
    renderings: u32,
    report: &mut Report,
) -> Outcome<()> {
    say(&format!("rendering {}", task.id()));
    let mut sides = Sides::new();
    for turn in 0..=renderings {
        let bare = preview(bench, task).await?;
        let (took, digest, _) = render(renderer, task).await?;
        if turn > 0 {
            sides.push(bare, (took, digest));
        }
    }
    report.add(sides.into_row(format!("{}: {}", task.mode(), task.id()), None));
    Ok(())
}

/// What a solver would do to see its artifact, in a container of its own.
pub(crate) async fn preview(bench: &Bench, task: &Task) -> Outcome<(Duration, Digest)> {
    let folder = bench.folder("tool-")?;
    fs::copy(&task.hidden.target_program, folder.join(task.mode().artifact_name()))?;
    let command = render_command(task.mode(), &task.render);
    let errand = Errand {
        image: &bench.image.id,
        command: &["sh", "-c", &command],
        settings: Settings::Lean,
        folder: Some(folder.to_str().ok_or("a path that is not text")?),
    };
    let took = errand.run(bench.sandbox.client()).await?;
    let picture = fs::read(folder.join(preview_name(task.mode(), &task.render)))?;
    fs::remove_dir_all(&folder)?;
    Ok((took, Digest::of(&picture)))
}

/// A container that waits, for browsers to be started in.
pub(crate) struct Idle(String);

impl Idle {
    pub(crate) async fn start(docker: &Docker, image: &str, folder: &Path) -> Outcome<Self> {
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: Some(["sleep", "3600"].map(str::to_owned).into()),
            user: Some("1000:1000".to_owned()),
            env: Some(vec!["HOME=/tmp".to_owned()]),
            labels: Some([(OWNER_LABEL.to_owned(), Owner::this_process()?.to_string())].into()),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                binds: Some(vec![format!("{}:/work", folder.display())]),
                // The browser leaves processes behind, which somebody must reap.
                init: Some(true),
                shm_size: Some(256 << 20),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let id = docker.create_container(None::<CreateContainerOptions>, body).await?.id;
        let idle = Self(id);
        match docker.start_container(&idle.0, None::<StartContainerOptions>).await {
            Ok(()) => Ok(idle),
            Err(error) => {
                idle.remove(docker).await?;
                Err(error.into())
            }
        }
    }

    pub(crate) async fn remove(&self, docker: &Docker) -> Outcome<()> {
        let options = RemoveContainerOptionsBuilder::new().force(true).build();
        Ok(docker.remove_container(&self.0, Some(options)).await?)
    }

    /// A page by a browser that is started for it.
    pub(crate) async fn screenshot(
        &self,
        docker: &Docker,
        folder: &Path,
        (width, height): (u32, u32),
    ) -> Outcome<(Duration, Digest)> {
        let picture = folder.join("page.png");
        if picture.exists() {
            fs::remove_file(&picture)?;
        }
        let mut command: Vec<String> = BROWSER.iter().map(|&word| word.to_owned()).collect();
        command.push(format!("--window-size={width},{height}"));
        command.extend(["--screenshot=/work/page.png", "file:///work/artifact.html"].map(str::to_owned));
        let start = Instant::now();
        let config = ExecConfig {
            cmd: Some(command),
            working_dir: Some("/tmp".to_owned()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..ExecConfig::default()
        };
        let exec = docker.create_exec(&self.0, config).await?.id;
        let mut printed = Vec::new();
        if let StartExecResults::Attached { mut output, .. } = docker.start_exec(&exec, None).await? {
            while let Some(chunk) = output.next().await {
                printed.extend_from_slice(&chunk?.into_bytes());
            }
        }
        let took = start.elapsed();
        let png = fs::read(&picture)
            .map_err(|error| format!("no screenshot: {error}: {}", String::from_utf8_lossy(&printed)))?;
        Ok((took, Digest::of(&png)))
    }
}
