//! Who runs a trial or owns a container: a process, named so that a later one with the same number is another.

use std::fmt;
use std::fs;
use std::path::Path;

use proctor_traces::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read_json;

/// A process of this machine: `<boot id>:<pid>:<start time>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    boot: String,
    pid: u32,
    start: u64,
}

impl Owner {
    /// This process.
    pub fn this_process() -> std::io::Result<Self> {
        let pid = std::process::id();
        let start =
            start_time(pid).ok_or_else(|| std::io::Error::other("/proc does not show this process"))?;
        Ok(Self { boot: boot_id()?, pid, start })
    }

    /// Reads what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let owner = Self {
            boot: parts.next()?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(owner)
    }

    /// Whether that very process still runs here. One of another boot does not.
    pub fn is_alive(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot) && start_time(self.pid) == Some(self.start)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.boot, self.pid, self.start)
    }
}

/// A process of any machine that shares the results directory: what a lease says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Name of the machine.
    pub host: String,
    /// Boot id of the machine.
    pub boot: String,
    /// Namespace in which `pid` means something.
    pub namespace: String,
    /// Number of the process.
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot.
    pub start: u64,
    /// The batch job that the process is part of, as in `1234_5`.
    #[serde(default)]
    pub job: Option<String>,
    /// When the lease was taken.
    pub since: Timestamp,
}

/// Whether a process lives, as far as can be told from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    Dead,
    /// It runs, or ran, where it cannot be asked for.
    Unknown,
}

impl Holder {
    /// This process, as part of `job`.
    pub fn this_process(job: Option<String>) -> std::io::Result<Self> {
        let Owner { boot, pid, start } = Owner::this_process()?;
        Ok(Self { host: host()?, boot, namespace: namespace()?, pid, start, job, since: Timestamp::now() })
    }

    /// The holder named in the file at `path`, if it names one.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        read_json(path, "lease").ok()
    }

    /// The process, as containers and folders name it.
    pub fn owner(&self) -> Owner {
        Owner { boot: self.boot.clone(), pid: self.pid, start: self.start }
    }

    /// Whether the process has ended, as far as what it left on this machine goes: one that ran before the machine was
    /// started again has, one of another machine is not ours to judge.
    pub(crate) fn is_gone(&self) -> bool {
        match self.life() {
            Life::Alive => false,
            Life::Dead => true,
            Life::Unknown => {
                host().is_ok_and(|host| host == self.host) && boot_id().is_ok_and(|boot| boot != self.boot)
            }
        }
    }

    pub(crate) fn life(&self) -> Life {
        let here = boot_id().is_ok_and(|boot| boot == self.boot)
            && namespace().is_ok_and(|namespace| namespace == self.namespace);
        match here {
            false => Life::Unknown,
            true if start_time(self.pid) == Some(self.start) => Life::Alive,
            true => Life::Dead,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host: String = self.host.chars().filter(|c| !c.is_control()).take(64).collect();
        write!(f, "process {} on {host}", self.pid)?;
        match &self.job {
            Some(job) => write!(f, " (job {})", job.chars().filter(|c| !c.is_control()).collect::<String>()),
            None => Ok(()),
        }
    }
}

fn host() -> std::io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned())
}

fn boot_id() -> std::io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
}

fn namespace() -> std::io::Result<String> {
    fs::read_link("/proc/self/ns/pid").map(|it| it.to_string_lossy().into_owned())
}

/// Start time of a process in clock ticks since boot; none for a zombie, which can do nothing any more.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from its end: state is field 3, start time field 22.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    if state == "Z" { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_namesakes_are_not() {
        let this = Owner::this_process().unwrap();
        assert!(this.is_alive());
        assert_eq!(Owner::parse(&this.to_string()), Some(this.clone()));
        assert!(!Owner { start: this.start + 1, ..this.clone() }.is_alive());
        assert!(!Owner { boot: "another".into(), ..this }.is_alive());
        assert_eq!(Owner::parse("nonsense"), None);
    }

    #[test]
    fn a_process_that_ended_is_not_alive() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let owner =
            Owner { boot: boot_id().unwrap(), pid: child.id(), start: start_time(child.id()).unwrap() };
        assert!(owner.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!owner.is_alive());
    }

    #[test]
    fn a_holder_says_who_it_is_in_words_fit_for_a_terminal() {
        let holder = Holder {
            host: "a\u{1b}[2J".into(),
            job: Some("7_1".into()),
            ..Holder::this_process(None).unwrap()
        };
        assert_eq!(holder.to_string(), format!("process {} on a[2J (job 7_1)", holder.pid));
        assert_eq!(holder.life(), Life::Alive);
        assert_eq!(holder.owner(), Owner::this_process().unwrap());
    }
}
