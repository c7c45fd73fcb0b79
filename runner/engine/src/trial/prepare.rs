//! Makes everything a room needs on the host: workspace, HOME, prompt, and the description of the container.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_harnesses::{AttachedImage, Launch, LaunchRequest, OracleAnswer};
use proctor_sandbox::{
    CONTROL_DIR, Command, KIND_LABEL, Mount, OWNER_LABEL, RUN_LABEL, RoomSpec, TRIAL_LABEL, Tmpfs, User,
};
use proctor_store::{Holder, TryDir, owned_folder, remove_tree};
use proctor_tasks::{Artifact, Facts, TASK_SHEET, Turn, task_md};
use proctor_traces::{Digest, Timestamp};
use tempfile::TempDir;

use crate::executor::Input;
use crate::{Agent, EngineError, Host, TrialSpec};

/// Where things are inside the room.
const WORKSPACE: &str = "/work";
const HOME: &str = "/home/agent";
const HARNESS: &str = "/opt/harness";

/// The port on which the agent finds its model.
pub(super) const MODEL_PORT: u16 = 8080;
/// The gateway's socket in the control directory.
pub(super) const MODEL_SOCKET: &str = "model.sock";
/// What the agent reads on stdin, in the control directory, until it has been started.
const STDIN: &str = "stdin";

/// Bytes of `/tmp` in the room; they count against its memory.
const TMP_BYTES: u64 = 1 << 30;

/// A room's files on the host.
pub(super) struct Prepared {
    /// The workspace.
    pub(super) workspace: PathBuf,
    /// The agent's HOME.
    pub(super) home: PathBuf,
    /// The folder mounted at [`CONTROL_DIR`].
    pub(super) control: PathBuf,
    /// What the agent must leave.
    pub(super) artifact: Artifact,
    /// Time for the turn.
    pub(super) budget: Duration,
    /// Whether the agent asks a model.
    pub(super) needs_model: bool,
    /// Digest of all that the agent is told and shown.
    pub(super) prompt: Digest,
    launch: Launch,
    folders: [TempDir; 2],
}

impl Prepared {
    /// Makes the files for one try of `spec`, and keeps what the agent is told in its evidence.
    pub(super) fn new(
        spec: &TrialSpec,
        agent: &Agent,
        host: &Host,
        evidence: &TryDir,
        input: Option<&Input>,
    ) -> Result<Self, EngineError> {
        let turn = spec
            .task
            .turns()
            .into_iter()
            .next()
            .ok_or(EngineError::Broken { part: "a task without turns" })?;
        let room = host.run.new_room(&host.holder)?;
        let (private, control) = control_folder(&host.runtime, &host.holder)?;
        let (workspace, home) = (room.path().join("work"), room.path().join("home"));
        for folder in [&workspace, &home] {
            fs::create_dir(folder).map_err(EngineError::io("creating", folder))?;
        }

        let told = Told::new(spec, &turn, input)?;
        told.keep(evidence)?;
        let images = told.deliver(spec, &workspace, &control)?;
        let launch = launch(spec, agent, &told, images, &turn)?;
        for (name, bytes) in &launch.home_files {
            write(&home.join(name), bytes)?;
        }
        write(&control.join(STDIN), &launch.stdin)?;
        give(&workspace, host.user)?;
        give(&home, host.user)?;
        Ok(Self {
            workspace,
            home,
            control,
            budget: turn.budget.unwrap_or(spec.method.budget),
            artifact: turn.artifact,
            needs_model: launch.needs_model,
            prompt: told.digest(),
            launch,
            folders: [room, private],
        })
    }

    /// The room to open.
    pub(super) fn room(&self, spec: &TrialSpec, agent: &Agent, host: &Host, number: u32) -> RoomSpec {
        let mut mounts = vec![Mount::writable(&self.workspace, WORKSPACE), Mount::writable(&self.home, HOME)];
        if let Some(installed) = &agent.installed {
            mounts.push(Mount::read_only(&installed.dir, HARNESS));
        }
        let run = host.run.root().to_string_lossy().into_owned();
        let labels = [
            (KIND_LABEL, "agent".to_owned()),
            (RUN_LABEL, run.clone()),
            (TRIAL_LABEL, format!("{}#{number}", spec.id)),
            (OWNER_LABEL, host.holder.owner().to_string()),
        ];
        RoomSpec {
            name: room_name(&run, &spec.id.to_string(), number),
            labels: labels
                .map(|(key, value)| (key.to_owned(), value))
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
            image: host.image.id.clone(),
            user: host.user,
            control: self.control.clone(),
            mounts,
            tmpfs: vec![Tmpfs { inside: "/tmp".into(), bytes: TMP_BYTES }],
            limits: host.limits,
        }
    }

