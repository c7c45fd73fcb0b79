//! Sessions of an agent and its sub-agents into one order, and what the stream knows into that.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::join::first_ms;
use super::matching::{pair, program_of};
use super::order::{Element, anchor_by_time, elements, interleave};
use crate::{Call, Format, Moment, Nesting, Records, SaidKind, ToolCallId, ToolKind, ToolStatus, Witness};

/// A forked session, and one resumed into a new file, begin with a copy of what was before.
pub(super) fn drop_copies(sessions: &mut [(String, Records)]) {
    drop_nested(sessions);
    let mut seen: HashMap<ToolCallId, (String, serde_json::Value)> = HashMap::new();
    let mut words: HashSet<(SaidKind, String)> = HashSet::new();
    for (_, records) in sessions {
        let is_copy = |call: &Call, seen: &HashMap<ToolCallId, (String, serde_json::Value)>| {
            seen.get(&call.id).is_some_and(|(name, input)| *name == call.name && *input == call.input)
        };
        let has_copies = records.calls.iter().any(|call| is_copy(call, &seen));
        records.calls.retain(|call| !is_copy(call, &seen));
        if has_copies {
            records.said.retain(|said| !words.contains(&(said.kind, said.text.clone())));
        }
        seen.extend(
            records.calls.iter().map(|call| (call.id.clone(), (call.name.clone(), call.input.clone()))),
        );
        words.extend(records.said.iter().map(|said| (said.kind, said.text.clone())));
    }
}

/// What a sub-agent does is told by its own file, and in part by its starter's as well: its own file counts.
fn drop_nested(sessions: &mut [(String, Records)]) {
    let own = sessions.iter().filter(|(_, it)| it.meta.agent.is_some());
    let told: HashSet<ToolCallId> =
        own.flat_map(|(_, it)| it.calls.iter().map(|call| call.id.clone())).collect();
    let agents: HashSet<String> = sessions.iter().filter_map(|(_, it)| it.meta.agent.clone()).collect();
    for (_, records) in sessions.iter_mut().filter(|(_, it)| it.meta.agent.is_none()) {
        records.calls.retain(|call| call.nesting != Nesting::SubAgent || !told.contains(&call.id));
        records.said.retain(|said| said.agent.as_ref().is_none_or(|agent| !agents.contains(agent)));
    }
}

/// Which call started which sub-agent.
#[derive(Default)]
pub(super) struct Links {
    pub(super) agents: BTreeMap<String, ToolCallId>,
}

/// All sessions in one order.
pub(super) struct Base {
    pub(super) elements: Vec<Element>,
    format: Format,
    patched: Vec<ToolCallId>,
}

pub(super) fn sessions_as_one(sessions: Vec<(String, Records)>, links: &Links) -> Base {
    let mut base = Base { elements: Vec::new(), format: Format::Proctor, patched: Vec::new() };
    let mut later = Vec::new();
    for (_, records) in sessions {
        if base.format == Format::Proctor {
            base.format = records.format;
        }
        base.patched.extend(records.patched.iter().cloned());
        if records.meta.agent.is_some() && !base.elements.is_empty() {
            later.push(records);
        } else {
            base.elements.extend(elements(records.calls, records.said));
        }
    }
    // A sub-agent may have been started by another one: those whose parent is in place come first.
    while !later.is_empty() {
        let ready =
            later.iter().position(|records| parent_of(records, &base.elements, links).is_some()).unwrap_or(0);
        let records = later.remove(ready);
        let parent = parent_of(&records, &base.elements, links);
        let anchor = parent.as_ref().map_or_else(
            || anchor_by_time(&base.elements, first_ms(&records)),
            |parent| {
                base.elements.iter().position(|it| matches!(it, Element::Call(call) if call.id == *parent))
            },
        );
        let agent = records.meta.agent.clone();
        let mut own = elements(records.calls, records.said);
        for element in &mut own {
            match element {
                Element::Call(call) => {
                    call.agent = call.agent.take().or_else(|| agent.clone());
                    if call.nesting != Nesting::Program {
                        call.nesting = Nesting::SubAgent;
                        call.parent = call.parent.take().or_else(|| parent.clone());
                    }
                }
                Element::Said(said) => said.agent = said.agent.take().or_else(|| agent.clone()),
            }
        }
        let own = own.into_iter().map(|it| (anchor, it)).collect();
        base.elements = interleave(std::mem::take(&mut base.elements), own);
    }
    base
}

/// The call that started a sub-agent: the one that says so, or the one with the sub-agent's very prompt.
fn parent_of(records: &Records, elements: &[Element], links: &Links) -> Option<ToolCallId> {
    let calls =
        || elements.iter().filter_map(|it| if let Element::Call(call) = it { Some(call) } else { None });
    let agent = records.meta.agent.as_ref()?;
    if let Some(id) = links.agents.get(agent) {
        if calls().any(|call| call.id == *id) {
            return Some(id.clone());
        }
    }
    let starts = || calls().filter(|call| call.kind() == ToolKind::Delegate);
    let said_so = starts().find(|call| call.output.contains(agent.as_str()));
    let prompt =
        records.meta.prompt.as_deref().or_else(|| {
            records.said.iter().find(|it| it.kind == SaidKind::Prompt).map(|it| it.text.as_str())
        });
    let asked = || {
        let of = |call: &Call| {
            ["prompt", "message"].iter().find_map(|key| call.input.get(*key)?.as_str().map(str::to_owned))
        };
        starts().find(|call| prompt.is_some() && of(call).as_deref() == prompt)
    };
    said_so.or_else(asked).map(|call| call.id.clone())
}

