//! Other ways to go about it, other kinds of tasks, and work that is handed over.

use super::*;

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