    /// The agent's process. The deadline it is told is that of a start now.
    pub(super) fn command(&self, host: &Host) -> Command {
        let budget = i64::try_from(self.budget.as_millis()).unwrap_or(i64::MAX);
        let deadline = Timestamp::from_millis(Timestamp::now().as_millis().saturating_add(budget));
        let own = [("HOME", HOME), ("USER", "agent"), ("TERM", "dumb"), ("PWD", WORKSPACE)];
        let mut env = host.environment.clone();
        env.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
        env.push(("PROCTOR_DEADLINE".into(), deadline.to_string()));
        env.extend(self.launch.env.iter().cloned());
        Command {
            argv: self.launch.argv.clone(),
            env,
            cwd: WORKSPACE.into(),
            stdin: Some(format!("{CONTROL_DIR}/{STDIN}")),
            ..Command::default()
        }
    }

    /// The agent has been started and has its stdin open: the file need not be seen any more.
    pub(super) fn started(&self) {
        // It goes with its folder at the latest.
        let _ = fs::remove_file(self.control.join(STDIN));
    }

    /// Removes all of it, however the agent left it.
    pub(super) fn clear(self) -> Result<(), EngineError> {
        for folder in self.folders {
            remove_tree(&folder.keep())?;
        }
        Ok(())
    }
}

/// What the agent is told and shown, byte for byte (DESIGN §3.10).
struct Told {
    prompt: String,
    sheet: String,
    inputs: Vec<(String, Vec<u8>, bool)>,
}

impl Told {
    fn new(spec: &TrialSpec, turn: &Turn, input: Option<&Input>) -> Result<Self, EngineError> {
        let settings = &spec.method.settings;
        let facts = Facts {
            budget: settings.tell_budget.then_some(turn.budget.unwrap_or(spec.method.budget)),
            image: settings.image_delivery,
            render_command: None,
        };
        let mut inputs = Vec::new();
        for input in &turn.inputs {
            let bytes = fs::read(&input.host).map_err(EngineError::io("reading", &input.host))?;
            inputs.push((input.inside.clone(), bytes, input.is_source_picture));
        }
        if let Some(Input::Given(given)) = input {
            inputs.push((given.consumed.name.clone(), given.bytes.clone(), false));
        }
        Ok(Self {
            prompt: turn.prompt.text(&spec.task, &facts)?,
            sheet: task_md(&spec.task, &facts)?,
            inputs,
        })
    }

    fn digest(&self) -> Digest {
        let texts = [("prompt", self.prompt.as_bytes()), (TASK_SHEET, self.sheet.as_bytes())];
        let inputs = self.inputs.iter().map(|(name, bytes, _)| (name.as_str(), bytes.as_slice()));
        Digest::of_parts(texts.into_iter().chain(inputs))
    }

    fn keep(&self, evidence: &TryDir) -> Result<(), EngineError> {
        let folder = evidence.folder("prompt")?;
        let digests: BTreeMap<&str, Digest> =
            self.inputs.iter().map(|(name, bytes, _)| (name.as_str(), Digest::of(bytes))).collect();
        write(&folder.join("prompt.txt"), self.prompt.as_bytes())?;
        write(&folder.join(TASK_SHEET), self.sheet.as_bytes())?;
        proctor_store::write_evidence(&folder.join("inputs.json"), &digests)?;
        Ok(())
    }

    /// Puts the files where the agent finds them; returns the pictures that are attached to the prompt.
    fn deliver(
        &self,
        spec: &TrialSpec,
        workspace: &Path,
        control: &Path,
    ) -> Result<Vec<AttachedImage>, EngineError> {
        let delivery = spec.method.settings.image_delivery;
        write(&workspace.join(TASK_SHEET), self.sheet.as_bytes())?;
        let mut attached = Vec::new();
        for (name, bytes, is_source_picture) in &self.inputs {
            if !is_source_picture || delivery.in_workspace() {
                write(&workspace.join(name), bytes)?;
            }
            if *is_source_picture && delivery.attached() {
                write(&control.join(name), bytes)?;
                let path = format!("{CONTROL_DIR}/{name}");
                attached.push(AttachedImage { path, media_type: "image/png".into(), bytes: bytes.clone() });
            }
        }
        Ok(attached)
    }
}

