//! Which files tell of the same session. A trial's folder is joined whatever lies in it: it was one agent's run. Files that
//! somebody names are not: joining strangers loses calls without a word, since ids and copies are told apart within a
//! session only.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{SourceFile, Trace, TraceError, parsed};
use crate::{Call, Format, Records};

/// A file as an error names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Its name.
    pub name: String,
    /// The agent that wrote it; none for a journal that does not say.
    pub agent: Option<String>,
    /// The session that it says it is of.
    pub session: Option<String>,
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.agent.as_deref().unwrap_or("an agent that it does not name");
        match &self.session {
            Some(session) => write!(f, "{} ({agent}, session {session})", self.name),
            None => write!(f, "{} ({agent})", self.name),
        }
    }
}

/// Files of several sessions, in the order in which they were given, one of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties(pub Vec<Party>);

impl Parties {
    /// More are not listed: a shell's `*` may give thousands.
    const LISTED: usize = 4;
}

impl fmt::Display for Parties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, party) in self.0.iter().take(Self::LISTED).enumerate() {
            let before = if index == 0 { "" } else { ", " };
            write!(f, "{before}{party}")?;
        }
        match self.0.len().saturating_sub(Self::LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl Trace {
    /// [`Trace::read`] of files that somebody named: those of different sessions or agents are refused, and so are two
    /// streams, of which only one could be joined. Of the same session are its sub-agents, what it was forked from, and
    /// files that repeat its calls with their times, as some agents begin a resumed session.
    pub fn of_one_session(files: &[SourceFile], exchanges: Option<&[u8]>) -> Result<Self, TraceError> {
        let (read, failed) = parsed(files);
        let mut sessions = groups(&read);
        if sessions.len() > 1 {
            let parties = sessions.into_iter().filter_map(|group| group.parties.into_iter().next());
            return Err(TraceError::Strangers { parties: Parties(parties.collect()) });
        }
        if let Some(group) = sessions.pop() {
            group.one_stream()?;
        }
        Self::of_parsed(read, failed, exchanges)
    }

    /// A trace for each of the sessions that the files tell of, in the order in which they were given.
    ///
    /// # Errors
    /// When any file cannot be read: left out, it would be a session that nobody misses.
    pub fn of_sessions(files: &[SourceFile]) -> Result<Vec<Self>, TraceError> {
        let (read, failed) = parsed(files);
        if let Some((name, source)) = failed.into_iter().next() {
            return Err(TraceError::Source { name, source });
        }
        let groups = groups(&read);
        let mut read: Vec<Option<(String, Records)>> = read.into_iter().map(Some).collect();
        let traces = groups.into_iter().map(|group| {
            group.one_stream()?;
            let own = group.members.iter().filter_map(|index| read.get_mut(*index)?.take());
            Ok(Self::join(own.collect()))
        });
        traces.collect()
    }
}

/// Files of one session.
#[derive(Default)]
struct Group {
    /// Their places.
    members: Vec<usize>,
    /// Who they are.
    parties: Vec<Party>,
    /// Those that are what an agent printed, or a journal of our own.
    streams: Vec<Format>,
}

impl Group {
    fn one_stream(&self) -> Result<(), TraceError> {
        let journals = self.streams.iter().filter(|it| **it == Format::Proctor).count();
        // Beside a journal, what the agent printed is the same once more.
        let too_many = if journals == 0 { self.streams.len() > 1 } else { journals > 1 };
        if too_many { Err(TraceError::Streams { parties: Parties(self.parties.clone()) }) } else { Ok(()) }
    }
}

/// What is known of a file.
struct Known {
    party: Party,
    format: Format,
    parent: Option<String>,
    is_sub_agent: bool,
    /// Its calls with their times; only those that have both an id and a time.
    calls: HashSet<(String, i64)>,
}

impl Known {
    fn of(name: &str, records: &Records) -> Self {
        let timed = |call: &Call| Some((call.id.0.clone(), call.issued.or(call.start)?.ms));
        Self {
            party: Party {
                name: name.to_owned(),
                agent: records.format.agent().map(str::to_owned),
                session: records.meta.session.clone(),
            },
            format: records.format,
            parent: records.meta.parent_session.clone(),
            is_sub_agent: records.meta.agent.is_some(),
            calls: records.calls.iter().filter_map(timed).collect(),
        }
    }

    fn is_printed(&self) -> bool {
        self.format.is_stream() || self.format == Format::Proctor
    }

    /// Whether it does not say which session it is of, as what some agents print does not.
    fn is_nameless(&self) -> bool {
        (self.party.session.is_none() && self.is_printed()) || (self.is_sub_agent && self.parent.is_none())
    }

    /// Whether it may be of the same agent.
    fn may_be_with(&self, other: &Self) -> bool {
        match (&self.party.agent, &other.party.agent) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    /// Whether the two say that they belong together.
    fn is_of(&self, other: &Self) -> bool {
        let names = |it: &'_ Self| [it.party.session.clone(), it.parent.clone()];
        let others = names(other);
        let is_named = names(self).iter().any(|it| it.is_some() && others.contains(it));
        self.may_be_with(other) && (is_named || !self.calls.is_disjoint(&other.calls))
    }
}

/// The sessions of some files.
fn groups(read: &[(String, Records)]) -> Vec<Group> {
    let known: Vec<Known> = read.iter().map(|(name, records)| Known::of(name, records)).collect();
    let mut union = Union((0..known.len()).collect());
    for (index, one) in known.iter().enumerate() {
        for (other_index, other) in known[..index].iter().enumerate() {
            if union.find(index) != union.find(other_index) && one.is_of(other) {
                union.join(index, other_index);
            }
        }
    }
    // What does not say whose it is, is of the only session there is, or of none.
    for (index, one) in known.iter().enumerate().filter(|(_, it)| it.is_nameless()) {
        let named = known.iter().enumerate().filter(|(_, it)| !it.is_nameless() && it.may_be_with(one));
        let roots: HashSet<usize> = named.map(|(other, _)| union.find(other)).collect();
        if let [only] = *roots.into_iter().collect::<Vec<_>>() {
            union.join(index, only);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    for (index, it) in known.into_iter().enumerate() {
        let place = *places.entry(union.find(index)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group::default());
        }
        let Some(group) = groups.get_mut(place) else { continue };
        group.members.push(index);
        group.streams.extend(Some(it.format).filter(|_| it.is_printed()));
        group.parties.push(it.party);
    }
    groups
}

/// Sets that are joined, each known by one of its members.
struct Union(Vec<usize>);

impl Union {
    fn find(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}
