//! Every figure of a small trace, counted by hand.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::SourceFile;
use crate::actions::{Designated, classify};

/// A trace of events at their milliseconds.
fn trace(events: &[(i64, Value)]) -> Trace {
    let mut lines = String::new();
    for (seq, (ms, kind)) in events.iter().enumerate() {
        let mut event = json!({
            "seq": seq, "at": "2026-11-30T10:00:00.000Z", "offset_ms": ms, "turn": 1, "source": "agent_stream"
        });
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        lines.push_str(&event.to_string());
        lines.push('\n');
    }
    let file = SourceFile { name: "t".into(), bytes: lines.into_bytes(), format: None, arrivals: None };
    Trace::read(&[file], None).unwrap()
}

fn begins(id: &str) -> Value {
    json!({"kind": "tool_started", "id": id, "name": "Bash", "input": {"command": "true"}})
}

fn inside_of(id: &str, parent: &str) -> Value {
    json!({"kind": "tool_started", "id": id, "name": "Bash", "input": {"command": "true"}, "parent": parent})
}

fn ends(id: &str, status: &str) -> Value {
    json!({"kind": "tool_finished", "id": id, "status": status, "output": "", "output_bytes": 0, "truncated": false})
}

fn detail(id: &str, more: &Value) -> Value {
    let mut it = json!({"kind": "tool_detail", "id": id});
    it.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    it
}

fn asks(n: u64) -> Value {
    json!({"kind": "model_request", "exchange": n, "wire": "openai_responses", "model": null, "bytes": 1})
}

fn answered(n: u64) -> Value {
    json!({"kind": "model_response", "exchange": n, "status": 200, "end": "complete", "usage": null})
}

fn version(text: &str) -> Value {
    json!({"kind": "artifact_changed", "digest": crate::Digest::of(text.as_bytes()), "bytes": text.len()})
}

fn carries(id: &str, actions: &[Action]) -> CallActions {
    CallActions {
        call: crate::ToolCallId(id.into()),
        actions: actions.to_vec(),
        designated: Designated::default(),
        trial_render: false,
        first: false,
        reasons: Vec::new(),
    }
}

/// Look (300 ms), edit (500), render and look at once (1000, 400 of them together), a failed edit (100), another one that is
/// cut off.
fn session() -> (Trace, Vec<CallActions>) {
    let trace = trace(&[
        (0, json!({"kind": "turn_started"})),
        (0, asks(1)),
        (1_000, answered(1)),
        (1_200, begins("look")),
        (1_500, ends("look", "ok")),
        (1_500, asks(2)),
        (2_900, answered(2)),
        (3_000, begins("edit")),
        (3_400, version("one")),
        (3_500, ends("edit", "ok")),
        (3_500, asks(3)),
        (4_000, answered(3)),
        (4_000, begins("render")),
        (4_600, begins("compare")),
        (5_000, ends("render", "ok")),
        (5_600, ends("compare", "ok")),
        (5_600, asks(4)),
        (7_000, answered(4)),
        (7_000, begins("again")),
        (7_100, ends("again", "failed")),
        (7_100, asks(5)),
        (8_000, answered(5)),
        (8_100, begins("trial")),
        (8_300, ends("trial", "ok")),
        (9_000, begins("cut")),
        (9_500, ends("cut", "unfinished")),
    ]);
    let designated = |write, render, preview| Designated { write, render, preview };
    let labelled = vec![
        carries("look", &[Action::ViewOriginalImage]),
        CallActions { designated: designated(true, false, false), ..carries("edit", &[Action::EditAnswer]) },
        CallActions {
            designated: designated(false, true, false),
            ..carries("render", &[Action::RenderPreview])
        },
        CallActions {
            designated: designated(false, false, true),
            ..carries("compare", &[Action::CropRegions, Action::VisualComparison])
        },
        carries("again", &[Action::EditAnswer]),
        CallActions { trial_render: true, ..carries("trial", &[]) },
        CallActions {
            designated: designated(false, true, false),
            ..carries("cut", &[Action::RenderPreview])
        },
    ];
    (trace, labelled)
}

