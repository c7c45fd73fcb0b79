//! People as judges: a folder without a word on whose work it shows goes out, sheets come back; and the tables that follow.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Run, proctor};

/// Status, what was printed, and what was said beside it.
fn told(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = proctor().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (code, printed, said) = told(arguments);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{arguments:?}: {code:?} {error} {said}"))
}

/// Fills in a sheet: each line's mark is what `mark` says of what is marked.
fn filled(folder: &Path, mark: impl Fn(&str, &str) -> &'static str) -> String {
    let empty = fs::read_to_string(folder.join("sheet.csv")).unwrap();
    let mut lines = empty.lines();
    let head = lines.next().unwrap();
    let lines = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{},{},{},{},seen", cells[0], cells[1], cells[2], mark(cells[1], cells[2]))
    });
    std::iter::once(head.to_owned()).chain(lines).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn people_judge_what_they_do_not_know_the_maker_of() {
    let run = Run::over_one().args(["--harness", "oracle", "--harness", "nop"]);
    run.go().with_code(0);
    let out = run.out();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("raters");
    let [path, to] = [&out, &folder].map(|it| it.to_str().unwrap());
    let done = json(&["judge", path, "--export-blind", to, "--json"]);
    assert_eq!(done["items"], 1, "what has no picture is not shown: {done}");

    // Nothing in the folder says whose work it is; the key does, and is elsewhere.
    let mut files = 0;
    for entry in walkdir::WalkDir::new(&folder) {
        let entry = entry.unwrap();
        assert!(!entry.path().strip_prefix(&folder).unwrap().to_string_lossy().contains("oracle"));
        if entry.file_type().is_file() {
            files += 1;
            let bytes = fs::read(entry.path()).unwrap();
            for name in ["oracle", "flow-approval", "vao/"] {
                let found = bytes.windows(name.len()).any(|it| it == name.as_bytes());
                assert!(!found, "{}: {name}", entry.path().display());
            }
        }
    }
    // The oracle's picture is that of the reference, to the byte: two pictures, the page, the sheet, the label.
    assert_eq!(files, 5);
    let key = fs::read_to_string(done["key"].as_str().unwrap()).unwrap();
    assert!(
        key.contains("vao/flow-approval/oracle/1")
            && Path::new(done["key"].as_str().unwrap()).starts_with(&out)
    );
    let page = fs::read_to_string(folder.join("index.html")).unwrap();
    assert!(
        page.contains("CANDIDATE") && page.contains("default-src 'none'") && !page.contains("<script"),
        "{page}"
    );
    let (code, _, said) = told(&["judge", path, "--export-blind", to]);
    assert!(code == Some(2) && said.contains("is not empty"), "{said}");

    // Wrong lines take nothing over.
    let sheet = folder.join("sheet.csv");
    let good = filled(&folder, |what, kind| match (what, kind) {
        (_, "rating") => "4",
        ("v2", _) => "0",
        _ => "1",
    });
    fs::write(&sheet, good.replacen("item-001,d2", "item-007,d2", 1)).unwrap();
    let ann = ["judge", path, "--import-blind", to, "--rater", "ann"];
    let (code, _, said) = told(&ann);
    assert!(code == Some(2) && said.contains("line 3, column `item`: `item-007` is no item"), "{said}");
    assert!(json(&["judge", path, "--agreement", "--json"])["pairs"].as_array().unwrap().is_empty());

    fs::write(&sheet, &good).unwrap();
    let (code, printed, said) = told(&ann);
    assert_eq!(code, Some(0), "{printed}{said}");
    assert!(printed.starts_with("1 item scored by human-ann, 0 in part, 0 not at all"), "{printed}");
    let report = json(&["report", path, "--judge", "human-ann", "--tables", "1", "--json"]);
    let oracle = &report["tables"][0]["lines"][0];
    assert_eq!(oracle["method"], "oracle");
    assert_eq!(oracle["auto_zero"]["derived"]["value"], 0.75);
    assert_eq!(oracle["completed_only"]["visual_quality"]["value"], 4.0);
    // What has no picture is a failure of the same points.
    assert_eq!(report["tables"][0]["lines"][1]["auto_zero"]["derived"]["denominator"], 4.0);

    // Another rater leaves a mark out: it is unscored, and the judges agree on what both have marked.
    fs::write(
        &sheet,
        filled(&folder, |what, kind| match (what, kind) {
            ("visual_quality", _) => "2",
            ("domain_quality", _) => "",
            ("v2" | "v3", _) => "0",
            _ => "1",
        }),
    )
    .unwrap();
    let (code, printed, said) = told(&["judge", path, "--import-blind", to, "--rater", "bob"]);
    assert_eq!(code, Some(4), "{printed}{said}");
    assert!(said.contains("vao/flow-approval/oracle/1: unscored, since marks are missing"), "{said}");
    let bob = json(&["report", path, "--judge", "human-bob", "--tables", "1", "--json"]);
    assert_eq!(bob["unresolved"][0]["why"], "unjudged");
    let pairs = json(&["judge", path, "--agreement", "--json"]);
    let pair = &pairs["pairs"][0];
    assert_eq!((&pair["one"], &pair["other"]), (&"human-ann".into(), &"human-bob".into()));
    // Of 10 points one differs; the trial without a picture is no agreement.
    assert_eq!(
        (&pair["trials"], &pair["without_picture"], &pair["points"]),
        (&1.into(), &1.into(), &10.into())
    );
    assert_eq!((&pair["same"], &pair["by_kind"]["derived"]["same"]), (&0.9.into(), &0.75.into()));
    // Derived: chance is (3·2 + 1·2) / 16 = 0.5.
    assert_eq!(pair["by_kind"]["derived"]["kappa"], 0.5);
    assert_eq!(
        (&pair["visual_quality"]["distance"], &pair["domain_quality"]["ratings"]),
        (&2.0.into(), &0.into())
    );

    // Every sheet that was taken over is kept as it came.
    let kept =
        fs::read_to_string(out.join(format!("blind/{}.human-ann.1.csv", done["export"].as_str().unwrap())));
    assert_eq!(kept.unwrap(), good);
    let (code, _, said) = told(&["judge", path, "--import-blind", path, "--rater", "ann"]);
    assert!(code == Some(2) && said.contains("no folder for raters"), "{said}");
}

