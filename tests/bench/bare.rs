//! The yardstick: the engine's API with nothing around it.

use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig};
use bollard::query_parameters::{
    CreateContainerOptions, RemoveContainerOptions, StartContainerOptions, WaitContainerOptions,
};
use futures_util::StreamExt as _;

use crate::Outcome;

/// What the engine is asked for beside the command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Settings {
    /// No network; otherwise as the engine does it by itself.
    Default,
    /// What a trial's container does without as well: the engine's own set-up of networks, and its log.
    Lean,
}

/// A container that does one thing and ends.
pub(crate) struct Errand<'a> {
    pub(crate) image: &'a str,
    pub(crate) command: &'a [&'a str],
    pub(crate) settings: Settings,
    /// Host folder mounted at `/work`, which is where the command runs.
    pub(crate) folder: Option<&'a str>,
}

impl Errand<'_> {
    /// Create, start, wait, remove; returns how long that took. The command must succeed.
    pub(crate) async fn run(&self, docker: &Docker) -> Outcome<Duration> {
        let start = Instant::now();
        let lean = matches!(self.settings, Settings::Lean);
        let body = ContainerCreateBody {
            image: Some(self.image.to_owned()),
            cmd: Some(self.command.iter().map(|&word| word.to_owned()).collect()),
            working_dir: self.folder.map(|_| "/work".to_owned()),
            network_disabled: Some(lean),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                binds: self.folder.map(|folder| vec![format!("{folder}:/work")]),
                log_config: lean.then(|| HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let id = docker.create_container(None::<CreateContainerOptions>, body).await?.id;
        let ran = async {
            docker.start_container(&id, None::<StartContainerOptions>).await?;
            let mut wait = docker.wait_container(&id, None::<WaitContainerOptions>);
            // A status other than 0 is an error here.
            wait.next().await.transpose().map(drop)
        };
        let ran = ran.await;
        docker.remove_container(&id, None::<RemoveContainerOptions>).await?;
        ran?;
        Ok(start.elapsed())
    }
}
