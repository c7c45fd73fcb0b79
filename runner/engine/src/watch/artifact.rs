//! Versions of the artifact, seen from outside (DESIGN §4): read when a writer closed it or it was moved into place,
//! at most one a second plus the last, kept by content.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use inotify::{Inotify, WatchMask};
use nix::fcntl::OFlag;
use proctor_traces::{Digest, EventKind, Source};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::EngineError;
use crate::record::Recorder;

/// Shortest time between two versions that are kept.
const PERIOD: Duration = Duration::from_secs(1);
/// Most versions that are kept, and most bytes in all.
const MAX_VERSIONS: u64 = 2000;
const MAX_BYTES: u64 = 256 << 20;

/// How many versions there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    /// Kept in `history/`.
    pub(crate) kept: u64,
    /// Seen closed by a writer, but not kept: too soon after another, beyond the caps, or changed while being read.
    pub(crate) skipped: u64,
}

/// A watch on one file of a workspace.
///
/// Dropping it ends the watch: the task holds the trace open, whose end would otherwise never come.
pub(crate) struct ArtifactWatch {
    task: JoinHandle<Watcher>,
    stop: DropGuard,
}

impl ArtifactWatch {
    /// Watches `name` in `workspace`; files beyond `size_cap` are no versions. Versions go to `history`.
    pub(crate) fn start(
        workspace: &Path,
        name: &str,
        size_cap: u64,
        history: PathBuf,
        recorder: Recorder,
    ) -> Result<Self, EngineError> {
        let failed = |error| EngineError::io("watching", workspace)(error);
        let inotify = Inotify::init().map_err(failed)?;
        inotify.watches().add(workspace, WatchMask::CLOSE_WRITE | WatchMask::MOVED_TO).map_err(failed)?;
        let events = inotify.into_event_stream(vec![0; 16 << 10]).map_err(failed)?;
        let watcher = Watcher {
            path: workspace.join(name),
            size_cap,
            history,
            recorder,
            last: None,
            bytes: 0,
            versions: Versions::default(),
        };
        let stop = CancellationToken::new();
        let task = tokio::spawn(watch(events, name.to_owned(), watcher, stop.clone()));
        Ok(Self { task, stop: stop.drop_guard() })
    }

    /// Ends the watch and takes the last version, if it is a new one. Called when the room is frozen.
    pub(crate) async fn finish(self) -> Result<Versions, EngineError> {
        drop(self.stop);
        let mut watcher = self.task.await.map_err(|_| EngineError::Broken { part: "the watcher" })?;
        watcher.take();
        Ok(watcher.versions)
    }
}

