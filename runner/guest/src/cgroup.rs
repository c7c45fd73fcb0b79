//! The container's own control group, as far as it can be read from inside: version 2 first, then version 1.

use std::fs;

use proctor_guest::Usage;

/// What has been used and refused so far.
pub(crate) fn usage() -> Usage {
    Usage {
        memory_peak_bytes: number("memory.peak").or_else(|| number("memory/memory.max_usage_in_bytes")),
        oom_kills: field("memory.events", "oom_kill")
            .or_else(|| field("memory/memory.oom_control", "oom_kill")),
        throttled_ms: field("cpu.stat", "throttled_usec")
            .map(|micros| micros / 1000)
            .or_else(|| field("cpu/cpu.stat", "throttled_time").map(|nanos| nanos / 1_000_000)),
        forks_refused: field("pids.events", "max").or_else(|| field("pids/pids.events", "max")),
    }
}

fn read(name: &str) -> Option<String> {
    fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()
}

fn number(name: &str) -> Option<u64> {
    read(name)?.trim().parse().ok()
}

fn field(name: &str, key: &str) -> Option<u64> {
    find(&read(name)?, key)
}

/// The number behind `key` in a file of `key number` lines.
fn find(text: &str, key: &str) -> Option<u64> {
    let mut words = text.lines().map(str::split_whitespace);
    words.find_map(|mut line| (line.next() == Some(key)).then(|| line.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn finds_whole_keys_only() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(find(text, "oom_kill"), Some(3));
        assert_eq!(find(text, "oom"), None);
        assert_eq!(find("oom_kill\n", "oom_kill"), None);
        assert_eq!(find("\nmax 2\n", "max"), Some(2));
    }
}
