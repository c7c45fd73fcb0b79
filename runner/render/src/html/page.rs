//! One page, frame by frame: virtual time goes on only while we say so, and no frame begins but ours. So the picture
//! depends on the page alone, not on how fast the machine is.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide::Page;
use chromiumoxide::cdp::browser_protocol::browser::{
    BrowserContextId, SetDownloadBehaviorBehavior, SetDownloadBehaviorParams,
};
use chromiumoxide::cdp::browser_protocol::emulation::{
    EventVirtualTimeBudgetExpired, SetDeviceMetricsOverrideParams, SetVirtualTimePolicyParams,
    VirtualTimePolicy,
};
use chromiumoxide::cdp::browser_protocol::headless_experimental::{
    self, BeginFrameParams, ScreenshotParams, ScreenshotParamsFormat,
};
use chromiumoxide::cdp::browser_protocol::network::TimeSinceEpoch;
use chromiumoxide::cdp::browser_protocol::page::{
    AddScriptToEvaluateOnNewDocumentParams, EventFrameNavigated, GetLayoutMetricsParams, NavigateParams,
};
use chromiumoxide::cdp::browser_protocol::target::{CreateBrowserContextParams, CreateTargetParams};
use chromiumoxide::cdp::browser_protocol::{fetch, log, network, performance};
use chromiumoxide::cdp::js_protocol::runtime;
use chromiumoxide::error::CdpError;
use chromiumoxide::listeners::EventStream;
use futures_util::StreamExt as _;
use proctor_tasks::HtmlSettings;

use super::browser::WarmBrowser;
use super::warden::{ORIGIN, Warden};
use crate::picture::MAX_PIXELS;
use crate::{RenderError, RenderJob};

/// One frame at 60 Hz, in milliseconds.
const FRAME: f64 = 1000.0 / 60.0;
/// Frames before the picture: one second of the page's time.
const FRAMES: u32 = 60;
/// Frames after animations were settled, and after the window was made as tall as the page.
const SETTLING: u32 = 2;
const RESIZING: u32 = 5;

/// What a page takes for the time of its start, in seconds since the epoch: 2026-01-01.
const START: f64 = 1_767_225_600.0;

/// How long a browser may take for what no page has a part in.
const HOUSEKEEPING: Duration = Duration::from_secs(20);
/// How long a context may take to go, endless loop and all; it takes about 50 ms.
const DISPOSAL: Duration = Duration::from_secs(5);

/// Most characters of what a page's scripts complain about.
const MAX_COMPLAINTS: usize = 2000;

/// How a page ended.
pub(crate) enum End {
    /// With a PNG, not looked at yet.
    Picture(Vec<u8>),
    /// The browser drew nothing.
    NoPicture,
    /// Its time passed.
    TimedOut,
    /// Its process, or the browser, went down under it.
    Crashed(String),
    /// It made the browser send too much.
    TooMuch,
}

/// What came of a page.
pub(crate) struct Drawn {
    pub(crate) end: End,
    /// What should be known beside the picture.
    pub(crate) notes: Option<String>,
    /// What its scripts complained about, a line each.
    pub(crate) complaints: String,
    pub(crate) external_requests: Vec<String>,
    pub(crate) dialogs: u32,
    /// Nothing of the page is left in the browser.
    pub(crate) context_gone: bool,
}

/// Draws a page in a context of its own. `Err` means that the browser failed before it saw the page.
pub(crate) async fn draw(
    browser: &mut WarmBrowser,
    job: &RenderJob,
    document: &[u8],
) -> Result<Drawn, RenderError> {
    browser.pages += 1;
    browser.relay.reset();
    let failed = |error: CdpError| RenderError::browser(format!("refused a page: {error}"));
    let preparing = tokio::time::timeout(HOUSEKEEPING, prepare(browser, &job.settings.html));
    let (context, page, ticks) =
        preparing.await.map_err(|_| RenderError::browser("does not answer"))?.map_err(failed)?;
    let mut warden = Warden::new(page.clone(), document, &job.assets).await.map_err(failed)?;
    let mut stage = Stage::new(page, ticks).await.map_err(failed)?;

    let (end, notes) = perform(browser, job, &mut stage, &mut warden).await;
    let disposal = browser.client.dispose_browser_context(context);
    let context_gone = matches!(tokio::time::timeout(DISPOSAL, disposal).await, Ok(Ok(())));
    let Warden { external_requests, dialogs, .. } = warden;
    let complaints = std::mem::take(&mut stage.complaints);
    Ok(Drawn { end, notes, complaints, external_requests, dialogs, context_gone })
}