async fn watch(
    mut events: inotify::EventStream<Vec<u8>>,
    name: String,
    mut watcher: Watcher,
    stop: CancellationToken,
) -> Watcher {
    let mut taken = None::<Instant>;
    let mut pending = false;
    loop {
        let due = taken.map_or(Duration::ZERO, |taken| PERIOD.saturating_sub(taken.elapsed()));
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = tokio::time::sleep(due), if pending => {
                watcher.take();
                taken = Some(Instant::now());
                pending = false;
            }
            event = events.next() => match event {
                Some(Ok(event)) if event.name.as_deref().is_some_and(|it| it == name.as_str()) => {
                    // The one that was waiting is overtaken.
                    watcher.versions.skipped += u64::from(pending);
                    pending = true;
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
        }
    }
    watcher
}

struct Watcher {
    path: PathBuf,
    size_cap: u64,
    history: PathBuf,
    recorder: Recorder,
    last: Option<Digest>,
    bytes: u64,
    versions: Versions,
}

impl Watcher {
    /// Reads the file as it is now, and keeps it if it is new.
    fn take(&mut self) {
        let at = Instant::now();
        let bytes = match self.read() {
            Reading::Whole(bytes) => bytes,
            Reading::Torn => {
                self.versions.skipped += 1;
                return;
            }
            Reading::Nothing => return,
        };
        let digest = Digest::of(&bytes);
        if self.last == Some(digest) {
            return;
        }
        self.last = Some(digest);
        let size = bytes.len() as u64;
        let fits = self.versions.kept < MAX_VERSIONS && self.bytes + size <= MAX_BYTES;
        let blob = self.history.join(digest.hex());
        if fits && (blob.exists() || fs::write(&blob, &bytes).is_ok()) {
            self.versions.kept += 1;
            self.bytes += size;
        } else {
            self.versions.skipped += 1;
        }
        self.recorder.event(at, Source::Watcher, EventKind::ArtifactChanged { digest, bytes: size });
    }

    /// The bytes of one version, or nothing if a writer was at it: stats before, after and by path must agree.
    fn read(&self) -> Reading {
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
        let Ok(mut file) = OpenOptions::new().read(true).custom_flags(flags).open(&self.path) else {
            return Reading::Nothing;
        };
        let Ok(before) = file.metadata() else { return Reading::Nothing };
        if !before.is_file() || before.len() == 0 || before.len() > self.size_cap {
            return Reading::Nothing;
        }
        match read_capped(&mut file, self.size_cap) {
            Some(bytes) if self.unchanged(&before, &file) && bytes.len() as u64 == before.len() => {
                Reading::Whole(bytes)
            }
            _ => Reading::Torn,
        }
    }

    fn unchanged(&self, before: &Metadata, file: &File) -> bool {
        let identity = |it: &Metadata| {
            (it.dev(), it.ino(), it.size(), it.mtime_nsec(), it.mtime(), it.ctime_nsec(), it.ctime())
        };
        let same =
            |other: std::io::Result<Metadata>| other.is_ok_and(|other| identity(&other) == identity(before));
        same(file.metadata()) && same(fs::symlink_metadata(&self.path))
    }
}

enum Reading {
    Whole(Vec<u8>),
    Torn,
    Nothing,
}

fn read_capped(file: &mut File, cap: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(cap + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= cap).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proctor_traces::JournalReader;

    use super::*;

    async fn watched(act: impl AsyncFnOnce(&Path)) -> (Versions, Vec<u64>, usize) {
        let dir = tempfile::tempdir().unwrap();
        let (workspace, history) = (dir.path().join("work"), dir.path().join("history"));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&history).unwrap();
        let trace = dir.path().join("trace.jsonl");
        let (recorder, writing) = Recorder::start(&trace).unwrap();
        let watch =
            ArtifactWatch::start(&workspace, "artifact.dot", 1000, history.clone(), recorder).unwrap();
        act(&workspace).await;
        let versions = watch.finish().await.unwrap();
        writing.finish().await.unwrap();
        let sizes = JournalReader::read(&trace).unwrap().0.into_iter().filter_map(|event| match event.kind {
            EventKind::ArtifactChanged { bytes, .. } => Some(bytes),
            _ => None,
        });
        (versions, sizes.collect(), fs::read_dir(&history).unwrap().count())
    }

    #[tokio::test]
    async fn the_last_version_is_always_taken_and_equal_ones_are_one() {
        let (versions, sizes, blobs) = watched(async |work| {
            for text in ["a", "bb", "bb"] {
                fs::write(work.join("artifact.dot"), text).unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            fs::write(work.join("other.dot"), "not the artifact").unwrap();
        })
        .await;
        assert_eq!(sizes, [1, 2]);
        assert_eq!((versions.kept, blobs), (2, 2));
    }

    #[tokio::test]
    async fn a_dropped_watch_lets_the_trace_end() {
        let dir = tempfile::tempdir().unwrap();
        let (recorder, writing) = Recorder::start(&dir.path().join("trace.jsonl")).unwrap();
        let watch =
            ArtifactWatch::start(dir.path(), "artifact.dot", 1000, dir.path().to_owned(), recorder).unwrap();
        drop(watch);
        writing.finish().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_moved_into_place_is_a_version() {
        let (versions, sizes, _) = watched(async |work| {
            fs::write(work.join("draft"), "abc").unwrap();
            fs::rename(work.join("draft"), work.join("artifact.dot")).unwrap();
        })
        .await;
        assert_eq!((versions.kept, sizes), (1, vec![3]));
    }

    #[tokio::test]
    async fn links_fifos_and_files_beyond_the_cap_are_no_versions() {
        let (versions, sizes, blobs) = watched(async |work| {
            let artifact = work.join("artifact.dot");
            fs::write(&artifact, vec![b'x'; 1001]).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            fs::remove_file(&artifact).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", work.join("link")).unwrap();
            fs::rename(work.join("link"), &artifact).unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            nix::unistd::mkfifo(&work.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            fs::rename(work.join("fifo"), &artifact).unwrap();
        })
        .await;
        assert_eq!((versions.kept, sizes, blobs), (0, vec![], 0));
    }
}
