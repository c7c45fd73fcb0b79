//! Artifacts that are as they should be: the same bytes every time.

use image::GenericImageView as _;
use proctor_render::{Asset, RenderJob, RenderStatus};
use proctor_tasks::{RenderMode, RenderSettings};

use crate::studio::{Studio, expect};

const DOT: &str = include_str!("../artifacts/flow.dot");
const BARS: &str = include_str!("../artifacts/bars.tex");
const DIVIDER: &str = include_str!("../artifacts/divider.tex");
const WAVES: &str = include_str!("../artifacts/waves.py");
const ANIMATED: &str = include_str!("../artifacts/animated.html");

/// Width and height of a picture and how many colours it has.
fn look(png: &[u8]) -> (u32, u32, usize) {
    let picture = image::load_from_memory(png).unwrap();
    let colours: std::collections::BTreeSet<_> = picture.pixels().map(|(_, _, pixel)| pixel.0).collect();
    (picture.width(), picture.height(), colours.len())
}

async fn same_every_time(mode: RenderMode, artifact: &str) -> (u32, u32, usize) {
    let studio = Studio::with(2).await;
    let one = studio.draw(mode, artifact).await;
    let record = expect(&one, RenderStatus::Rendered);
    assert_eq!(record.image.reference.split(':').next(), Some("proctor/toolchain"));
    let (two, three) = tokio::join!(studio.draw(mode, artifact), studio.draw(mode, artifact));
    assert!(two.png == one.png && three.png == one.png, "{one:?}\n{two:?}\n{three:?}");
    let png = one.png.as_deref().unwrap();
    let looks = look(png);
    assert_eq!((record.width, record.height), (Some(looks.0), Some(looks.1)));
    assert_eq!(record.bytes, Some(png.len() as u64));
    studio.close().await;
    looks
}

#[tokio::test]
async fn a_graph_is_drawn_the_same_every_time() {
    let (width, height, colours) = same_every_time(RenderMode::Dot, DOT).await;
    assert!(width > 400 && height > 100 && colours > 10);
}

#[tokio::test]
async fn a_plot_in_tikz_is_drawn_the_same_every_time() {
    let (width, height, colours) = same_every_time(RenderMode::Tikz, BARS).await;
    assert!(width > 400 && height > 300 && colours > 10);
}

#[tokio::test]
async fn a_circuit_is_drawn_the_same_every_time() {
    let (width, height, colours) = same_every_time(RenderMode::Circuitikz, DIVIDER).await;
    assert!(width > 400 && height > 300 && colours > 10);
}

#[tokio::test]
async fn a_figure_is_drawn_the_same_every_time() {
    let (width, height, colours) = same_every_time(RenderMode::Python, WAVES).await;
    assert!((width, height) == (720, 480) && colours > 10);
}

#[tokio::test]
async fn an_animated_page_is_drawn_the_same_by_one_browser_and_by_the_next() {
    let studio = Studio::open().await;
    let one = studio.draw(RenderMode::Html, ANIMATED).await;
    expect(&one, RenderStatus::Rendered);
    let png = one.png.as_ref().unwrap();
    let (width, height, colours) = look(png);
    assert!(width == 1440 && height > 1200 && colours > 50, "{width} × {height}, {colours} colours");
    // Between two of the same, a page that leaves everything it can behind.
    let litter = "<script>localStorage.x = document.cookie = 'a=b'; caches.open('c'); document.write(localStorage.x)</script>";
    for _ in 0..3 {
        expect(&studio.draw(RenderMode::Html, litter).await, RenderStatus::Rendered);
        let again = studio.draw(RenderMode::Html, ANIMATED).await;
        let record = expect(&again, RenderStatus::Rendered);
        assert!(again.png == one.png, "{record:?}\n{:?}", one.record);
    }
    assert_eq!(studio.rooms(), 1, "one browser is kept warm");
    studio.close().await;

    let studio = Studio::with(2).await;
    let (two, three) =
        tokio::join!(studio.draw(RenderMode::Html, ANIMATED), studio.draw(RenderMode::Html, ANIMATED));
    assert!(two.png == one.png && three.png == one.png);
    assert_eq!(studio.rooms(), 2, "one browser for each that draws at a time");
    studio.close().await;
}

