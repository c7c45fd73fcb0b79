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

const ANIMATED: &str = include_str!("../artifacts/animated.html");

#[tokio::test]
async fn an_animated_page_is_drawn_the_same_by_one_browser_and_by_the_next() {
    let studio = Studio::open().await;
    let one = studio.draw(RenderMode::Html, ANIMATED).await;
    let record = expect(&one, RenderStatus::Rendered);
    assert_eq!(record.width, Some(1440));
    assert!(record.height.unwrap() > 1200, "{record:?}");
    if let Ok(path) = std::env::var("KEEP") {
        std::fs::write(path, one.png.as_ref().unwrap()).unwrap();
    }
    for _ in 0..8 {
        let again = studio.draw(RenderMode::Html, ANIMATED).await;
        eprintln!("{:?} {}", again.record.digest, again.record.duration_ms);
        assert!(again.png == one.png);
    }
    studio.close().await;
}
