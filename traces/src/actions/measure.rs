//! How well the rules do against labels made by hand: precision, recall, F1 and Cohen's kappa of each action, and how far two
//! labellers agree, which is as far as any rule can.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, CallActions, Designated, Session};
use crate::{Call, Digest, Nesting, ToolCallId, ToolStatus, ViewedImage};

/// What a labeller says of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Its actions.
    pub actions: BTreeSet<Action>,
    /// What it does to the designated file.
    #[serde(default)]
    pub designated: Designated,
    /// Whether it writes the artifact for the first time.
    #[serde(default)]
    pub first: bool,
}

/// The head of a corpus file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Name of the session.
    pub session: String,
    /// The workspace, as the calls name it.
    pub root: String,
    /// The designated file.
    pub artifact: String,
}

/// A call of a corpus: what classification looks at, and the labels. Operations of programs have none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The call.
    pub id: ToolCallId,
    /// Its tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// What it gave back, cut.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How it went.
    pub status: ToolStatus,
    /// The call around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ToolCallId>,
    /// What lies between the two.
    #[serde(default)]
    pub nesting: Nesting,
    /// The sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The call that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polls: Option<ToolCallId>,
    /// Paths of the pictures that it put before the model; empty where none is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// What the watcher of the artifact says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    /// The label that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// That of a second labeller who did not know the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<Label>,
}

/// Longest output that a corpus keeps.
const OUTPUT_CAP: usize = 2048;

impl Entry {
    /// The entry of a call, without what two runs of the same session differ in.
    pub fn of_call(call: &Call, changed: Option<bool>) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            input: call.input.clone(),
            output: crate::event::cut(&call.output, OUTPUT_CAP).to_owned(),
            status: call.status,
            parent: call.parent.clone(),
            nesting: call.nesting,
            agent: call.agent.clone(),
            polls: call.polls.clone(),
            images: call.images.iter().map(|it| it.path.clone().unwrap_or_default()).collect(),
            changed,
            label: None,
            second: None,
        }
    }

    fn to_call(&self, seq: usize) -> Call {
        Call {
            id: self.id.clone(),
            seq: u32::try_from(seq).unwrap_or(u32::MAX),
            turn: 1,
            name: self.name.clone(),
            input: self.input.clone(),
            parent: self.parent.clone(),
            nesting: self.nesting,
            agent: self.agent.clone(),
            polls: self.polls.clone(),
            issued: None,
            start: None,
            end: None,
            returned: None,
            status: self.status,
            exit_code: None,
            output: self.output.clone(),
            output_bytes: self.output.len() as u64,
            truncated: false,
            images: self.images.iter().map(|path| image(path)).collect(),
            seen_by: Vec::new(),
        }
    }
}

fn image(path: &str) -> ViewedImage {
    let path = (!path.is_empty()).then(|| path.to_owned());
    ViewedImage { path, media_type: None, bytes: 0, digest: None::<Digest> }
}

/// A corpus file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A line is no entry.
    #[error("line {line}: {source}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// There is no head.
    #[error("it has no first line that names its session")]
    NoHead,
}

/// A labelled session.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Its head.
    pub head: Head,
    /// Its calls.
    pub entries: Vec<Entry>,
}

impl Corpus {
    /// Reads a corpus file: a head, then one call a line.
    pub fn read(text: &str) -> Result<Self, CorpusError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let failed = |line: usize| move |source| CorpusError::Line { line: line + 1, source };
        let (at, first) = lines.next().ok_or(CorpusError::NoHead)?;
        let head = serde_json::from_str(first).map_err(failed(at))?;
        let entries = lines
            .map(|(at, line)| serde_json::from_str(line).map_err(failed(at)))
            .collect::<Result<_, _>>()?;
        Ok(Self { head, entries })
    }

    /// The session that it holds.
    pub fn session(&self) -> Session<'static> {
        let changed: HashMap<ToolCallId, bool> =
            self.entries.iter().filter_map(|it| Some((it.id.clone(), it.changed?))).collect();
        Session {
            calls: self.entries.iter().enumerate().map(|(seq, it)| it.to_call(seq)).collect(),
            changed,
            root: Some(self.head.root.clone()),
            artifact: Some(self.head.artifact.clone()),
        }
    }

    /// Each labelled call with what the rules say of it.
    pub fn judged(&self) -> Vec<Judged<'_>> {
        let said: HashMap<ToolCallId, CallActions> =
            self.session().classify().into_iter().map(|it| (it.call.clone(), it)).collect();
        let labelled = self.entries.iter().filter_map(|entry| Some((entry, entry.label.as_ref()?)));
        labelled
            .filter_map(|(entry, label)| Some(Judged { entry, label, said: said.get(&entry.id)?.clone() }))
            .collect()
    }
}

