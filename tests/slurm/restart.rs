//! A cluster whose daemons were killed, as on a machine whose processes were all ended before the tests.

use std::fs;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::Cluster;

#[test]
fn a_cluster_starts_over_the_remains_of_a_killed_one_and_touches_no_other_process() {
    let cluster = Cluster::start();
    let pid_file = |name: &str| cluster.folder().join(format!("{name}.pid"));
    let pid_of = |name: &str| {
        let text = fs::read_to_string(pid_file(name)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap())
    };
    let daemons = ["munged", "slurmctld", "slurmd"];
    for name in daemons {
        kill(pid_of(name), Signal::SIGKILL).unwrap();
    }
    // The number of one was given to another program meanwhile, and a file was torn.
    fs::write(pid_file("slurmd"), std::process::id().to_string()).unwrap();
    fs::write(pid_file("munged"), "").unwrap();
    cluster.start_again();
    let state = Command::new("sinfo")
        .args(["--noheader", "--format=%T"])
        .env("SLURM_CONF", cluster.configuration())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&state.stdout).trim(), "idle");
    for name in daemons {
        assert!(pid_of(name) != Pid::this() && kill(pid_of(name), None).is_ok(), "{name} lives");
    }
}
