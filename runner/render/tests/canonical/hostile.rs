//! Artifacts that mean harm, or are merely broken: each has its name, none gives a picture, none is left running.

use std::time::Duration;

use proctor_render::{RenderJob, RenderRecord, RenderStatus};
use proctor_tasks::{RenderMode, RenderSettings};

use crate::studio::{Studio, expect};

const SEEN: &str = "<!doctype html><body><h1>still here</h1>";

fn limited(seconds: u32) -> RenderSettings {
    RenderSettings { timeout_seconds: seconds, ..RenderSettings::default() }
}

async fn ends(mode: RenderMode, artifact: &str, status: RenderStatus) -> RenderRecord {
    ends_within(20, mode, artifact, status).await
}

async fn ends_within(seconds: u32, mode: RenderMode, artifact: &str, status: RenderStatus) -> RenderRecord {
    let studio = Studio::open().await;
    let drawn = studio.draw_with(mode, artifact, limited(seconds)).await;
    let record = expect(&drawn, status).clone();
    studio.close().await;
    record
}

mod pages {
    use super::*;

    #[tokio::test]
    async fn an_endless_page_times_out_and_the_browser_lives_on() {
        let studio = Studio::open().await;
        let one = studio.draw(RenderMode::Html, SEEN).await;
        let endless = "<!doctype html><script>alert('modal'); for (;;) {}</script>";
        let record =
            expect(&studio.draw_with(RenderMode::Html, endless, limited(3)).await, RenderStatus::Timeout)
                .clone();
        assert_eq!(record.dialogs, 1);
        assert!(studio.draw(RenderMode::Html, SEEN).await.png == one.png);
        studio.close().await;
    }

    #[tokio::test]
    async fn dialogs_and_windows_and_journeys_change_nothing() {
        let studio = Studio::open().await;
        let one = studio.draw(RenderMode::Html, SEEN).await;
        let scripts = [
            "alert(1); confirm(2); prompt(3)",
            "window.open('http://example.com/popup'); window.open('')",
            "location = 'http://example.com/away'",
            "location.reload()",
            "setInterval(() => location.replace('/?' + Math.random()), 30)",
            "print(); window.close(); document.documentElement.requestFullscreen?.()",
            "const a = document.createElement('a'); a.href = 'data:,x'; a.download = 'x'; a.click()",
            "const a = document.createElement('a'); a.href = 'http://example.com/b'; a.target = '_blank'; a.click()",
            "fetch('file:///etc/passwd').catch(() => {}); new WebSocket('ws://127.0.0.1:9222/x')",
        ];
        for script in scripts {
            let drawn = studio.draw(RenderMode::Html, format!("{SEEN}<script>{script}</script>")).await;
            let record = expect(&drawn, RenderStatus::Rendered);
            assert!(drawn.png == one.png, "{script}");
            assert_eq!(record.dialogs, if script.starts_with("alert") { 3 } else { 0 }, "{script}");
            let away = record.external_requests.iter().any(|it| it.ends_with("/away"));
            assert_eq!(away, script.contains("/away"), "{record:?}");
        }
        let refresh = format!("{SEEN}<meta http-equiv=refresh content='0;url=http://example.com/'>");
        let drawn = studio.draw(RenderMode::Html, refresh).await;
        assert_eq!(expect(&drawn, RenderStatus::Rendered).external_requests, ["http://example.com/"]);
        assert!(drawn.png == one.png);
        assert_eq!(studio.rooms(), 1);
        studio.close().await;
    }

    #[tokio::test]
    async fn what_is_not_there_is_refused_and_told() {
        let studio = Studio::open().await;
        let plain = "<!doctype html><body><p>text</p><iframe></iframe>";
        let one = studio.draw(RenderMode::Html, plain).await;
        let reaching = "<!doctype html><link rel=stylesheet href='https://fonts.example.com/css'>\
                        <script src='http://cdn.example.com/x.js'></script>\
                        <body><p>text</p><iframe src='file:///etc/passwd'></iframe>";
        let two = studio.draw(RenderMode::Html, reaching).await;
        let record = expect(&two, RenderStatus::Rendered);
        assert_eq!(
            record.external_requests,
            ["https://fonts.example.com/css", "http://cdn.example.com/x.js"]
        );
        assert!(one.png == two.png);
        studio.close().await;
    }

    #[tokio::test]
    async fn data_and_blobs_and_secure_interfaces_work() {
        let studio = Studio::open().await;
        let picture = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='50' height='50'><rect width='50' height='50' fill='red'/></svg>";
        let one = studio.draw(RenderMode::Html, format!("<!doctype html><img src=\"{picture}\"> true")).await;
        expect(&one, RenderStatus::Rendered);
        let script = format!(
            "<!doctype html><img id=i> <script>fetch(\"{picture}\").then(r => r.blob())\
             .then(b => {{ i.src = URL.createObjectURL(b) }}); document.write(isSecureContext)</script>"
        );
        let two = studio.draw(RenderMode::Html, script).await;
        assert!(one.png == two.png);
        assert!(expect(&two, RenderStatus::Rendered).external_requests.is_empty());
        studio.close().await;
    }