/// A call with its label and what the rules say.
#[derive(Clone, Debug)]
pub struct Judged<'c> {
    /// The call.
    pub entry: &'c Entry,
    /// The label.
    pub label: &'c Label,
    /// The rules.
    pub said: CallActions,
}

impl Judged<'_> {
    /// Whether the rules say what the label says, flags included.
    pub fn is_right(&self) -> bool {
        self.said.actions.iter().copied().collect::<BTreeSet<_>>() == self.label.actions
            && self.said.designated == self.label.designated
            && self.said.first == self.label.first
    }
}

/// How often two judges agree about one thing, over the same calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Both say yes.
    pub both: u32,
    /// Only the one that is measured does.
    pub only_said: u32,
    /// Only the one that it is measured by does.
    pub only_true: u32,
    /// Neither does.
    pub neither: u32,
}

impl Table {
    /// Counts one call.
    pub fn add(&mut self, said: bool, truth: bool) {
        match (said, truth) {
            (true, true) => self.both += 1,
            (true, false) => self.only_said += 1,
            (false, true) => self.only_true += 1,
            (false, false) => self.neither += 1,
        }
    }

    /// Share of what is said that is true; none if nothing is said.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.both, self.both + self.only_said)
    }

    /// Share of what is true that is said; none if nothing is true.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.both, self.both + self.only_true)
    }

    /// Harmonic mean of the two; none if there is nothing to be found and nothing was said.
    pub fn f1(&self) -> Option<f64> {
        ratio(2 * self.both, 2 * self.both + self.only_said + self.only_true)
    }

    /// Cohen's kappa (1960): agreement beyond that of chance; none if chance alone makes full agreement.
    pub fn kappa(&self) -> Option<f64> {
        let [both, said, truth, neither] =
            [self.both, self.only_said, self.only_true, self.neither].map(f64::from);
        let all = both + said + truth + neither;
        if all == 0.0 {
            return None;
        }
        let seen = (both + neither) / all;
        let chance = ((both + said) * (both + truth) + (neither + truth) * (neither + said)) / (all * all);
        (chance < 1.0).then(|| (seen - chance) / (1.0 - chance))
    }
}

fn ratio(part: u32, whole: u32) -> Option<f64> {
    (whole > 0).then(|| f64::from(part) / f64::from(whole))
}

/// The agreement of two judges, action by action.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Calls.
    pub calls: u32,
    /// Calls with the same set of actions.
    pub same: u32,
    tables: HashMap<Action, Table>,
}

impl Agreement {
    /// Counts one call.
    pub fn add(&mut self, said: &BTreeSet<Action>, truth: &BTreeSet<Action>) {
        self.calls += 1;
        self.same += u32::from(said == truth);
        for action in Action::ALL {
            self.tables.entry(action).or_default().add(said.contains(&action), truth.contains(&action));
        }
    }

    /// The table of an action.
    pub fn of(&self, action: Action) -> Table {
        self.tables.get(&action).copied().unwrap_or_default()
    }

    /// Mean F1 of the actions that anybody saw.
    pub fn macro_f1(&self) -> Option<f64> {
        mean(Action::ALL.iter().filter_map(|it| self.of(*it).f1()))
    }

    /// Mean kappa of the actions that anybody saw.
    pub fn mean_kappa(&self) -> Option<f64> {
        let seen = Action::ALL.iter().filter(|it| self.of(**it).f1().is_some());
        mean(seen.filter_map(|it| self.of(*it).kappa()))
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), it| (sum + it, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kappa_and_f1_are_those_of_the_books() {
        // The example of the two readers of 50 proposals: 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no.
        let table = Table { both: 20, only_said: 5, only_true: 10, neither: 15 };
        assert!((table.kappa().unwrap() - 0.4).abs() < 1e-12);
        assert!((table.f1().unwrap() - 40.0 / 55.0).abs() < 1e-12);
        assert_eq!(Table { neither: 9, ..Table::default() }.kappa(), None);
        assert_eq!(Table { only_true: 1, neither: 1, ..Table::default() }.f1(), Some(0.0));
    }
}
