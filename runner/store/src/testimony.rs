//! Everything in a trial's folder that tells what its agent did.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use proctor_traces::{
    Arrivals, AskedCall, Exchange, ExchangeEnd, Format, SourceFile, Trace, TraceError, WireFormat,
    asked_in_chat,
};
use walkdir::WalkDir;

use crate::{StoreError, TrialDir};

/// The files that tell what an agent did, ready to be joined.
#[derive(Clone, Debug, Default)]
pub struct Testimony {
    /// Journal or printed lines, and session files.
    pub files: Vec<SourceFile>,
    /// The gateway's record.
    pub exchanges: Option<Vec<u8>>,
    /// What the model asked for last, and when, of agents that tell of a call when it is over.
    asked: Option<(i64, Vec<AskedCall>)>,
    /// The times at which printed lines arrived, as they are on disk.
    pub(crate) times: Option<Vec<u8>>,
}

impl Testimony {
    /// A larger file is no session of half an hour.
    const FILE_CAP: u64 = 1 << 30;
    /// Session files that are looked at.
    const MOST_FILES: usize = 1_000;

    /// What the trial at `folder` has; that of its last try if it is not done. A trial is where this looks, whether or not
    /// it lies in a run.
    pub fn of(folder: &Path) -> Result<Self, StoreError> {
        let mut testimony = Self::default();
        let folder = &settled(folder);
        let (journal, stdout) = (folder.join("trace.jsonl"), folder.join("raw/stdout.jsonl"));
        if there(&journal)? {
            testimony.add(folder, &journal, Some(Format::Proctor), None)?;
            // The one agent whose printed lines hold more times than its arrivals tell, and whose session is no text.
            if head(&stdout).and_then(|bytes| Format::detect(&bytes)) == Some(Format::Opencode) {
                testimony.add(folder, &stdout, None, None)?;
                testimony.asked = asked_last(folder);
            }
        } else {
            if there(&stdout)? {
                testimony.times = read(&stdout.with_extension("times")).ok();
                let arrivals = testimony.times.as_deref().map(Arrivals::parse);
                testimony.add(folder, &stdout, None, arrivals)?;
            }
        }
        let sessions = WalkDir::new(folder.join("raw/session")).sort_by_file_name().max_depth(20);
        for entry in sessions {
            let entry = match entry {
                Ok(entry) if entry.file_type().is_file() => entry,
                Ok(_) => continue,
                Err(error) if error.io_error().is_some_and(|it| it.kind() == ErrorKind::NotFound) => continue,
                Err(error) => {
                    let path = error.path().unwrap_or(folder).to_owned();
                    return Err(StoreError::io("reading", &path)(error.into()));
                }
            };
            let name = entry.file_name().to_string_lossy();
            if (name.ends_with(".jsonl") || name.ends_with(".jsonl.zst"))
                && testimony.files.len() < Self::MOST_FILES
            {
                testimony.add(folder, entry.path(), None, None)?;
            }
        }
        let exchanges = folder.join("model/exchanges.jsonl");
        if there(&exchanges)? {
            testimony.exchanges = Some(read(&exchanges)?);
        }
        Ok(testimony)
    }

    fn add(
        &mut self,
        folder: &Path,
        path: &Path,
        format: Option<Format>,
        arrivals: Option<Arrivals>,
    ) -> Result<(), StoreError> {
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        self.files.push(SourceFile { name, bytes: read(path)?, format, arrivals });
        Ok(())
    }

    /// The trace that they come to.
    pub fn trace(&self) -> Result<Trace, TraceError> {
        let mut trace = Trace::read(&self.files, self.exchanges.as_deref())?;
        if let Some((ms, calls)) = &self.asked {
            trace.add_asked(*ms, calls.clone());
        }
        Ok(trace)
    }
}

impl TrialDir {
    /// Everything that tells what the agent of this trial did.
    pub fn testimony(&self) -> Result<Testimony, StoreError> {
        Testimony::of(self.path())
    }
}

/// Where the evidence is: in the trial, or still in its last try.
fn settled(folder: &Path) -> PathBuf {
    if folder.join("trace.jsonl").exists() || folder.join("raw").exists() {
        return folder.to_owned();
    }
    let tries = fs::read_dir(folder.join("tries")).into_iter().flatten().flatten();
    let last = tries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max();
    last.map_or_else(|| folder.to_owned(), |number| folder.join("tries").join(number.to_string()))
}