/// Makes a context with an empty page in it, at which time stands still; returns the tick at which its frames begin.
async fn prepare(
    browser: &WarmBrowser,
    settings: &HtmlSettings,
) -> Result<(BrowserContextId, Page, f64), CdpError> {
    let client = &browser.client;
    let context = CreateBrowserContextParams::builder().dispose_on_detach(true).build();
    let context = client.create_browser_context(context).await?;
    let target = CreateTargetParams::builder()
        .url("about:blank")
        .width(i64::from(settings.width))
        .height(i64::from(settings.height))
        .browser_context_id(context.clone())
        .enable_begin_frame_control(true)
        .build()
        .map_err(CdpError::msg)?;
    let page = client.new_page(target).await?;
    let downloads = SetDownloadBehaviorParams::builder()
        .behavior(SetDownloadBehaviorBehavior::Deny)
        .browser_context_id(context.clone())
        .build()
        .map_err(CdpError::msg)?;
    client.execute(downloads).await?;
    // The client listens to everything; a page that talks without end would talk to us.
    page.execute(runtime::DisableParams::default()).await?;
    page.execute(log::DisableParams::default()).await?;
    page.execute(network::DisableParams::default()).await?;
    page.execute(performance::DisableParams::default()).await?;
    page.execute(fetch::EnableParams::default()).await?;
    page.execute(AddScriptToEvaluateOnNewDocumentParams::new(include_str!("seed.js"))).await?;
    let pause = SetVirtualTimePolicyParams::builder()
        .policy(VirtualTimePolicy::Pause)
        .initial_virtual_time(TimeSinceEpoch::new(START))
        .build()
        .map_err(CdpError::msg)?;
    let ticks = page.execute(pause).await?.result.virtual_time_ticks_base;
    Ok((context, page, ticks))
}

fn window(settings: &HtmlSettings, height: u32) -> SetDeviceMetricsOverrideParams {
    let (width, height) = (i64::from(settings.width), i64::from(height));
    SetDeviceMetricsOverrideParams::new(width, height, f64::from(settings.scale), false)
}

/// Draws under guard: the first of the picture, a crash, the end of the browser and the end of the time.
async fn perform(
    browser: &WarmBrowser,
    job: &RenderJob,
    stage: &mut Stage,
    warden: &mut Warden<'_>,
) -> (End, Option<String>) {
    let mut ended = browser.ended.clone();
    let gone = async {
        // An error means that the sender is gone, and the connection with it.
        let _ = ended.wait_for(|ended| *ended).await;
    };
    let (end, notes) = tokio::select! {
        drawn = stage.draw(&job.settings.html) => match drawn {
            Ok((Some(png), notes)) => (End::Picture(png), notes),
            Ok((None, notes)) => (End::NoPicture, notes),
            // The client waits for half a minute: drawing one frame takes no decent page a hundredth of that.
            Err(CdpError::Timeout) => (End::TimedOut, None),
            Err(error) => (End::Crashed(format!("the browser lost the page: {error}")), None),
        },
        why = warden.watch() => (End::Crashed(why), None),
        () = gone => (End::Crashed("the browser crashed".to_owned()), None),
        () = tokio::time::sleep(job.settings.timeout()) => (End::TimedOut, None),
    };
    // The connection was cut by us then, which looks like a crash in one of several ways.
    if browser.relay.is_exceeded() { (End::TooMuch, None) } else { (end, notes) }
}

/// The page and its clock.
struct Stage {
    page: Page,
    ticks: f64,
    spent: EventStream<EventVirtualTimeBudgetExpired>,
    navigations: EventStream<EventFrameNavigated>,
    complaints: String,
}

impl Stage {
    async fn new(page: Page, ticks: f64) -> Result<Self, CdpError> {
        let spent = page.event_listener().await?;
        let navigations = page.event_listener().await?;
        Ok(Self { page, ticks, spent, navigations, complaints: String::new() })
    }

    /// Loads the page and draws it; returns the PNG and what should be known beside it.
    async fn draw(&mut self, settings: &HtmlSettings) -> Result<(Option<Vec<u8>>, Option<String>), CdpError> {
        self.navigate().await?;
        self.frames(FRAMES).await?;
        let settle = runtime::EvaluateParams::builder()
            .expression(include_str!("settle.js"))
            .silent(true)
            .build()
            .map_err(CdpError::msg)?;
        let answer = self.page.execute(settle).await?.result.result.value;
        if let Some(complaints) = answer.as_ref().and_then(|value| value.as_str()) {
            let plain = |c: &char| *c == '\n' || !c.is_control();
            self.complaints = complaints.chars().filter(plain).take(MAX_COMPLAINTS).collect();
        }
        self.frames(SETTLING).await?;
        let notes = if settings.full_page { self.stretch(settings).await? } else { None };
        Ok((self.shoot().await?, notes))
    }

