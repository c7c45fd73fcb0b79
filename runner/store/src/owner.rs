//! Who runs a trial or owns a container: a process, named so that a later one with the same number is another.

use std::fmt;
use std::fs;

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

fn boot_id() -> std::io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned())
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
}