/// Adds what the stream tells: better knowledge of calls that are known, and what the sessions do not have.
pub(super) fn with_stream(mut base: Base, stream: Records) -> Vec<Element> {
    let positions: Vec<usize> =
        (0..base.elements.len()).filter(|index| matches!(base.elements[*index], Element::Call(_))).collect();
    let known: Vec<Call> = base
        .elements
        .iter()
        .filter_map(|it| if let Element::Call(call) = it { Some((**call).clone()) } else { None })
        .collect();
    let matches = pair(&stream.calls, &known, base.format, &base.patched);
    let mut words: HashMap<(SaidKind, String), Vec<usize>> = HashMap::new();
    for (index, element) in base.elements.iter().enumerate().rev() {
        if let Element::Said(said) = element {
            words.entry((said.kind, said.text.trim().to_owned())).or_default().push(index);
        }
    }
    let by_id: HashMap<ToolCallId, usize> =
        stream.calls.iter().enumerate().map(|(index, call)| (call.id.clone(), index)).collect();
    let renamed: HashMap<ToolCallId, ToolCallId> = stream
        .calls
        .iter()
        .zip(&matches)
        .filter_map(|(call, index)| Some((call.id.clone(), known.get((*index)?)?.id.clone())))
        .collect();
    let mut extra = Vec::new();
    let mut anchor = None;
    for element in elements(stream.calls, stream.said) {
        match element {
            Element::Call(mut call) => {
                let found = by_id.get(&call.id).and_then(|index| matches[*index]);
                if let Some(index) = found.map(|found| positions[found]) {
                    if let Element::Call(known) = &mut base.elements[index] {
                        merge(known, *call);
                    }
                    anchor = anchor.max(Some(index));
                } else {
                    call.parent = call.parent.map(|parent| renamed.get(&parent).cloned().unwrap_or(parent));
                    if call.parent.is_none() && base.format == Format::CodexRollout {
                        if let Some(program) = program_of(&call, &known) {
                            call.parent = Some(program.id.clone());
                            call.nesting = Nesting::Program;
                            let at = known.iter().position(|it| it.id == program.id);
                            anchor = anchor.max(at.map(|at| positions[at]));
                        }
                    }
                    anchor = advance(&base.elements, anchor, call.start);
                    extra.push((anchor, Element::Call(call)));
                }
            }
            Element::Said(said) => {
                let found = words.get_mut(&(said.kind, said.text.trim().to_owned())).and_then(Vec::pop);
                if let Some(index) = found {
                    anchor = anchor.max(Some(index));
                } else {
                    anchor = advance(&base.elements, anchor, said.at);
                    extra.push((anchor, Element::Said(said)));
                }
            }
        }
    }
    interleave(base.elements, extra)
}

/// Where something stands that only the stream tells: behind what the stream told before it, and behind what follows there
/// and was no later.
fn advance(elements: &[Element], anchor: Option<usize>, at: Option<Moment>) -> Option<usize> {
    let Some(at) = at else { return anchor };
    let mut anchor = anchor;
    let next = anchor.map_or(0, |index| index + 1);
    for (index, element) in elements.iter().enumerate().skip(next) {
        match element.ms() {
            Some(ms) if ms > at.ms => break,
            Some(_) => anchor = Some(index),
            None => {}
        }
    }
    anchor
}

/// Adds to what the session knows of a call what the stream does.
fn merge(known: &mut Call, seen: Call) {
    let session_knows_end = known.status != ToolStatus::Unfinished || known.end.is_some();
    if !session_knows_end && seen.status != ToolStatus::Unfinished {
        known.status = seen.status;
        known.exit_code = seen.exit_code;
        known.end = seen.end;
        known.output = seen.output;
        known.output_bytes = seen.output_bytes;
        known.truncated = seen.truncated;
        if known.images.is_empty() {
            known.images = seen.images;
        }
    }
    if known.name == crate::sources::ORPHAN {
        known.name = seen.name;
        known.input = seen.input;
    }
    known.exit_code = known.exit_code.or(seen.exit_code.filter(|_| known.status == seen.status));
    known.turn = seen.turn;
    known.parent = known.parent.take().or(seen.parent);
    if known.nesting == Nesting::Top && known.parent.is_some() {
        known.nesting = seen.nesting;
    }
    known.agent = known.agent.take().or(seen.agent);
    known.start = better(known.start, seen.start);
    known.end = better(known.end, seen.end);
    for witness in seen.seen_by {
        if !known.seen_by.contains(&witness) {
            known.seen_by.push(witness);
        }
    }
    known.seen_by.sort_unstable();
}

/// The better of two times: that of the session file, unless the agent itself wrote an earlier one into its stream.
/// Arrivals are later than what they tell of.
fn better(session: Option<Moment>, stream: Option<Moment>) -> Option<Moment> {
    match (session, stream) {
        (Some(session), Some(stream)) if stream.by == Witness::StreamRecord && stream.ms < session.ms => {
            Some(stream)
        }
        (session, stream) => session.or(stream),
    }
}

pub(super) fn make_unique(calls: &mut [Call]) {
    let mut seen: HashSet<ToolCallId> = HashSet::new();
    for call in calls {
        let mut number = 2;
        while !seen.insert(call.id.clone()) {
            let stem = call.id.0.split('#').next().unwrap_or_default().to_owned();
            call.id = ToolCallId(format!("{stem}#{number}"));
            number += 1;
        }
    }
}