    /// Goes to the page, and waits until its document is there: a frame begun earlier may or may not show the empty one.
    async fn navigate(&mut self) -> Result<(), CdpError> {
        let going = {
            let page = self.page.clone();
            // Its answer comes with the load event, which needs frames.
            async move { page.execute(NavigateParams::new(ORIGIN)).await.map(drop) }
        };
        let arrived = async {
            while let Some(event) = self.navigations.next().await {
                if event.frame.parent_id.is_none() && event.frame.url == ORIGIN {
                    return Ok(());
                }
            }
            Err(CdpError::msg("no document"))
        };
        tokio::spawn(going);
        arrived.await
    }

    async fn frames(&mut self, count: u32) -> Result<(), CdpError> {
        for _ in 0..count {
            self.advance().await?;
            self.page.execute(self.frame().no_display_updates(true).build()).await?;
        }
        Ok(())
    }

    /// Lets the page have the time of one frame.
    async fn advance(&mut self) -> Result<(), CdpError> {
        let budget = SetVirtualTimePolicyParams::builder()
            .policy(VirtualTimePolicy::PauseIfNetworkFetchesPending)
            .budget(FRAME)
            .build()
            .map_err(CdpError::msg)?;
        // A page that computes for long answers late, and the client's patience of half a minute is not the page's limit:
        // only the event counts.
        let asked = self.page.execute(budget);
        let spent = tokio::select! {
            biased;
            event = self.spent.next() => event,
            answer = asked => match answer {
                Ok(_) | Err(CdpError::Timeout) => self.spent.next().await,
                Err(error) => return Err(error),
            },
        };
        spent.ok_or_else(|| CdpError::msg("time stopped"))?;
        self.ticks += FRAME;
        Ok(())
    }

    fn frame(&self) -> headless_experimental::BeginFrameParamsBuilder {
        BeginFrameParams::builder().frame_time_ticks(self.ticks).interval(FRAME)
    }

    /// Makes the window as tall as the page, within the cap.
    async fn stretch(&mut self, settings: &HtmlSettings) -> Result<Option<String>, CdpError> {
        let size = self.page.execute(GetLayoutMetricsParams::default()).await?.result.css_content_size;
        let (height, notes) = height(settings, size.height);
        if height > settings.height {
            self.page.execute(window(settings, height)).await?;
            self.frames(RESIZING).await?;
        }
        Ok(notes)
    }

    async fn shoot(&mut self) -> Result<Option<Vec<u8>>, CdpError> {
        let png = ScreenshotParams::builder().format(ScreenshotParamsFormat::Png).build();
        self.advance().await?;
        let drawn = self.page.execute(self.frame().screenshot(png).build()).await?.result;
        let Some(data) = drawn.screenshot_data else { return Ok(None) };
        let text: &str = data.as_ref();
        Ok(STANDARD.decode(text).ok())
    }
}

/// How tall the picture of a page of `content` CSS pixels is, and what to say if that is less than all of it.
fn height(settings: &HtmlSettings, content: f64) -> (u32, Option<String>) {
    let HtmlSettings { width, height, scale, height_cap, .. } = *settings;
    let across = u64::from(width) * u64::from(scale) * u64::from(scale);
    let most = u32::try_from(MAX_PIXELS / across.max(1)).unwrap_or(u32::MAX).min(height_cap.max(height));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32"
    )]
    let wanted = content.ceil().clamp(0.0, f64::from(u32::MAX)) as u32;
    if wanted <= most {
        (wanted.max(height), None)
    } else {
        (most, Some(format!("the page is {wanted} pixels tall; the picture is cut at {most}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_as_tall_as_the_page_within_bounds() {
        let settings = HtmlSettings::default();
        assert_eq!(height(&settings, 0.0), (900, None));
        assert_eq!(height(&settings, 900.2), (901, None));
        assert_eq!(height(&settings, 8000.0), (8000, None));
        let (cut, note) = height(&settings, 100_000.0);
        assert_eq!((cut, note.unwrap().contains("100000")), (8000, true));
        assert_eq!(height(&settings, f64::NAN).0, 900);
        assert_eq!(height(&settings, f64::INFINITY).0, 8000);
        let large = HtmlSettings { width: 4096, scale: 3, height_cap: 16384, ..settings };
        assert!(u64::from(height(&large, 1e9).0) * 4096 * 9 <= MAX_PIXELS);
    }
}
