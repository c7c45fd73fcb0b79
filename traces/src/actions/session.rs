//! What is classified: the calls of a session, and what was seen of the artifact from outside.

use std::collections::HashMap;

use crate::{ArtifactVersion, Call, ToolCallId, Trace};

/// The calls of a session, with what their classification needs to know besides.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// All calls in causal order, operations of programs included.
    pub calls: Vec<Call>,
    /// Of which calls the watcher of the artifact says whether they changed it.
    pub changed: HashMap<ToolCallId, bool>,
    /// The workspace, as the calls name it.
    pub root: Option<String>,
    /// The designated file, relative to the workspace; told from the calls if not given.
    pub artifact: Option<String>,
}

impl Session {
    /// The session that a trace tells of.
    pub fn of_trace(trace: &Trace, artifact: Option<&str>) -> Self {
        Self {
            calls: trace.calls.clone(),
            changed: changed(&trace.calls, &trace.versions),
            root: trace.meta.cwd.clone(),
            artifact: artifact.map(str::to_owned),
        }
    }
}

/// What the versions of the artifact say of the calls: `true` for the one that was at work when a version was seen, `false`
/// for one after which long enough nothing was seen. The watcher keeps at most one version a second, and stamps it when it
/// has read it; of what follows closer than that it says nothing.
fn changed(calls: &[Call], versions: &[ArtifactVersion]) -> HashMap<ToolCallId, bool> {
    /// From the end of a write to the stamp of the watcher, in milliseconds.
    const LATE: i64 = 120;
    /// After so long without a version there was no change.
    const QUIET: i64 = 2_500;
    let mut said = HashMap::new();
    if versions.is_empty() {
        return said;
    }
    let outer: Vec<(&Call, i64, i64)> = calls
        .iter()
        .filter(|it| it.is_outer())
        .filter_map(|it| Some((it, it.start?.ms, it.end?.ms)))
        .collect();
    // The latest end of any call up to each, so that overlaps are seen in one pass.
    let mut latest_end = i64::MIN;
    for (at, (call, start, end)) in outer.iter().enumerate() {
        let next = outer.get(at + 1).map(|(_, from, _)| *from);
        let alone = latest_end <= *start && next.is_none_or(|it| it >= *end);
        latest_end = latest_end.max(*end);
        if !alone {
            continue;
        }
        let between = |from: i64, to: i64| {
            let first = versions.partition_point(|it| it.ms < from);
            versions.get(first).is_some_and(|it| it.ms <= to)
        };
        let until = next.unwrap_or(i64::MAX);
        if between(*start, end.saturating_add(LATE).min(until.max(*end))) {
            said.insert(call.id.clone(), true);
        } else if !between(start.saturating_sub(QUIET), until) && until.saturating_sub(*end) > QUIET {
            said.insert(call.id.clone(), false);
        }
    }
    said
}

/// The artifact that calls speak of most.
pub(super) fn artifact_of(calls: &[Call]) -> String {
    let kinds = ["html", "tex", "dot", "py", "svg"];
    let mut counts = [0_usize; 5];
    for call in calls {
        let input = call.input.to_string();
        for (at, _) in input.match_indices("artifact.").take(64) {
            let rest = &input[at + "artifact.".len()..];
            if let Some(kind) = kinds.iter().position(|it| rest.starts_with(it)) {
                counts[kind] += 1;
            }
        }
    }
    let best = (0..kinds.len()).rev().max_by_key(|it| counts[*it]).filter(|it| counts[*it] > 0).unwrap_or(0);
    format!("artifact.{}", kinds[best])
}
