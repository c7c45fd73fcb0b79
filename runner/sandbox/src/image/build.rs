//! Builds the image. Each part is skipped when its result is there, so a second call returns at once and an
//! interrupted one goes on where it stopped.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{BuildImageOptionsBuilder, RemoveImageOptionsBuilder};
use bollard::{Docker, body_try_stream};
use futures_util::TryStreamExt;
use proctor_traces::Digest;

use super::context::{DiskFile, stream_of};
use super::inputs::{INPUTS, Input, REPOSITORY, expected_reference, inputs_digest};
use super::{
    BuildEvent, INPUTS_LABEL, ImageError, ImageIdentity, ImageStatus, PACKAGES_LABEL, base, engine, packages,
    status, tool, wheels,
};

/// Silence that one request may have: a single apt step can be quiet for minutes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How many of a failed step's last lines an error quotes.
const TAIL: usize = 20;

/// What a build may be told.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Where wheels and half-made base images lie; about 240 MB. Made if it is not there.
    pub cache_dir: PathBuf,
    /// The image to start from, a Debian 12; by default `debian:bookworm-slim`, pulled or bootstrapped. It does not
    /// count for the digest of the inputs: what it brings shows in the package list.
    pub base: Option<String>,
}

/// Builds the image unless it is there, and says which one it is. `progress` is told what happens.
pub async fn build(
    docker: &Docker,
    options: &BuildOptions,
    mut progress: impl FnMut(BuildEvent) + Send,
) -> Result<ImageIdentity, ImageError> {
    if let ImageStatus::Present(identity) = status(docker).await? {
        return Ok(identity);
    }
    let docker = &docker.clone().with_timeout(PATIENCE);
    check_architecture(docker).await?;
    let base = base::ensure(docker, options.base.as_deref(), &options.cache_dir, &mut progress).await?;
    let wheels = wheels::ensure(&options.cache_dir, &mut progress).await?;

    let inputs = inputs_digest();
    let unlabelled = format!("{REPOSITORY}:unlabelled-{}", inputs.short());
    let arguments = HashMap::from([("BASE", base.as_str())]);
    run(docker, INPUTS.to_vec(), wheels, &arguments, &unlabelled, &mut progress).await?;
    label(docker, &unlabelled, inputs, &mut progress).await
}

async fn check_architecture(docker: &Docker) -> Result<(), ImageError> {
    let version = docker.version().await.map_err(engine("asking for its version"))?;
    match version.arch.as_deref() {
        Some("amd64" | "x86_64") | None => Ok(()),
        Some(other) => Err(ImageError::Architecture { found: other.to_owned() }),
    }
}

