//! What agents print is kept byte for byte, each stream for itself, each line with its time.

use crate::support::{Run, Trial};

/// Prints in pieces: a character cut in two, a line of 3 MB, NULs, what is no text at all, and no last newline; on
/// stderr something else meanwhile.
const PRINTER: &str = r#"
import os, time
def put(stream, bytes):
    while bytes: bytes = bytes[os.write(stream, bytes):]
put(1, b"first \xe2\x82")
put(2, b"warning 1\n")
time.sleep(0.2)
put(1, b"\xac euro\n")
put(1, b"x" * 3000000 + b"\n")
put(2, b"\xff\xfe\x00 no text\r\n")
put(1, b"nul \x00 in it\n\n")
put(1, b"\x80\xff\n")
put(2, b"y" * 100000 + b"\nno newline")
put(1, b"{\"type\":\"last\"}")
"#;

#[test]
fn both_streams_are_kept_byte_for_byte() {
    let trial = Run::over_one().python(PRINTER).go().with_code(0).trial();
    let mut stdout = b"first \xe2\x82\xac euro\n".to_vec();
    stdout.extend(vec![b'x'; 3_000_000]);
    stdout.extend(b"\nnul \0 in it\n\n\x80\xff\n{\"type\":\"last\"}");
    let mut stderr = b"warning 1\n\xff\xfe\0 no text\r\n".to_vec();
    stderr.extend(vec![b'y'; 100_000]);
    stderr.extend(b"\nno newline");
    assert!(trial.bytes("raw/stdout.jsonl") == stdout, "stdout differs");
    assert!(trial.bytes("raw/stderr.log") == stderr, "stderr differs");
    assert_eq!(trial.outcome.stream.bytes, (stdout.len() + stderr.len()) as u64);
    each_line_has_its_time(&trial, "raw/stdout.times", &stdout);
    each_line_has_its_time(&trial, "raw/stderr.times", &stderr);
    // The last line counts, though nothing ended it.
    assert_eq!(trial.outcome.stream.recognised, 6);
}

fn each_line_has_its_time(trial: &Trial, name: &str, bytes: &[u8]) {
    let mut starts: Vec<usize> = vec![0];
    starts.extend(bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1));
    starts.pop();
    let text = String::from_utf8(trial.bytes(name)).unwrap();
    let lines: Vec<(u64, usize)> = text
        .lines()
        .map(|line| line.split_once('\t').unwrap())
        .map(|(at, start)| (at.parse().unwrap(), start.parse().unwrap()))
        .collect();
    assert_eq!(lines.iter().map(|(_, start)| *start).collect::<Vec<_>>(), starts, "{name}");
    assert!(lines.is_sorted_by_key(|(at, _)| *at), "{name}: {text}");
    assert!(lines.iter().all(|(at, _)| *at <= trial.outcome.timing.wall_ms.0), "{name}: {text}");
}

#[test]
fn what_is_printed_just_before_the_end_is_not_lost() {
    let trial = Run::over_one()
        .shell("for i in $(seq 20000); do echo $i; done; exec echo end")
        .go()
        .with_code(0)
        .trial();
    let text = String::from_utf8(trial.bytes("raw/stdout.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let expected: Vec<String> = (1..=20000).map(|i| i.to_string()).chain(["end".to_owned()]).collect();
    assert!(lines == expected && text.ends_with("end\n"), "{} bytes", text.len());
}
