//! The page that shows the items: one file without scripts, which needs no network and asks for none.

use proctor_tasks::Task;

use super::SHEET;
use crate::vision::rubric;

/// An item as it is shown; pictures are names of files.
pub(super) struct Shown<'a> {
    pub(super) item: &'a str,
    pub(super) task: &'a Task,
    pub(super) source: String,
    pub(super) reference: String,
    pub(super) candidate: String,
}

const HEAD: &str = r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>Items to judge</title>
<style>
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1800px; padding: 1rem; color: #222; background: #fff; }
section { border-top: 2px solid #888; margin-top: 2rem; padding-top: 1rem; }
.pictures { display: flex; gap: 1rem; align-items: flex-start; }
figure { margin: 0; flex: 1; min-width: 0; }
img { width: 100%; border: 1px solid #bbb; }
figcaption { font-weight: 600; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { border: 1px solid #bbb; padding: .2rem .6rem; text-align: left; vertical-align: top; }
pre { white-space: pre-wrap; font: inherit; background: #f4f4f4; padding: .6rem; }
</style>
</head>
<body>
<h1>Items to judge</h1>
"#;

const ORDERS: &str = "\
<p>Each item is one edit of an artifact. Judge CANDIDATE, on what can be seen in it: SOURCE is the artifact before the edit, REFERENCE one \
valid way to carry the instruction out; others may be as good. Differences of font, antialiasing or small shifts of layout are no fault \
by themselves.</p>\n\
<ul>\n<li>Points: 1 if the point holds completely, 0 if it does not, or cannot be seen.</li>\n\
<li>visual_quality: 5 clean and complete, 4 minor blemishes, 3 noticeable but usable defects, 2 severely impaired readability, 1 largely \
unusable.</li>\n\
<li>domain_quality: from 5 to 1 by the rubric of the item, as an artifact of its kind.</li>\n\
<li>What you cannot decide you leave empty: it counts as not judged, and not as 0.</li>\n</ul>\n";

/// The page.
pub(super) fn page(items: &[Shown<'_>]) -> String {
    let mut page = format!("{HEAD}{ORDERS}<p>Write your marks into <code>{SHEET}</code>.</p>\n");
    for it in items {
        page.push_str(&section(it));
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn section(it: &Shown<'_>) -> String {
    let name = escaped(it.item);
    let picture = |title: &str, file: &str| {
        let file = escaped(file);
        format!(
            "<figure><figcaption>{title}</figcaption><a href=\"pictures/{file}\"><img loading=\"lazy\" src=\"pictures/{file}\" alt=\"{title} of {name}\"></a></figure>\n"
        )
    };
    let mut points = String::new();
    for point in &it.task.hidden.annotations.scoring_points {
        points.push_str("<tr>");
        for cell in [point.id.as_str(), point.kind.as_str(), &point.description, &point.evidence] {
            points.extend(["<td>", &escaped(cell), "</td>"]);
        }
        points.push_str("</tr>\n");
    }
    format!(
        "<section id=\"{name}\">\n<h2>{name}</h2>\n<p><strong>Instruction:</strong> {}</p>\n<div class=\"pictures\">\n{}{}{}</div>\n\
         <table>\n<tr><th>point</th><th>kind</th><th>must hold</th><th>to be seen</th></tr>\n{points}</table>\n\
         <details><summary>domain_quality</summary><pre>{}</pre></details>\n</section>\n",
        escaped(&it.task.solver.instruction),
        picture("SOURCE", &it.source),
        picture("REFERENCE", &it.reference),
        picture("CANDIDATE", &it.candidate),
        escaped(rubric(it.task.metadata.category)),
    )
}

/// Text as text, in elements and in quoted attributes alike.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Controls and what turns the direction of writing show something else than what is there.
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_task_is_more_than_text() {
        assert_eq!(
            escaped("<img src=x onerror='a&b'>\"\u{202e}\u{7}\n"),
            "&lt;img src=x onerror=&#39;a&amp;b&#39;&gt;&quot;\u{fffd}\u{fffd}\n"
        );
        let empty = page(&[]);
        assert!(
            empty.contains("default-src 'none'") && !empty.contains("<script") && !empty.contains("http:")
        );
    }
}
