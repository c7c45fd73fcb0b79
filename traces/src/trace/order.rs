//! One causal order out of several: the records of the main session in their order, those of a sub-agent after the call
//! that started it, and what only the stream tells after what the stream told before it.

use crate::{Call, Said};

/// A call or something said.
#[derive(Clone, Debug)]
pub(super) enum Element {
    Call(Box<Call>),
    Said(Said),
}

impl Element {
    pub(super) fn seq(&self) -> u32 {
        match self {
            Self::Call(call) => call.seq,
            Self::Said(said) => said.seq,
        }
    }

    pub(super) fn ms(&self) -> Option<i64> {
        match self {
            Self::Call(call) => call.issued.or(call.start).map(|it| it.ms),
            Self::Said(said) => said.at.map(|it| it.ms),
        }
    }
}

/// The elements of one source, in its order.
pub(super) fn elements(calls: Vec<Call>, said: Vec<Said>) -> Vec<Element> {
    let calls = calls.into_iter().map(|call| Element::Call(Box::new(call)));
    let mut all: Vec<Element> = calls.chain(said.into_iter().map(Element::Said)).collect();
    all.sort_by_key(Element::seq);
    all
}

/// Puts `extra` elements behind the base elements they belong to: each comes with the index of that element, or with none
/// if it belongs before all. Those with the same anchor keep their order.
pub(super) fn interleave(base: Vec<Element>, extra: Vec<(Option<usize>, Element)>) -> Vec<Element> {
    let mut behind: Vec<Vec<Element>> = (0..=base.len()).map(|_| Vec::new()).collect();
    for (anchor, element) in extra {
        let slot = anchor.map_or(0, |index| index + 1).min(base.len());
        behind[slot].push(element);
    }
    let mut all = Vec::with_capacity(base.len());
    let mut behind = behind.into_iter();
    all.extend(behind.next().into_iter().flatten());
    for (element, after) in base.into_iter().zip(behind) {
        all.push(element);
        all.extend(after);
    }
    all
}

/// The last element of `base` that was before `ms`; the last of all if there are no times.
pub(super) fn anchor_by_time(base: &[Element], ms: Option<i64>) -> Option<usize> {
    let Some(ms) = ms else { return base.len().checked_sub(1) };
    base.iter().rposition(|element| element.ms().is_some_and(|it| it <= ms))
}

/// Takes the order apart again, numbering it.
pub(super) fn number(elements: Vec<Element>) -> (Vec<Call>, Vec<Said>) {
    let (mut calls, mut said) = (Vec::new(), Vec::new());
    for (seq, element) in (0..).zip(elements) {
        match element {
            Element::Call(call) => calls.push(Call { seq, ..*call }),
            Element::Said(it) => said.push(Said { seq, ..it }),
        }
    }
    (calls, said)
}
