//! Finding and removing what a dead runner left behind, by label. Whether an owner is alive is the caller's to say.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use serde::Serialize;

use crate::SandboxError;

/// Label with the run a container belongs to.
pub const RUN_LABEL: &str = "proctor.run";
/// Label with the trial and try.
pub const TRIAL_LABEL: &str = "proctor.trial";
/// Label with the process that owns the container.
pub const OWNER_LABEL: &str = "proctor.owner";
/// Label with what the container is for: `agent` or `render`.
pub const KIND_LABEL: &str = "proctor.kind";

/// How long a removal that somebody else has begun is waited for.
const REMOVAL_BY_ANOTHER: Duration = Duration::from_secs(30);

/// A container that was found without a living owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Its name.
    pub name: String,
    /// The run it belonged to.
    pub run: String,
    /// The owner that is gone.
    pub owner: String,
    /// Why it could not be removed, if so.
    pub error: Option<String>,
}

/// Removes every container of ours whose owner `is_alive` denies; with `dry` only lists them.
pub(crate) async fn sweep(
    docker: &Docker,
    dry: bool,
    is_alive: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Swept>, SandboxError> {
    let filters = HashMap::from([("label".to_owned(), vec![OWNER_LABEL.to_owned()])]);
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
    let containers =
        docker.list_containers(Some(options)).await.map_err(SandboxError::engine("listing containers"))?;
    let mut swept = Vec::new();
    for container in containers {
        let labels = container.labels.unwrap_or_default();
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let owner = label(OWNER_LABEL);
        let Some(id) = container.id.filter(|_| !is_alive(&owner)) else { continue };
        let name = container.names.unwrap_or_default().into_iter().next().unwrap_or_else(|| id.clone());
        let error = if dry { None } else { remove(docker, &id).await.err().map(|error| error.to_string()) };
        swept.push(Swept {
            name: name.trim_start_matches('/').to_owned(),
            run: label(RUN_LABEL),
            owner,
            error,
        });
    }
    Ok(swept)
}

async fn remove(docker: &Docker, id: &str) -> Result<(), Error> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    match docker.remove_container(id, Some(options)).await {
        Err(error @ Error::DockerResponseServerError { status_code: 409, .. }) => {
            // Somebody else is at it; what is swept is gone afterwards all the same.
            let gone = tokio::time::timeout(REMOVAL_BY_ANOTHER, gone(docker, id)).await;
            gone.map_err(|_| error)
        }
        // Somebody else was faster.
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(()),
        other => other,
    }
}

/// Returns when there is no such container any more.
async fn gone(docker: &Docker, id: &str) {
    let there = || docker.inspect_container(id, None::<InspectContainerOptions>);
    while !matches!(there().await, Err(Error::DockerResponseServerError { status_code: 404, .. })) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
