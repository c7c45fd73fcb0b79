//! What a model that answers alone is told and shown, byte for byte (DESIGN §3.10).

use std::collections::BTreeMap;
use std::fs;

use proctor_store::{TryDir, write_evidence};
use proctor_tasks::{Ablation, GivenSource, SOURCE_PICTURE, Task, direct_question, native_question};
use proctor_traces::Digest;

use crate::executor::Input;
use crate::method::Track;
use crate::{EngineError, TrialSpec};

/// A question.
pub(super) struct Told {
    /// The message.
    pub(super) text: String,
    /// The source picture, as the task has it.
    pub(super) picture: Vec<u8>,
}

impl Told {
    /// What the method of `spec` asks about its task.
    pub(super) fn new(spec: &TrialSpec, input: Option<&Input>) -> Result<Self, EngineError> {
        let task = &*spec.task;
        let text = match &spec.method.track {
            Track::Native(native) => {
                let source = source(task, native.ablation, input)?;
                let source = source.as_ref().map(|(text, is_true)| GivenSource { text, is_true: *is_true });
                native_question(task, native.ablation, source)?
            }
            Track::Direct(direct) => direct_question(task, direct.ablation)?,
            Track::Agent(_) => return Err(EngineError::Broken { part: "an agent without a room" }),
        };
        let path = task.source_picture();
        let picture = fs::read(&path).map_err(EngineError::io("reading", &path))?;
        Ok(Self { text, picture })
    }

    /// Digest of all of it.
    pub(super) fn digest(&self) -> Digest {
        Digest::of_parts([("prompt", self.text.as_bytes()), (SOURCE_PICTURE, self.picture.as_slice())])
    }

    /// Keeps it as an agent's prompt is kept.
    pub(super) fn keep(&self, evidence: &TryDir) -> Result<(), EngineError> {
        let folder = evidence.folder("prompt")?;
        let path = folder.join("prompt.txt");
        fs::write(&path, &self.text).map_err(EngineError::io("writing", &path))?;
        let digests = BTreeMap::from([(SOURCE_PICTURE, Digest::of(&self.picture))]);
        Ok(write_evidence(&folder.join("inputs.json"), &digests)?)
    }
}

/// The program that is given away, and whether it is the true one.
fn source(
    task: &Task,
    ablation: Option<Ablation>,
    input: Option<&Input>,
) -> Result<Option<(String, bool)>, EngineError> {
    match (ablation, input) {
        (Some(Ablation::B), _) => {
            let path = &task.hidden.source_program;
            let text = fs::read_to_string(path).map_err(EngineError::io("reading", path))?;
            Ok(Some((text, true)))
        }
        (Some(Ablation::A2), Some(Input::Given(given))) => {
            Ok(Some((String::from_utf8_lossy(&given.bytes).into_owned(), false)))
        }
        (Some(Ablation::A2), _) => Err(EngineError::Broken { part: "a second stage without a first" }),
        _ => Ok(None),
    }
}
