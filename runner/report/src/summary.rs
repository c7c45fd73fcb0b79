//! A run in numbers.

use proctor_store::{MethodId, RunDir, StoreError, TrialId, read_json};
use proctor_traces::{ArtifactState, Ending, Millis};
use serde::{Deserialize, Serialize};

/// All trials of a run that have an outcome, and how many have none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Name of the run.
    pub run: String,
    /// One line per method, in the order of the plan.
    pub methods: Vec<MethodSummary>,
    /// One line per trial with an outcome, in order of its name.
    pub trials: Vec<TrialLine>,
}

/// A method's trials, counted. Registered = completed + timed out + other failures + unresolved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodSummary {
    /// The method.
    pub method: MethodId,
    /// Trials that the plan has for it.
    pub registered: u64,
    /// Ended by themselves in their budget, with an artifact; rendered, if rendering was tried.
    pub completed: u64,
    /// Stopped at the deadline.
    pub timed_out: u64,
    /// Those of them whose artifact renders all the same.
    pub recovered: u64,
    /// Every other ending that is the agent's, the model's or the artifact's.
    pub other_failures: u64,
    /// No outcome yet, or a failure of ours or of the provider that outlasted its tries.
    pub unresolved: u64,
    /// Artifacts with a valid canonical picture.
    pub rendered: u64,
    /// Mean time of the agent over all trials with an outcome, timeouts and failures included.
    pub mean_agent_ms: Option<Millis>,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialLine {
    /// The trial.
    pub trial: TrialId,
    /// How it ended.
    #[serde(flatten)]
    pub ending: Ending,
    /// State of its canonical rendering.
    pub render: RenderState,
    /// Time of the agent.
    pub agent_ms: Millis,
    /// From the deadline to the freeze, for those that were stopped.
    pub overrun_ms: Option<i64>,
    /// Tool calls in its stream.
    pub tool_calls: u64,
    /// Model requests.
    pub exchanges: u64,
    /// Tokens, in and out.
    pub tokens: u64,
    /// Versions of the artifact.
    pub versions: u64,
    /// Tries.
    pub tries: u32,
}

/// State of a canonical rendering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderState {
    /// There is no artifact to render.
    NoArtifact,
    /// It was not tried.
    NotTried,
    /// There is a picture.
    Rendered,
    /// There is none, for this reason.
    Failed(String),
}

/// The part of `render.json` that counts here.
#[derive(Deserialize)]
struct RenderStatus {
    status: String,
}

impl RunSummary {
    /// Reads a run.
    pub fn read(run: &RunDir) -> Result<Self, StoreError> {
        let record = run.record()?;
        let mut trials = Vec::new();
        for folder in run.trials_on_disk()? {
            let Some(outcome) = folder.outcome()? else { continue };
            let present =
                outcome.artifacts.iter().any(|it| matches!(it.state, ArtifactState::Present { .. }));
            let record = folder.render().join("render.json");
            let render = match (present, read_json::<RenderStatus>(&record, "rendering")) {
                (false, _) => RenderState::NoArtifact,
                (true, Ok(it)) if it.status == "rendered" => RenderState::Rendered,
                (true, Ok(it)) => RenderState::Failed(it.status),
                (true, Err(_)) if record.exists() => RenderState::Failed("unreadable".to_owned()),
                (true, Err(_)) => RenderState::NotTried,
            };
            trials.push(TrialLine {
                trial: outcome.trial,
                ending: outcome.ending,
                render,
                agent_ms: outcome.timing.agent_ms,
                overrun_ms: outcome.overrun_ms.filter(|ms| *ms >= 0),
                tool_calls: outcome.tool_calls,
                exchanges: outcome.exchanges,
                tokens: outcome.tokens.input_tokens.saturating_add(outcome.tokens.output_tokens),
                versions: outcome.artifacts.iter().map(|it| it.versions).sum(),
                tries: outcome.r#try,
            });
        }
        let registered = record.tasks.len() as u64 * u64::from(record.attempts);
        let methods = record.methods.into_iter().map(|it| count(it.id, registered, &trials)).collect();
        Ok(Self { run: record.name, methods, trials })
    }

    /// Trials without a valid outcome.
    pub fn unresolved(&self) -> u64 {
        self.methods.iter().map(|method| method.unresolved).sum()
    }
}

fn count(method: MethodId, registered: u64, trials: &[TrialLine]) -> MethodSummary {
    let mut summary = MethodSummary {
        method,
        registered,
        completed: 0,
        timed_out: 0,
        recovered: 0,
        other_failures: 0,
        unresolved: 0,
        rendered: 0,
        mean_agent_ms: None,
    };
    let (mut seen, mut agent) = (0, Millis(0));
    for line in trials.iter().filter(|line| *line.trial.method() == summary.method) {
        seen += 1;
        agent = agent + line.agent_ms;
        let rendered = line.render == RenderState::Rendered;
        summary.rendered += u64::from(rendered);
        match &line.ending {
            // Whether a trial completed is decided after rendering (DESIGN §5).
            Ending::Completed if rendered || line.render == RenderState::NotTried => summary.completed += 1,
            Ending::TimedOut => {
                summary.timed_out += 1;
                summary.recovered += u64::from(rendered);
            }
            ending if ending.is_retried() => summary.unresolved += 1,
            _ => summary.other_failures += 1,
        }
    }
    summary.unresolved += registered.saturating_sub(seen);
    summary.mean_agent_ms = (seen > 0).then(|| Millis(agent.0 / seen));
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trial: &str, ending: Ending, render: RenderState, agent_ms: u64) -> TrialLine {
        TrialLine {
            trial: trial.parse().unwrap(),
            ending,
            render,
            agent_ms: Millis(agent_ms),
            overrun_ms: None,
            tool_calls: 0,
            exchanges: 0,
            tokens: 0,
            versions: 0,
            tries: 1,
        }
    }

    #[test]
    fn every_registered_trial_is_counted_once() {
        let ours = || Ending::InfraError { stage: String::new(), message: String::new() };
        let trials = [
            line("vao/a/m/1", Ending::Completed, RenderState::Rendered, 100),
            line("vao/b/m/1", Ending::Completed, RenderState::Failed("blank".into()), 200),
            line("vao/c/m/1", Ending::TimedOut, RenderState::Rendered, 300),
            line("vao/d/m/1", Ending::TimedOut, RenderState::NoArtifact, 400),
            line("vao/e/m/1", ours(), RenderState::NoArtifact, 0),
            line("vao/a/other/1", Ending::Completed, RenderState::Rendered, 9999),
        ];
        let method = MethodId::try_from("m".to_owned()).unwrap();
        let summary = count(method, 7, &trials);
        assert_eq!((summary.completed, summary.timed_out, summary.recovered), (1, 2, 1));
        assert_eq!((summary.other_failures, summary.unresolved, summary.rendered), (1, 3, 2));
        assert_eq!(summary.completed + summary.timed_out + summary.other_failures + summary.unresolved, 7);
        assert_eq!(summary.mean_agent_ms, Some(Millis(200)));
    }
}
