//! The build context as a tar stream. It holds some 240 MB of wheels, so it is written by a thread into a short queue
//! and never lies in memory as a whole.

use std::io::{self, Write};
use std::path::PathBuf;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::inputs::Input;

/// Bytes per frame of the request body.
const FRAME: usize = 256 * 1024;

/// Frames that may wait for the engine.
const QUEUE: usize = 8;

/// A file of the context that lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskFile {
    /// Path within the context.
    pub(super) name: String,
    pub(super) source: PathBuf,
}

/// Writes the context: `inputs`, then `files`. Times and owners are fixed, so equal inputs give equal bytes.
pub(super) fn write(inputs: &[Input], files: &[DiskFile], sink: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(sink);
    for input in inputs {
        let mode = if input.executable { 0o755 } else { 0o644 };
        append(&mut archive, input.path, mode, input.bytes.len() as u64, input.bytes)?;
    }
    for file in files {
        let opened = std::fs::File::open(&file.source)?;
        let bytes = opened.metadata()?.len();
        append(&mut archive, &file.name, 0o644, bytes, io::Read::take(opened, bytes))?;
    }
    archive.into_inner()?.flush()
}

fn append(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    mode: u32,
    bytes: u64,
    content: impl io::Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes);
    archive.append_data(&mut header, name, content)
}

/// The context as the frames of a request's body, and the thread that writes it. The thread ends early, with a broken pipe,
/// when the engine stops reading.
pub(super) fn stream_of(
    inputs: Vec<Input>,
    files: Vec<DiskFile>,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, JoinHandle<io::Result<()>>) {
    stream_from(move |sink| write(&inputs, &files, sink))
}

/// A file on disk, likewise.
pub(super) fn stream_of_file(
    path: PathBuf,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, JoinHandle<io::Result<()>>) {
    stream_from(move |sink| {
        io::copy(&mut std::fs::File::open(&path)?, sink)?;
        sink.flush()
    })
}

fn stream_from(
    produce: impl FnOnce(&mut Sink) -> io::Result<()> + Send + 'static,
) -> (impl Stream<Item = io::Result<Bytes>> + Send + 'static, JoinHandle<io::Result<()>>) {
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(QUEUE);
    let writer = tokio::task::spawn_blocking(move || {
        let mut sink = Sink { sender, pending: Vec::with_capacity(FRAME) };
        let written = produce(&mut sink);
        if let Err(error) = &written {
            // A body that just ended would look like a complete, shorter archive.
            let copy = io::Error::new(error.kind(), error.to_string());
            drop(sink.sender.blocking_send(Err(copy)));
        }
        written
    });
    let frames = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|frame| (frame, receiver))
    });
    (frames, writer)
}

/// Collects small writes into frames and hands them to the request.
struct Sink {
    sender: mpsc::Sender<io::Result<Bytes>>,
    pending: Vec<u8>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= FRAME {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let frame = Bytes::from(std::mem::replace(&mut self.pending, Vec::with_capacity(FRAME)));
        self.sender.blocking_send(Ok(frame)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::image::inputs::INPUTS;

    #[test]
    fn context_holds_every_input_and_file_with_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("x.whl");
        std::fs::write(&wheel, "wheel").unwrap();
        let files = [DiskFile { name: "wheels/x.whl".to_owned(), source: wheel }];
        let mut bytes = Vec::new();
        write(INPUTS, &files, &mut bytes).unwrap();

        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let mode = entry.header().mode().unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            found.push((path, mode, content));
        }
        let mut expected: Vec<_> = INPUTS
            .iter()
            .map(|input| {
                (input.path.to_owned(), if input.executable { 0o755 } else { 0o644 }, input.bytes.to_vec())
            })
            .collect();
        expected.push(("wheels/x.whl".to_owned(), 0o644, b"wheel".to_vec()));
        assert_eq!(found, expected);
    }

    #[test]
    fn equal_inputs_give_equal_bytes() {
        let (mut one, mut other) = (Vec::new(), Vec::new());
        write(INPUTS, &[], &mut one).unwrap();
        write(INPUTS, &[], &mut other).unwrap();
        assert_eq!(one, other);
    }

    #[tokio::test]
    async fn a_missing_file_breaks_the_body_instead_of_shortening_it() {
        use futures_util::StreamExt;
        let files = vec![DiskFile { name: "wheels/x".to_owned(), source: "/nonexistent/x".into() }];
        let (frames, writer) = stream_of(Vec::new(), files);
        let mut frames = std::pin::pin!(frames);
        let mut last = None;
        while let Some(frame) = frames.next().await {
            last = Some(frame.is_err());
        }
        assert_eq!(last, Some(true));
        assert!(writer.await.unwrap().is_err());
    }
}
