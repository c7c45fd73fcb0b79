//! The environment, read once, here and nowhere else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;

/// What the environment says.
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Reads the variables of this process; one that is not text is as good as absent.
    pub(crate) fn read() -> Self {
        let text = |(key, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((key.into_string().ok()?, value.into_string().ok()?))
        };
        Self { variables: std::env::vars_os().filter_map(text).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A key, by the name of its variable.
    pub(crate) fn key(&self, name: &str) -> Option<SecretString> {
        self.get(name).map(|value| SecretString::from(value.to_owned()))
    }

    /// The step of a trial's life at which this process is to kill itself, which our own tests ask for.
    pub(crate) fn crash_at(&self) -> Option<&str> {
        self.get("PROCTOR_TEST_CRASH_AT")
    }

    /// Addresses at which a container engine may answer, best first: `DOCKER_HOST` alone if set; else Docker's socket,
    /// then Podman's.
    pub(crate) fn engines(&self) -> Vec<String> {
        if let Some(host) = self.get("DOCKER_HOST") {
            return vec![host.to_owned()];
        }
        let mut found =
            vec!["unix:///var/run/docker.sock".to_owned(), "unix:///run/podman/podman.sock".to_owned()];
        if let Some(runtime) = self.get("XDG_RUNTIME_DIR") {
            found.insert(1, format!("unix://{runtime}/docker.sock"));
            found.push(format!("unix://{runtime}/podman/podman.sock"));
        }
        found
    }

    /// Where images' parts, agent CLIs and the guest are kept: `PROCTOR_CACHE`, else the user's cache folder.
    pub(crate) fn cache(&self) -> PathBuf {
        let in_home = || Path::new(self.get("HOME").unwrap_or("/root")).join(".cache");
        match self.get("PROCTOR_CACHE") {
            Some(cache) => PathBuf::from(cache),
            None => self.get("XDG_CACHE_HOME").map_or_else(in_home, PathBuf::from).join("proctor"),
        }
    }

    /// A folder with a short path for sockets.
    pub(crate) fn runtime(&self) -> PathBuf {
        let short = |path: &&str| path.len() < 60 && Path::new(path).is_dir();
        PathBuf::from(self.get("XDG_RUNTIME_DIR").filter(short).unwrap_or("/tmp"))
    }

    /// The task of a Slurm job array that this process is part of, as Slurm writes it: `1234_5`.
    pub(crate) fn array_task(&self) -> Option<String> {
        let number =
            |name| self.get(name).filter(|it| it.len() <= 20 && it.bytes().all(|b| b.is_ascii_digit()));
        Some(format!("{}_{}", number("SLURM_ARRAY_JOB_ID")?, number("SLURM_ARRAY_TASK_ID")?))
    }

    /// The proxy for requests to model providers.
    pub(crate) fn proxy(&self) -> Option<String> {
        let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
        names.iter().find_map(|name| self.get(name)).map(str::to_owned)
    }

    /// Hosts that are reached without the proxy.
    pub(crate) fn no_proxy(&self) -> Option<String> {
        self.get("NO_PROXY").or_else(|| self.get("no_proxy")).map(str::to_owned)
    }

    /// A file with certificates to trust besides those of the system.
    pub(crate) fn ca_file(&self) -> Option<PathBuf> {
        self.get("PROCTOR_CA_FILE").or_else(|| self.get("SSL_CERT_FILE")).map(PathBuf::from)
    }
}

/// This program.
pub(crate) fn this_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_task_is_two_numbers() {
        let environment = |job: &str, task: &str| {
            let variables = [("SLURM_ARRAY_JOB_ID", job), ("SLURM_ARRAY_TASK_ID", task)];
            Environment {
                variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            }
        };
        assert_eq!(environment("1234", "5").array_task(), Some("1234_5".to_owned()));
        for (job, task) in [("", "5"), ("1234", ""), ("1234", "x"), ("12/34", "5"), ("1234", "-5")] {
            assert_eq!(environment(job, task).array_task(), None, "{job} {task}");
        }
    }
}
