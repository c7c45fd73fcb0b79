//! The room is sealed: no network but the gateway, no rights, nothing of ours to tamper with (DESIGN §3.2, §3.4).

use serde_json::{Value, json};

use crate::support::Run;

/// Tries everything and prints what came of it as JSON.
const PROBE: &str = r#"
import ctypes, glob, json, os, socket

def outcome(act):
    try: act(); return "done"
    except OSError as error: return type(error).__name__ + ": " + os.strerror(error.errno) if error.errno else str(error)

def reach(family, address):
    with socket.socket(family) as it:
        it.settimeout(5)
        it.connect(address)

def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(key + ":"))

def trace_pid_1():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, 1, 0, 0) != 0: raise OSError(ctypes.get_errno(), "ptrace")

def write(path): return outcome(lambda: open(path, "w").close())

print(json.dumps({
    "interfaces": os.listdir("/sys/class/net"),
    "routes": len(open("/proc/net/route").read().splitlines()) - 1,
    "host": outcome(lambda: reach(socket.AF_INET, (os.environ.get("HOST", "172.17.0.1"), 22))),
    "model": outcome(lambda: reach(socket.AF_INET, ("127.0.0.1", 8080))),
    "engine": outcome(lambda: reach(socket.AF_UNIX, "/var/run/docker.sock")),
    "sockets": sorted(glob.glob("/run/proctor/*")),
    "user": [os.getuid(), os.getgid()],
    "capabilities": [status("CapEff"), status("CapBnd")],
    "no_new_privileges": status("NoNewPrivs"),
    "root": write("/anything"),
    "guest": write("/opt/proctor/guest"),
    "control": write("/run/proctor/anything"),
    "environ_of_pid_1": outcome(lambda: open("/proc/1/environ").read()),
    "memory_of_pid_1": outcome(lambda: open("/proc/1/mem", "rb").read(1)),
    "trace_pid_1": outcome(trace_pid_1),
    "kill_pid_1": outcome(lambda: os.kill(1, 9)),
    "stdin_is_kept": os.path.exists("/run/proctor/stdin"),
    "deadline": os.environ["PROCTOR_DEADLINE"][:2],
}))
"#;

#[test]
fn nothing_but_the_room_can_be_reached_and_nothing_of_ours_can_be_touched() {
    let run = Run::over_one().python(PROBE).args(["--budget", "60s"]);
    let seen = probe(&run);
    assert_eq!(seen["interfaces"], json!(["lo"]));
    assert_eq!(seen["routes"], json!(0));
    assert_eq!(seen["host"], json!("OSError: Network is unreachable"));
    assert_eq!(seen["engine"], json!("FileNotFoundError: No such file or directory"));
    // No model was asked for, so there is not even a gateway.
    assert_eq!(seen["model"], json!("ConnectionRefusedError: Connection refused"));
    let own = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let expected = if own.0 == 0 { (1000, 1000) } else { own };
    assert_eq!(seen["user"], json!([expected.0, expected.1]));
    assert_eq!(seen["capabilities"], json!(["0000000000000000", "0000000000000000"]));
    assert_eq!(seen["no_new_privileges"], json!("1"));
    for place in ["root", "control"] {
        assert_eq!(seen[place], json!("OSError: Read-only file system"), "{place}");
    }
    // Running, read-only and another user's: whichever the kernel names first.
    assert_ne!(seen["guest"], json!("done"));
    // PID 1 is not dumpable: of the same user, and yet out of reach.
    for way in ["environ_of_pid_1", "memory_of_pid_1", "trace_pid_1"] {
        let said = seen[way].as_str().unwrap();
        assert!(said.starts_with("PermissionError"), "{way}: {said}");
    }
    // The kernel takes the signal, and PID 1 of a namespace does not hear it: the probe went on to its end.
    assert_eq!(seen["kill_pid_1"], json!("done"));
    assert_eq!(seen["stdin_is_kept"], json!(false));
    assert_eq!(seen["deadline"], json!("20"));
    let sockets: Vec<&str> = seen["sockets"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!sockets.contains(&"/run/proctor/control.sock"), "{sockets:?}");
}

#[test]
fn with_a_model_the_gateway_is_the_one_thing_that_answers() {
    let run = Run::over_one().python(PROBE).args(["--budget", "60s", "--model", "script"]);
    let seen = probe(&run);
    assert_eq!(seen["model"], json!("done"));
    assert_eq!(seen["interfaces"], json!(["lo"]));
    assert_eq!(seen["host"], json!("OSError: Network is unreachable"));
}

fn probe(run: &Run) -> Value {
    let trial = run.go().with_code(0).trial();
    let printed = trial.bytes("raw/stdout.jsonl");
    serde_json::from_slice(&printed).unwrap_or_else(|error| {
        let complaints = trial.bytes("raw/stderr.log");
        panic!("{error}: {} {}", String::from_utf8_lossy(&printed), String::from_utf8_lossy(&complaints))
    })
}
