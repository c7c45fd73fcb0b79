//! Reading a session file of Codex, beside a straightforward reading in Python that only takes each line apart.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use proctor_traces::{Format, Trace, sources};

use crate::figures::{Aim, Report, Row, Samples};
use crate::{Bench, Outcome, say};

/// Size of the file.
const BYTES: u32 = 64 << 20;
/// 200 MB/s of one core.
const MOST_MS: f64 = 335.5;

const YARDSTICK: &str = r"
import json, sys, time
start = time.perf_counter()
with open(sys.argv[1]) as lines:
    for line in lines:
        json.loads(line)
print((time.perf_counter() - start) * 1000)
";

pub(crate) fn measure(bench: &Bench, turns: u32, report: &mut Report) -> Outcome<()> {
    say("reading a session file of 64 MiB");
    let text = rollout();
    let file = bench.folder("traces-")?.join("rollout.jsonl");
    std::fs::write(&file, &text)?;
    let (mut bare, mut ours) = (Samples::default(), Samples::default());
    let mut calls = 0;
    // The first of each is not counted.
    for turn in 0..=turns.max(5) {
        let python = Command::new("python3").args(["-c", YARDSTICK]).arg(&file).output()?;
        let took: f64 = String::from_utf8_lossy(&python.stdout).trim().parse()?;
        let start = Instant::now();
        let records = sources::read(text.as_bytes(), Some(Format::CodexRollout), None)?;
        let trace = Trace::of_records("rollout", records);
        let elapsed = start.elapsed();
        calls = trace.calls.len();
        if turn > 0 {
            bare.push(took);
            ours.push_ms(elapsed);
        }
    }
    let speed = f64::from(BYTES) / 1000.0 / ours.median();
    report.add(Row {
        what: "Codex session of 64 MiB: calls of it, beside json.loads of each line".to_owned(),
        unit: "ms",
        bare: Some(bare),
        ours,
        aim: Some(Aim::Spread { median: MOST_MS, p90: f64::INFINITY }),
        remark: format!("{calls} calls; {speed:.0} MB/s"),
    });
    Ok(())
}

/// A session of many commands with outputs of all sizes, and some pictures.
fn rollout() -> String {
    let picture = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKElEQVR4".repeat(700);
    let mut text = String::with_capacity(BYTES as usize + (1 << 20));
    let mut number = 0_u64;
    while text.len() < BYTES as usize {
        number += 1;
        let lines = (0..60 * (1 + number % 12)).fold(String::new(), |mut all, line| {
            let colour = (number * 2_654_435_761 + line * 40_503) & 0xff_ffff;
            let _ =
                write!(all, "{:5} {:5} #{colour:06x} run {}\\n", line * 3, number % 977 + line, line % 17);
            all
        });
        let at = |ms: u64| {
            format!(
                "2026-05-04T{:02}:{:02}:{:02}.{ms:03}Z",
                number / 3600 % 24,
                number / 60 % 60,
                number % 60
            )
        };
        let mut item = |ms: u64, kind: &str, payload: &str| {
            let _ = writeln!(
                text,
                r#"{{"timestamp":"{}","ordinal":{number},"type":"{kind}","payload":{payload}}}"#,
                at(ms)
            );
        };
        let call = format!(
            r#"{{"type":"function_call","name":"exec_command","arguments":"{{\"cmd\": \"python3 - <<'EOF'\\nfor y in range(9):\\n    print(y)\\nEOF\"}}","call_id":"call_{number}"}}"#
        );
        item(10, "response_item", &call);
        let told = format!(
            r#"{{"type":"item_completed","item":{{"type":"CommandExecution","id":"call_{number}","command":["/bin/bash","-lc","python3 x"],"status":"completed","aggregated_output":"{lines}","exit_code":0}},"started_at_ms":1777888800000,"completed_at_ms":1777888800900}}"#
        );
        item(900, "event_msg", &told);
        let answer = format!(
            r#"{{"type":"function_call_output","call_id":"call_{number}","output":"Wall time: 0.9 seconds\nProcess exited with code 0\nOutput:\n{lines}"}}"#
        );
        item(901, "response_item", &answer);
        if number.is_multiple_of(3) {
            let call = format!(
                r#"{{"type":"function_call","name":"view_image","arguments":"{{\"path\": \"/work/preview.png\"}}","call_id":"view_{number}"}}"#
            );
            item(910, "response_item", &call);
            let answer = format!(
                r#"{{"type":"function_call_output","call_id":"view_{number}","output":[{{"type":"input_image","image_url":"data:image/png;base64,{picture}"}}]}}"#
            );
            item(911, "response_item", &answer);
        }
    }
    text
}
