//! The room is sealed: the gateway is the one way out, and there is no way up.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use crate::support::{Run, Trial, unique};

/// Tries everything and prints what came of it, as JSON.
const INTRUDER: &str = r#"
import ctypes, errno, json, os, re, socket, sys, urllib.request, urllib.error
port, name = int(sys.argv[1]), sys.argv[2]
addresses = sys.argv[3:]
seen = {}

def attempt(act):
    try: return "done: %s" % (act(),)
    except OSError as error: return errno.errorcode.get(error.errno, str(error))

def tcp(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.settimeout(5)
        s.connect((host, port))

def unix(path):
    with socket.socket(socket.AF_UNIX) as s: s.connect(path)

def write(path):
    with open(path, "w") as file: file.write("x")

def model():
    try: return urllib.request.urlopen("http://127.0.0.1:8080/nothing", timeout=10).status
    except urllib.error.HTTPError as error: return error.code
    except urllib.error.URLError as error: raise error.reason

libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    if getattr(libc, function)(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

seen["interfaces"] = os.listdir("/sys/class/net")
seen["routes"] = open("/proc/net/route").read().splitlines()[1:]
seen["host"] = {a: attempt(lambda: tcp(a, port)) for a in addresses}
seen["host by loopback"] = attempt(lambda: tcp("127.0.0.1", port))
seen["abstract socket of the host"] = attempt(lambda: unix("\0" + name))
seen["name"] = attempt(lambda: socket.getaddrinfo("localhost.localdomain.example", 80))
seen["engine"] = {p: attempt(lambda: unix(p)) for p in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock")}
seen["control"] = attempt(lambda: unix("/run/proctor/control.sock"))
seen["in control"] = sorted(os.listdir("/run/proctor"))
seen["model"] = attempt(model)
seen["model by socket"] = attempt(lambda: unix("/run/proctor/model.sock"))

status = dict(re.findall(r"(\w+):\s*(.*)", open("/proc/self/status").read()))
seen["status"] = {key: status[key] for key in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")}
seen["trace of 1"] = attempt(lambda: call("ptrace", 16, 1, 0, 0))
seen["files of 1"] = {f: attempt(lambda: open("/proc/1/" + f, "rb").read(1)) for f in ("environ", "mem", "maps", "auxv")}
seen["descriptors of 1"] = attempt(lambda: os.listdir("/proc/1/fd"))
seen["root of 1"] = attempt(lambda: os.listdir("/proc/1/root"))
seen["killing 1"] = attempt(lambda: os.kill(1, 9))
seen["mount"] = attempt(lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
seen["unshare"] = attempt(lambda: call("unshare", 0x10000000))
seen["becoming root"] = attempt(lambda: os.setuid(0))
seen["device"] = attempt(lambda: os.mknod("/tmp/device", 0o60600, os.makedev(254, 0)))
seen["writing"] = {p: attempt(lambda: write(p)) for p in ("/var/tmp/x", "/x", "/etc/passwd", "/usr/bin/python3", "/opt/x", "/run/proctor/x", "/opt/proctor/guest", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/kernel/uevent_helper")}
seen["writing here"] = {p: attempt(lambda: write(p)) for p in ("/work/x", os.path.expanduser("~/x"), "/tmp/x", "/dev/shm/x")}
seen["deadline"] = os.environ.get("PROCTOR_DEADLINE")
seen["keys"] = sorted(key + "=" + value for key, value in os.environ.items() if "KEY" in key or "TOKEN" in key)
print(json.dumps(seen))
"#;

/// What an intruder saw, and the trial it was in.
fn intrude(model: bool) -> (serde_json::Value, Trial) {
    // Something that listens on every address of this machine, and would be reached.
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = unique("abstract-");
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    std::os::unix::net::UnixStream::connect_addr(&address).expect("this machine reaches its own socket");
    let own = Command::new("hostname").arg("-I").output().unwrap().stdout;
    let own = String::from_utf8(own).unwrap();
    let own: Vec<&str> = own.split_whitespace().filter(|address| !address.contains(':')).collect();
    assert!(!own.is_empty(), "this machine has an address");
    for address in &own {
        std::net::TcpStream::connect((*address, port)).expect("this machine reaches itself");
    }
    let addresses =
        [own.as_slice(), &["169.254.169.254", "1.1.1.1", "2606:4700:4700::1111", "10.0.0.1"]].concat();
    let line =
        format!("python3 -c {} {port} {name} {}", crate::support::quoted(INTRUDER), addresses.join(" "));
    let run = Run::over_one()
        .args(["--harness", "command", "--no-render", "--budget", "60s", "--command", &line])
        .env("OPENAI_API_KEY", "sk-must-not-be-seen")
        .env("SECRET_TOKEN", "must-not-be-seen-either");
    let run = if model { run.args(["--model", "script"]) } else { run };
    let trial = run.go().with_code(0).trial();
    let stderr = String::from_utf8_lossy(&trial.bytes("raw/stderr.log")).into_owned();
    let seen = serde_json::from_slice(&trial.bytes("raw/stdout.jsonl"))
        .unwrap_or_else(|error| panic!("{error}: {stderr}"));
    (seen, trial)
}

#[test]
fn nothing_but_the_gateway_is_reached() {
    let (seen, _) = intrude(true);
    assert_eq!(seen["interfaces"], serde_json::json!(["lo"]));
    assert_eq!(seen["routes"], serde_json::json!([]));
    for (address, result) in seen["host"].as_object().unwrap() {
        assert!(["ENETUNREACH", "EADDRNOTAVAIL"].contains(&result.as_str().unwrap()), "{address}: {result}");
    }
    assert_eq!(seen["host by loopback"], "ECONNREFUSED");
    assert_eq!(seen["abstract socket of the host"], "ECONNREFUSED");
    assert!(!seen["name"].as_str().unwrap().starts_with("done"), "{}", seen["name"]);
    for (path, result) in seen["engine"].as_object().unwrap() {
        assert_eq!(result, "ENOENT", "{path}");
    }
    assert_eq!(seen["control"], "ENOENT", "the control socket takes one connection and is gone");
    assert_eq!(seen["model"], "done: 403", "the gateway is there, and gives nothing that is no model route");
    assert_eq!(seen["model by socket"], "done: None");
    let in_control = seen["in control"].to_string();
    assert!(!in_control.contains("stdin") && !in_control.contains("owner"), "{in_control}");
}

#[test]
fn without_a_model_there_is_no_gateway() {
    let (seen, trial) = intrude(false);
    assert_eq!(seen["model"], "ECONNREFUSED");
    assert_eq!(seen["model by socket"], "ENOENT");
    assert_eq!(trial.outcome.exchanges, 0);
}

#[test]
fn there_is_no_way_up() {
    let (seen, trial) = intrude(false);
    let status = &seen["status"];
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[set], "0000000000000000", "{set}");
    }
    assert_eq!((&status["NoNewPrivs"], &status["Seccomp"]), (&"1".into(), &"2".into()));
    let uid =
        if nix::unistd::geteuid().is_root() { "1000".to_owned() } else { nix::unistd::geteuid().to_string() };
    assert_eq!(status["Uid"], [uid.as_str(); 4].join("\t"));
    assert!(!seen["trace of 1"].as_str().unwrap().starts_with("done"), "{}", seen["trace of 1"]);
    for what in ["environ", "mem", "maps", "auxv"] {
        assert_eq!(seen["files of 1"][what], "EACCES", "{what}");
    }
    assert_eq!((&seen["descriptors of 1"], &seen["root of 1"]), (&"EACCES".into(), &"EACCES".into()));
    for what in ["mount", "unshare", "becoming root", "device"] {
        assert_eq!(seen[what], "EPERM", "{what}");
    }
    for (path, result) in seen["writing"].as_object().unwrap() {
        assert!(
            ["EROFS", "EACCES", "ENOENT", "EPERM", "ETXTBSY"].contains(&result.as_str().unwrap()),
            "{path}: {result}"
        );
    }
    // There everybody may write, were it not for the root that nobody may.
    assert_eq!(seen["writing"]["/var/tmp/x"], "EROFS");
    for (path, result) in seen["writing here"].as_object().unwrap() {
        assert_eq!(result, "done: None", "{path}");
    }
    // Whoever was asked to kill PID 1 went on, and the room was frozen in order.
    assert_eq!(trial.ending(), "no_artifact");
    assert!(seen["deadline"].as_str().unwrap().ends_with('Z'), "{}", seen["deadline"]);
    assert!(!seen["keys"].to_string().contains("must-not-be-seen"), "{}", seen["keys"]);
}
