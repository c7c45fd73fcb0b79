//! Pages: warm browsers in rooms of their own, and a fresh browser context for each page.

mod browser;
mod page;
mod relay;
mod warden;

use std::sync::{Mutex, PoisonError};

use proctor_sandbox::Sandbox;

use crate::classify::Verdict;
use crate::picture::Fault;
use crate::renderer::{Finding, examine};
use crate::{RenderError, RenderJob, RenderStatus, RendererOptions};

use browser::WarmBrowser;
use page::{Drawn, End};

/// A browser is replaced after this many pages, so that what it slowly gathers never matters.
const PAGES_PER_BROWSER: u32 = 200;

/// The browsers that wait for a page. There are never more than jobs at a time.
#[derive(Default)]
pub(crate) struct Pages {
    idle: Mutex<Vec<WarmBrowser>>,
}

impl Pages {
    /// Renders the page `source`. A browser that is found dead before it has seen the page is replaced once.
    pub(crate) async fn render(
        &self,
        sandbox: &dyn Sandbox,
        options: &RendererOptions,
        job: &RenderJob,
        source: &[u8],
    ) -> Result<Finding, RenderError> {
        let scale = job.settings.html.scale;
        let first = match self.take(scale).await? {
            Some(browser) => browser,
            None => WarmBrowser::open(sandbox, options, &job.label, scale).await?,
        };
        match self.draw(first, job, source).await {
            Err(error @ RenderError::Browser { .. }) => {
                tracing::warn!(%error, "a browser did not take a page; another one is tried");
                let second = WarmBrowser::open(sandbox, options, &job.label, scale).await?;
                self.draw(second, job, source).await
            }
            other => other,
        }
    }

    /// Closes every browser that waits.
    pub(crate) async fn close(&self) -> Result<(), RenderError> {
        let idle = std::mem::take(&mut *self.lock());
        for browser in idle {
            browser.close().await?;
        }
        Ok(())
    }

    /// `Err` means that the browser failed before it saw the page. It is gone then.
    async fn draw(
        &self,
        mut browser: WarmBrowser,
        job: &RenderJob,
        source: &[u8],
    ) -> Result<Finding, RenderError> {
        let drawn = page::draw(&mut browser, job, source).await;
        let healthy = matches!(&drawn, Ok(drawn) if drawn.context_gone) && browser.pages < PAGES_PER_BROWSER;
        let drawn = match drawn {
            Ok(drawn) => drawn,
            Err(error) => {
                browser.close().await?;
                return Err(error);
            }
        };
        let memory = matches!(drawn.end, End::Crashed(_)) && browser.ran_out_of_memory().await;
        if healthy {
            self.lock().push(browser);
        } else {
            browser.close().await?;
        }
        Ok(finding(drawn, memory).await)
    }

    /// A living browser of this scale. If there is none, one of another scale makes room for it.
    async fn take(&self, scale: u32) -> Result<Option<WarmBrowser>, RenderError> {
        loop {
            let taken = {
                let mut idle = self.lock();
                let fitting = idle.iter().rposition(|browser| browser.scale == scale);
                fitting.map(|at| idle.remove(at)).or_else(|| idle.pop())
            };
            match taken {
                Some(browser) if browser.scale == scale && browser.is_alive() => return Ok(Some(browser)),
                Some(other) => {
                    let fits = other.scale == scale;
                    other.close().await?;
                    if !fits {
                        return Ok(None);
                    }
                }
                None => return Ok(None),
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<WarmBrowser>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn finding(drawn: Drawn, out_of_memory: bool) -> Finding {
    let Drawn { end, notes, complaints, external_requests, dialogs, .. } = drawn;
    let (status, message, picture) = match end {
        End::TimedOut => (RenderStatus::Timeout, Some("the time limit passed".to_owned()), None),
        End::Crashed(_) if out_of_memory => {
            (RenderStatus::OutOfMemory, Some("the memory limit was hit".to_owned()), None)
        }
        End::Crashed(why) => (RenderStatus::Crash, Some(why), None),
        End::TooMuch => {
            (RenderStatus::TooLarge, Some("the page sent more than is accepted".to_owned()), None)
        }
        End::NoPicture => (RenderStatus::NoOutput, Some("the browser gave no picture".to_owned()), None),
        End::Picture(png) => match examine(png).await {
            (png, Ok(picture)) if picture.blank => (
                RenderStatus::Blank,
                Some("every pixel has the same colour".to_owned()),
                Some((png, picture)),
            ),
            (png, Ok(picture)) => (RenderStatus::Rendered, notes, Some((png, picture))),
            (_, Err(Fault::TooLarge(why))) => (RenderStatus::TooLarge, Some(why), None),
            (_, Err(Fault::Missing)) => {
                (RenderStatus::NoOutput, Some("the picture is empty".to_owned()), None)
            }
            (_, Err(Fault::Broken(why))) => (RenderStatus::NoOutput, Some(why), None),
        },
    };
    let verdict = Verdict { status, message, line: None };
    Finding { verdict, picture, log: complaints, external_requests, dialogs }
}
