//! Reading the results out of a room. No folder of the host is writable for a tool: everything it writes is in memory
//! file systems, and what is wanted of it is printed by a last command, length first, after everything else was killed.

use std::time::Duration;

use proctor_sandbox::{Command, Running, SandboxError, Stream};

use crate::RenderError;
use crate::picture::{Fault, MAX_PNG_BYTES};
use crate::room::RenderRoom;

/// A memory file system for what the tools print.
pub(crate) const LOGS: &str = "/log";
/// Where the two streams of each step go, in the order of the steps.
pub(crate) const STREAMS: [[&str; 2]; 2] = [["/log/out1", "/log/err1"], ["/log/out2", "/log/err2"]];
/// How much they may print.
pub(crate) const LOG_BYTES: u64 = 32 << 20;

/// How much of each stream is read, and how much of all is kept in the record.
const LOG_TAIL: usize = 64 << 10;
const KEPT_LOG: usize = 8 << 10;

/// How long reading may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// For each FILE MOST WHICH: a line with its size (-1 if there is none) and the number of bytes that follow, then those
/// bytes. First of all, the number of forks that were refused.
const SCRIPT: &str = r#"
printf '%s\n' "$(sed -n 's/^max //p' /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events 2>/dev/null | head -n 1)"
while [ $# -ge 3 ]; do
  size=-1 sent=0
  if [ -f "$1" ]; then
    size=$(stat -Lc %s "$1") sent=$size
    [ "$size" -le "$2" ] || sent=$2
  fi
  printf '%s %s\n' "$size" "$sent"
  [ "$sent" -eq 0 ] || "$3" -c "$sent" "$1"
  shift 3
done
"#;

/// What was read.
pub(crate) struct Gathered {
    /// The end of what was printed, fit to be shown.
    pub(crate) log: String,
    /// The bytes of the picture, unexamined.
    pub(crate) picture: Result<Vec<u8>, Fault>,
    /// Forks that were refused.
    pub(crate) forks_refused: u64,
    /// The tool printed more than there was room for.
    pub(crate) log_full: bool,
}

impl Default for Gathered {
    fn default() -> Self {
        Self { log: String::new(), picture: Err(Fault::Missing), forks_refused: 0, log_full: false }
    }
}

/// Reads the logs and the file at `picture`.
pub(crate) async fn gather(room: &mut RenderRoom, picture: &str) -> Result<Gathered, RenderError> {
    let (tail, most) = (LOG_TAIL.to_string(), MAX_PNG_BYTES.to_string());
    let mut words = vec!["/bin/sh", "-c", SCRIPT, "sh"];
    words.extend(STREAMS.as_flattened().iter().flat_map(|&stream| [stream, tail.as_str(), "tail"]));
    words.extend([picture, &most, "head"]);
    let command = Command {
        argv: words.into_iter().map(str::to_owned).collect(),
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        cwd: "/".to_owned(),
        ..Command::default()
    };
    let running = start(room, command).await?;
    let mut reading = Reading::default();
    let read = async {
        let Running { mut end, .. } = running;
        let mut ended = false;
        // The command may end before its last bytes arrive here; only the lengths say when all are there.
        while !reading.is_complete() {
            tokio::select! {
                chunk = room.output.recv() => match chunk {
                    Some(chunk) if chunk.stream == Stream::Stdout => reading.push(&chunk.bytes),
                    Some(_) => {}
                    None => break,
                },
                _ = &mut end, if !ended => ended = true,
                () = tokio::time::sleep(Duration::from_secs(2)), if ended => break,
            }
        }
    };
    // What is missing after that is found to be missing by the parser.
    let _ = tokio::time::timeout(PATIENCE, read).await;
    reading.finish()
}

/// Starts the command; right after a fork bomb was killed, its remains may still fill the process table.
async fn start(room: &RenderRoom, command: Command) -> Result<Running, RenderError> {
    let mut attempts = 0;
    loop {
        match room.room()?.run(command.clone()).await {
            Err(SandboxError::NotStarted { .. }) if attempts < 50 => attempts += 1,
            other => return Ok(other?),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A file as the script sends it.
#[derive(Default, Debug, PartialEq, Eq)]
struct Sent {
    /// Its whole size; absent if there is no such file.
    size: Option<usize>,
    bytes: Vec<u8>,
}

/// The script's output, taken apart as it comes.
#[derive(Default)]
struct Reading {
    pending: Vec<u8>,
    forks_refused: Option<u64>,
    files: Vec<Sent>,
}

/// All streams and the picture.
const FILES: usize = 5;

impl Reading {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while !self.is_complete() && self.step().is_some() {}
    }

    fn is_complete(&self) -> bool {
        self.files.len() >= FILES
    }

    /// Takes one complete item off the front.
    fn step(&mut self) -> Option<()> {
        let end = self.pending.iter().take(64).position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(self.pending.get(..end)?).ok()?;
        if self.forks_refused.is_none() {
            self.forks_refused = Some(line.trim().parse().unwrap_or(0));
            self.pending.drain(..=end);
            return Some(());
        }
        let (size, sent) = line.split_once(' ')?;
        let (size, sent) = (size.parse().ok(), sent.parse::<usize>().ok()?);
        let whole = end.checked_add(1)?.checked_add(sent)?;
        let bytes = self.pending.get(end + 1..whole)?.to_vec();
        self.pending.drain(..whole);
        self.files.push(Sent { size, bytes });
        Some(())
    }

    fn finish(self) -> Result<Gathered, RenderError> {
        let got = self.files.len();
        let forks_refused = self.forks_refused.unwrap_or(0);
        let mut files = self.files;
        let Some(picture) = files.pop().filter(|_| got == FILES) else {
            return Err(RenderError::Room { message: format!("{got} of {FILES} results could be read") });
        };
        let picture = match picture.size {
            None | Some(0) => Err(Fault::Missing),
            Some(size) if size > picture.bytes.len() => {
                Err(Fault::TooLarge(format!("the picture has {size} bytes")))
            }
            Some(_) => Ok(picture.bytes),
        };
        let printed = files.iter().filter_map(|file| file.size).fold(0, usize::saturating_add) as u64;
        // The last page is lost to rounding.
        let log_full = printed + (8 << 10) > LOG_BYTES;
        Ok(Gathered { log: log(&files), picture, forks_refused, log_full })
    }
}

/// The streams one after the other, in at most [`KEPT_LOG`] bytes: what was printed last, and errors rather than the
/// rest.
fn log(streams: &[Sent]) -> String {
    let mut log = String::new();
    for stream in streams.iter().rev() {
        let mut text = tail(&stream.bytes, KEPT_LOG.saturating_sub(log.len() + 1));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        log.insert_str(0, &text);
    }
    log
}

/// The last bytes as text without control characters, at most `most` bytes.
fn tail(bytes: &[u8], most: usize) -> String {
    let cut = &bytes[bytes.len().saturating_sub(most)..];
    let mut text: String = String::from_utf8_lossy(cut)
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
        .collect();
    // A replacement character is longer than the byte it stands for.
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.split_off(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]]) -> Reading {
        let mut reading = Reading::default();
        for chunk in chunks {
            reading.push(chunk);
        }
        reading
    }

    #[test]
    fn the_same_bytes_in_any_pieces_are_the_same_files() {
        let whole = b"7\n3 3\nabc-1 0\n0 0\n-1 0\n900 4\n\n\x89PN";
        for at in 0..whole.len() {
            let reading = read(&[&whole[..at], &whole[at..]]);
            assert!(reading.is_complete(), "cut at {at}");
            assert_eq!(reading.files[0], Sent { size: Some(3), bytes: b"abc".to_vec() });
            assert_eq!(reading.files[1], Sent { size: None, bytes: Vec::new() });
            let gathered = reading.finish().unwrap();
            assert_eq!(gathered.forks_refused, 7);
            assert_eq!(gathered.log, "abc\n");
            assert_eq!(gathered.picture, Err(Fault::TooLarge("the picture has 900 bytes".into())));
        }
    }

    #[test]
    fn no_file_an_empty_file_and_a_cut_answer_are_no_picture() {
        let missing = read(&[b"\n0 0\n0 0\n0 0\n0 0\n-1 0\n"]).finish().unwrap();
        assert_eq!((missing.picture, missing.forks_refused), (Err(Fault::Missing), 0));
        assert_eq!(read(&[b"\n0 0\n0 0\n0 0\n0 0\n0 0\n"]).finish().unwrap().picture, Err(Fault::Missing));
        assert!(read(&[b"\n0 0\n0 0\n0 0\n0 0\n9 9\nabc"]).finish().is_err());
        assert!(read(&[b"\nhello\n"]).finish().is_err());
    }

    #[test]
    fn logs_are_cut_and_cleaned() {
        let sent = |bytes: &[u8]| Sent { size: Some(bytes.len()), bytes: bytes.to_vec() };
        assert_eq!(log(&[sent(b"out"), sent(b"err\x1b[31m\0")]), "out\nerr[31m\n");
        let flood = vec![0xff; 1 << 20];
        let kept = log(&[sent(&flood), sent(&flood), sent(b"last words")]);
        assert!(kept.len() <= KEPT_LOG && kept.ends_with("\u{fffd}\nlast words\n"), "{}", kept.len());
    }
}