    #[tokio::test]
    async fn nothing_to_see_is_no_picture() {
        let record =
            ends(RenderMode::Html, "<!doctype html><body style='background:navy'>", RenderStatus::Blank)
                .await;
        assert_eq!(record.width, Some(1440));
        let record = ends(RenderMode::Html, "", RenderStatus::ArtifactError).await;
        assert_eq!(record.message.as_deref(), Some("the artifact is empty"));
    }

    #[tokio::test]
    async fn complaints_of_scripts_are_told() {
        let page = "<!doctype html>\n<p>text</p>\n<script>\nnonsense()\n</script>";
        let record = ends(RenderMode::Html, page, RenderStatus::Rendered).await;
        assert_eq!(record.log, "line 4: Uncaught ReferenceError: nonsense is not defined");
    }

    #[tokio::test]
    async fn a_very_tall_page_is_cut() {
        let page = "<!doctype html><body><p>top</p><div style='height:100000px'></div>";
        let record = ends_within(60, RenderMode::Html, page, RenderStatus::Rendered).await;
        assert_eq!(record.height, Some(8000));
        assert!(record.message.unwrap().contains("cut at 8000"));
    }

    #[tokio::test]
    async fn a_page_that_eats_all_memory_is_stopped() {
        let page = "<!doctype html><script>const all = []; for (;;) all.push(new Uint8Array(1 << 26).fill(1));</script>";
        let studio = Studio::with_memory(1 << 30).await;
        let one = studio.draw(RenderMode::Html, SEEN).await;
        expect(&studio.draw(RenderMode::Html, page).await, RenderStatus::OutOfMemory);
        assert!(studio.draw(RenderMode::Html, SEEN).await.png == one.png);
        studio.close().await;
    }

    #[tokio::test]
    async fn a_page_that_talks_too_much_is_cut_off() {
        let page = "<!doctype html><script>const words = 'x'.repeat(1 << 24);\
             setInterval(() => fetch('/x', { method: 'POST', body: words }).catch(() => {}), 1)</script>";
        let studio = Studio::open().await;
        expect(&studio.draw(RenderMode::Html, page).await, RenderStatus::TooLarge);
        expect(&studio.draw(RenderMode::Html, SEEN).await, RenderStatus::Rendered);
        studio.close().await;
    }

    #[tokio::test]
    async fn a_dead_browser_is_replaced() {
        let studio = Studio::open().await;
        let one = studio.draw(RenderMode::Html, SEEN).await;
        studio.kill_rooms();
        let two = studio.draw(RenderMode::Html, SEEN).await;
        expect(&two, RenderStatus::Rendered);
        assert!(one.png == two.png);
        studio.close().await;
    }
}

mod scripts {
    use super::*;

    async fn script_ends(script: &str, status: RenderStatus) -> RenderRecord {
        ends(RenderMode::Python, script, status).await
    }

    #[tokio::test]
    async fn limits_have_names() {
        ends_within(4, RenderMode::Python, "while True: pass", RenderStatus::Timeout).await;
        script_ends("x = []\nwhile True: x.append(bytearray(1 << 24))", RenderStatus::OutOfMemory).await;
        script_ends("import os\nwhile True: os.fork()", RenderStatus::PidsLimit).await;
        script_ends("f = open('fill', 'wb')\nwhile True: f.write(bytes(1 << 20))", RenderStatus::DiskLimit)
            .await;
        script_ends("while True: print('flood ' * 1000)", RenderStatus::DiskLimit).await;
        script_ends("import ctypes\nctypes.string_at(0)", RenderStatus::Crash).await;
    }

    #[tokio::test]
    async fn a_detached_child_does_not_outlive_its_room() {
        let script = "import os, signal, time\nif os.fork() == 0:\n    os.setsid()\n    \
                      signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True: open('output.png', 'w').write('x')\n\
                      time.sleep(0.5)\nopen('output.png', 'w').close()";
        script_ends(script, RenderStatus::NoOutput).await;
    }

    #[tokio::test]
    async fn a_zero_alone_is_no_success() {
        for script in [
            "pass",
            "open('output.png', 'w').close()",
            "open('output.png', 'w').write('no picture')",
            "open('output.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')",
            "import os\nos.symlink('/etc/passwd', 'output.png')",
            "import os\nos.mkfifo('output.png')",
            "import os\nos._exit(0)",
        ] {
            script_ends(script, RenderStatus::NoOutput).await;
        }
    }

    #[tokio::test]
    async fn complaints_name_the_line() {
        let record = script_ends("x = 1\n\nprint(y)\n", RenderStatus::ArtifactError).await;
        assert_eq!(record.message.as_deref(), Some("NameError: name 'y' is not defined"));
        assert_eq!(record.line, Some(3));
        let record = script_ends("x = (\n", RenderStatus::ArtifactError).await;
        assert_eq!(
            (record.message.as_deref(), record.line),
            (Some("SyntaxError: '(' was never closed"), Some(1))
        );
        let network = "import socket\nsocket.create_connection(('1.1.1.1', 80), 5)";
        let record = script_ends(network, RenderStatus::ArtifactError).await;
        assert!(record.message.unwrap().contains("Network is unreachable"));
        script_ends("raise SystemExit(3)", RenderStatus::ArtifactError).await;
    }
}

