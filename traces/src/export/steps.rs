//! A trace as steps: what the model said and wished for in one answer.

use crate::{Call, Moment, Said, SaidKind, Trace};

/// One answer of the model, or something said by others.
pub(super) enum Step<'a> {
    /// A prompt, a notice.
    Said(&'a Said),
    /// An answer of the model.
    Answer(Answer<'a>),
}

#[derive(Default)]
pub(super) struct Answer<'a> {
    pub(super) at: Option<Moment>,
    pub(super) reasoning: Vec<&'a str>,
    pub(super) words: Vec<&'a str>,
    pub(super) calls: Vec<&'a Call>,
}

/// The steps of the agent itself, or of one of its sub-agents. Calls belong to one answer if each was issued before the
/// first of them had ended.
pub(super) fn steps<'a>(trace: &'a Trace, agent: Option<&str>) -> Vec<Step<'a>> {
    let calls =
        trace.outer_calls().filter(|call| call.agent.as_deref() == agent).map(|call| (call.seq, Err(call)));
    let said =
        trace.said.iter().filter(|said| said.agent.as_deref() == agent).map(|said| (said.seq, Ok(said)));
    let mut all: Vec<(u32, Result<&Said, &Call>)> = calls.chain(said).collect();
    all.sort_by_key(|(seq, _)| *seq);
    let mut steps = Vec::new();
    let mut answer = Answer::default();
    for (_, element) in all {
        match element {
            Ok(said) if matches!(said.kind, SaidKind::Text | SaidKind::Reasoning) => {
                if !answer.calls.is_empty() {
                    flush(&mut answer, &mut steps);
                }
                answer.at = answer.at.or(said.at);
                let words =
                    if said.kind == SaidKind::Text { &mut answer.words } else { &mut answer.reasoning };
                words.push(&said.text);
            }
            Ok(said) => {
                flush(&mut answer, &mut steps);
                steps.push(Step::Said(said));
            }
            Err(call) => {
                if is_later(call, &answer.calls) {
                    flush(&mut answer, &mut steps);
                }
                answer.at = answer.at.or(call.issued).or(call.start);
                answer.calls.push(call);
            }
        }
    }
    flush(&mut answer, &mut steps);
    steps
}

fn flush<'a>(answer: &mut Answer<'a>, steps: &mut Vec<Step<'a>>) {
    let answer = std::mem::take(answer);
    if !answer.calls.is_empty() || !answer.words.is_empty() || !answer.reasoning.is_empty() {
        steps.push(Step::Answer(answer));
    }
}

/// Whether a call was issued when one of `before` had been answered; without times each call is later than the one before.
fn is_later(call: &Call, before: &[&Call]) -> bool {
    let issued = call.issued.or(call.start).map(|it| it.ms);
    before.iter().any(|before| match (before.returned.or(before.end), issued) {
        (Some(end), Some(issued)) => end.ms <= issued,
        (None, Some(_)) => false,
        (_, None) => true,
    })
}
