//! Starting and reaping. One thread reaps everything, orphans included, and reports the processes that were asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use proctor_guest::{Command, ExitStatus, Reply};

use crate::cgroup;
use crate::init::Replies;

/// Badness added to every process that the guest starts: at the memory limit the kernel takes these before PID 1,
/// whose death would take the container down before its files can be collected.
const OOM_SCORE_ADJ: &[u8] = b"500";

/// The processes that were asked for and are still running.
pub(crate) struct Processes {
    shared: Arc<Shared>,
    replies: Replies,
}

#[derive(Default)]
struct Shared {
    /// Command id by process id. The lock is held from fork to registration, and by the reaper from seeing a dead
    /// process to reaping it, so that neither a quick exit nor std's own wait for a failed exec is lost.
    running: Mutex<HashMap<i32, u32>>,
    /// Told when there may be something to reap again.
    started: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<i32, u32>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Processes {
    /// Starts the reaper.
    pub(crate) fn new(replies: Replies) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (reaper, reports) = (Arc::clone(&shared), replies.clone());
        std::thread::Builder::new().name("reaper".into()).spawn(move || reap(&reaper, &reports))?;
        Ok(Self { shared, replies })
    }

    /// Starts `command` and reports that, or why not.
    pub(crate) fn start(&self, command: Command) {
        let id = command.id;
        let mut running = self.shared.lock();
        let reply = match spawn(command) {
            Ok(pid) => {
                running.insert(pid, id);
                Reply::Started { id, pid, at_ns: monotonic_ns() }
            }
            Err(error) => Reply::NotStarted { id, message: error.to_string() },
        };
        // Sent under the lock: `Exited` must not overtake `Started`.
        self.replies.send(&reply);
        drop(running);
        self.shared.started.notify_all();
    }
}

/// Forks and execs; returns when exec has succeeded, with the process id.
fn spawn(command: Command) -> io::Result<i32> {
    let (program, arguments) =
        command.argv.split_first().ok_or_else(|| io::Error::other("the command has no program"))?;
    let mut child = std::process::Command::new(program);
    child.args(arguments).env_clear().envs(command.env).current_dir(&command.cwd);
    child.stdin(command.stdin.map_or(Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?);
    child.stdout(command.stdout.map_or(Ok(Stdio::inherit()), |path| File::create(path).map(Stdio::from))?);
    child.stderr(command.stderr.map_or(Ok(Stdio::inherit()), |path| File::create(path).map(Stdio::from))?);
    #[expect(unsafe_code, reason = "there is no safe way to act between fork and exec")]
    // SAFETY: only system calls that are safe after a fork are made, and nothing is allocated.
    unsafe {
        child.pre_exec(before_exec);
    }
    let child = child.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

fn before_exec() -> io::Result<()> {
    use nix::fcntl::{OFlag, open};
    use nix::sys::stat::Mode;
    nix::unistd::setsid()?;
    // Best effort: without it the kernel may choose PID 1, and the trial is collected from its bind mounts.
    if let Ok(file) = open(c"/proc/self/oom_score_adj", OFlag::O_WRONLY, Mode::empty()) {
        let _ = nix::unistd::write(&file, OOM_SCORE_ADJ);
    }
    Ok(())
}

fn reap(shared: &Shared, replies: &Replies) {
    loop {
        // Look first, reap under the lock: see `Shared::running`.
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            Ok(status) => {
                let mut running = shared.lock();
                let Some(pid) = status.pid() else { continue };
                let Ok(status) = waitpid(pid, Some(WaitPidFlag::WNOHANG)) else { continue };
                if let (Some(id), Some(status)) = (running.remove(&pid.as_raw()), exit_status(status)) {
                    let oom_kills = cgroup::usage().oom_kills;
                    replies.send(&Reply::Exited { id, status, at_ns: monotonic_ns(), oom_kills });
                }
            }
            Err(Errno::ECHILD) => {
                let running = shared.lock();
                if running.is_empty() {
                    drop(shared.started.wait(running));
                }
            }
            Err(_) => {}
        }
    }
}

fn exit_status(status: WaitStatus) -> Option<ExitStatus> {
    match status {
        WaitStatus::Exited(_, code) => Some(ExitStatus::Code(code)),
        WaitStatus::Signaled(_, signal, _) => Some(ExitStatus::Signal(signal as i32)),
        _ => None,
    }
}

/// Sends `signal` to every process of the container but this one, and says whether there was any: the kernel looks
/// through the whole list under its lock, where no fork can slip by, and counts the dead that are not reaped as well.
pub(crate) fn signal_all(signal: Signal) -> bool {
    signal::kill(Pid::from_raw(-1), signal) != Err(Errno::ESRCH)
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map(|time| {
            u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000_000
                + u64::try_from(time.tv_nsec()).unwrap_or(0)
        })
        .unwrap_or(0)
}