/// The calls of the last answer, if the agent asked for nothing after it: some of them may still be at work.
fn asked_last(folder: &Path) -> Option<(i64, Vec<AskedCall>)> {
    let lines = fs::read(folder.join("model/exchanges.jsonl")).ok()?;
    let exchanges = lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let exchanges: Vec<Exchange> = exchanges.collect();
    let last = exchanges.iter().max_by_key(|it| it.start_ms.0)?;
    if last.wire != Some(WireFormat::OpenaiChat) || last.end != ExchangeEnd::Complete {
        return None;
    }
    let body = folder.join("model/blobs").join(last.response.hex());
    if fs::metadata(&body).ok()?.len() > ANSWER_CAP {
        return None;
    }
    Some((last.end_ms.0, asked_in_chat(&fs::read(body).ok()?)))
}

/// Whether there is something; an error if that is not to be found out.
fn there(path: &Path) -> Result<bool, StoreError> {
    path.try_exists().map_err(StoreError::io("reading", path))
}

/// The first lines of a file, if it is there.
fn head(path: &Path) -> Option<Vec<u8>> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(64 << 10).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    let failed = StoreError::io("reading", path);
    let size = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        // A pipe would never end.
        Ok(_) => return Err(failed(std::io::Error::other("it is not a plain file"))),
        Err(error) => return Err(failed(error)),
    };
    if size > Testimony::FILE_CAP {
        return Err(failed(std::io::Error::from(ErrorKind::FileTooLarge)));
    }
    fs::read(path).map_err(failed)
}

/// Answers that are larger are not looked into.
const ANSWER_CAP: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: &str = concat!(
        r#"{"timestamp":"2026-11-30T10:00:01.000Z","type":"response_item","payload":{"type":"function_call","name":"view_image","arguments":"{\"path\":\"a.png\"}","call_id":"c1"}}"#,
        "\n",
    );
    const STARTED: &str = r#"{"seq":0,"at":"2026-11-30T10:00:00.000Z","offset_ms":0,"turn":1,"source":"guest","kind":"turn_started"}"#;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_journal_and_the_session_tell_together_also_from_an_unsettled_try() {
        for place in ["", "tries/2/"] {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join(place);
            write(&folder.join("trace.jsonl"), STARTED);
            write(&folder.join("raw/stdout.jsonl"), "not looked at\n");
            write(&folder.join("raw/session/.codex/sessions/rollout-1.jsonl"), SESSION);
            write(&folder.join("raw/session/.codex/notes.txt"), "none\n");
            let trace = Testimony::of(dir.path()).unwrap().trace().unwrap();
            assert_eq!(trace.calls.len(), 1);
            assert_eq!(trace.calls[0].start.unwrap().ms, 1_000);
            assert_eq!(trace.sources.len(), 2);
        }
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        for name in ["trace.jsonl", "raw/stdout.jsonl", "model/exchanges.jsonl"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
            let error = Testimony::of(dir.path()).unwrap_err();
            assert!(format!("{error:?}").contains("not a plain file"), "{error:?}");
        }
    }

    #[test]
    fn an_empty_folder_has_nothing_to_tell() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Testimony::of(dir.path()).unwrap().trace(), Err(TraceError::Nothing)));
    }

    #[test]
    fn opencode_tells_by_its_printed_lines_when_a_call_began() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let finished = r#"{"type":"tool_use","timestamp":1796032805000,"sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_1","state":{"status":"completed","input":{"command":"make"},"output":"","metadata":{"exit":0},"time":{"start":1796032801000,"end":1796032804500}}}}"#;
        let call = |seq: u32, kind: &str| {
            format!(
                r#"{{"seq":{seq},"at":"2026-11-30T10:00:05.000Z","offset_ms":5000,"turn":1,"source":"agent_stream",{kind}}}"#
            )
        };
        let started =
            call(1, r#""kind":"tool_started","id":"call_1","name":"bash","input":{"command":"make"}"#);
        let ended = call(
            2,
            r#""kind":"tool_finished","id":"call_1","status":"ok","exit_code":0,"output":"","output_bytes":0,"truncated":false"#,
        );
        write(&folder.join("trace.jsonl"), &format!("{STARTED}\n{started}\n{ended}\n"));
        write(&folder.join("raw/stdout.jsonl"), &format!("{finished}\n"));
        let trace = Testimony::of(folder).unwrap().trace().unwrap();
        let [call] = trace.calls.as_slice() else { panic!("{:?}", trace.calls) };
        let times = (call.start.map(|it| it.ms), call.end.map(|it| it.ms));
        assert_eq!(times, (Some(1000), Some(4500)));
    }
}