fn launch(
    spec: &TrialSpec,
    agent: &Agent,
    told: &Told,
    images: Vec<AttachedImage>,
    turn: &Turn,
) -> Result<Launch, EngineError> {
    let method = &spec.method;
    // Only the control that is the answer gets to see it.
    let oracle = if agent.harness.kind() == proctor_harnesses::HarnessName::Oracle {
        let program = &spec.task.hidden.target_program;
        let program = fs::read(program).map_err(EngineError::io("reading", program))?;
        Some(OracleAnswer { artifact: turn.artifact.name.clone(), program })
    } else {
        None
    };
    let request = LaunchRequest {
        model: method.model.as_ref().map(|model| model.name.clone()).unwrap_or_default(),
        base_url: format!("http://127.0.0.1:{MODEL_PORT}"),
        prompt: told.prompt.clone(),
        images,
        home: HOME.into(),
        workspace: WORKSPACE.into(),
        install_dir: agent.installed.as_ref().map(|_| HARNESS.to_owned()),
        resume: None,
        command: agent.command.clone(),
        oracle,
        settings: method.settings.launch.clone(),
    };
    Ok(agent.harness.launch(&request)?)
}

/// A container's name from run, trial and try: readable, and unique by the digest at its end.
fn room_name(run: &str, trial: &str, number: u32) -> String {
    let readable: String = trial
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
        .take(80)
        .collect();
    format!("proctor-{readable}.{number}-{}", &Digest::of(format!("{run}\0{trial}").as_bytes()).hex()[..8])
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), EngineError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(EngineError::io("creating", folder))?;
    }
    fs::write(path, bytes).map_err(EngineError::io("writing", path))
}

/// The folder for the sockets of a room, within one that nobody but us can enter: on the host, the way to the model, and to the
/// guest, is for nobody else. The name of the owner stays outside of the room.
fn control_folder(runtime: &Path, holder: &Holder) -> Result<(TempDir, PathBuf), EngineError> {
    let private = owned_folder(runtime, holder)?;
    let control = private.path().join("c");
    fs::create_dir(&control).map_err(EngineError::io("creating", &control))?;
    set_mode(&control, 0o755)?;
    Ok((private, control))
}

fn set_mode(path: &Path, mode: u32) -> Result<(), EngineError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(EngineError::io("setting the mode of", path))
}

/// Gives a tree of ours to the room's user. Without the right to do that the user is ourselves anyway.
fn give(folder: &Path, user: User) -> Result<(), EngineError> {
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    for entry in walkdir::WalkDir::new(folder).follow_links(false).into_iter().flatten() {
        std::os::unix::fs::lchown(entry.path(), Some(user.uid), Some(user.gid))
            .map_err(EngineError::io("changing the owner of", entry.path()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_of_different_runs_trials_and_tries_have_different_names() {
        let names = [
            room_name("/a", "vao/t/m/1", 1),
            room_name("/a", "vao/t/m/1", 2),
            room_name("/b", "vao/t/m/1", 1),
            room_name("/a", "vao_t/m/1/x", 1),
        ];
        for (number, name) in names.iter().enumerate() {
            assert!(name.len() < 128 && !names[..number].contains(name), "{name}");
        }
        assert!(names[0].starts_with("proctor-vao_t_m_1.1-"), "{}", names[0]);
    }

    #[test]
    fn nobody_else_on_the_host_comes_to_the_sockets_and_the_room_does_not_see_the_owner() {
        let runtime = tempfile::tempdir().unwrap();
        let (private, control) =
            control_folder(runtime.path(), &Holder::this_process(None).unwrap()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(private.path()), mode(&control)), (0o700, 0o755));
        assert_eq!(fs::read_dir(&control).unwrap().count(), 0);
        assert!(fs::read_dir(private.path()).unwrap().count() > 1, "the owner is named beside it");
    }
}
