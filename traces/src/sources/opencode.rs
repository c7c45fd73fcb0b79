//! What `opencode run --format json` prints. A tool is told of when it is over, so that a run that was killed shows
//! nothing of the call that was at work.

use super::json::Object;
use super::records::{Builder, Finish};
use super::{Grammar, SaidKind, SourceClock, Unknown};
use crate::sources::content;
use crate::{Moment, ToolStatus, Usage, Witness};

#[derive(Default)]
pub(crate) struct Opencode {
    session: Option<String>,
}

impl Grammar for Opencode {
    const WITNESS: Witness = Witness::StreamRecord;

    fn record(
        &mut self,
        record: &Object<'_>,
        arrival: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = record.text_or_empty("type");
        // Its own times tell when a tool began; the arrival only when it was over.
        if record.int("timestamp").is_some() {
            out.records.clock = SourceClock::Epoch;
        }
        let at = out.moment(record.int("timestamp")).or(arrival);
        out.touch(at);
        let session = record.text("sessionID").map(String::from);
        if out.records.turns == 0 {
            out.next_turn();
            out.records.meta.session.clone_from(&session);
            self.session.clone_from(&session);
        }
        let agent = session.filter(|it| Some(it) != self.session.as_ref());
        let part = record.object("part");
        match (&*kind, part) {
            ("text", Some(part)) => out.say(SaidKind::Text, &part.text_or_empty("text"), at, agent),
            ("reasoning", Some(part)) => out.say(SaidKind::Reasoning, &part.text_or_empty("text"), at, agent),
            ("tool_use", Some(part)) => return tool(&part, at, agent, out),
            ("step_start", _) => {}
            ("step_finish", Some(part)) => {
                if let Some(tokens) = part.object("tokens") {
                    let cache = tokens.object("cache");
                    let of_cache = |key: &str| cache.as_ref().map_or(0, |it| it.count(key));
                    let usage = Usage {
                        input_tokens: tokens
                            .count("input")
                            .saturating_add(of_cache("read"))
                            .saturating_add(of_cache("write")),
                        cached_input_tokens: of_cache("read"),
                        output_tokens: tokens.count("output").saturating_add(tokens.count("reasoning")),
                        reasoning_tokens: tokens.count("reasoning"),
                    };
                    out.count_tokens(&part.text_or_empty("id"), usage);
                }
            }
            ("error", _) => {
                let error = record.object("error");
                let data = error.as_ref().and_then(|it| it.object("data"));
                let message =
                    data.as_ref().and_then(|it| it.text("message")).or_else(|| error.as_ref()?.text("name"));
                out.say(SaidKind::Notice, &message.unwrap_or_default(), at, agent);
            }
            _ => return Err(Unknown(kind.into_owned())),
        }
        Ok(())
    }
}

fn tool(
    part: &Object<'_>,
    at: Option<Moment>,
    agent: Option<String>,
    out: &mut Builder,
) -> Result<(), Unknown> {
    let Some(state) = part.object("state") else { return Err(Unknown("tool_use".to_owned())) };
    let key = part.text_or_empty("callID");
    let time = state.object("time");
    let moment = |key: &str| time.as_ref().and_then(|it| out.moment(it.int(key)));
    let (start, end) = (moment("start").or(at), moment("end").or(at));
    let call = out.start(&key, &part.text_or_empty("tool"), state.value("input"), start);
    call.agent = agent;
    let metadata = state.object("metadata");
    let exit_code = metadata.as_ref().and_then(|it| it.exit_code("exit"));
    let status = match &*state.text_or_empty("status") {
        "completed" if exit_code.is_some_and(|it| it != 0) => ToolStatus::Failed,
        "completed" => ToolStatus::Ok,
        "error" => ToolStatus::Failed,
        _ => return Ok(()),
    };
    let error = state.text("error");
    let status = if error.as_deref().is_some_and(|it| it.contains("rejected permission")) {
        ToolStatus::Declined
    } else {
        status
    };
    let output = state.text("output").or(error).unwrap_or_default().into_owned();
    let images: Vec<_> = state
        .objects("attachments")
        .filter(|it| it.text_or_empty("mime").starts_with("image/"))
        .filter_map(|it| content::image(&it))
        .collect();
    let bytes = output.len() as u64 + images.iter().map(|it| it.bytes).sum::<u64>();
    let truncated = metadata.as_ref().is_some_and(|it| it.is_true("truncated"));
    let call = out.finish(&key, Finish { status, exit_code, output, bytes: Some(bytes), images, at: end });
    call.truncated |= truncated;
    Ok(())
}
