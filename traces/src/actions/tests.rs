//! The guide, case by case: each line of a table is a call in a session, and what it must come to.

use serde_json::{Value, json};

use super::measure::{Agreement, Corpus};
use super::*;
use crate::{Nesting, ToolStatus, ViewedImage};

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
fn other_habits() {
    let fonts = "$ python3 - <<'E'\nfrom PIL import ImageFont\nfor p in ('/usr/share/fonts/a.ttf','/usr/share/fonts/b.ttf'):\n    f=ImageFont.truetype(p, 16)\n    print(p, f.getbbox('Total'))\nE";
    let edges = "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\na=np.asarray(Image.open('/work/source.png').convert('L')).astype(int)\nrow=a[120]\nprint('transitions', np.flatnonzero(np.abs(np.diff(row))>40))\nE";
    let table = "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\na=np.asarray(Image.open('source.png').convert('L'))\nxs=np.where((a<128).sum(0)>200)[0]\nprint('column widths', np.diff(xs))\nE";
    let bars = "$ python3 - <<'E'\nfrom PIL import Image\nim=Image.open('source.png').convert('RGB'); px=im.load()\ny0=500; unit=(500-100)/40\nfor x in (100,150,200):\n    top=next(y for y in range(im.height) if px[x,y]==(47,111,79))\n    print(x, 'value', (y0-top)/unit)\nE";
    let kmeans = "$ python3 - <<'E'\nfrom collections import Counter\nfrom PIL import Image\nprint(Counter(Image.open('source.png').convert('RGB').getdata()).most_common(12))\nE";
    let cases = [
        (fonts, "measure_text_boxes+find_fonts"),
        (edges, "scan_rgb_boundaries"),
        (table, "analyze_layout"),
        (bars, "analyze_layout"),
        (kmeans, "scan_rgb_boundaries"),
        ("$ magick compare -metric AE source.png preview.png /tmp/d.png; true", "pixel_comparison"),
        (
            "$ for r in 100x100+0+0 50x50+10+10; do compare -metric RMSE -extract $r source.png preview.png null:; done",
            "pixel_comparison",
        ),
        (
            "$ convert source.png preview.png -append png:/tmp/a.png\n---\nview /tmp/a.png",
            "visual_comparison p",
        ),
        (
            "$ convert source.png -crop 200x200+0+0 +repage /tmp/a.png && convert preview.png -crop 200x200+0+0 +repage /tmp/b.png && montage /tmp/a.png /tmp/b.png -tile 2x1 /tmp/ab.png",
            "crop_regions+visual_comparison",
        ),
        ("$ S=source.png; P=preview.png; composite -blend 50 $S $P /tmp/o.png", "visual_comparison"),
        (
            "$ python3 - <<'E'\nfrom PIL import Image\nims=[Image.open(p) for p in ['source.png','preview.png']]\nw=Image.new('RGB',(2000,700)); x=0\nfor im in ims:\n    w.paste(im,(x,0)); x+=im.width\nw.save('/tmp/side.png')\nE\n---\nview /tmp/side.png",
            "visual_comparison p",
        ),
        (
            "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\ns=np.asarray(Image.open('source.png').convert('RGB'),int)\np=np.asarray(Image.open('preview.png').convert('RGB'),int)\nprint((s!=p).any(2).sum(), np.abs(s-p).mean())\nE",
            "pixel_comparison",
        ),
        (
            "$ python3 - <<'E'\nimport cv2\na=cv2.imread('source.png'); b=cv2.imread('preview.png')\nd=cv2.absdiff(a,b)\ncv2.imwrite('/tmp/d.png', d)\nprint(d.mean())\nE\n---\nview /tmp/d.png",
            "visual_comparison",
        ),
        ("$ tesseract preview.png - --psm 6", "measure_text_boxes"),
        (
            "$ cat > cmp.sh <<'E'\n#!/bin/bash\nchromium --headless --screenshot=\"$2\" \"$1\"\ncompare -metric AE source.png \"$2\" null:\nE\nchmod +x cmp.sh\n---\n$ ./cmp.sh artifact.html out.png",
            "render_preview+pixel_comparison r",
        ),
        (
            "$ cat > cmp.sh <<'E'\nchromium --headless --screenshot=out.png artifact.html\nE\n---\n$ bash cmp.sh\n---\nview out.png",
            "visual_comparison p",
        ),
        (
            "$ shot() { chromium --headless --screenshot=$2 $1; }; shot artifact.html p1.png\n---\nview p1.png",
            "visual_comparison p",
        ),
        (
            "$ python3 - <<'E'\nimport subprocess\ndef shot(page, out):\n    subprocess.run(['chromium','--headless',f'--screenshot={out}',page],check=True)\nshot('artifact.html','/work/q.png')\nE\n---\nview q.png",
            "visual_comparison p",
        ),
        (
            "$ python3 - <<'E'\nimport os\nos.system('chromium --headless --screenshot=p.png artifact.html')\nE",
            "render_preview r",
        ),
        (
            "$ cd /tmp && chromium --headless --screenshot=/tmp/p.png /work/artifact.html; cd /work",
            "render_preview r",
        ),
        (
            "$ nohup chromium --headless --screenshot=preview.png artifact.html > /tmp/log 2>&1 &",
            "render_preview r",
        ),
        ("$ head -c 400 artifact.html; echo; tail -5 artifact.html", "review_answer"),
        ("$ awk 'NR>=10 && NR<=30' artifact.html", "review_answer"),
        (
            "$ node -e \"const t=require('fs').readFileSync('artifact.html','utf8'); console.log(t.length, t.includes('41'))\"",
            "review_answer",
        ),
        ("$ git diff --no-index artifact.html page2.html", "review_answer"),
        (
            "$ python3 - <<'E'\nhtml = '''<html><body>new</body></html>'''\nwith open('/work/artifact.html','w') as f:\n    f.write(html)\nE",
            "edit_answer w",
        ),
        (
            "$ cat > gen.py <<'E'\nrows = ''.join(f'<tr><td>{i}</td></tr>' for i in range(9))\nprint('<table>'+rows+'</table>')\nE\npython3 gen.py > artifact.html",
            "edit_answer w",
        ),
        ("$ echo '<!-- end -->' >> artifact.html", "edit_answer w"),
        ("$ sleep 20; cat /tmp/sweep.log", ""),
        ("$ pkill -f chromium; rm -rf /tmp/preview", ""),
        ("$ echo done", ""),
        ("$ ls -la /work /tmp/*.png", ""),
        (
            "write /work/notes.md\n# What changes\n- total 41.00 -> 56.30\n# What stays\n- all rows, fonts, colours",
            "identify_scope",
        ),
        ("write /work/render.sh\nchromium --headless --screenshot=preview.png artifact.html", ""),
        ("exec: const r = await tools.exec_command({cmd:'cat TASK.md'}); text(r.output);", "read_task"),
        (
            "exec: const cmd = \"chromium --headless --screenshot=preview.png artifact.html\"; await tools.exec_command({cmd}); image(await tools.view_image({path: '/work/preview.png'}));",
            "render_preview+visual_comparison rp",
        ),
    ];
    check("artifact.html", &web(), &cases);
}

