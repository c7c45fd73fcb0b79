//! What an agent leaves, taken over into the evidence of its try.

use std::path::{Path, PathBuf};

use proctor_store::TryDir;
use proctor_tasks::Artifact;
use proctor_traces::ArtifactState;

use crate::EngineError;
use crate::collect::{self, Caps};
use crate::record::Recorder;

/// Where it is, and where it goes. Owns all of it: copying takes as long as an agent wants it to, and must not hold up
/// the deadlines of other trials, so it is done on a thread of its own.
pub(super) struct Leavings {
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    pub(super) artifact: Artifact,
    /// Folders of HOME with session files.
    pub(super) sessions: &'static [&'static str],
    pub(super) evidence: TryDir,
    pub(super) recorder: Recorder,
}

impl Leavings {
    /// Takes everything over, and says what stood at the artifact's path.
    pub(super) async fn take(self) -> Result<ArtifactState, EngineError> {
        tokio::task::spawn_blocking(move || self.take_now())
            .await
            .map_err(|_| EngineError::Broken { part: "the collection" })?
    }

    fn take_now(&self) -> Result<ArtifactState, EngineError> {
        let folder = self.evidence.folder("artifacts")?;
        let state = collect::artifact(&self.workspace, &self.artifact, &folder)?;
        let left = collect::tree(&self.workspace, &folder.join("workspace"), Caps::WORKSPACE, |path| {
            path == Path::new(&self.artifact.name)
        })?;
        proctor_store::write_evidence(&folder.join("collected.json"), &left)?;
        if left.left_count > 0 {
            self.recorder.notice(format!("{} files of the workspace were not kept", left.left_count));
        }
        for path in self.sessions {
            let from = self.home.join(path);
            if std::fs::symlink_metadata(&from).is_ok_and(|it| it.is_dir()) {
                let to = self.evidence.folder("raw/session")?.join(path);
                let left = collect::tree(&from, &to, Caps::SESSION, |_| false)?;
                if left.left_count > 0 {
                    self.recorder.notice(format!("{} session files were not kept", left.left_count));
                }
            }
        }
        Ok(state)
    }
}
