//! Artifacts that are as they should be: the same bytes every time.

use proctor_render::RenderStatus;
use proctor_tasks::RenderMode;

use crate::studio::{Studio, expect};

const DOT: &str = include_str!("../artifacts/flow.dot");

#[tokio::test]
async fn a_graph_is_drawn_the_same_every_time() {
    let studio = Studio::open().await;
    let one = studio.draw(RenderMode::Dot, DOT).await;
    let record = expect(&one, RenderStatus::Rendered);
    assert!(record.width.unwrap() > 100 && record.height.unwrap() > 100, "{record:?}");
    assert_eq!(studio.draw(RenderMode::Dot, DOT).await.png, one.png);
    studio.close().await;
}