#[test]
fn every_figure_of_a_small_trace() {
    let (trace, labelled) = session();
    let it = Behaviour::of(&trace, &labelled, Some(10_000));
    let time = it.time.unwrap();
    assert_eq!(time.at_work.sum() + time.model + time.idle, 10_000);
    assert_eq!(time.leading.sum() + time.closing, time.model + time.idle);
    assert_eq!(
        it,
        Behaviour {
            calls: 7,
            failed: 1,
            unfinished: 1,
            other: 1,
            actions: BTreeMap::from([
                (Action::ViewOriginalImage, 1),
                (Action::CropRegions, 1),
                (Action::RenderPreview, 2),
                (Action::VisualComparison, 1),
                (Action::EditAnswer, 2),
            ]),
            writes: 1,
            renders: 2,
            previews: 1,
            calibrations: 1,
            versions: Some(1),
            cycles: 1,
            first_write_ms: Some(3_400),
            first_render_ms: Some(5_000),
            agent_ms: Some(10_000),
            time: Some(TimeUse {
                at_work: PhaseTimes {
                    understanding: 300,
                    // The half of what `compare` has: its share of the 400 ms together, and 600 ms alone.
                    reverse_engineering: 100 + 300,
                    reconstruction: 0,
                    // 600 ms alone, 200 of the 400 together, the other half of `compare`, 1000 ms cut off at the end.
                    comparison: 600 + 200 + 100 + 300 + 1_000,
                    editing: 500 + 100,
                    other: 200,
                },
                model: 1_000 + 1_400 + 500 + 1_400 + 900,
                idle: 200 + 100 + 100 + 700,
                model_seen: true,
                leading: PhaseTimes {
                    understanding: 1_200,
                    comparison: 500 + 700,
                    editing: 1_500 + 1_400,
                    other: 1_000,
                    ..PhaseTimes::default()
                },
                closing: 0,
            }),
            ..Behaviour::default()
        }
    );
}

#[test]
fn an_agent_stopped_earlier_than_its_trace_says_has_no_more_time_than_that() {
    let (trace, labelled) = session();
    let it = Behaviour::of(&trace, &labelled, Some(4_300));
    let time = it.time.unwrap();
    assert_eq!((time.at_work.comparison, time.at_work.sum() + time.model + time.idle), (300, 4_300));
    assert_eq!(it.first_render_ms, Some(4_300));
}

#[test]
fn a_cycle_is_render_compare_edit_whatever_lies_between() {
    use Action::{CropRegions, EditAnswer, PixelComparison, RenderPreview, VisualComparison};
    let of = |calls: &[&[Action]]| {
        let labelled: Vec<CallActions> = calls.iter().map(|it| carries("c", it)).collect();
        cycles(&labelled)
    };
    assert_eq!(of(&[]), (0, false));
    assert_eq!(of(&[&[EditAnswer], &[RenderPreview], &[VisualComparison]]), (0, true));
    assert_eq!(of(&[&[RenderPreview], &[CropRegions], &[PixelComparison], &[], &[EditAnswer]]), (1, false));
    // Compared before it was rendered, or edited without a look: none.
    assert_eq!(of(&[&[VisualComparison], &[RenderPreview], &[EditAnswer]]), (0, false));
    // Rendered and compared twice before the edit is one.
    let twice: [&[Action]; 5] =
        [&[RenderPreview], &[VisualComparison], &[RenderPreview], &[PixelComparison], &[EditAnswer]];
    assert_eq!(of(&twice), (1, false));
    // One program after the other that edits, renders and looks: each edit follows the look of the one before.
    let program: &[Action] = &[EditAnswer, RenderPreview, VisualComparison];
    assert_eq!(of(&[program, program, program]), (2, true));
}