#[tokio::test]
async fn what_a_solver_sees_in_its_preview_is_what_counts() {
    let studio = Studio::open().await;
    let still = "<!doctype html><body style='font:40px serif;height:800px'><b>Still</b> — é 測試";
    let mut settings = RenderSettings::default();
    settings.html.width = 1000;
    settings.dot.dpi = 100;
    settings.tex.dpi = 150;
    let artifacts = [
        (RenderMode::Html, still),
        (RenderMode::Dot, DOT),
        (RenderMode::Tikz, BARS),
        (RenderMode::Circuitikz, DIVIDER),
        (RenderMode::Python, WAVES),
    ];
    for (mode, artifact) in artifacts {
        let source = studio.file(mode.artifact_name(), artifact);
        let preview = studio.preview(mode, &settings, &source);
        let canonical = studio.render(RenderJob::new(source, mode, settings.clone(), "preview")).await;
        expect(&canonical, RenderStatus::Rendered);
        assert!(canonical.png.unwrap() == preview, "{mode}");
    }
    studio.close().await;
}

#[tokio::test]
async fn settings_decide_on_the_size() {
    let studio = Studio::open().await;
    let mut settings = RenderSettings::default();
    settings.html.width = 400;
    settings.html.height = 300;
    settings.html.scale = 2;
    let page = "<!doctype html><body><p>twice</p><div style='height:1000px'></div>";
    let (full, _, _) =
        look(studio.draw_with(RenderMode::Html, page, settings.clone()).await.png.as_ref().unwrap());
    assert_eq!(full, 800);
    settings.html.full_page = false;
    let window = studio.draw_with(RenderMode::Html, page, settings).await;
    assert_eq!((window.record.width, window.record.height), (Some(800), Some(600)));
    studio.close().await;
}

#[tokio::test]
async fn a_script_is_taken_at_its_last_word() {
    let studio = Studio::open().await;
    let size = async |script: &str| {
        let drawn = studio.draw(RenderMode::Python, script).await;
        let record = expect(&drawn, RenderStatus::Rendered);
        (record.width.unwrap(), record.height.unwrap())
    };
    let pillow = "from PIL import Image, ImageDraw\ndef save(name, n):\n    i = Image.new('RGB', (n, 50), 'white')\n    \
                  ImageDraw.Draw(i).line((0, 0, 9, 9), fill='red')\n    i.save(name)\n";
    // The named picture before a later one; without it, the last, wherever it lies; a figure only if nothing was saved.
    assert_eq!(size(&format!("{pillow}save('output.png', 60)\nsave('other.png', 70)")).await, (60, 50));
    assert_eq!(size(&format!("{pillow}save('one.png', 60)\nsave('/tmp/two.png', 70)")).await, (70, 50));
    assert_eq!(size(&format!("{pillow}save('/work/output.png', 80)\nraise SystemExit")).await, (80, 50));
    let open = "import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2), dpi=300)\nplt.plot([1, 2])\nplt.show()\n";
    assert_eq!(size(open).await, (300, 200));
    assert_eq!(size("import cv2, numpy\ncv2.imwrite('c.png', numpy.eye(20) * 255)").await, (20, 20));
    studio.close().await;
}

#[tokio::test]
async fn assets_are_there_and_nothing_else_is() {
    let studio = Studio::open().await;
    let logo = studio.file("logo.bin", include_bytes!("../artifacts/logo.png"));
    let assets = vec![Asset { name: "public/logo.png".to_owned(), source: logo }];
    let job = |mode: RenderMode, content: &str| {
        let source = studio.file(&format!("assets.{}", mode.extension()), content);
        RenderJob {
            assets: assets.clone(),
            ..RenderJob::new(source, mode, RenderSettings::default(), "assets")
        }
    };
    let page = "<!doctype html><body style='margin:0'><img src='public/logo.png'><img src='public/none.png'>";
    let drawn = studio.render(job(RenderMode::Html, page)).await;
    let record = expect(&drawn, RenderStatus::Rendered);
    assert_eq!(record.external_requests, ["http://artifact.localhost/public/none.png"]);
    let script = "from PIL import Image\nImage.open('public/logo.png').resize((40, 40)).save('output.png')";
    let drawn = studio.render(job(RenderMode::Python, script)).await;
    assert_eq!(expect(&drawn, RenderStatus::Rendered).width, Some(40));
    // An asset alone is not something that was drawn.
    expect(&studio.render(job(RenderMode::Python, "pass")).await, RenderStatus::NoOutput);
    studio.close().await;
}
