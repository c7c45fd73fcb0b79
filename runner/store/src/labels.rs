//! `actions.jsonl`: what the agent of a trial was doing in each call, and what that comes to. It is worked out from the
//! trial's other files, names their digests, and is made anew when one of them, or the rules, are no longer the same.

use std::fs;
use std::path::PathBuf;

use proctor_traces::actions::{self, Action, Designated, classify};
use proctor_traces::{Behaviour, Call, Digest, ToolCallId, ToolStatus, Trace, TraceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::atomic::write_derived;
use crate::{StoreError, Testimony, TrialDir};

/// The first line of `actions.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelsHead {
    /// Version of this form.
    pub schema: u32,
    /// Fingerprint of the rules.
    pub rules: String,
    /// The designated file that was asked for; none if it was told from the calls.
    pub artifact: Option<String>,
    /// The files that it rests on.
    pub sources: Vec<LabelSource>,
    /// The time of the agent that it rests on, as the runner took it.
    pub agent_ms: Option<u64>,
    /// Lines that follow, one per outer call.
    pub calls: u64,
    /// What they come to.
    pub behaviour: Behaviour,
}

impl LabelsHead {
    /// Version of this form.
    pub const SCHEMA: u32 = 1;
}

/// A file that labels rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSource {
    /// Its path in the trial's folder, or in that of its last try.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// Another line of `actions.jsonl`: an outer call, in causal order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelledCall {
    /// The call.
    pub call: ToolCallId,
    /// Name of its tool.
    pub name: String,
    /// The turn, from 1.
    pub turn: u32,
    /// When it began, in milliseconds since the agent was started.
    pub start_ms: Option<i64>,
    /// When it ended; none if nobody saw that.
    pub end_ms: Option<i64>,
    /// How it went.
    pub status: ToolStatus,
    /// The sub-agent that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its actions, by phases; empty where none fits.
    pub actions: Vec<Action>,
    /// What it did to the designated artifact.
    pub designated: Designated,
    /// A calibration file or modified copy was rendered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trial_render: bool,
    /// The artifact was written here for the first time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
}

/// `actions.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Its first line.
    pub head: LabelsHead,
    /// The others.
    pub calls: Vec<LabelledCall>,
}

/// How labels are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct LabelsAsked<'a> {
    /// The designated file.
    pub artifact: Option<&'a str>,
    /// The time of the agent, as the runner took it.
    pub agent_ms: Option<u64>,
    /// Whether they are written beside the trial's other files.
    pub keep: bool,
    /// Whether those that are there are not looked at.
    pub anew: bool,
}

/// Labels, and how they were come by.
#[derive(Debug)]
pub struct Labelling {
    /// The labels.
    pub labels: Labels,
    /// Whether they were there, and rest on the same files.
    pub found: bool,
    /// Why they could not be kept.
    pub not_kept: Option<StoreError>,
}

impl Labels {
    fn of(trace: &Trace, head: LabelsHead) -> Self {
        let labelled = classify(trace, head.artifact.as_deref());
        let behaviour = Behaviour::of(trace, &labelled, head.agent_ms);
        let calls: Vec<LabelledCall> = trace.outer_calls().zip(labelled).map(line).collect();
        Self { head: LabelsHead { calls: calls.len() as u64, behaviour, ..head }, calls }
    }

    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(&self.head)?;
        for call in &self.calls {
            bytes.push(b'\n');
            serde_json::to_writer(&mut bytes, call)?;
        }
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// None of what is torn, or no such file.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
        let head: LabelsHead = serde_json::from_slice(lines.next()?).ok()?;
        let calls: Vec<LabelledCall> =
            lines.map(serde_json::from_slice).collect::<serde_json::Result<_>>().ok()?;
        (calls.len() as u64 == head.calls).then_some(Self { head, calls })
    }
}

fn line((call, it): (&Call, actions::CallActions)) -> LabelledCall {
    LabelledCall {
        call: it.call,
        name: call.name.clone(),
        turn: call.turn,
        start_ms: call.start.map(|it| it.ms),
        end_ms: call.end.map(|it| it.ms),
        status: call.status,
        agent: call.agent.clone(),
        actions: it.actions,
        designated: it.designated,
        trial_render: it.trial_render,
        first: it.first,
    }
}

impl Testimony {
    /// The files by their digests.
    fn sources(&self) -> Vec<LabelSource> {
        let files = self.files.iter().map(|it| (it.name.as_str(), it.bytes.as_slice()));
        let beside = [("raw/stdout.times", &self.times), ("model/exchanges.jsonl", &self.exchanges)];
        let beside = beside.into_iter().filter_map(|(name, bytes)| Some((name, bytes.as_deref()?)));
        files
            .chain(beside)
            .map(|(name, bytes)| LabelSource { name: name.to_owned(), digest: Digest::of(bytes) })
            .collect()
    }
}

impl TrialDir {
    /// What the agent was doing in each call: as it was kept, if that rests on what is there now, else worked out. None if
    /// nothing tells what the agent did.
    pub fn labels(&self, asked: &LabelsAsked<'_>) -> Result<Option<Labelling>, StoreError> {
        let testimony = self.testimony()?;
        if testimony.files.is_empty() {
            return Ok(None);
        }
        let head = LabelsHead {
            schema: LabelsHead::SCHEMA,
            rules: actions::RULES.to_owned(),
            artifact: asked.artifact.map(str::to_owned),
            sources: testimony.sources(),
            agent_ms: asked.agent_ms,
            calls: 0,
            behaviour: Behaviour::default(),
        };
        let path = self.labels_path();
        let kept = if asked.anew { None } else { fs::read(&path).ok() };
        if let Some(labels) = kept.as_deref().and_then(Labels::parse).filter(|it| it.rests_on(&head)) {
            return Ok(Some(Labelling { labels, found: true, not_kept: None }));
        }
        let trace = match testimony.trace() {
            Ok(trace) => trace,
            Err(TraceError::Nothing) => return Ok(None),
            Err(error) => {
                let (path, message) = (self.path().to_owned(), error.to_string());
                return Err(StoreError::Malformed { path, what: "trace", message });
            }
        };
        let labels = Labels::of(&trace, head);
        let not_kept = if asked.keep { self.keep(&labels).err() } else { None };
        Ok(Some(Labelling { labels, found: false, not_kept }))
    }

