//! Runs of `proctor run`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proctor_store::RunDir;
use tempfile::TempDir;

use super::{Trial, names_in, quoted, sample, world};

/// How long anything here is waited for before the test fails. Nothing is measured by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// The program under test: the one that cargo built beside this test.
pub(crate) fn proctor() -> Command {
    let program = std::env::current_exe().expect("this test is a file");
    let program = program.parent().and_then(Path::parent).expect("it lies in deps/").join("proctor");
    assert!(
        program.is_file(),
        "{} is not there: `cargo build -p proctor` builds it (with the same profile as the tests)",
        program.display()
    );
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("NO_COLOR", "1").env_remove("RUST_LOG");
    command
}

/// A run to be made: arguments, and folders that are nobody else's.
pub(crate) struct Run {
    folder: Arc<TempDir>,
    /// Where the results directory lies, if not in `folder`.
    place: Option<PathBuf>,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Run {
    /// Over the task packages at `paths`. Nothing is rendered and no try is made twice, unless a test wants that.
    pub(crate) fn over(paths: &[&Path]) -> Self {
        let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
        Self::of(std::iter::once("--tasks".to_owned()).chain(paths))
    }

    /// Of the experiment in `file`.
    pub(crate) fn of_experiment(file: &Path) -> Self {
        Self::of(std::iter::once(file.to_string_lossy().into_owned()))
    }

    fn of(arguments: impl Iterator<Item = String>) -> Self {
        let folder = tempfile::Builder::new().prefix("e2e-").tempdir().expect("a temporary folder");
        // Its own folder for sockets shows what is left in it; the name must be short.
        std::fs::create_dir(folder.path().join("rt")).expect("a folder for sockets");
        let run = Self {
            folder: Arc::new(folder),
            place: None,
            arguments: std::iter::once("run".to_owned()).chain(arguments).collect(),
            environment: Vec::new(),
        };
        let runtime = run.runtime().to_string_lossy().into_owned();
        run.env("XDG_RUNTIME_DIR", &runtime)
    }

    /// With its results directory in this folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.place = Some(folder.to_owned());
        self
    }

    /// Over one small sample task.
    pub(crate) fn over_one() -> Self {
        Self::over(&[&sample("flow-approval")])
    }

    /// More arguments.
    pub(crate) fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.arguments.extend(arguments.map(str::to_owned));
        self
    }

    /// A variable of the environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A shell script as the agent.
    pub(crate) fn shell(self, script: &str) -> Self {
        self.args([
            "--harness",
            "command",
            "--no-render",
            "--command",
            &format!("bash -c {}", quoted(script)),
        ])
    }

    /// A Python program as the agent.
    pub(crate) fn python(self, program: &str) -> Self {
        self.args([
            "--harness",
            "command",
            "--no-render",
            "--command",
            &format!("python3 -c {}", quoted(program)),
        ])
    }

    /// The results directory.
    pub(crate) fn out(&self) -> PathBuf {
        // Renderings are labelled with the folder's name alone, so that must be nobody else's either.
        let name = self.folder.path().file_name().expect("it has a name").to_string_lossy();
        self.place.as_deref().unwrap_or(self.folder.path()).join(format!("out-{name}"))
    }

    /// Where its sockets are.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.folder.path().join("rt")
    }

    /// Makes the run, and waits for its end.
    pub(crate) fn go(&self) -> Ended<'_> {
        self.start().end()
    }

    /// Starts the run.
    pub(crate) fn start(&self) -> Live<'_> {
        self.start_as("only", &[])
    }

    /// Starts a process of the run under a name, which tells its output from that of others, with more variables.
    pub(crate) fn start_as(&self, name: &str, variables: &[(&str, &str)]) -> Live<'_> {
        let mut command = proctor();
        command.args(&self.arguments).arg("--out").arg(self.out());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.envs(variables.iter().copied());
        let (name, folder) = (name.to_owned(), self.folder.path());
        let open = |kind| File::create(folder.join(format!("{name}.{kind}"))).expect("a file for output");
        let child = command.stdout(open("stdout")).stderr(open("stderr")).spawn();
        Live { run: self, name, child: child.expect("the program starts") }
    }

    /// Removes what dead runners have left, as a user would.
    pub(crate) fn sweep(&self) {
        let mut command = proctor();
        command.arg("sweep").envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A run that goes on.
pub(crate) struct Live<'a> {
    run: &'a Run,
    name: String,
    child: Child,
}

