//! The guide, case by case: each line of a table is a call in a session, and what it must come to.

use serde_json::{Value, json};

use super::measure::{Agreement, Corpus};
use super::*;
use crate::{Nesting, ToolStatus, ViewedImage};

mod habits;

fn call(at: usize, name: &str, input: Value) -> Call {
    Call {
        id: ToolCallId(format!("c{at}")),
        seq: u32::try_from(at).unwrap(),
        turn: 1,
        name: name.to_owned(),
        input,
        parent: None,
        nesting: Nesting::Top,
        agent: None,
        polls: None,
        issued: None,
        start: None,
        end: None,
        returned: None,
        status: ToolStatus::Ok,
        exit_code: None,
        output: String::new(),
        output_bytes: 0,
        truncated: false,
        images: Vec::new(),
        seen_by: Vec::new(),
    }
}

/// A call in short: `$ script`, `view path`, `write path⏎text`, else text for a plan.
fn short(at: usize, text: &str) -> Call {
    if let Some(script) = text.strip_prefix("$ ") {
        call(at, "Bash", json!({ "command": script }))
    } else if let Some(path) = text.strip_prefix("view ") {
        let mut view = call(at, "Read", json!({ "file_path": path }));
        view.images = vec![ViewedImage { path: None, media_type: None, bytes: 1, digest: None }];
        view
    } else if let Some((path, content)) = text.strip_prefix("write ").and_then(|it| it.split_once('\n')) {
        call(at, "Write", json!({ "file_path": path, "content": content }))
    } else if let Some((name, input)) = text.split_once(": ") {
        call(at, name, serde_json::from_str(input).unwrap_or_else(|_| json!(input)))
    } else {
        panic!("no short form: {text}")
    }
}

fn page() -> String {
    format!(
        "<!DOCTYPE html><body>{}</body>",
        "<p style=\"font-size:15px\">a paragraph of the page</p>\n".repeat(30)
    )
}

fn plot() -> String {
    format!(
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\n{}fig.savefig('output.png')\n",
        "ax.plot([1, 2, 3], [2, 3, 4])\n".repeat(40)
    )
}

/// The last of `calls`, in a session that delivers `artifact`: its actions, and `w`, `r`, `p` for the flags.
fn last(artifact: &str, calls: &[String]) -> (String, CallActions) {
    let session = Session {
        calls: calls.iter().enumerate().map(|(at, text)| short(at, text)).collect(),
        artifact: Some(artifact.to_owned()),
        root: Some("/work".to_owned()),
        ..Session::default()
    };
    let said = session.classify().pop().unwrap();
    let names: Vec<&str> = said.actions.iter().map(|it| it.as_str()).collect();
    let flags = [(said.designated.write, 'w'), (said.designated.render, 'r'), (said.designated.preview, 'p')];
    let flags: String = flags.into_iter().filter(|(is, _)| *is).map(|(_, letter)| letter).collect();
    (format!("{} {flags}", names.join("+")).trim().to_owned(), said)
}

