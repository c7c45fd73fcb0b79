//! The renderer: who does which job, how many at a time, and what is written down about it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proctor_sandbox::{Limits, Sandbox, User};
use proctor_tasks::RenderMode;
use proctor_traces::{Digest, ImageIdentity};
use tokio::sync::Semaphore;

use crate::classify::Verdict;
use crate::html::Pages;
use crate::picture::{self, Fault, Picture};
use crate::source::{self, MAX_SOURCE_BYTES};
use crate::{RenderError, RenderJob, RenderRecord, RenderStatus, Rendering, tool};

/// What all renderings of one renderer share.
#[derive(Clone, Debug)]
pub struct RendererOptions {
    /// The toolchain image.
    pub image: ImageIdentity,
    /// Labels of every room: at least owner and run, so that leftovers are found. Kind and trial are added.
    pub labels: BTreeMap<String, String>,
    /// Who the tools run as; never root.
    pub user: User,
    /// An existing folder for host files. Its path must be short (at most 60 bytes): sockets lie below it.
    pub scratch: PathBuf,
    /// Bounds of each room.
    pub limits: Limits,
    /// How many artifacts are rendered at a time, and so how many browsers are kept warm at most.
    pub concurrency: usize,
}

impl RendererOptions {
    /// Bounds for rendering on a machine with `processors` processors: less memory than an agent has, and as many
    /// processes as a browser with several frames needs.
    pub fn default_limits(processors: usize) -> Limits {
        Limits { memory_bytes: 2 << 30, pids: 256, ..Limits::default_for(processors) }
    }
}

/// Renders artifacts. Cheap to share behind an `Arc`.
pub struct Renderer {
    sandbox: Arc<dyn Sandbox>,
    options: RendererOptions,
    slots: Semaphore,
    pages: Pages,
}

/// What a mode found out about an artifact.
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    /// The bytes that were examined, and what they are.
    pub(crate) picture: Option<(Vec<u8>, Picture)>,
    pub(crate) log: String,
    pub(crate) external_requests: Vec<String>,
    pub(crate) dialogs: u32,
}

impl Finding {
    /// No picture, and nothing printed.
    pub(crate) fn without_picture(status: RenderStatus, message: impl Into<String>) -> Self {
        Self {
            verdict: Verdict { status, message: Some(message.into()), line: None },
            picture: None,
            log: String::new(),
            external_requests: Vec::new(),
            dialogs: 0,
        }
    }
}

impl Renderer {
    /// A renderer that has done nothing yet: browsers start with the first page.
    pub fn new(sandbox: Arc<dyn Sandbox>, options: RendererOptions) -> Self {
        let slots = Semaphore::new(options.concurrency.max(1));
        Self { sandbox, options, slots, pages: Pages::default() }
    }

    /// Renders one artifact. `Err` only for failures of ours; what is wrong with the artifact is in the status.
    ///
    /// Takes at most the limit of the settings plus the opening and closing of a room. Dropping the future closes the
    /// room in the background.
    pub async fn render(&self, job: RenderJob) -> Result<Rendering, RenderError> {
        let _slot = self.slots.acquire().await.map_err(|_| RenderError::browser("pool is closed"))?;
        let start = Instant::now();
        let source = source::read(&job.source)?;
        let finding = match source.bytes {
            None => {
                let message = format!("the artifact is larger than {MAX_SOURCE_BYTES} bytes");
                Finding::without_picture(RenderStatus::TooLarge, message)
            }
            Some(bytes) if bytes.is_empty() => {
                Finding::without_picture(RenderStatus::ArtifactError, "the artifact is empty")
            }
            Some(bytes) => self.draw(&job, &bytes).await?,
        };
        tracing::debug!(label = job.label, mode = %job.mode, status = ?finding.verdict.status, "rendered");
        Ok(self.seal(job, source.digest, finding, start.elapsed()))
    }

    /// Closes the warm browsers; a page that is rendered afterwards starts another. Dropping the renderer closes them
    /// too, in the background and without telling.
    pub async fn close(&self) -> Result<(), RenderError> {
        self.pages.close().await
    }

    async fn draw(&self, job: &RenderJob, source: &[u8]) -> Result<Finding, RenderError> {
        if job.mode == RenderMode::Html {
            self.pages.render(self.sandbox.as_ref(), &self.options, job, source).await
        } else {
            tool::render(self.sandbox.as_ref(), &self.options, job, source).await
        }
    }

    fn seal(&self, job: RenderJob, source: Digest, finding: Finding, took: Duration) -> Rendering {
        let Finding { verdict, picture, log, external_requests, dialogs } = finding;
        let status = verdict.status;
        let good = picture.as_ref().filter(|_| status.is_rendered());
        let record = RenderRecord {
            status,
            width: picture.as_ref().map(|(_, picture)| picture.width),
            height: picture.as_ref().map(|(_, picture)| picture.height),
            digest: good.map(|(png, _)| Digest::of(png)),
            bytes: good.map(|(png, _)| png.len() as u64),
            source,
            mode: job.mode,
            settings: job.settings,
            image: self.options.image.clone(),
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            message: verdict.message,
            line: verdict.line,
            external_requests,
            dialogs,
            log,
        };
        let png = picture.map(|(png, _)| png).filter(|_| status.is_rendered());
        Rendering { status, png, record }
    }
}

/// Examines bytes off the async threads: decoding takes up to a second.
pub(crate) async fn examine(png: Vec<u8>) -> (Vec<u8>, Result<Picture, Fault>) {
    let work = move || {
        let picture = picture::examine(&png);
        (png, picture)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(examined) => examined,
        // The decoder panicked: no picture that anybody should look at.
        Err(error) => (Vec::new(), Err(Fault::Broken(error.to_string()))),
    }
}