/// The package list is known only after the build, so labels need a second one: a single step without a layer.
async fn label(
    docker: &Docker,
    unlabelled: &str,
    inputs: Digest,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<ImageIdentity, ImageError> {
    let (rows, packages) = packages::read(docker, unlabelled).await?;
    progress(BuildEvent::Labelling { packages: rows.len() });
    let dockerfile =
        format!("FROM {unlabelled}\nLABEL {INPUTS_LABEL}=\"{inputs}\" {PACKAGES_LABEL}=\"{packages}\"\n");
    let reference = expected_reference();
    let context = vec![Input { path: "Dockerfile", bytes: dockerfile.leak().as_bytes(), executable: false }];
    run(docker, context, Vec::new(), &HashMap::new(), &reference, &mut |_| ()).await?;
    // Only the name goes: the layers belong to the labelled image, and are the cache of the next build.
    let keep_parents = RemoveImageOptionsBuilder::default().noprune(true).build();
    if let Err(error) = docker.remove_image(unlabelled, Some(keep_parents), None).await {
        tracing::debug!(%error, image = unlabelled, "the unlabelled name of the image stays");
    }
    match status(docker).await? {
        ImageStatus::Present(identity) => Ok(identity),
        ImageStatus::Absent { expected } => Err(ImageError::Packages {
            reference: expected,
            why: "its labels are not there after the build".to_owned(),
        }),
    }
}

/// One build through the engine's classic builder; the result is named `tag`.
async fn run(
    docker: &Docker,
    inputs: Vec<Input>,
    files: Vec<DiskFile>,
    arguments: &HashMap<&str, &str>,
    tag: &str,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<(), ImageError> {
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .t(tag)
        .rm(true)
        .forcerm(true)
        .buildargs(arguments)
        .build();
    let (frames, writer) = stream_of(inputs, files);
    let mut steps = Steps::default();
    let mut failure = None;
    {
        let mut answers = std::pin::pin!(docker.build_image(options, None, Some(body_try_stream(frames))));
        loop {
            match answers.try_next().await {
                Ok(None) => break,
                Ok(Some(answer)) => {
                    if let Some(text) = &answer.stream {
                        steps.feed(text, progress);
                    }
                    if let Some(message) = answer.error_detail.and_then(|detail| detail.message) {
                        failure = Some(steps.failed(message));
                        break;
                    }
                }
                Err(EngineError::DockerStreamError { error }) => {
                    failure = Some(steps.failed(error));
                    break;
                }
                Err(error) => {
                    failure = Some(engine("building the image")(error));
                    break;
                }
            }
        }
    }
    steps.finish(progress);
    // Why the context could not be written explains more than the engine's view of a broken request. That the engine
    // stopped reading is no error of its own.
    if let Ok(Err(source)) = writer.await
        && source.kind() != io::ErrorKind::BrokenPipe
    {
        return Err(ImageError::Io { doing: "read the files of the build context".to_owned(), source });
    }
    failure.map_or(Ok(()), Err)
}

/// Turns the builder's output, which arrives in arbitrary pieces, into events.
#[derive(Default)]
struct Steps {
    partial: String,
    current: Option<(u32, u32, String)>,
    tail: Vec<String>,
}

impl Steps {
    fn feed(&mut self, text: &str, progress: &mut impl FnMut(BuildEvent)) {
        self.partial.push_str(text);
        while let Some(end) = self.partial.find('\n') {
            let line: String = self.partial.drain(..=end).collect();
            self.line(&line, progress);
        }
        // A tool that never ends its line must not be collected for ever.
        if self.partial.len() > 64 * 1024 {
            self.finish(progress);
        }
    }

    fn finish(&mut self, progress: &mut impl FnMut(BuildEvent)) {
        let line = std::mem::take(&mut self.partial);
        self.line(&line, progress);
    }

    fn line(&mut self, raw: &str, progress: &mut impl FnMut(BuildEvent)) {
        let Some(line) = tool::readable(raw) else { return };
        if let Some((index, total, instruction)) = parse_step(&line) {
            self.tail.clear();
            self.current = Some((index, total, instruction.clone()));
            progress(BuildEvent::Step { index, total, instruction, cached: false });
        } else if line.trim() == "---> Using cache" {
            if let Some((index, total, instruction)) = self.current.clone() {
                progress(BuildEvent::Step { index, total, instruction, cached: true });
            }
        } else if !is_bookkeeping(&line) {
            if self.tail.len() == TAIL {
                self.tail.remove(0);
            }
            self.tail.push(line.clone());
            progress(BuildEvent::Output(line));
        }
    }

    fn failed(&self, message: String) -> ImageError {
        let step = self.current.as_ref().map_or_else(
            || "the start".to_owned(),
            |(index, total, instruction)| format!("step {index}/{total} ({instruction})"),
        );
        ImageError::Step { step, message, tail: self.tail.join("\n") }
    }
}

/// `Step 5/12 : RUN …` (the classic builder) or `STEP 5/12: RUN …` (Podman).
fn parse_step(line: &str) -> Option<(u32, u32, String)> {
    let rest = line.strip_prefix("Step ").or_else(|| line.strip_prefix("STEP "))?;
    let (count, instruction) = rest.split_once(':')?;
    let (index, total) = count.trim().split_once('/')?;
    let instruction = instruction.split_whitespace().collect::<Vec<_>>().join(" ");
    Some((index.parse().ok()?, total.parse().ok()?, instruction))
}

/// Lines by which the builder speaks of its own containers and layers.
fn is_bookkeeping(line: &str) -> bool {
    let line = line.trim_start();
    ["---> ", "Removing intermediate container", "Successfully ", "debconf: delaying"]
        .iter()
        .any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&str]) -> (Steps, Vec<BuildEvent>) {
        let (mut steps, mut events) = (Steps::default(), Vec::new());
        for piece in pieces {
            steps.feed(piece, &mut |event| events.push(event));
        }
        steps.finish(&mut |event| events.push(event));
        (steps, events)
    }

    #[test]
    fn output_in_pieces_becomes_steps() {
        let pieces = [
            "Step 1/2 : FR",
            "OM x\n",
            " ---> Using cache\n",
            " ---> 12ab\nStep 2/2 : RUN  a \\\n",
            "hello\r\n",
            "\u{1b}[91mbad",
        ];
        let (steps, events) = events(&pieces);
        let step = |index, instruction: &str, cached| BuildEvent::Step {
            index,
            total: 2,
            instruction: instruction.to_owned(),
            cached,
        };
        let expected = [
            step(1, "FROM x", false),
            step(1, "FROM x", true),
            step(2, "RUN a \\", false),
            BuildEvent::Output("hello".to_owned()),
            BuildEvent::Output("bad".to_owned()),
        ];
        assert_eq!(events, expected);
        let error = steps.failed("returned a non-zero code: 1".to_owned()).to_string();
        let expected =
            "building the image failed at step 2/2 (RUN a \\): returned a non-zero code: 1\nhello\nbad";
        assert_eq!(error, expected);
    }

    #[test]
    fn what_only_looks_like_a_step_is_output() {
        let (_, events) = events(&["Step by step\n", "Step 1/x : RUN\n", "STEP 3/4: RUN y\n"]);
        let expected = [
            BuildEvent::Output("Step by step".to_owned()),
            BuildEvent::Output("Step 1/x : RUN".to_owned()),
            BuildEvent::Step { index: 3, total: 4, instruction: "RUN y".to_owned(), cached: false },
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn an_endless_line_is_not_collected_for_ever() {
        let piece = "x".repeat(1000);
        let (steps, events) = events(&vec![piece.as_str(); 200]);
        assert!(steps.partial.is_empty() && events.len() > 2);
    }
}