#[test]
fn waiting_is_the_work_of_the_call_that_is_waited_for_and_ends_where_an_answer_came() {
    let trace = trace(&[
        (0, begins("build")),
        (1_000, begins("wait")),
        (1_500, ends("wait", "ok")),
        (3_000, ends("build", "ok")),
        (3_000, detail("build", &json!({"returned_ms": 400}))),
        (3_000, detail("wait", &json!({"polls": "build"}))),
    ]);
    let labelled = [carries("build", &[Action::RenderPreview]), carries("wait", &[])];
    let time = Behaviour::of(&trace, &labelled, Some(4_000)).time.unwrap();
    assert_eq!((time.at_work.comparison, time.at_work.other), (900, 0));
    assert_eq!((time.model, time.idle, time.model_seen), (0, 3_100, false));
    assert_eq!((time.leading.comparison, time.closing), (600, 2_500));
}

#[test]
fn who_starts_a_sub_agent_waits_for_it() {
    let trace = trace(&[
        (0, begins("task")),
        (100, asks(1)),
        (1_000, answered(1)),
        (1_000, inside_of("inner", "task")),
        (1_200, ends("inner", "ok")),
        (2_000, ends("task", "ok")),
    ]);
    let labelled = [carries("task", &[Action::IdentifyScope]), carries("inner", &[Action::CropRegions])];
    let it = Behaviour::of(&trace, &labelled, Some(2_000));
    let time = it.time.unwrap();
    assert_eq!((it.calls, it.sub_agent_calls), (2, 1));
    assert_eq!((time.at_work.reverse_engineering, time.at_work.sum()), (200, 200));
    assert_eq!((time.model, time.idle), (900, 900));
}

#[test]
fn odd_traces_have_no_figures_rather_than_wrong_ones() {
    // Nothing at all: all the time is the model's, or nobody's.
    let empty = trace(&[(0, json!({"kind": "turn_started"})), (500, json!({"kind": "notice", "text": "x"}))]);
    let it = Behaviour::of(&empty, &classify(&empty, None), None);
    assert_eq!((it.calls, it.agent_ms, it.first_write_ms), (0, Some(500), None));
    assert_eq!(it.time, Some(TimeUse { idle: 500, closing: 500, ..TimeUse::default() }));
    // Without times there are counts, and no shares.
    let untimed = |id| {
        let mut event = begins(id);
        event.as_object_mut().unwrap().insert("untimed".into(), true.into());
        event
    };
    let without = trace(&[(0, untimed("a")), (0, untimed("b"))]);
    let it = Behaviour::of(&without, &classify(&without, None), Some(1_000));
    assert_eq!((it.calls, it.untimed, it.time), (2, 2, None));
    // A clock that goes backwards, an end before its beginning, all before the start: nothing is negative.
    let backwards = trace(&[
        (-5_000, asks(1)),
        (i64::MIN / 2, begins("a")),
        (-9_000, ends("a", "ok")),
        (700, begins("b")),
        (300, ends("b", "ok")),
        (200, answered(1)),
        (i64::MAX / 2, begins("c")),
    ]);
    let labelled = classify(&backwards, None);
    assert_eq!(Behaviour::of(&backwards, &labelled, None).time, None, "no agent runs for millions of years");
    for agent_ms in [Some(0), Some(1), Some(1_000), Some(LONGEST_MS)] {
        let it = Behaviour::of(&backwards, &labelled, agent_ms);
        let time = it.time.unwrap();
        assert_eq!(time.at_work.sum() + time.model + time.idle, it.agent_ms.unwrap(), "{agent_ms:?}");
        assert_eq!(time.leading.sum() + time.closing, time.model + time.idle, "{agent_ms:?}");
    }
    // Fewer labels than calls, and calls that wait for each other in a ring.
    let ring = trace(&[
        (0, begins("a")),
        (10, ends("a", "ok")),
        (10, begins("b")),
        (20, ends("b", "ok")),
        (20, detail("a", &json!({"polls": "b"}))),
        (20, detail("b", &json!({"polls": "a"}))),
    ]);
    let labelled = classify(&ring, None);
    assert_eq!(Behaviour::of(&ring, &labelled[..1], Some(20)).calls, 1);
    assert_eq!(Behaviour::of(&ring, &labelled, Some(20)).time.unwrap().at_work.other, 20);
}
