//! ATIF v1.8: all objects forbid keys that they do not know, nothing is null, step ids count from 1, and a result belongs
//! to a call of its own step. What has no place of its own is in `extra`.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::steps::{Answer, Step, steps};
use crate::{Call, Moment, SaidKind, ToolCallId, Trace, Usage};

/// A trace, and what was called in each call.
struct Kin<'t> {
    trace: &'t Trace,
    children: HashMap<&'t ToolCallId, Vec<&'t Call>>,
}

impl<'t> Kin<'t> {
    fn of(trace: &'t Trace) -> Self {
        let mut children: HashMap<_, Vec<_>> = HashMap::new();
        for call in &trace.calls {
            if let Some(parent) = &call.parent {
                children.entry(parent).or_default().push(call);
            }
        }
        Self { trace, children }
    }

    fn children(&self, id: &ToolCallId) -> impl Iterator<Item = &'t Call> {
        self.children.get(id).into_iter().flatten().copied()
    }
}

pub(super) fn trajectory(trace: &Trace, name: &str) -> Value {
    let kin = &Kin::of(trace);
    let agents: BTreeSet<&str> = trace.calls.iter().filter_map(|call| call.agent.as_deref()).collect();
    let mut root = one(kin, name, None);
    let parts: Vec<Value> = agents.iter().map(|agent| one(kin, name, Some(agent))).collect();
    let usage = trace.usage.total();
    let mut metrics = usage.map_or_else(Map::new, |usage| tokens(usage, "total_"));
    metrics.insert("total_steps".into(), json!(root["steps"].as_array().map_or(0, Vec::len)));
    root["final_metrics"] = Value::Object(metrics);
    if !parts.is_empty() {
        root["subagent_trajectories"] = Value::Array(parts);
    }
    root["extra"] = json!({
        "producer": "proctor",
        "tally": trace.tally(),
        "usage": trace.usage,
        "clocks": trace.clocks,
        "artifact_versions": trace.versions,
    });
    root
}

fn one(kin: &Kin<'_>, name: &str, agent: Option<&str>) -> Value {
    let trace = kin.trace;
    let mut described = json!({
        "name": trace.agent.as_deref().unwrap_or(name),
        "version": trace.meta.version.as_deref().unwrap_or("unknown"),
    });
    if let Some(model) = &trace.meta.model {
        described["model_name"] = json!(model);
    }
    let found = steps(trace, agent);
    let answers = found.iter().filter(|step| matches!(step, Step::Answer(_))).count();
    let served: Vec<Usage> = trace.exchanges.iter().filter_map(|it| it.usage).collect();
    // Each answer is one request only where their numbers agree.
    let mut served = Some(served.into_iter()).filter(|it| agent.is_none() && it.len() == answers);
    let mut list: Vec<Value> = Vec::new();
    for found in &found {
        let usage = match found {
            Step::Answer(_) => served.as_mut().and_then(Iterator::next),
            Step::Said(_) => None,
        };
        list.push(step(kin, found, list.len() + 1, usage));
    }
    if list.is_empty() {
        list.push(json!({"step_id": 1, "source": "system", "message": "nothing was recorded"}));
    }
    let mut trajectory = json!({"schema_version": "ATIF-v1.8", "agent": described, "steps": list});
    if let Some(session) = &trace.meta.session {
        trajectory["session_id"] = json!(session);
    }
    if let Some(agent) = agent {
        trajectory["trajectory_id"] = json!(agent);
    }
    trajectory
}

fn step(kin: &Kin<'_>, step: &Step<'_>, id: usize, usage: Option<Usage>) -> Value {
    let at = match step {
        Step::Said(said) => said.at,
        Step::Answer(answer) => answer.at,
    };
    let mut written = match step {
        Step::Said(said) => {
            let source = if said.kind == SaidKind::Prompt { "user" } else { "system" };
            json!({"step_id": id, "source": source, "message": said.text})
        }
        Step::Answer(answer) => self::answer(kin, answer, id, usage),
    };
    if let Some(wall) = at.and_then(|at| kin.trace.wall(at.ms)) {
        written["timestamp"] = json!(wall.to_string());
    }
    written
}

fn answer(kin: &Kin<'_>, answer: &Answer<'_>, id: usize, usage: Option<Usage>) -> Value {
    let mut written = json!({"step_id": id, "source": "agent", "message": answer.words.join("\n\n")});
    if !answer.reasoning.is_empty() {
        written["reasoning_content"] = json!(answer.reasoning.join("\n\n"));
    }
    if let Some(usage) = usage {
        written["metrics"] = Value::Object(tokens(usage, ""));
        written["llm_call_count"] = json!(1);
    }
    if !answer.calls.is_empty() {
        written["tool_calls"] = answer.calls.iter().map(|call| tool_call(kin, call)).collect();
        let results: Vec<Value> = answer.calls.iter().map(|call| result(kin, call)).collect();
        written["observation"] = json!({"results": results});
    }
    written
}

fn tokens(usage: Usage, prefix: &str) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert(format!("{prefix}prompt_tokens"), json!(usage.input_tokens));
    map.insert(format!("{prefix}completion_tokens"), json!(usage.output_tokens));
    map.insert(format!("{prefix}cached_tokens"), json!(usage.cached_input_tokens));
    map
}

fn tool_call(kin: &Kin<'_>, call: &Call) -> Value {
    let arguments = match &call.input {
        Value::Object(_) => call.input.clone(),
        Value::Null => json!({}),
        other => json!({"input": other}),
    };
    let mut written = json!({"tool_call_id": call.id.0, "function_name": call.name, "arguments": arguments});
    let operations: Vec<Value> = kin
        .children(&call.id)
        .filter(|child| !child.is_outer())
        .map(|child| json!({"tool_call_id": child.id.0, "function_name": child.name, "arguments": child.input, "result": facts(kin.trace, child)}))
        .collect();
    let mut extra = Map::new();
    if !operations.is_empty() {
        extra.insert("operations".into(), Value::Array(operations));
    }
    if let Some(polled) = &call.polls {
        extra.insert("polls".into(), json!(polled.0));
    }
    if !extra.is_empty() {
        written["extra"] = Value::Object(extra);
    }
    written
}

fn result(kin: &Kin<'_>, call: &Call) -> Value {
    let mut written =
        json!({"source_call_id": call.id.0, "content": call.output, "extra": facts(kin.trace, call)});
    let agents: BTreeSet<&str> = kin.children(&call.id).filter_map(|child| child.agent.as_deref()).collect();
    if !agents.is_empty() {
        written["subagent_trajectory_ref"] =
            agents.iter().map(|agent| json!({"trajectory_id": agent})).collect();
    }
    written
}

fn facts(trace: &Trace, call: &Call) -> Value {
    let mut facts = json!({"status": call.status, "output_bytes": call.output_bytes});
    let mut moment = |key: &str, at: Option<Moment>| {
        if let Some(wall) = at.and_then(|at| trace.wall(at.ms)) {
            facts[key] = json!(wall.to_string());
        }
    };
    moment("started_at", call.start);
    moment("completed_at", call.end);
    moment("returned_at", call.returned);
    if let Some(duration) = call.duration_ms() {
        facts["duration_ms"] = json!(duration);
    }
    if let Some(code) = call.exit_code {
        facts["exit_code"] = json!(code);
    }
    if call.truncated {
        facts["truncated"] = json!(true);
    }
    if !call.images.is_empty() {
        facts["images"] = json!(call.images);
    }
    facts
}
