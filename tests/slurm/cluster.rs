//! A Slurm cluster of one node on this machine, for one test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::{Run, proctor, root};

/// The cluster; dropped, it is stopped with everything that runs on it.
pub(crate) struct Cluster {
    folder: TempDir,
}

impl Cluster {
    /// Starts it, installing Slurm if need be and possible.
    pub(crate) fn start() -> Self {
        let cluster =
            Self { folder: tempfile::Builder::new().prefix("slurm-").tempdir().expect("a temporary folder") };
        cluster.start_again();
        cluster
    }

    /// Starts it in its folder, whatever is there.
    pub(crate) fn start_again(&self) {
        let started = self.script("start").status().expect("bash is there");
        assert!(started.success(), "the cluster does not start: what is missing is said above");
    }

    /// Where all its files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self, verb: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(root().join("tests/slurm/cluster.sh")).arg(verb).arg(self.folder.path());
        command.stdout(std::process::Stdio::null());
        command
    }

    /// Where its configuration is; whoever has this in `SLURM_CONF` uses this cluster.
    pub(crate) fn configuration(&self) -> PathBuf {
        self.folder().join("slurm.conf")
    }

    /// `proctor slurm VERB RUN …`.
    pub(crate) fn slurm(&self, verb: &str, run: &Run, more: &[&str]) -> Said {
        let mut command = proctor();
        command.args(["slurm", verb]).arg(run.out()).args(more);
        command.env("SLURM_CONF", self.configuration()).env("XDG_RUNTIME_DIR", run.runtime());
        Said::by(&mut command)
    }

    /// What the daemons and the array tasks have written, for a test that fails.
    pub(crate) fn logs(&self, out: &Path) -> String {
        let folders = [out.join("slurm"), self.folder.path().to_owned()];
        let entries =
            folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let logs =
            entries.map(|entry| entry.path()).filter(|it| it.extension().is_some_and(|it| it == "log"));
        let ends = logs.map(|path| {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(3000)..]).into_owned();
            format!("== {}\n{end}\n", path.display())
        });
        ends.collect::<Vec<_>>().concat()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It says itself what it cannot stop.
        let _ = self.script("stop").status();
    }
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// Waits for its end.
    pub(crate) fn by(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Fails the test unless this was its exit status.
    pub(crate) fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stderr:\n{}\nstdout:\n{}", self.stderr, self.stdout);
        self
    }
}