impl<'a> Live<'a> {
    /// Waits until an agent of this run has made `name` in its workspace; returns the workspace on this machine.
    pub(crate) fn workspace_with(&mut self, name: &str) -> PathBuf {
        self.workspace_beside(&[], name)
    }

    /// The same, for an agent whose workspace is none of these.
    pub(crate) fn workspace_beside(&mut self, known: &[PathBuf], name: &str) -> PathBuf {
        let mut found = None;
        let ended = self.wait_for(|run| {
            let mut new = run.workspaces().into_iter().filter(|work| !known.contains(work));
            found = new.find(|work| work.join(name).exists());
            found.is_some()
        });
        found.unwrap_or_else(|| {
            panic!("no agent made `{name}`; the run ended with {ended:?}: {}", self.stderr())
        })
    }

    /// Waits until it has said this on stderr.
    pub(crate) fn says(&mut self, text: &str) {
        let file = self.file("stderr");
        let ended = self.wait_for(|run| run.read(&file).contains(text));
        assert!(ended.is_none() || self.stderr().contains(text), "not said: {text}\n{}", self.stderr());
    }

    /// What it has printed on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.run.read(&self.file("stderr"))
    }

    fn file(&self, kind: &str) -> String {
        format!("{}.{kind}", self.name)
    }

    /// Waits until `reached`, or the end of the run, whose status is returned then.
    pub(crate) fn wait_for(&mut self, mut reached: impl FnMut(&Run) -> bool) -> Option<ExitStatus> {
        let start = Instant::now();
        while !reached(self.run) {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return Some(status);
            }
            assert!(start.elapsed() < PATIENCE, "waited too long: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it can be waited for").is_none()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().expect("a process id"));
        kill(pid, signal).expect("it can be sent a signal");
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended<'a> {
        let status = self.wait_for(|_| false).expect("nothing but the end is waited for");
        Ended { run: self.run, name: self.name.clone(), code: status.code() }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // A test that failed leaves nothing running; both fail if the run has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// The workspaces of rooms that are open.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        let Ok(rooms) = std::fs::read_dir(self.out().join("rooms")) else { return Vec::new() };
        rooms.flatten().map(|room| room.path().join("work")).filter(|work| work.is_dir()).collect()
    }

    /// No container, no room, no socket is left of it.
    pub(crate) fn left_nothing(&self) {
        assert_eq!(world::containers_of(&self.out()), Vec::<String>::new(), "containers are left");
        let rooms = self.out().join("rooms");
        assert!(!rooms.exists(), "left on disk: {:?}", names_in(&rooms));
        let left = names_in(&self.runtime());
        assert!(left.is_empty(), "left in the folder for sockets: {left:?}");
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What its process that has no name of its own has printed on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.read("only.stderr")
    }
}

/// A run that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) run: &'a Run,
    name: String,
    pub(crate) code: Option<i32>,
}

impl Ended<'_> {
    /// Fails the test unless the exit status was `code`; and whatever came of it, nothing may be left behind.
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stderr:\n{}\nstdout:\n{}", self.stderr(), self.stdout());
        self.leaves_nothing();
        self
    }

    /// No container, no room, no socket.
    pub(crate) fn leaves_nothing(&self) {
        self.run.left_nothing();
    }

    /// Its trials with an outcome, in order of their names.
    pub(crate) fn trials(&self) -> Vec<Trial> {
        let run = RunDir::open(&self.run.out()).expect("a run");
        let folders = run.trials_on_disk().expect("trials");
        folders
            .into_iter()
            .filter(proctor_store::TrialDir::is_done)
            .map(|folder| Trial::read(folder, Arc::clone(&self.run.folder)))
            .collect()
    }

    /// Its only trial.
    pub(crate) fn trial(&self) -> Trial {
        let mut trials = self.trials();
        assert_eq!(trials.len(), 1, "stderr:\n{}", self.stderr());
        trials.remove(0)
    }

    /// What it printed on stdout.
    pub(crate) fn stdout(&self) -> String {
        self.run.read(&format!("{}.stdout", self.name))
    }

    /// What it printed on stderr.
    pub(crate) fn stderr(&self) -> String {
        self.run.read(&format!("{}.stderr", self.name))
    }
}