#[test]
fn pictures_are_measured_by_rendering_mode() {
    let run = Run::over_one().args(["--harness", "oracle", "--harness", "nop"]);
    run.go().with_code(0);
    let out = run.out();
    let path = out.to_str().unwrap();
    let against = |which: &str| json(&["report", path, "--pictures", which, "--json"])["groups"].clone();
    let groups = against("target");
    let of = |at: usize| ["rendered", "registered", "equal"].map(|name| groups[at][name].as_u64().unwrap());
    assert_eq!((&groups[0]["method"], &groups[0]["mode"]), (&"oracle".into(), &"dot".into()));
    // The reference itself: equal, so that there is no PSNR.
    assert_eq!((of(0), of(1)), ([1, 1, 1], [1, 1, 1]));
    assert_eq!((&groups[0]["ssim"], &groups[0]["psnr"]), (&1.0.into(), &Value::Null));
    // Nothing: no picture is in SSIM-0 alone.
    assert_eq!((of(2), &groups[2]["ssim"], &groups[2]["ssim_0"]), ([0, 1, 0], &Value::Null, &0.0.into()));
    let source = &against("source")[0];
    assert!(source["ssim"].as_f64().unwrap() < 1.0 && source["psnr"].as_f64().unwrap() > 5.0, "{source}");
    let (code, printed, said) = told(&["report", path, "--pictures", "source"]);
    assert!(code == Some(0) && printed.contains("Table 13."), "{printed}{said}");

    // Scores need a judge, and say so.
    let (code, _, said) = told(&["report", path, "--tables"]);
    assert!(code == Some(2) && said.contains("no judge has marked this run"), "{said}");
}
