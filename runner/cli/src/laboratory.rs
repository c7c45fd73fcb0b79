//! Where a run takes place: an engine that answers, the image, and who everything runs as.

use std::path::Path;
use std::sync::Arc;

use nix::unistd::{getegid, geteuid};
use proctor_sandbox::image::{self, ImageStatus};
use proctor_sandbox::{DockerSandbox, SandboxError, User};
use proctor_store::{Holder, Owner, remove_orphans};
use proctor_traces::ImageIdentity;

use crate::environment::Environment;
use crate::failure::Failure;

/// Whom an agent runs as when we are root.
const NOBODY_SPECIAL: User = User { uid: 1000, gid: 1000 };

/// An engine with the image in it.
pub(crate) struct Laboratory {
    pub(crate) sandbox: Arc<DockerSandbox>,
    pub(crate) image: ImageIdentity,
    pub(crate) user: User,
    pub(crate) holder: Holder,
}

impl Laboratory {
    /// Finds the engine and the image; what is missing is said with how to get it. Leftovers of dead runs are removed.
    pub(crate) async fn open(environment: &Environment) -> Result<Self, Failure> {
        let sandbox = connect(environment).await?;
        let image = match image::status(sandbox.client()).await? {
            ImageStatus::Present(image) => image,
            ImageStatus::Absent { expected } => {
                return Err(Failure::missing(format!("the toolchain image {expected} has not been built"))
                    .hint("`proctor image build` builds it: some minutes, once"));
            }
        };
        let holder = Holder::this_process(environment.array_task())
            .map_err(|error| Failure::internal(format!("reading /proc: {error}")))?;
        for leftover in sandbox.sweep(false, &is_alive).await? {
            tracing::info!(name = leftover.name, "removed what a dead run had left");
        }
        remove_orphans(&environment.runtime())?;
        Ok(Self { sandbox: Arc::new(sandbox), image, user: user(), holder })
    }
}

/// Connects to the first engine that answers.
pub(crate) async fn connect(environment: &Environment) -> Result<DockerSandbox, Failure> {
    let mut first = None;
    for address in environment.engines() {
        if let Some((scheme, _)) = address.split_once("://").filter(|(scheme, _)| *scheme != "unix") {
            return Err(Failure::missing(format!("DOCKER_HOST={address}: {scheme} is not supported")).hint(
                "proctor mounts folders into containers, so it needs an engine on this machine: unix:///…",
            ));
        }
        match DockerSandbox::connect(&address, &environment.cache()).await {
            Ok(sandbox) => return Ok(sandbox),
            Err(error @ SandboxError::NoEngine { .. }) => first = first.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    Err(first.map_or_else(|| Failure::missing("no container engine"), Failure::from))
}

/// Whether the owner of a container still runs. What cannot be read is left alone.
pub(crate) fn is_alive(owner: &str) -> bool {
    Owner::parse(owner).is_none_or(|owner| owner.is_alive())
}

/// Root gives its rooms an ordinary user; everybody else gives their own.
pub(crate) fn user() -> User {
    if geteuid().is_root() {
        NOBODY_SPECIAL
    } else {
        User { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }
}

/// The memory of this machine, in bytes; none if it does not tell.
pub(crate) fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The processors of this machine.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// An absolute path, for mounts and labels. The folder need not exist yet.
pub(crate) fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}