/// Checks cases in a session in which the artifact is written, rendered and looked at.
fn check(artifact: &str, before: &[String], cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let mut calls = before.to_vec();
        calls.extend(text.split("\n---\n").map(str::to_owned));
        let (got, said) = last(artifact, &calls);
        if got != *expected {
            wrong.push(format!("{text}\n  expected {expected}\n  got      {got}\n  {:?}", said.reasons));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn web() -> Vec<String> {
    vec![
        format!("write /work/artifact.html\n{}", page()),
        "$ chromium --headless --window-size=900,600 --screenshot=preview.png artifact.html".to_owned(),
    ]
}

#[test]
fn understanding() {
    let cases = [
        ("$ cat TASK.md", "read_task"),
        ("$ ls -la && sed -n 1,20p TASK.md", "read_task"),
        ("$ ls; file TASK.md", ""),
        ("Read: {\"file_path\": \"/work/TASK.md\"}", "read_task"),
        ("Grep: {\"pattern\": \"Edit\", \"path\": \"TASK.md\"}", "read_task"),
        ("view /work/source.png", "view_original_image"),
        ("$ convert source.png -resize 50% /tmp/small.png\n---\nview /tmp/small.png", "view_original_image"),
        ("$ cp source.png /tmp/s.png\n---\nview /tmp/s.png", "view_original_image"),
        ("$ python3 -c \"from PIL import Image; print(Image.open('source.png').size)\"", ""),
        ("$ identify source.png; file source.png", ""),
        ("$ cat > plan.md <<'E'\n1. look at the picture\n2. write the page\n3. render and compare\nE", ""),
        (
            "$ printf 'Must change: total 41 -> 56\\nMust stay: fonts, colours\\n' > notes.txt",
            "identify_scope",
        ),
        ("TodoWrite: {\"todos\": [{\"content\": \"Look at source\", \"status\": \"pending\"}]}", ""),
        (
            "TodoWrite: {\"todos\": [{\"content\": \"Change total from 41 to 56, keep the rest unchanged\", \"status\": \"pending\"}]}",
            "identify_scope",
        ),
        ("update_plan: {\"plan\": [{\"step\": \"Draw\", \"status\": \"pending\"}]}", ""),
        (
            "Task: {\"prompt\": \"Only the legend changes; everything else must stay. Read off the values of the bars in source.png.\"}",
            "identify_scope+analyze_layout",
        ),
        ("exec: text(\"Changes: label A becomes B. Stays: all other labels.\");", "identify_scope"),
        ("ToolSearch: {\"query\": \"select:TodoWrite\"}", ""),
        ("TaskOutput: {\"task_id\": \"b1\"}", ""),
        ("write_stdin: {\"session_id\": 3, \"chars\": \"\"}", ""),
    ];
    check("artifact.html", &[], &cases);
}

#[test]
fn reverse_engineering() {
    let cases = [
        ("$ convert source.png -crop 300x200+10+10 +repage /tmp/c.png", "crop_regions"),
        (
            "$ convert 'source.png[300x200+10+10]' -scale 300% /tmp/c.png\n---\nview /tmp/c.png",
            "crop_regions",
        ),
        ("$ magick source.png -crop 10x10+1+1 txt:- | head", "scan_rgb_boundaries"),
        ("$ convert source.png -format %c histogram:info:- | sort -rn | head -20", "scan_rgb_boundaries"),
        (
            "$ convert source.png -define connected-components:verbose=true -connected-components 4 null:",
            "analyze_layout",
        ),
        ("$ tesseract source.png stdout --psm 6", "measure_text_boxes"),
        (
            "$ python3 -c \"from PIL import Image\nim=Image.open('source.png')\nim.crop((0,0,100,50)).resize((400,200)).save('/tmp/a.png')\"",
            "crop_regions",
        ),
        (
            "$ python3 - <<'E'\nimport cv2\nim = cv2.imread('source.png')\nfor i,(x,y,w,h) in enumerate([(0,0,10,10)]):\n    cv2.imwrite(f'/tmp/p{i}.png', im[y:y+h, x:x+w])\nE\n---\nview /tmp/p0.png",
            "crop_regions",
        ),
        (
            "$ python3 - <<'E'\nfrom PIL import Image\nim=Image.open('source.png').convert('RGB')\nprint(im.getpixel((3,4)))\nE",
            "scan_rgb_boundaries",
        ),
        (
            "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\na=np.array(Image.open('source.png').convert('L'))\nr=np.where((a<100).sum(1)>50)[0]\nprint('rows', r[0], r[-1])\nE",
            "scan_rgb_boundaries",
        ),
        (
            "$ python3 - <<'E'\nimport cv2\nim=cv2.imread('source.png',0)\nc,_=cv2.findContours((im<128).astype('uint8'),0,2)\nfor k in c: print(cv2.boundingRect(k))\nE",
            "analyze_layout",
        ),
        (
            "$ python3 - <<'E'\nimport pytesseract\nfrom PIL import Image\nim=Image.open('source.png')\nprint(pytesseract.image_to_string(im.crop((0,0,300,60))))\nE",
            "measure_text_boxes",
        ),
        (
            "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\na=np.array(Image.open('source.png').convert('L'))[20:60,30:400]\nys,xs=np.nonzero(a<128)\nprint('title text box', xs.min(), ys.min(), xs.max(), ys.max())\nE",
            "measure_text_boxes",
        ),
        ("$ python3 -c \"print(96+58+5*25.5)\"", ""),
        (
            "$ cat > measure.py <<'E'\nfrom PIL import Image\nim=Image.open('source.png')\nprint(im.getcolors(99999)[:5])\nE",
            "",
        ),
        (
            "$ cat > measure.py <<'E'\nfrom PIL import Image\nim=Image.open('source.png')\nprint(im.getcolors(99999)[:5])\nE\n---\n$ python3 measure.py",
            "scan_rgb_boundaries",
        ),
        (
            "write /work/m.py\nimport sys\nfrom PIL import Image\nprint(Image.open(sys.argv[1]).getpixel((1,1)))\n---\n$ /opt/py/bin/python3 m.py source.png",
            "scan_rgb_boundaries",
        ),
        (
            "$ echo 'nodes: A (10,20), B (30,40), C (50,60); wires A -> B, B -> C' >> notes.txt",
            "analyze_layout",
        ),
    ];
    check("artifact.html", &[], &cases);
}

#[test]
fn reconstruction() {
    let cases = [
        ("$ fc-list : family | sort -u", "find_fonts"),
        ("$ fc-match 'sans-serif:bold'", "find_fonts"),
        (
            "$ python3 -c \"import matplotlib.font_manager as fm; print(fm.findfont('DejaVu Sans'))\"",
            "find_fonts",
        ),
        ("$ ls /usr/share/fonts/truetype", "find_fonts"),
        ("$ kpsewhich lmodern.sty", "find_fonts"),
        ("$ kpsewhich tikz.sty circuitikz.sty", "check_rendering"),
        ("$ which dot pdflatex; dot -V", "check_rendering"),
        ("$ python3 -c 'import numpy, matplotlib; print(matplotlib.__version__)'", "check_rendering"),
        ("$ chromium --version", "check_rendering"),
        ("$ command -v chromium || type -a google-chrome", "check_rendering"),
        (
            "$ echo '<p>hi</p>' > /tmp/t.html; chromium --headless --screenshot=/tmp/t.png /tmp/t.html",
            "check_rendering",
        ),
        (
            "$ timeout 20 pdflatex -interaction=nonstopmode '\\documentclass{article}\\begin{document}x\\end{document}'",
            "check_rendering",
        ),
        (
            "write /tmp/cal/fonts.html\n<body><p style=\"font-family:Arial\">Total 41.00</p><p style=\"font-family:Inter\">Total 41.00</p><p style=\"font-size:18px\">Total</p><div style=\"width:200px\">x</div></body>",
            "test_parameters",
        ),
    ];
    check("artifact.html", &[], &cases);
}

#[test]
fn rendering_and_comparison() {
    let cases = [
        ("$ chromium --headless --screenshot=preview.png artifact.html", "render_preview r"),
        ("$ chromium --headless --screenshot=preview.png file:///work/artifact.html", "render_preview r"),
        (
            "$ google-chrome --headless --screenshot=/tmp/p.png \"file://$PWD/artifact.html\"",
            "render_preview r",
        ),
        ("$ timeout 60 chromium --headless --screenshot artifact.html 2>&1 | tail -3", "render_preview r"),
        (
            "$ cp artifact.html /tmp/x.html; chromium --headless --screenshot=/tmp/x.png /tmp/x.html",
            "render_preview r",
        ),
        ("view preview.png", "visual_comparison p"),
        ("view /work/preview.png", "visual_comparison p"),
        ("view /work/source.png", "view_original_image"),
        ("$ convert preview.png -crop 100x100+0+0 /tmp/z.png\n---\nview /tmp/z.png", "visual_comparison p"),
        ("$ convert preview.png -crop 100x100+0+0 /tmp/z.png", ""),
        ("$ montage source.png preview.png -geometry +2+2 /tmp/m.png", "visual_comparison"),
        (
            "$ montage source.png preview.png -geometry +2+2 /tmp/m.png\n---\nview /tmp/m.png",
            "visual_comparison p",
        ),
        ("$ compare -metric RMSE source.png preview.png null:", "pixel_comparison"),
        ("$ compare source.png preview.png /tmp/d.png", "pixel_comparison"),
        ("$ compare source.png preview.png /tmp/d.png\n---\nview /tmp/d.png", "visual_comparison"),
        (
            "$ convert source.png preview.png -compose difference -composite -format '%[fx:mean]' info:",
            "pixel_comparison",
        ),
        (
            "$ convert source.png preview.png -compose difference -composite /tmp/d.png\n---\nview /tmp/d.png",
            "visual_comparison",
        ),
        (
            "$ python3 -c \"from PIL import Image,ImageChops;a=Image.open('source.png').convert('RGB');b=Image.open('preview.png').convert('RGB');d=ImageChops.difference(a,b);print(d.getbbox());d.save('/tmp/d.png')\"",
            "pixel_comparison",
        ),
        (
            "$ python3 - <<'E'\nfrom skimage.metrics import structural_similarity as ssim\nfrom skimage import io\na=io.imread('source.png');b=io.imread('preview.png')\nprint(ssim(a,b,channel_axis=2))\nE",
            "pixel_comparison",
        ),
        (
            "$ python3 - <<'E'\nfrom PIL import Image\na=Image.open('source.png'); b=Image.open('preview.png')\nprint(a.size==b.size, a.size, b.size)\nE",
            "",
        ),
        ("$ identify source.png preview.png", ""),
        (
            "$ python3 - <<'E'\nfrom PIL import Image\na=Image.open('source.png').crop((0,0,50,50)); b=Image.open('preview.png').crop((0,0,50,50))\nc=Image.new('RGB',(100,50)); c.paste(a,(0,0)); c.paste(b,(50,0)); c.save('/tmp/c.png')\nE",
            "crop_regions+visual_comparison",
        ),
        (
            "$ for s in 14 15 16; do sed \"s/15px/${s}px/\" artifact.html > /tmp/v$s.html; chromium --headless --screenshot=/tmp/v$s.png /tmp/v$s.html; compare -metric RMSE source.png /tmp/v$s.png null:; done",
            "test_parameters+pixel_comparison",
        ),
        (
            "$ for w in 800 900; do chromium --headless --window-size=$w,600 --screenshot=/tmp/w$w.png artifact.html; done",
            "test_parameters r",
        ),
        (
            "$ for i in 1 2 3; do chromium --headless --screenshot=preview.png artifact.html && break; sleep 1; done",
            "render_preview r",
        ),
        (
            "$ python3 - <<'E'\nimport subprocess\nt=open('artifact.html').read()\nfor s in (14,15):\n    open('/tmp/t.html','w').write(t.replace('15px',f'{s}px'))\n    subprocess.run(['chromium','--headless','--screenshot=/tmp/t.png','/tmp/t.html'])\nE",
            "test_parameters",
        ),
        (
            "$ cat > shot.js <<'E'\nconst p = require('puppeteer');\n(async()=>{const b=await p.launch();const g=await b.newPage();await g.goto('file:///work/artifact.html');await g.screenshot({path:'preview2.png'});})();\nE\nnode shot.js",
            "render_preview r",
        ),
        (
            "$ python3 - <<'E'\nfrom playwright.sync_api import sync_playwright\nwith sync_playwright() as p:\n    b=p.chromium.launch(); g=b.new_page(); g.goto('file:///work/artifact.html'); g.screenshot(path='/tmp/pw.png')\nE\n---\nview /tmp/pw.png",
            "visual_comparison p",
        ),
    ];
    check("artifact.html", &web(), &cases);
}

#[test]
fn review_and_editing() {
    let cases = [
        ("$ cat artifact.html", "review_answer"),
        ("Read: {\"file_path\": \"/work/artifact.html\"}", "review_answer"),
        ("$ grep -c '<p' artifact.html", "review_answer"),
        ("$ wc -c artifact.html", "review_answer"),
        ("$ test -s artifact.html && echo there", "review_answer"),
        ("$ ls -la", ""),
        ("$ chromium --headless --dump-dom artifact.html | grep total", "review_answer"),
        ("$ python3 -c \"t=open('artifact.html').read(); assert '41' in t; print(len(t))\"", "review_answer"),
        ("$ sed -i 's/15px/16px/' artifact.html", "edit_answer w"),
        (
            "$ python3 - <<'E'\np='artifact.html'\nt=open(p).read()\nt=t.replace('a','b')\nopen(p,'w').write(t)\nE",
            "edit_answer w",
        ),
        (
            "$ python3 - <<'E'\nfrom pathlib import Path\np=Path('/work/artifact.html')\ns=p.read_text()\nassert '15px' in s\np.write_text(s.replace('15px','16px'))\nE",
            "edit_answer w",
        ),
        ("$ perl -pi -e 's/15px/16px/' artifact.html", "edit_answer w"),
        ("$ cat > artifact.html <<'E'\n<p>x</p>\nE", "edit_answer w"),
        (
            "Edit: {\"file_path\": \"/work/artifact.html\", \"old_string\": \"15px\", \"new_string\": \"16px\"}",
            "edit_answer w",
        ),
        ("MultiEdit: {\"file_path\": \"artifact.html\", \"edits\": []}", "edit_answer w"),
        (
            "apply_patch: *** Begin Patch\n*** Update File: artifact.html\n@@\n-a\n+b\n*** End Patch",
            "edit_answer w",
        ),
        (
            "$ apply_patch <<'E'\n*** Begin Patch\n*** Update File: artifact.html\n@@\n-a\n+b\n*** End Patch\nE",
            "edit_answer w",
        ),
        ("$ cp artifact.html artifact.bak.html", ""),
        (
            "$ cp artifact.html backup.html && sed -i 's/a/b/' artifact.html && git diff --stat",
            "edit_answer w",
        ),
        ("$ tee artifact.html <<'E' >/dev/null\n<p>x</p>\nE", "edit_answer w"),
        ("$ rm -f /tmp/x.png; sleep 1; mkdir -p out", ""),
    ];
    check("artifact.html", &web(), &cases);
}

#[test]
fn programs_in_python_are_drawn_by_running_them() {
    let before = vec![format!("write /work/artifact.py\n{}", plot())];
    let cases = [
        ("$ python3 artifact.py", "render_preview r"),
        ("$ cd /work && /opt/py/bin/python3 artifact.py && ls -l output.png", "render_preview r"),
        ("$ python3 artifact.py\n---\nview output.png", "visual_comparison p"),
        ("$ python3 -c 'import artifact'", "render_preview r"),
        ("$ python3 -m py_compile artifact.py", "review_answer"),
        ("$ python3 -c \"import ast; ast.parse(open('artifact.py').read())\"", "review_answer"),
        ("$ sed -n '1,40p' artifact.py", "review_answer"),
        (
            "$ python3 artifact.py && compare -metric AE source.png output.png null:",
            "render_preview+pixel_comparison r",
        ),
        (
            "$ for d in 100 120; do sed \"s/dpi=.*/dpi=$d/\" artifact.py > /tmp/v.py; python3 /tmp/v.py; done",
            "test_parameters",
        ),
        (
            "$ cat > /tmp/cal.py <<'E'\nimport matplotlib.pyplot as plt\nfor i, s in enumerate((8, 9, 10)): plt.text(0, i, 'Label', fontsize=s)\nplt.savefig('/tmp/cal.png')\nE\npython3 /tmp/cal.py",
            "test_parameters",
        ),
    ];
    check("artifact.py", &before, &cases);
}

#[test]
fn graphs_and_tex_are_drawn_by_their_programs() {
    let graph = format!("digraph g {{\n{}}}\n", "  a -> b [label=\"an edge\"];\n".repeat(30));
    let before = vec![format!("write /work/artifact.dot\n{graph}")];
    let cases = [
        ("$ dot -Tpng artifact.dot -o preview.png", "render_preview r"),
        ("$ dot -Tsvg artifact.dot > /tmp/a.svg", "render_preview r"),
        ("$ cat artifact.dot | dot -Tpng -o p.png", "render_preview r"),
        ("$ dot -Tplain artifact.dot | head", "review_answer"),
        ("$ dot -Tpng artifact.dot -o p.png\n---\nview p.png", "visual_comparison p"),
        ("$ for e in dot neato; do $e -Tpng artifact.dot -o $e.png; done", "render_preview r"),
        (
            "$ sed 's/edge/line/' artifact.dot > /tmp/t.dot && dot -Tpng /tmp/t.dot -o /tmp/t.png",
            "test_parameters",
        ),
    ];
    check("artifact.dot", &before, &cases);
    let tex = format!(
        "\\documentclass{{standalone}}\n\\begin{{document}}\n{}\\end{{document}}\n",
        "\\draw (0,0) -- (1,1);\n".repeat(40)
    );
    let before = vec![format!("write /work/artifact.tex\n{tex}")];
    let cases = [
        ("$ pdflatex artifact.tex | tail -3", "render_preview r"),
        ("$ pdflatex artifact && pdftoppm -png -r 150 artifact.pdf preview", "render_preview r"),
        (
            "$ latexmk -pdf -outdir=/tmp/o artifact.tex && pdftocairo -png -singlefile /tmp/o/artifact.pdf /tmp/o/p\n---\nview /tmp/o/p.png",
            "visual_comparison p",
        ),
        ("$ pdflatex artifact.tex\n---\n$ pdftotext -bbox artifact.pdf - | head", "measure_text_boxes"),
        ("$ pdflatex artifact.tex\n---\n$ pdftotext artifact.pdf - | head", "review_answer"),
        ("$ pdflatex artifact.tex\n---\n$ pdffonts artifact.pdf", "find_fonts"),
        ("$ pdflatex artifact.tex\n---\nview /work/artifact.pdf", "visual_comparison p"),
        ("$ pdflatex -draftmode artifact.tex", "review_answer"),
        ("$ chktex -q artifact.tex", "review_answer"),
        ("$ tail -20 artifact.log", ""),
        (
            "$ mkdir -p /tmp/b && cp artifact.tex /tmp/b && cd /tmp/b && pdflatex artifact.tex",
            "render_preview r",
        ),
    ];
    check("artifact.tex", &before, &cases);
}

#[test]
fn the_tuning_half_is_met() {
    let mut all = Agreement::default();
    let mut flags = 0;
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/tune");
    for entry in std::fs::read_dir(folder).unwrap() {
        let corpus = Corpus::read(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        for judged in corpus.judged() {
            all.add(&judged.said.actions.iter().copied().collect(), &judged.label.actions);
            flags += u32::from(
                judged.said.designated != judged.label.designated || judged.said.first != judged.label.first,
            );
        }
    }
    assert_eq!(all.calls, 193);
    assert!(all.macro_f1().unwrap() >= 0.97, "{:?}", all.macro_f1());
    assert!(flags <= 3, "{flags} calls with wrong flags");
}
