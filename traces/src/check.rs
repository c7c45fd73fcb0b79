//! What is odd about a trace.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Call, SourceClock, ToolCallId, ToolStatus, Trace, Witness};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something of the trace is lost or contradicts itself.
    Error,
    /// Something may be lost, or a witness does not agree with another.
    Warning,
    /// Worth knowing.
    Note,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the rule, for programs.
    pub rule: &'static str,
    /// For readers.
    pub message: String,
    /// The call that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCallId>,
}

impl Trace {
    /// All that is odd, the worst first, then in the order of the trace.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Findings(Vec::new());
        self.check_sources(&mut found);
        self.check_calls(&mut found);
        self.check_times(&mut found);
        self.check_witnesses(&mut found);
        self.check_tokens(&mut found);
        found.0.sort_by_key(|it| it.severity);
        found.0
    }

    fn check_sources(&self, found: &mut Findings) {
        for source in &self.sources {
            let name = &source.name;
            if let Some(error) = &source.error {
                found.add(Severity::Error, "unreadable", format!("{name}: {error}"));
            }
            let counts = &source.counts;
            let malformed = counts.malformed - u64::from(counts.torn);
            if malformed > 0 {
                let message = format!("{name}: {malformed} of {} lines are no records", counts.read);
                found.add(Severity::Error, "malformed", message);
            }
            if counts.torn {
                found.add(Severity::Warning, "torn", format!("{name}: the last line is torn"));
            }
            if counts.mended > 0 {
                let message = format!("{name}: {} lines had bytes that are no text", counts.mended);
                found.add(Severity::Warning, "mended", message);
            }
            if !counts.unknown.is_empty() {
                let kinds: Vec<String> =
                    counts.unknown.iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
                let message = format!("{name}: records that no rule knows: {}", kinds.join(", "));
                found.add(Severity::Warning, "unknown_records", message);
            }
        }
    }

    fn check_calls(&self, found: &mut Findings) {
        for call in &self.calls {
            let id = &call.id.0;
            if call.name == crate::sources::ORPHAN {
                let message = format!("{id}: there is a result, and no call");
                found.about(call, Severity::Error, "orphan_result", message);
            }
            if call.input.is_string() {
                found.about(call, Severity::Warning, "input", format!("{id}: its arguments are no JSON"));
            }
            if id.contains('#') {
                found.about(call, Severity::Note, "id_again", format!("{id}: the model used this id before"));
            }
            if let Some(parent) = call.parent.as_ref().filter(|parent| self.call(parent).is_none()) {
                let message = format!("{id}: the call that it was made in, {}, is not here", parent.0);
                found.about(call, Severity::Error, "parent", message);
            }
            if call.status == ToolStatus::Unfinished {
                let message = format!("{id}: {} was still at work when it was cut off", call.name);
                found.about(call, Severity::Note, "unfinished", message);
            }
        }
    }

    fn check_times(&self, found: &mut Findings) {
        let mut last = None;
        let mut backwards = 0;
        for call in &self.calls {
            if let (Some(start), Some(end)) = (call.start, call.end) {
                if end.ms < start.ms {
                    let message = format!("{}: it ends {} ms before it starts", call.id.0, start.ms - end.ms);
                    found.about(call, Severity::Warning, "ends_before_start", message);
                }
            }
            if call.start.is_none() && self.zero.is_some() {
                found.about(
                    call,
                    Severity::Warning,
                    "untimed",
                    format!("{}: nobody knows when it was", call.id.0),
                );
            }
            let at = call.issued.or(call.start).map(|it| it.ms);
            if at.is_some() && at < last {
                backwards += 1;
            }
            last = last.max(at);
        }
        if backwards > 0 {
            let message = format!("times go backwards {backwards} times; the order is that of the records");
            found.add(Severity::Note, "backwards", message);
        }
        if self.zero.is_none() && !self.calls.is_empty() {
            let clock = serde_json::to_value(SourceClock::None).unwrap_or_default();
            found.add(Severity::Warning, "no_times", format!("no source has times (clock: {clock})"));
        }
        for clock in &self.clocks {
            if let (Some(low), Some(high)) = (clock.low_ms, clock.high_ms) {
                if low > high {
                    let message = format!(
                        "{}: no offset of its clock agrees with all that is known: at least {low} ms, at most {high} ms",
                        clock.source
                    );
                    found.add(Severity::Warning, "clock", message);
                }
            }
            if clock.offset_ms != 0 {
                let message = format!(
                    "{}: its clock is off by {} ms, which was corrected",
                    clock.source, clock.offset_ms
                );
                found.add(Severity::Note, "clock_offset", message);
            }
        }
    }

    /// Calls that one witness knows of and another one, who should, does not.
    fn check_witnesses(&self, found: &mut Findings) {
        let has_session = self.calls.iter().any(|call| call.seen_by.contains(&Witness::SessionFile));
        if has_session {
            for call in self.calls.iter().filter(|call| !call.seen_by.contains(&Witness::SessionFile)) {
                let message =
                    format!("{}: {} is in the stream, and not in the session", call.id.0, call.name);
                found.about(call, Severity::Warning, "only_stream", message);
            }
        }
        let mut silent: BTreeMap<&str, u64> = BTreeMap::new();
        let has_stream = self.calls.iter().any(|call| call.seen_by != [Witness::SessionFile]);
        for call in self.calls.iter().filter(|call| has_stream && call.seen_by == [Witness::SessionFile]) {
            *silent.entry(&call.name).or_default() += 1;
        }
        if !silent.is_empty() {
            let tools: Vec<String> = silent.iter().map(|(tool, count)| format!("{count} × {tool}")).collect();
            found.add(Severity::Note, "only_session", format!("only the session shows {}", tools.join(", ")));
        }
        let is_at_work = |ms: i64| {
            self.calls.iter().any(|call| {
                let start = call.issued.or(call.start).map(|it| it.ms);
                // The watcher sees a version some time after it was written.
                start.is_some_and(|start| start <= ms)
                    && call.end.is_none_or(|end| ms <= end.ms.saturating_add(2_000))
            })
        };
        for version in self.versions.iter().filter(|version| !is_at_work(version.ms)) {
            let message = format!("the artifact changed at {} ms, while no call was at work", version.ms);
            found.add(Severity::Warning, "change_without_call", message);
        }
    }

    fn check_tokens(&self, found: &mut Findings) {
        let Some(difference) = self.usage.difference else { return };
        let parts = [
            ("input", difference.input_tokens),
            ("cached", difference.cached_input_tokens),
            ("output", difference.output_tokens),
        ];
        // Some agents ask for more than what they tell of, as OpenCode does for a title: that is the whole difference then.
        let is_it = |it: &&crate::ModelSpan| {
            it.usage.is_some_and(|it| {
                let less = |count: u64| i64::try_from(count).map_or(i64::MIN, |it| -it);
                let counts = [it.input_tokens, it.cached_input_tokens, it.output_tokens];
                parts.map(|(_, by)| by) == counts.map(less) && counts != [0; 3]
            })
        };
        if let Some(untold) = self.exchanges.iter().find(is_it) {
            let message = format!(
                "the agent's count of tokens lacks one model request, #{}, which the gateway's count has",
                untold.exchange
            );
            found.add(Severity::Note, "untold_request", message);
            return;
        }
        let odd: Vec<String> =
            parts.iter().filter(|(_, by)| *by != 0).map(|(name, by)| format!("{name} {by:+}")).collect();
        if !odd.is_empty() {
            let message =
                format!("the agent's count of tokens differs from the gateway's: {}", odd.join(", "));
            found.add(Severity::Warning, "tokens", message);
        }
    }
}

struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, severity: Severity, rule: &'static str, message: String) {
        self.0.push(Finding { severity, rule, message, call: None });
    }

    fn about(&mut self, call: &Call, severity: Severity, rule: &'static str, message: String) {
        self.0.push(Finding { severity, rule, message, call: Some(call.id.clone()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;

    /// Two requests of which the agent told in `input`, `output`.
    fn tokens(input: u64, output: u64) -> Trace {
        let usage = |input: u64, output: u64| {
            format!(
                r#"{{"input_tokens":{input},"cached_input_tokens":0,"output_tokens":{output},"reasoning_tokens":0}}"#
            )
        };
        let mut text = String::new();
        for (seq, kind) in [
            r#""source":"gateway","kind":"model_request","exchange":0,"wire":"openai_chat","model":null,"bytes":1"#.to_owned(),
            format!(r#""source":"gateway","kind":"model_response","exchange":0,"status":200,"end":"complete","usage":{}"#, usage(7, 3)),
            r#""source":"gateway","kind":"model_request","exchange":1,"wire":"openai_chat","model":null,"bytes":1"#.to_owned(),
            format!(r#""source":"gateway","kind":"model_response","exchange":1,"status":200,"end":"complete","usage":{}"#, usage(1000, 50)),
            format!(r#""source":"runner","kind":"turn_finished","usage":{}"#, usage(input, output)),
        ]
        .iter()
        .enumerate()
        {
            let head = format!(r#"{{"seq":{seq},"at":"2026-11-30T10:00:00.000Z","offset_ms":{seq},"turn":1,"#);
            text.extend([head.as_str(), kind, "}\n"]);
        }
        let file = SourceFile { name: "t".into(), bytes: text.into_bytes(), format: None, arrivals: None };
        Trace::read(&[file], None).unwrap()
    }

    #[test]
    fn a_request_that_the_agent_does_not_tell_of_is_no_contradiction() {
        let found = |trace: &Trace| -> Vec<(Severity, &'static str)> {
            trace.findings().iter().map(|it| (it.severity, it.rule)).collect()
        };
        assert_eq!(found(&tokens(1007, 53)), []);
        // A title.
        assert_eq!(found(&tokens(1000, 50)), [(Severity::Note, "untold_request")]);
        assert_eq!(found(&tokens(999, 50)), [(Severity::Warning, "tokens")]);
        assert_eq!(found(&tokens(1007, 0)), [(Severity::Warning, "tokens")]);
    }

    #[test]
    fn every_form_has_the_same_total_and_it_is_the_gateways() {
        let trace = tokens(1000, 50);
        assert_eq!(trace.usage.total(), trace.usage.gateway);
        let atif = trace.to_atif("x");
        assert_eq!(atif["final_metrics"]["total_prompt_tokens"], 1007);
        assert!(
            trace
                .to_otlp("x")
                .to_string()
                .contains(r#"{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1007"}}"#)
        );
    }
}