mod papers {
    use super::*;

    fn paper(preamble: &str, body: &str) -> String {
        format!(
            "\\documentclass[border=2pt]{{standalone}}\n{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
        )
    }

    #[tokio::test]
    async fn a_missing_package_is_named_with_its_line() {
        let artifact = paper("\\usepackage{no-such-package-xyz}", "x");
        let record = ends(RenderMode::Tikz, &artifact, RenderStatus::ArtifactError).await;
        assert!(record.message.unwrap().contains("no-such-package-xyz.sty' not found"), "{}", record.log);
        assert_eq!(record.line, Some(3), "{}", record.log);
        let record =
            ends(RenderMode::Circuitikz, &paper("", "a\n\\nonsense"), RenderStatus::ArtifactError).await;
        assert_eq!((record.message.as_deref(), record.line), (Some("Undefined control sequence."), Some(5)));
    }

    #[tokio::test]
    async fn the_first_page_is_the_picture() {
        let article = "\\documentclass{article}\\begin{document}one\\newpage two\\end{document}";
        let record = ends(RenderMode::Tikz, article, RenderStatus::Rendered).await;
        assert_eq!(record.message.as_deref(), Some("the document has 2 pages; the picture is the first"));
    }

    #[tokio::test]
    async fn a_paper_without_ink_is_no_picture() {
        let empty = paper("", "").replace("border=2pt", "");
        ends(RenderMode::Tikz, &empty, RenderStatus::NoOutput).await;
        ends(RenderMode::Tikz, &paper("", "\\hspace{3cm}\\rule{0pt}{1cm}"), RenderStatus::Blank).await;
    }

    #[tokio::test]
    async fn an_endless_macro_times_out() {
        ends_within(4, RenderMode::Tikz, &paper("", "\\def\\x{\\relax\\x}\\x"), RenderStatus::Timeout).await;
    }

    #[tokio::test]
    async fn nothing_is_run_and_nothing_foreign_is_read() {
        let studio = Studio::open().await;
        let plain = studio.draw(RenderMode::Tikz, paper("\\usepackage{verbatim}", "x")).await;
        expect(&plain, RenderStatus::Rendered);
        let shell =
            paper("", "\\immediate\\write18{echo pwned > pwned.tex}x\\IfFileExists{pwned.tex}{pwned}{}");
        assert!(studio.draw(RenderMode::Tikz, shell).await.png == plain.png);
        let reading = paper("\\usepackage{verbatim}", "x\\IfFileExists{/etc/passwd}{read}{}");
        assert!(studio.draw(RenderMode::Tikz, reading).await.png == plain.png);
        studio.close().await;
    }
}

mod graphs {
    use super::*;

    #[tokio::test]
    async fn a_syntax_error_has_its_line() {
        let record = ends(RenderMode::Dot, "digraph {\n  a -> ;\n}\n", RenderStatus::ArtifactError).await;
        assert_eq!(record.line, Some(2), "{record:?}");
    }

    #[tokio::test]
    async fn files_of_the_room_are_not_shown() {
        let studio = Studio::open().await;
        let plain = studio.draw(RenderMode::Dot, "digraph { a [label=\"\"]; a -> b }").await;
        let reaching = "digraph { a [label=\"\", image=\"/etc/passwd\"]; a -> b }";
        let drawn = studio.draw(RenderMode::Dot, reaching).await;
        expect(&drawn, RenderStatus::Rendered);
        assert!(drawn.png == plain.png);
        studio.close().await;
    }

    #[tokio::test]
    async fn an_enormous_graph_is_stopped_one_way_or_another() {
        let studio = Studio::open().await;
        let settings = RenderSettings { timeout_seconds: 20, ..RenderSettings::default() };
        let graph = "digraph { a [width=2000, height=2000, fixedsize=true] }";
        let drawn = studio.draw_with(RenderMode::Dot, graph, settings).await;
        assert!(
            matches!(
                drawn.status,
                RenderStatus::TooLarge | RenderStatus::OutOfMemory | RenderStatus::Timeout
            ),
            "{drawn:?}"
        );
        assert!(drawn.png.is_none());
        studio.close().await;
    }
}

#[tokio::test]
async fn a_rendering_that_nobody_waits_for_leaves_nothing() {
    let studio = Studio::open().await;
    let source = studio.file("artifact.py", "while True: pass");
    let job = RenderJob::new(source, RenderMode::Python, limited(60), "given up");
    let waited = tokio::time::timeout(Duration::from_secs(4), studio.render(job)).await;
    assert!(waited.is_err());
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while studio.rooms() > 0 {
        assert!(std::time::Instant::now() < deadline, "the room was not closed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    studio.close().await;
}
