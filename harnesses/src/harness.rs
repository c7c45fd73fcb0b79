//! What the engine may ask of a harness.

use proctor_traces::WireFormat;

use crate::id::Version;
use crate::install::InstallSpec;
use crate::launch::{Launch, LaunchRequest};
use crate::stream::StreamReader;
use crate::{HarnessError, HarnessName};

/// An agent CLI, or one of the controls that stand in for one.
pub trait Harness: Send + Sync {
    /// Which harness this is.
    fn kind(&self) -> HarnessName;

    /// The name used on the command line, in paths and in tables.
    fn name(&self) -> &'static str {
        self.kind().as_str()
    }

    /// The version of the CLI that will run; none for what is part of proctor.
    fn version(&self) -> Option<Version> {
        None
    }

    /// The wire format in which it asks its model; none where that is not known (`command`) or nothing is asked.
    fn wire(&self) -> Option<WireFormat> {
        None
    }

    /// How it is installed; none for what needs no installation.
    fn install(&self) -> Option<InstallSpec> {
        None
    }

    /// A model name that the CLI knows, for runs against a scripted model; empty where no model is asked.
    fn default_model(&self) -> &'static str {
        ""
    }

    /// The process to start for one turn.
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError>;

    /// Files and folders below HOME that hold the session, to be kept with the trial.
    fn session_paths(&self) -> &'static [&'static str] {
        &[]
    }

    /// A reader of what the agent prints on stdout. One reader serves all turns of a trial: it must see every turn,
    /// since CLIs restart their ids and go on counting tokens when they are resumed.
    fn stream(&self) -> Box<dyn StreamReader>;
}
