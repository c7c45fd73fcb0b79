//! Rooms: hardened containers in which an agent or a renderer runs, watched, frozen and taken down from outside.
//!
//! [`Sandbox`] opens rooms, [`Room`] is one of them. The Docker implementation ([`DockerSandbox`]) is the only user of
//! the container engine's API. A room has no network, a read-only root, no capabilities, the caller's uid, and the
//! guest as PID 1 (DESIGN §3.1, §3.2, §3.4).

mod control;
mod docker;
mod error;
mod guest;
pub mod image;
mod monotonic;
mod room;
mod sweep;

pub use docker::{DockerSandbox, EngineFacts};
pub use error::SandboxError;
pub use proctor_guest::{Bridge, CONTROL_DIR, Command, Endpoint, ExitStatus, Usage};
pub use room::{
    Closed, Freeze, Limits, Mount, OpenRoom, OutputChunk, PostMortem, ProcessEnd, Room, RoomSpec, Running,
    Sandbox, Stream, Tmpfs, User,
};
pub use sweep::{KIND_LABEL, OWNER_LABEL, RUN_LABEL, Swept, TRIAL_LABEL};
