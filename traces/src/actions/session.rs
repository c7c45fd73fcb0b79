//! What is classified: the calls of a session, and what was seen of the artifact from outside.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::{ArtifactVersion, Call, ToolCallId, Trace};

/// The calls of a session, with what their classification needs to know besides.
#[derive(Clone, Debug, Default)]
pub struct Session<'t> {
    /// All calls in causal order, operations of programs included.
    pub calls: Cow<'t, [Call]>,
    /// Of which calls the watcher of the artifact says whether they changed it.
    pub changed: HashMap<ToolCallId, bool>,
    /// The workspace, as the calls name it.
    pub root: Option<String>,
    /// The designated file, relative to the workspace; told from the calls if not given.
    pub artifact: Option<String>,
}

impl<'t> Session<'t> {
    /// The session that a trace tells of.
    pub fn of_trace(trace: &'t Trace, artifact: Option<&str>) -> Self {
        Self {
            calls: Cow::Borrowed(&trace.calls),
            changed: changed(&trace.calls, &trace.versions),
            root: trace.meta.cwd.clone(),
            artifact: artifact.map(str::to_owned),
        }
    }
}

/// What the versions of the artifact say of the calls: `true` for the one that was at work when a version was seen, `false`
/// for one after which long enough nothing was seen. The watcher keeps at most one version a second and stamps it when it
/// has read it, so that of a version that follows another within that time nobody can say which call made it; nor of one that is seen so soon
/// after the call before that it may be a late one of that call.
fn changed(calls: &[Call], versions: &[ArtifactVersion]) -> HashMap<ToolCallId, bool> {
    /// From the end of a write to the stamp of the watcher, in milliseconds.
    const LATE: i64 = 120;
    /// A version that comes so long after the one before was not kept back.
    const APART: i64 = 1_200;
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
        let ended_before = latest_end;
        latest_end = latest_end.max(*end);
        if !alone {
            continue;
        }
        let until = next.unwrap_or(i64::MAX);
        let first = versions.partition_point(|it| it.ms < *start);
        let before = first.checked_sub(1).and_then(|it| versions.get(it)).map_or(i64::MIN, |it| it.ms);
        let seen = versions.get(first).map_or(i64::MAX, |it| it.ms);
        if seen <= end.saturating_add(LATE).min(until.max(*end)) {
            if seen.saturating_sub(before) > APART && seen.saturating_sub(ended_before) > LATE {
                said.insert(call.id.clone(), true);
            }
        } else if seen > until && until.saturating_sub(*end) > QUIET && start.saturating_sub(before) > QUIET {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digest, Format, Moment, Witness, sources};

    /// Calls by start and end, versions by time: what is said of each call.
    fn said(calls: &[(i64, i64)], versions: &[i64]) -> Vec<Option<bool>> {
        let line = r#"{"timestamp":"2026-11-30T10:00:01.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}}"#;
        let records = sources::read(line.as_bytes(), Some(Format::CodexRollout), None).unwrap();
        let model = Trace::of_records("x", records).calls[0].clone();
        let moment = |ms| Some(Moment { ms, by: Witness::SessionFile });
        let calls: Vec<Call> = calls
            .iter()
            .enumerate()
            .map(|(at, (start, end))| Call {
                id: ToolCallId(at.to_string()),
                start: moment(*start),
                end: moment(*end),
                ..model.clone()
            })
            .collect();
        let version = |ms: &i64| ArtifactVersion { ms: *ms, digest: Digest::of(b""), bytes: 0 };
        let said = changed(&calls, &versions.iter().map(version).collect::<Vec<_>>());
        calls.iter().map(|it| said.get(&it.id).copied()).collect()
    }

    #[test]
    fn a_version_is_that_of_the_call_at_work_unless_it_may_have_been_kept_back() {
        assert_eq!(
            said(&[(0, 100), (5_000, 5_100), (9_000, 9_100)], &[150, 9_090]),
            [Some(true), Some(false), Some(true)]
        );
        // The second version may be that of the first call.
        assert_eq!(said(&[(0, 100), (500, 600), (1_000, 1_200)], &[50, 1_100]), [Some(true), None, None]);
        assert_eq!(said(&[(0, 900), (100, 300)], &[200]), [None, None]);
        // The watcher may have been late with what the first call wrote.
        assert_eq!(said(&[(0, 100), (112, 900)], &[124]), [None, None]);
        assert_eq!(said(&[(0, 100), (112, 900)], &[400]), [None, Some(true)]);
        assert_eq!(said(&[(0, 100)], &[]), [None]);
    }
}
