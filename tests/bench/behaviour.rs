//! What it takes to say how the agents of the whole benchmark work: the traces of five methods labelled, counted and drawn,
//! beside a straightforward reading of the same files in Python that only takes each line apart.

use std::fs;
use std::process::Command;

use crate::figures::{Aim, Report, Row, Samples};
use crate::reading::time;
use crate::sessions::campaign;
use crate::{Bench, Outcome, say};

const TASKS: usize = 1573;
/// Most milliseconds and MB.
const MILLISECONDS: f64 = 3000.0;
const MEMORY_MB: f64 = 200.0;

const YARDSTICK: &str = r#"
import glob, json, sys, time
start = time.perf_counter()
size = 0
for path in glob.iglob(sys.argv[1] + "/trials/*/*/*/*/trace.jsonl"):
    with open(path) as lines:
        for line in lines:
            json.loads(line)
            size += len(line)
print((time.perf_counter() - start) * 1000, size)
"#;

pub(crate) fn measure(bench: &Bench, turns: u32, report: &mut Report) -> Outcome<()> {
    let folder = bench.folder("behaviour-")?;
    say(&format!("traces of {TASKS} tasks by 5 methods are made"));
    let run = campaign(&folder.join("run"), TASKS);
    let picture = folder.join("figure6.svg");
    let picture = picture.to_str().ok_or("the scratch folder has a strange name")?;
    let [mut bare, mut all, mut again, mut memory] = <[Samples; 4]>::default();
    let mut megabytes = 0.0;
    for turn in 1..=turns {
        say(&format!("how agents work: turn {turn} of {turns}"));
        let python = Command::new("python3").args(["-c", YARDSTICK]).arg(run.root()).output()?;
        let said = String::from_utf8_lossy(&python.stdout).into_owned();
        let mut numbers = said.split_whitespace().map(str::parse::<f64>);
        bare.push(numbers.next().ok_or("python3 said nothing")??);
        megabytes = numbers.next().ok_or("python3 said half")?? / 1e6;
        let (labelled, peak) = time(&bench.proctor, &["trace", "stats", "--anew"], run.root())?;
        let (drawn, other_peak) = time(&bench.proctor, &["trace", "figure", "-o", picture], run.root())?;
        all.push_ms(labelled + drawn);
        memory.push(peak.max(other_peak));
        again.push_ms(time(&bench.proctor, &["trace", "stats"], run.root())?.0);
    }
    report.add(Row {
        what: format!("{TASKS} × 5 traces labelled, counted, drawn, beside json.loads of each line"),
        unit: "ms",
        bare: Some(bare),
        ours: all,
        aim: Some(Aim::Max(MILLISECONDS)),
        remark: format!("{megabytes:.0} MB of traces; labels written"),
    });
    report.add(Row {
        what: "its peak memory".to_owned(),
        unit: "MB",
        bare: None,
        ours: memory,
        aim: Some(Aim::Max(MEMORY_MB)),
        remark: String::new(),
    });
    report.add(Row {
        what: "counted again, the labels being there".to_owned(),
        unit: "ms",
        bare: None,
        ours: again,
        aim: None,
        remark: "digests of all traces checked".to_owned(),
    });
    fs::remove_dir_all(&folder)?;
    Ok(())
}
