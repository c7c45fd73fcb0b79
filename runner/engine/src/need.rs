//! A trial that is given the artifact of another one.

use std::fmt;
use std::fs;

use proctor_store::{Consumed, MethodId, RunDir, Survey, TrialId, current};
use proctor_traces::{ArtifactState, Digest};

use crate::EngineError;

/// What a method's trials are given: the artifact that another method left at the same task and attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The method that leaves it.
    pub method: MethodId,
    /// Its name there; the task's designated artifact if not given.
    pub artifact: Option<String>,
    /// Its name in the workspace; as there if not given.
    pub name: Option<String>,
    /// What happens where there is none.
    pub on_missing: OnMissing,
}

/// What happens to a trial whose input another trial did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// It is given an empty file (VAO-Bench, C.2: "outputs without code enter A2 as empty-source inputs").
    Empty,
    /// It is not run, and stays unresolved.
    Skip,
    /// It is not run, and has failed.
    Fail,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing = match self.on_missing {
            OnMissing::Empty => "empty",
            OnMissing::Skip => "skip",
            OnMissing::Fail => "fail",
        };
        let artifact = self.artifact.as_deref().unwrap_or("artifact");
        write!(
            f,
            "{artifact} of {} as {}, else {missing}",
            self.method,
            self.name.as_deref().unwrap_or(artifact)
        )
    }
}

/// An input as it is given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it is from.
    pub consumed: Consumed,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// How the need of one trial stands.
#[derive(Debug)]
pub(crate) enum Met {
    /// The other trial has no outcome yet.
    NotYet {
        /// That trial.
        trial: TrialId,
    },
    /// This is it.
    Given(Box<Given>),
    /// The other trial left none.
    Missing {
        /// That trial.
        trial: TrialId,
    },
}

impl Need {
    /// The trial that leaves what `trial` needs, as it stands now.
    fn source(&self, run: &RunDir, trial: &TrialId) -> TrialId {
        // The first attempt of the other method stands for it, or the last of its reruns.
        let mut survey = Survey::new();
        let mut planned = trial.by(self.method.clone());
        planned = planned.at(proctor_store::Attempt::nth(planned.attempt().number()));
        let mut again = planned.clone();
        loop {
            again = again.at(again.attempt().again());
            let standing = run.trial(&again).standing();
            if !standing.rerun {
                return current(&planned, &survey);
            }
            survey.insert(again.clone(), standing);
        }
    }

    /// Looks for what `trial` needs.
    pub(crate) fn meet(&self, run: &RunDir, trial: &TrialId) -> Result<Met, EngineError> {
        let source = self.source(run, trial);
        let folder = run.trial(&source);
        let Some(outcome) = folder.outcome()? else { return Ok(Met::NotYet { trial: source }) };
        let wanted = |name: &str| self.artifact.as_deref().is_none_or(|wanted| wanted == name);
        let Some(artifact) = outcome.artifacts.iter().find(|it| wanted(&it.name)) else {
            return Ok(Met::Missing { trial: source });
        };
        let name = self.name.clone().unwrap_or_else(|| artifact.name.clone());
        let consumed = |digest| Consumed {
            trial: source.clone(),
            artifact: artifact.name.clone(),
            name: name.clone(),
            digest,
            spent_ms: Some(outcome.time_of_all_stages()),
        };
        let ArtifactState::Present { digest, .. } = artifact.state else {
            return Ok(match self.on_missing {
                OnMissing::Empty => {
                    Met::Given(Box::new(Given { consumed: consumed(None), bytes: Vec::new() }))
                }
                OnMissing::Skip | OnMissing::Fail => Met::Missing { trial: source },
            });
        };
        let path = folder.artifact(&artifact.name);
        let bytes = fs::read(&path).map_err(EngineError::io("reading", &path))?;
        if Digest::of(&bytes) != digest {
            return Err(EngineError::Altered { path });
        }
        Ok(Met::Given(Box::new(Given { consumed: consumed(Some(digest)), bytes })))
    }
}
