//! The image that the Dockerfile starts from: the official one where it is or can be had, otherwise one put together
//! from Debian's packages.

use std::path::Path;
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use bollard::{Docker, body_try_stream};
use futures_util::TryStreamExt;

use super::context::stream_of_file;
use super::tool::Tool;
use super::{BuildEvent, ImageError, engine};

/// What the Dockerfile names by default.
const OFFICIAL: &str = "debian:bookworm-slim";

/// Name of a bootstrapped one.
const BOOTSTRAPPED_REPOSITORY: &str = "proctor/base";
const SUITE: &str = "bookworm";

/// How long a registry may be silent before it counts as unreachable.
const PULL_SILENCE: Duration = Duration::from_secs(20);

const MMDEBSTRAP: Tool = Tool {
    program: "mmdebstrap",
    when_missing: "apt-get install mmdebstrap — or load an image named debian:bookworm-slim into the engine",
    when_failing: "check that this machine reaches a Debian mirror; as an ordinary user mmdebstrap also needs \
                   unprivileged user namespaces",
};

/// The reference of a base image that is present; pulls or makes it if need be.
pub(super) async fn ensure(
    docker: &Docker,
    wanted: Option<&str>,
    cache: &Path,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<String, ImageError> {
    let bootstrapped = format!("{BOOTSTRAPPED_REPOSITORY}:{SUITE}");
    let candidates = match wanted {
        Some(reference) => vec![reference.to_owned()],
        None => vec![OFFICIAL.to_owned(), bootstrapped.clone()],
    };
    for reference in candidates {
        if present(docker, &reference).await? {
            progress(BuildEvent::BaseFound { reference: reference.clone() });
            return Ok(reference);
        }
    }
    let reference = wanted.unwrap_or(OFFICIAL).to_owned();
    progress(BuildEvent::BasePulling { reference: reference.clone() });
    match (pull(docker, &reference).await, wanted) {
        (Ok(()), _) => {
            progress(BuildEvent::BaseFound { reference: reference.clone() });
            Ok(reference)
        }
        (Err(why), Some(_)) => Err(ImageError::Base { reference, why }),
        (Err(why), None) => {
            progress(BuildEvent::BaseBootstrapping { why });
            bootstrap(docker, cache, progress).await?;
            Ok(bootstrapped)
        }
    }
}

async fn present(docker: &Docker, reference: &str) -> Result<bool, ImageError> {
    match docker.inspect_image(reference).await {
        Ok(_) => Ok(true),
        Err(bollard::errors::Error::DockerResponseServerError { status_code: 404, .. }) => Ok(false),
        Err(error) => Err(engine("looking for the base image")(error)),
    }
}

/// Pulls; any failure, silence included, is a reason in words, for there is another way.
async fn pull(docker: &Docker, reference: &str) -> Result<(), String> {
    // Without a tag the engine would fetch all of them.
    let (name, tag) = match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') && !name.contains('@') => (name, tag),
        _ if reference.contains('@') => (reference, ""),
        _ => (reference, "latest"),
    };
    let options = CreateImageOptionsBuilder::default().from_image(name).tag(tag).build();
    let mut events = std::pin::pin!(docker.create_image(Some(options), None, None));
    loop {
        match tokio::time::timeout(PULL_SILENCE, events.try_next()).await {
            Err(_) => return Err(format!("no answer for {} s", PULL_SILENCE.as_secs())),
            Ok(Err(error)) => return Err(error.to_string()),
            Ok(Ok(None)) => return Ok(()),
            Ok(Ok(Some(event))) => {
                if let Some(message) = event.error_detail.and_then(|detail| detail.message) {
                    return Err(message);
                }
            }
        }
    }
}

/// Makes a minimal Debian with mmdebstrap and gives it to the engine.
async fn bootstrap(
    docker: &Docker,
    cache: &Path,
    progress: &mut (impl FnMut(BuildEvent) + Send),
) -> Result<(), ImageError> {
    let failed = |source| ImageError::Io { doing: format!("write below {}", cache.display()), source };
    std::fs::create_dir_all(cache).map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("base-").tempdir_in(cache).map_err(failed)?;
    let archive = folder.path().join("base.tar");
    let args = ["--variant=minbase".as_ref(), SUITE.as_ref(), archive.as_os_str()];
    MMDEBSTRAP.run(args, &mut |line| progress(BuildEvent::Output(line))).await?;

    let options =
        CreateImageOptionsBuilder::default().from_src("-").repo(BOOTSTRAPPED_REPOSITORY).tag(SUITE).build();
    let (frames, writer) = stream_of_file(archive);
    let imported = docker
        .create_image(Some(options), Some(body_try_stream(frames)), None)
        .try_for_each(|_| async { Ok(()) })
        .await;
    // The thread's own error explains a broken request better than the engine's.
    if let Ok(Err(error)) = writer.await
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        return Err(failed(error));
    }
    imported.map_err(engine("importing the bootstrapped base image"))
}
