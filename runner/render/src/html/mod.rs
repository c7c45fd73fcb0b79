//! stub
use proctor_sandbox::Sandbox;
use crate::{RenderError, RenderJob, RendererOptions, renderer::Finding};
#[derive(Default)]
pub(crate) struct Pages;
impl Pages {
    pub(crate) async fn render(&self, _s: &dyn Sandbox, _o: &RendererOptions, _j: &RenderJob, _b: &[u8]) -> Result<Finding, RenderError> {
        Err(RenderError::browser("is a stub"))
    }
    pub(crate) async fn close(self) -> Result<(), RenderError> { Ok(()) }
}
