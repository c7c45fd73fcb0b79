//! Builds the image. Each part is skipped when its result is there, so a second call returns at once and an
//! interrupted one goes on where it stopped.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bollard::errors::Error as EngineError;
use bollard::query_parameters::{BuildImageOptions, BuildImageOptionsBuilder, RemoveImageOptionsBuilder};
use bollard::{Docker, body_try_stream};
use futures_util::TryStreamExt;
use proctor_traces::{Digest, ImageIdentity};

use super::context::{DiskFile, stream_of};
use super::inputs::{INPUTS, Input, REPOSITORY, expected_reference, inputs_digest};
use super::{
    BuildEvent, INPUTS_LABEL, ImageError, ImageStatus, PACKAGES_LABEL, base, engine, packages, status,
    steps::Steps, wheels,
};

/// Silence that one request may have: a single apt step can be quiet for minutes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(3600);

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
    add_labels(docker, unlabelled, &expected_reference(), inputs, packages).await?;
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

async fn add_labels(
    docker: &Docker,
    from: &str,
    to: &str,
    inputs: Digest,
    packages: Digest,
) -> Result<(), ImageError> {
    let recipe = [Input { path: "Dockerfile", bytes: b"ARG FROM\nFROM ${FROM}\n", executable: false }];
    let labels = HashMap::from([(INPUTS_LABEL, inputs.to_string()), (PACKAGES_LABEL, packages.to_string())]);
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .t(to)
        .rm(true)
        .buildargs(&HashMap::from([("FROM", from)]))
        .labels(&labels)
        .build();
    submit(docker, options, recipe.to_vec(), Vec::new(), &mut |_| ()).await
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
    submit(docker, options, inputs, files, progress).await
}

async fn submit(
    docker: &Docker,
    options: BuildImageOptions,
    inputs: Vec<Input>,
    files: Vec<DiskFile>,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<(), ImageError> {
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

#[cfg(test)]
mod tests {
    use bollard::query_parameters::RemoveImageOptions;

    use super::*;
    use crate::image::identity_of;

    fn input(path: &'static str, bytes: &'static [u8]) -> Input {
        Input { path, bytes, executable: false }
    }

    async fn docker() -> Docker {
        let docker = Docker::connect_with_local_defaults().unwrap();
        docker.negotiate_version().await.expect("these tests need a container engine: `make test` starts one")
    }

    /// The real road, with a recipe that costs nothing: build, read the list, and find the identity in the labels.
    #[tokio::test]
    async fn an_image_is_built_listed_and_labelled() {
        const RECIPE: &[u8] =
            b"ARG BASE=scratch\nFROM ${BASE}\nCOPY packages.txt /usr/share/proctor/packages.txt\nENV A=b\n";
        const LIST: &[u8] = b"deb/bash\t5.2\npy/numpy\t2.4\n";
        let docker = docker().await;
        let tag = format!("proctor/test:{}", std::process::id());
        let labelled = format!("{tag}-labelled");
        let recipe = vec![input("Dockerfile", RECIPE), input("packages.txt", LIST)];
        let mut seen = Vec::new();
        run(&docker, recipe, Vec::new(), &HashMap::new(), &tag, &mut |event| seen.push(event.to_string()))
            .await
            .unwrap();
        assert!(seen.iter().any(|line| line.starts_with("step 3/4: COPY packages.txt")), "{seen:?}");

        let (rows, packages) = packages::read(&docker, &tag).await.unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(packages, Digest::of(LIST));

        let inputs = Digest::of(RECIPE);
        add_labels(&docker, &tag, &labelled, inputs, packages).await.unwrap();
        let inspected = docker.inspect_image(&labelled).await.unwrap();
        let (id, labels) = (inspected.id.unwrap(), inspected.config.unwrap().labels.unwrap());
        let identity = identity_of(&labelled, &id, &labels).unwrap();
        assert_eq!((identity.inputs, identity.packages), (inputs, packages));
        for name in [&labelled, &tag] {
            docker.remove_image(name, None::<RemoveImageOptions>, None).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_failing_step_is_named() {
        let docker = docker().await;
        let recipe = vec![input("Dockerfile", b"FROM scratch\nCOPY missing.txt /\n")];
        let tag = format!("proctor/test:{}-failing", std::process::id());
        let error = run(&docker, recipe, Vec::new(), &HashMap::new(), &tag, &mut |_| ()).await.unwrap_err();
        let ImageError::Step { step, message, .. } = &error else { panic!("{error:?}") };
        assert_eq!(step, "step 2/2 (COPY missing.txt /)");
        assert!(message.contains("missing.txt"), "{message}");
    }
}