    fn keep(&self, labels: &Labels) -> Result<(), StoreError> {
        let path = self.labels_path();
        let bytes = labels.to_bytes().map_err(|error| StoreError::io("writing", &path)(error.into()))?;
        write_derived(&path, &bytes)
    }

    fn labels_path(&self) -> PathBuf {
        self.path().join("actions.jsonl")
    }
}

impl Labels {
    fn rests_on(&self, asked: &LabelsHead) -> bool {
        let LabelsHead { schema, rules, artifact, sources, agent_ms, calls: _, behaviour: _ } = asked;
        let it = &self.head;
        it.schema == *schema
            && it.rules == *rules
            && it.artifact == *artifact
            && it.sources == *sources
            && it.agent_ms == *agent_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &str = concat!(
        r#"{"seq":0,"at":"2026-11-30T10:00:00.000Z","offset_ms":0,"turn":1,"source":"guest","kind":"turn_started"}"#,
        "\n",
        r#"{"seq":1,"at":"2026-11-30T10:00:01.000Z","offset_ms":1000,"turn":1,"source":"agent_stream","kind":"tool_started","id":"c1","name":"Write","input":{"file_path":"artifact.html","content":"<p>x</p>"}}"#,
        "\n",
        r#"{"seq":2,"at":"2026-11-30T10:00:02.000Z","offset_ms":2000,"turn":1,"source":"agent_stream","kind":"tool_finished","id":"c1","status":"ok","output":"","output_bytes":0,"truncated":false}"#,
        "\n",
    );

    fn trial(dir: &std::path::Path) -> TrialDir {
        fs::write(dir.join("trace.jsonl"), EVENTS).unwrap();
        TrialDir::new(dir.to_owned(), "vao/t/m/1".parse().unwrap())
    }

    fn asked(artifact: &str) -> LabelsAsked<'_> {
        LabelsAsked { artifact: Some(artifact), agent_ms: Some(5_000), keep: true, anew: false }
    }

    #[test]
    fn labels_are_kept_and_found_while_what_they_rest_on_is_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let trial = trial(dir.path());
        let labels = |asked: &LabelsAsked<'_>| trial.labels(asked).unwrap().unwrap();
        let first = labels(&asked("artifact.html"));
        assert!(!first.found && first.not_kept.is_none());
        assert_eq!(first.labels.calls[0].actions, [Action::EditAnswer]);
        assert_eq!(first.labels.head.behaviour.first_write_ms, Some(2_000));
        let again = labels(&asked("artifact.html"));
        assert!(again.found);
        assert_eq!(again.labels, first.labels);
        // Another designated file, another time of the agent, another byte in a file, another file: made anew.
        assert!(!labels(&asked("artifact.tex")).found);
        assert!(!labels(&LabelsAsked { agent_ms: None, ..asked("artifact.tex") }).found);
        assert!(labels(&LabelsAsked { agent_ms: None, ..asked("artifact.tex") }).found);
        fs::write(dir.path().join("trace.jsonl"), format!("{EVENTS}\n")).unwrap();
        assert!(!labels(&LabelsAsked { agent_ms: None, ..asked("artifact.tex") }).found);
        fs::create_dir(dir.path().join("model")).unwrap();
        fs::write(dir.path().join("model/exchanges.jsonl"), "").unwrap();
        assert!(!labels(&LabelsAsked { agent_ms: None, ..asked("artifact.tex") }).found);
        assert!(!labels(&LabelsAsked { anew: true, agent_ms: None, ..asked("artifact.tex") }).found);
    }

    #[test]
    fn a_torn_or_foreign_file_is_made_anew_and_a_folder_that_takes_none_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let trial = trial(dir.path());
        let whole = trial.labels(&asked("artifact.html")).unwrap().unwrap().labels.to_bytes().unwrap();
        let path = dir.path().join("actions.jsonl");
        assert_eq!(fs::read(&path).unwrap(), whole);
        let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for torn in [&whole[..0], &whole[..first_line], &whole[..whole.len() - 1], b"{}\n", b"\xff\n"] {
            fs::write(&path, torn).unwrap();
            assert!(!trial.labels(&asked("artifact.html")).unwrap().unwrap().found);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let refused = trial.labels(&asked("artifact.html")).unwrap().unwrap();
        assert!(refused.not_kept.is_some() && refused.labels.calls.len() == 1);
    }

    #[test]
    fn where_nothing_is_told_there_are_no_labels_and_what_is_no_trace_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let trial = TrialDir::new(dir.path().to_owned(), "vao/t/m/1".parse().unwrap());
        assert!(trial.labels(&LabelsAsked::default()).unwrap().is_none());
        fs::write(dir.path().join("trace.jsonl"), "no trace\n").unwrap();
        let error = trial.labels(&LabelsAsked::default()).unwrap_err().to_string();
        assert!(error.contains("is not a valid trace"), "{error}");
        assert!(!dir.path().join("actions.jsonl").exists());
    }
}
