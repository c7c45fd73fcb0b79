//! Renders what agents left: the stage after `run`, and the same code for `proctor render RUN`.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use proctor_render::{Asset, RenderJob, RenderRecord, RenderStatus, Renderer, RendererOptions, take_over};
use proctor_sandbox::{OWNER_LABEL, RUN_LABEL, Sandbox};
use proctor_store::{
    Holder, LeaseTerms, Outcome, Sightings, TrialDir, owned_folder, read_json, write_atomic, write_json,
};
use proctor_tasks::{Artifact, Task};
use proctor_traces::{ArtifactState, Digest};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::laboratory::{Laboratory, processors};

/// Artifacts rendered at a time if nobody says how many; each rendering has a container of its own.
pub(crate) const AT_A_TIME: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// The record of a rendering, beside its picture.
const RECORD: &str = "render.json";

/// What came of the artifact of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CameOfIt {
    /// The trial left none.
    NoArtifact,
    /// Another process is at it.
    Elsewhere,
    /// It was rendered before, from the same bytes with the same image and settings.
    AsBefore(RenderStatus),
    /// It was rendered now.
    Now(RenderStatus),
}

impl CameOfIt {
    /// The state of its rendering, where one is there.
    pub(crate) fn status(self) -> Option<RenderStatus> {
        match self {
            Self::AsBefore(status) | Self::Now(status) => Some(status),
            Self::NoArtifact | Self::Elsewhere => None,
        }
    }
}

/// A renderer with the sockets' folder that it needs.
pub(crate) struct Rendering {
    renderer: Renderer,
    image: proctor_traces::ImageIdentity,
    /// Artifacts rendered at a time.
    pub(crate) at_a_time: usize,
    holder: Holder,
    sightings: Sightings,
    _scratch: tempfile::TempDir,
}

impl Rendering {
    /// A renderer in `laboratory`, whose rooms carry the label of `run`.
    pub(crate) fn new(
        laboratory: &Laboratory,
        environment: &Environment,
        run: &str,
        at_a_time: usize,
    ) -> Result<Self, Failure> {
        let scratch = owned_folder(&environment.runtime(), &laboratory.holder)?;
        let labels = BTreeMap::from([
            (OWNER_LABEL.to_owned(), laboratory.holder.owner().to_string()),
            (RUN_LABEL.to_owned(), run.to_owned()),
        ]);
        let options = RendererOptions {
            image: laboratory.image.clone(),
            labels,
            user: laboratory.user,
            scratch: scratch.path().to_owned(),
            limits: RendererOptions::default_limits(processors()),
            concurrency: at_a_time,
        };
        let renderer = Renderer::new(Arc::clone(&laboratory.sandbox) as Arc<dyn Sandbox>, options);
        Ok(Self {
            renderer,
            image: laboratory.image.clone(),
            at_a_time,
            holder: laboratory.holder.clone(),
            sightings: Sightings::default(),
            _scratch: scratch,
        })
    }

    /// Renders one job.
    pub(crate) async fn render(&self, job: RenderJob) -> Result<proctor_render::Rendering, Failure> {
        Ok(self.renderer.render(job).await?)
    }

    /// Renders the artifact of a finished trial into its `render/`. What was rendered before from the same bytes, with the
    /// same image and settings, is left as it is, unless it is to be rendered `anew`.
    pub(crate) async fn trial(
        &self,
        folder: &TrialDir,
        outcome: &Outcome,
        task: &Task,
        anew: bool,
    ) -> Result<CameOfIt, Failure> {
        let present = outcome.artifacts.iter().find_map(|it| match it.state {
            ArtifactState::Present { digest, .. } => Some((it, digest)),
            _ => None,
        });
        let Some((artifact, digest)) = present else { return Ok(CameOfIt::NoArtifact) };
        let place = folder.render();
        let before = || self.done_before(&place, digest, task).filter(|_| !anew);
        if let Some(status) = before() {
            return Ok(CameOfIt::AsBefore(status));
        }
        // Of several processes that run the same plan, one renders a trial; it may have done so just now.
        let Some(_lease) = folder.lease_rendering(&self.holder, LeaseTerms::default(), &self.sightings)?
        else {
            return Ok(CameOfIt::Elsewhere);
        };
        if let Some(status) = before() {
            return Ok(CameOfIt::AsBefore(status));
        }
        let record_path = place.join(RECORD);
        let job = RenderJob {
            assets: assets(task),
            ..RenderJob::new(
                folder.artifact(&artifact.name),
                task.mode(),
                task.render.clone(),
                outcome.trial.to_string(),
            )
        };
        let rendering = if Artifact::is_picture(&artifact.name) {
            let image = self.image.clone();
            tokio::task::spawn_blocking(move || take_over(&job, &image))
                .await
                .map_err(|error| Failure::internal(format!("unpacking a picture: {error}")))??
        } else {
            self.render(job).await?
        };
        std::fs::create_dir_all(&place)
            .map_err(|error| Failure::internal(format!("{}: {error}", place.display())))?;
        let picture = place.join("output.png");
        match &rendering.png {
            Some(png) => write_atomic(&picture, png)?,
            // An older picture must not pass for this one.
            None => drop(std::fs::remove_file(&picture)),
        }
        write_json(&record_path, &rendering.record)?;
        Ok(CameOfIt::Now(rendering.status))
    }

    /// What came of an earlier rendering of the same bytes with the same image and settings.
    fn done_before(&self, place: &Path, source: Digest, task: &Task) -> Option<RenderStatus> {
        let before = read_json::<RenderRecord>(&place.join(RECORD), "rendering").ok()?;
        let same = before.source == source
            && before.settings == task.render
            && before.image == self.image
            && before.mode == task.mode();
        let whole = before.status != RenderStatus::Rendered || place.join("output.png").is_file();
        (same && whole).then_some(before.status)
    }

    /// Closes the warm browsers.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        Ok(self.renderer.close().await?)
    }
}

/// The public files of a task, which its artifact may use.
pub(crate) fn assets(task: &Task) -> Vec<Asset> {
    let turns = task.turns();
    let inputs = turns.iter().flat_map(|turn| &turn.inputs).filter(|input| !input.is_source_picture);
    inputs.map(|input| Asset { name: input.inside.clone(), source: input.host.clone() }).collect()
}

/// Tasks by their name.
pub(crate) fn by_id(tasks: &[Arc<Task>]) -> HashMap<String, Arc<Task>> {
    tasks.iter().map(|task| (task.id().to_string(), Arc::clone(task))).collect()
}
