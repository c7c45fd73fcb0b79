//! How many tool calls a try made, by all who tell of them. What an agent prints is not all: Codex says nothing of the
//! pictures it looks at, and a killed CLI has printed less than it wrote down.

use std::path::Path;

use proctor_store::Testimony;
use walkdir::WalkDir;

/// Session files that are larger together are left to those who analyse the run: a trial must not wait for them, nor hold
/// them in memory beside others.
const CAP: u64 = 64 << 20;

/// Calls of the agent and its sub-agents in the evidence at `folder`; none where there is no session file that can be read.
pub(super) fn outer_calls(folder: &Path) -> Option<u64> {
    let files = WalkDir::new(folder.join("raw/session")).max_depth(20).into_iter().flatten();
    let bytes: u64 =
        files.filter_map(|it| it.metadata().ok()).filter(std::fs::Metadata::is_file).map(|it| it.len()).sum();
    if bytes == 0 || bytes > CAP {
        return None;
    }
    let trace = Testimony::of(folder).ok()?.trace().ok()?;
    Some(trace.tally().outer)
}