#[test]
fn drafts_and_calibration_files_are_told_apart() {
    let rows = "  <tr><td>Walnut desk organiser</td><td>25.50</td></tr>\n".repeat(30);
    let draft = format!("write /work/v1.html\n<html><body><table>\n{rows}</table></body></html>");
    let badge = "write /tmp/probe/badge.html\n<style>.b{font-size:14px;padding:6px 12px;border-radius:9px;background:#e9f4ee}</style><span class=b>Normal</span><span class=b style='font-size:15px'>Normal</span><span class=b style='font-size:16px'>Normal</span><br><span style='letter-spacing:1px'>Normal 41.00</span>";
    let loops = "$ mkdir -p /tmp/cal; for s in 13 14 15; do printf '<body style=\"font-size:%spx\">Total due</body>' $s > /tmp/cal/$s.html; chromium --headless --screenshot=/tmp/cal/$s.png /tmp/cal/$s.html; done\n---\nview /tmp/cal/14.png";
    let after = |rest: &str| format!("{draft}\n---\n{rest}");
    let cases: [(String, &str); 8] = [
        (draft.clone(), "edit_answer"),
        (after("$ chromium --headless --screenshot=v1.png v1.html"), "render_preview"),
        (after("$ chromium --headless --screenshot=v1.png v1.html\n---\nview v1.png"), "visual_comparison"),
        (after("$ cp v1.html artifact.html"), "edit_answer w"),
        (
            after(
                "$ chromium --headless --screenshot=v1.png v1.html; compare -metric AE source.png v1.png null:",
            ),
            "render_preview+pixel_comparison",
        ),
        (badge.to_owned(), "test_parameters"),
        (loops.to_owned(), "test_parameters"),
        (
            after(
                "Edit: {\"file_path\": \"/work/v1.html\", \"old_string\": \"25.50\", \"new_string\": \"26.50\"}",
            ),
            "edit_answer",
        ),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check("artifact.html", &[], &cases);
}

#[test]
fn other_kinds_of_tasks() {
    let before = vec![format!("write /work/artifact.py\n{}", plot())];
    let cases = [
        ("$ MPLBACKEND=Agg timeout 60 python3 /work/artifact.py 2>&1 | tail -2", "render_preview r"),
        ("$ cp artifact.py /tmp/c.py && cd /tmp && python3 c.py", "render_preview r"),
        ("$ python3 -c \"import runpy; runpy.run_path('artifact.py')\"", "render_preview r"),
        ("$ python3 -c \"exec(open('artifact.py').read())\"", "render_preview r"),
        (
            "$ python3 artifact.py && python3 -c \"from PIL import Image; print(Image.open('output.png').size)\"",
            "render_preview r",
        ),
        (
            "$ python3 - <<'E'\nt=open('artifact.py').read()\nfor s in range(5):\n    exec(t.replace('seed=0', f'seed={s}'))\nE",
            "test_parameters",
        ),
        (
            "$ python3 - <<'E'\nimport numpy as np\nfrom PIL import Image\nsrc=np.asarray(Image.open('source.png').convert('L'),float)\nbest=None\nfor seed in range(50):\n    rng=np.random.default_rng(seed)\n    y=rng.normal(size=40)\n    print(seed, np.abs(y[0]-src[10,10]).mean())\nE",
            "scan_rgb_boundaries+test_parameters",
        ),
        (
            "$ cat > /tmp/fit.py <<'E'\nimport numpy as np\nfrom scipy.optimize import curve_fit\nfrom PIL import Image\na=np.asarray(Image.open('/work/source.png').convert('RGB')).astype(int)\nys,xs=np.nonzero((a[...,2]-a[...,0])>80)\np,_=curve_fit(lambda x,k,c:k*x+c, xs, ys)\nprint(p)\nE\npython3 /tmp/fit.py",
            "analyze_layout",
        ),
        (
            "$ python3 -c \"import matplotlib.pyplot as plt; f=plt.figure(); t=f.text(0,0,'Label',fontsize=11); print(t.get_window_extent(f.canvas.get_renderer()))\"",
            "measure_text_boxes",
        ),
        (
            "$ python3 -m pyflakes artifact.py; python3 -m py_compile artifact.py && echo fine",
            "review_answer",
        ),
        ("$ grep -n 'fontsize\\|color' artifact.py", "review_answer"),
        (
            "$ python3 - <<'E'\nimport re\ns=open('artifact.py').read()\ns=re.sub(r'dpi=\\d+','dpi=120',s)\nopen('artifact.py','w').write(s)\nE\npython3 artifact.py",
            "render_preview+edit_answer wr",
        ),
    ];
    check("artifact.py", &before, &cases);
    let tex = format!(
        "\\documentclass{{standalone}}\n\\begin{{document}}\n{}\\end{{document}}\n",
        "\\draw (0,0) -- (1,1);\n".repeat(40)
    );
    let before = vec![
        format!("write /work/artifact.tex\n{tex}"),
        "$ pdflatex artifact.tex && pdftocairo -png -singlefile artifact.pdf preview".to_owned(),
    ];
    let cases = [
        (
            "$ for i in 1 2; do pdflatex -interaction=nonstopmode artifact.tex; done | tail -2",
            "render_preview r",
        ),
        (
            "$ lualatex artifact.tex && mutool draw -o p.png artifact.pdf\n---\nview p.png",
            "visual_comparison p",
        ),
        ("$ gs -q -sDEVICE=png16m -r200 -o g.png artifact.pdf\n---\nview g.png", "visual_comparison p"),
        ("$ convert -density 200 artifact.pdf c.png", "render_preview"),
        (
            "$ pdftoppm -r 400 -x 0 -y 0 -W 300 -H 300 -png artifact.pdf zoom\n---\nview zoom-1.png",
            "visual_comparison p",
        ),
        ("$ grep -i 'overfull\\|warning' artifact.log", ""),
        ("$ pdfinfo artifact.pdf | grep 'Page size'", ""),
        (
            "$ pdflatex -output-directory=/tmp/o -jobname=x artifact.tex && pdftocairo -png -singlefile /tmp/o/x.pdf /tmp/o/x\n---\nview /tmp/o/x.png",
            "visual_comparison p",
        ),
        (
            "$ for w in 0.4pt 0.6pt 0.8pt; do sed \"s/line width=[0-9.]*pt/line width=$w/\" artifact.tex > /tmp/w.tex; pdflatex -output-directory=/tmp /tmp/w.tex >/dev/null; pdftocairo -png -singlefile /tmp/w.pdf /tmp/w; compare -metric RMSE source.png /tmp/w.png null:; done",
            "test_parameters+pixel_comparison",
        ),
        (
            "$ kpsewhich fontspec.sty; ls /usr/share/texlive/texmf-dist/tex/latex/circuitikz | head",
            "find_fonts+check_rendering",
        ),
        ("$ pdftotext -layout artifact.pdf - | head -20", "review_answer"),
        (
            "$ python3 - <<'E'\nimport subprocess\nr=subprocess.run(['pdflatex','-interaction=nonstopmode','artifact.tex'],capture_output=True,text=True)\nprint(r.stdout[-300:])\nE",
            "render_preview r",
        ),
    ];
    check("artifact.tex", &before, &cases);
    let graph = format!("digraph g {{\n{}}}\n", "  a -> b [label=\"an edge\"];\n".repeat(30));
    let before = vec![format!("write /work/artifact.dot\n{graph}")];
    let cases = [
        ("$ unflatten -l 3 artifact.dot | dot -Tpng -o u.png", "render_preview"),
        (
            "$ dot -Tjson artifact.dot | python3 -c \"import json,sys; d=json.load(sys.stdin); print(len(d['objects']))\"",
            "review_answer",
        ),
        (
            "$ dot -Tpng -Gdpi=96 artifact.dot -o p.png && compare -metric AE source.png p.png d.png; true",
            "render_preview+pixel_comparison r",
        ),
        (
            "$ for s in true ortho polyline; do dot -Tpng -Gsplines=$s artifact.dot -o s_$s.png; done",
            "test_parameters r",
        ),
        (
            "$ for s in true ortho; do dot -Tpng -Gsplines=$s artifact.dot -o s_$s.png; done\n---\nview s_ortho.png",
            "visual_comparison p",
        ),
        ("$ gvpr 'E{print($.label)}' artifact.dot", "review_answer"),
        (
            "$ fc-match 'Helvetica'; dot -v -Tpng artifact.dot -o p.png 2>&1 | grep -i font",
            "find_fonts+render_preview r",
        ),
    ];
    check("artifact.dot", &before, &cases);
}

#[test]
fn work_that_is_handed_over() {
    let cases = [
        (
            "Agent: {\"prompt\": \"Read source.png and report the exact hex colours of every panel and the positions of the grid lines.\"}",
            "scan_rgb_boundaries+analyze_layout",
        ),
        (
            "Agent: {\"prompt\": \"Find out which fonts are installed that match the labels of source.png.\"}",
            "find_fonts+check_rendering",
        ),
        (
            "Agent: {\"prompt\": \"Review artifact.html: check the totals in artifact.html against TASK.md.\"}",
            "review_answer",
        ),
        (
            "Agent: {\"prompt\": \"Compare preview.png with source.png pixel by pixel, report the differences between them.\"}",
            "pixel_comparison",
        ),
        ("Task: {\"description\": \"wait\", \"prompt\": \"Say hello.\"}", ""),
    ];
    check("artifact.html", &web(), &cases);
}

#[test]
fn scripts_that_are_told_what_to_look_at() {
    let compare = "$ cat > cmp.py <<'E'\nimport sys\nimport numpy as np\nfrom PIL import Image\na, b = sys.argv[1:3]\nx=np.asarray(Image.open(a).convert('L'),float); y=np.asarray(Image.open(b).convert('L'),float)\nprint(np.abs(x-y).mean())\nE\n---\n$ python3 cmp.py source.png preview.png";
    let parsed = "$ cat > px.py <<'E'\nimport argparse\nfrom PIL import Image\nap=argparse.ArgumentParser(); ap.add_argument('img'); args=ap.parse_args()\nim=Image.open(args.img).convert('RGB')\nfor p in [(1,1),(5,5)]: print(p, im.getpixel(p))\nE\n---\n$ python3 px.py source.png";
    let default = "$ python3 - <<'E'\nfrom PIL import Image\ndef main(src='source.png'):\n    im=Image.open(src).convert('RGB')\n    print(im.getcolors(1<<24)[:9])\nif __name__ == '__main__':\n    main()\nE";
    let make = "$ printf 'preview.png: artifact.html\\n\\tchromium --headless --screenshot=preview.png artifact.html\\n' > Makefile\n---\n$ make -B";
    let cases = [
        (compare, "pixel_comparison"),
        (parsed, "scan_rgb_boundaries"),
        (default, "scan_rgb_boundaries"),
        (make, "render_preview r"),
        (
            "$ python3 -m http.server 8000 & chromium --headless --screenshot=/tmp/h.png http://localhost:8000/artifact.html",
            "render_preview r",
        ),
        (
            "$ python3 -c \"from PIL import Image, ImageStat; im=Image.open('source.png'); print(ImageStat.Stat(im.crop((0,0,9,9))).mean)\"",
            "scan_rgb_boundaries",
        ),
        (
            "$ python3 - <<'E'\nimport cv2, numpy as np\ne=cv2.Canny(cv2.imread('source.png',0),50,150)\nprint('edge rows', np.where(e.sum(1)>9000)[0].tolist())\nE",
            "scan_rgb_boundaries",
        ),
        ("view /work/prevew.png", "visual_comparison"),
        ("view /workspace/source.png", "view_original_image"),
    ];
    check("artifact.html", &web(), &cases);
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
