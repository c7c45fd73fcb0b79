//! Canonical rendering: an artifact becomes a picture in a room without network, the same bytes every time.
//!
//! [`Renderer::render`] takes a file that an agent left, treats it as hostile, and answers with a [`Rendering`]: a PNG
//! only when there is one to be proud of, and a [`RenderRecord`] (`render.json`) always. What the artifact does wrong
//! is a [`RenderStatus`]; a [`RenderError`] is always a failure of ours.
//!
//! | mode | how |
//! |---|---|
//! | html | a warm `chromium-headless-shell`, one browser context per page, frames driven one by one in virtual time; the picture shows the page after one second of its own time, every finite CSS animation finished and every infinite one at its start |
//! | dot | `dot -Tpng -Gdpi=…` |
//! | tikz, circuitikz | one run of `pdflatex` over a whole document (not a snippet), then `pdftocairo` on its first page |
//! | python | the script as `__main__`; the picture it saves, else the matplotlib figure it leaves open |
//!
//! A picture that a model returned instead of a program needs no room: [`take_over`] unpacks it here, under limits.
//!
//! DOT, LaTeX and Python get a fresh room per artifact and leave with it; pages share a browser, but neither cookies nor
//! storage, and a browser that stops answering is replaced.

mod classify;
mod error;
mod html;
mod job;
mod picture;
mod record;
mod renderer;
mod returned;
mod room;
mod source;
mod tool;

pub use error::RenderError;
pub use job::{Asset, RenderJob, Rendering};
pub use record::{RenderRecord, RenderStatus};
pub use renderer::{Renderer, RendererOptions};
pub use returned::take_over;
