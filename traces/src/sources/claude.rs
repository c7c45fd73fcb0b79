//! What Claude Code's stream and its session files have in common: messages made of content blocks.

use super::SaidKind;
use super::Unknown;
use super::content::Content;
use super::json::Object;
use super::records::{Builder, Finish};
use crate::{Call, Moment, Nesting, ToolCallId, ToolStatus, Usage};

/// Who speaks in a message.
#[derive(Clone, Default)]
pub(crate) struct Speaker {
    /// The sub-agent.
    pub(crate) agent: Option<String>,
    /// The call that started it.
    pub(crate) parent: Option<ToolCallId>,
}

impl Speaker {
    fn sign(&self, call: &mut Call) {
        call.agent.clone_from(&self.agent);
        if let Some(parent) = self.parent.clone().filter(|parent| *parent != call.id) {
            call.parent = Some(parent);
            call.nesting = Nesting::SubAgent;
        } else if self.agent.is_some() {
            call.nesting = Nesting::SubAgent;
        }
    }
}

/// A message of the model. One message comes as several records, one block each, which all repeat its id and usage.
pub(crate) fn assistant(
    message: &Object<'_>,
    speaker: &Speaker,
    at: Option<Moment>,
    out: &mut Builder,
) -> Result<(), Unknown> {
    let id = message.text_or_empty("id");
    let is_synthetic = message.text_or_empty("model") == "<synthetic>";
    if let Some(content) = message.text("content") {
        out.say(SaidKind::Text, &content, at, speaker.agent.clone());
    }
    let mut unknown = None;
    for block in message.objects("content") {
        let kind = block.text_or_empty("type");
        match &*kind {
            // Messages that the CLI makes up, to tell of an error.
            "text" => {
                let kind = if is_synthetic { SaidKind::Notice } else { SaidKind::Text };
                out.say(kind, &block.text_or_empty("text"), at, speaker.agent.clone());
            }
            "thinking" => {
                out.say(SaidKind::Reasoning, &block.text_or_empty("thinking"), at, speaker.agent.clone());
            }
            "redacted_thinking" | "fallback" => {}
            "tool_use" | "server_tool_use" | "mcp_tool_use" => start(&block, &id, speaker, at, out),
            // What the provider's own tools give back stands in the answer itself.
            kind if kind.ends_with("_tool_result") => result(&block, None, at, out),
            kind => unknown = Some(Unknown(format!("assistant/{kind}"))),
        }
    }
    unknown.map_or(Ok(()), Err)
}

/// The tool results of a message to the model, and the words beside them.
pub(crate) fn user(
    message: &Object<'_>,
    record: &Object<'_>,
    at: Option<Moment>,
    out: &mut Builder,
) -> Result<Vec<String>, Unknown> {
    if let Some(content) = message.text("content") {
        return Ok(vec![content.into_owned()]);
    }
    let mut words = Vec::new();
    let mut unknown = None;
    for block in message.objects("content") {
        let kind = block.text_or_empty("type");
        match &*kind {
            "tool_result" => result(&block, Some(record), at, out),
            "text" => words.push(block.text_or_empty("text").into_owned()),
            "image" | "document" => {}
            kind => unknown = Some(Unknown(format!("user/{kind}"))),
        }
    }
    unknown.map_or(Ok(words), Err)
}

/// Whether words to the model are the notice that the user has interrupted it.
pub(crate) fn is_interruption(words: &str) -> bool {
    words.starts_with("[Request interrupted by user")
}

/// Calls that the user's interruption cut off are told as refused. They were at work.
pub(crate) fn interrupted(out: &mut Builder, refused: &[ToolCallId]) {
    for call in &mut out.records.calls {
        if call.status == ToolStatus::Declined && refused.contains(&call.id) {
            call.status = ToolStatus::Unfinished;
        }
    }
}

/// The calls that were refused by the last results, for [`interrupted`].
pub(crate) fn refused(message: &Object<'_>, out: &mut Builder) -> Vec<ToolCallId> {
    let results = message.objects("content").filter(|block| block.text_or_empty("type") == "tool_result");
    let keys: Vec<_> = results.map(|block| block.text_or_empty("tool_use_id").into_owned()).collect();
    let calls = keys.iter().filter_map(|key| out.call(key).map(|call| (call.id.clone(), call.status)));
    calls
        .collect::<Vec<_>>()
        .into_iter()
        .filter(|(_, it)| *it == ToolStatus::Declined)
        .map(|(id, _)| id)
        .collect()
}

fn start(block: &Object<'_>, message: &str, speaker: &Speaker, at: Option<Moment>, out: &mut Builder) {
    let key = block.text_or_empty("id");
    // The same block of the same message, copied into the file again by a resume or told by a second record.
    let same = format!("{message}/{key}");
    if !message.is_empty() && out.records.aliases.contains_key(&same) {
        return;
    }
    let name = block.text_or_empty("name");
    let call = out.start(&key, &name, block.value("input"), at);
    speaker.sign(call);
    let id = call.id.clone();
    let target =
        ["bash_id", "shell_id", "task_id", "agentId"].iter().find_map(|it| call.input.get(*it)?.as_str());
    let task = target.map(|target| format!("task/{target}"));
    let polled = task.and_then(|task| out.records.aliases.get(&task).cloned());
    out.records.aliases.insert(same, id);
    if let (Some(polled), Some(call)) = (polled, out.call(&key)) {
        call.polls = Some(polled);
    }
}

fn result(block: &Object<'_>, record: Option<&Object<'_>>, at: Option<Moment>, out: &mut Builder) {
    let key = block.text_or_empty("tool_use_id").into_owned();
    let is_repeated =
        out.call(&key).is_some_and(|call| call.end.is_some() || call.status != ToolStatus::Unfinished);
    if is_repeated {
        return;
    }
    let content = Content::read(block.get("content"));
    let details =
        record.and_then(|record| record.object("tool_use_result").or_else(|| record.object("toolUseResult")));
    let failed = block.is_true("is_error");
    let status = match (was_refused(&key, record), failed) {
        (true, _) => ToolStatus::Declined,
        (false, true) => ToolStatus::Failed,
        (false, false) => ToolStatus::Ok,
    };
    let is_shell = out.call(&key).is_some_and(|call| call.name == "Bash");
    let exit_code = is_shell.then(|| exit_code(&content.text, failed, details.as_ref())).flatten();
    let finish = Finish {
        status,
        exit_code,
        output: content.text,
        bytes: Some(content.bytes),
        images: content.images,
        at,
    };
    let id = out.finish(&key, finish).id.clone();
    let Some(details) = details else { return };
    if let Some(agent) = details.text("agentId") {
        out.records.agents.insert(agent.into_owned(), id.clone());
    }
    if let Some(task) = details.text("backgroundTaskId") {
        out.records.aliases.insert(format!("task/{task}"), id);
        if let Some(call) = out.call(&key) {
            // It goes on; how it ended is told later, or never.
            call.returned = call.end.take();
            call.status = ToolStatus::Unfinished;
            call.exit_code = None;
        }
    }
}

fn was_refused(key: &str, record: Option<&Object<'_>>) -> bool {
    let Some(record) = record else { return false };
    let of_stream = record.objects("tool_result_meta").any(|meta| {
        meta.text_or_empty("id") == key && meta.text("non_execution_kind").is_some_and(|it| !it.is_empty())
    });
    of_stream
        || record.text("toolDenialKind").is_some_and(|it| !it.is_empty())
        || record.text("toolUseResult").is_some_and(|it| it == "User rejected tool use")
}

/// The exit status of a command, where it can be known: a failed one says `Exit code n` first. A good one says nothing,
/// and is 0 unless it was interrupted, went to the background, or has a status that its program uses for something else
/// than failure.
fn exit_code(output: &str, failed: bool, details: Option<&Object<'_>>) -> Option<i32> {
    if failed {
        let digits =
            output.strip_prefix("Exit code ").or_else(|| output.strip_prefix("Error: Exit code "))?;
        return digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    }
    let details = details?;
    let is_odd = details.get("backgroundTaskId").is_some()
        || details.get("returnCodeInterpretation").is_some()
        || details.is_true("interrupted")
        || !details.has("interrupted");
    (!is_odd).then_some(0)
}

/// The end of a task in the background, as told by `status` and a summary that may hold `(exit code n)`.
pub(crate) fn background_end(key: &str, status: &str, summary: &str, at: Option<Moment>, out: &mut Builder) {
    let Some(call) = out.call(key).filter(|call| call.returned.is_some() && call.end.is_none()) else {
        return;
    };
    let exit_code = summary
        .split("exit code ")
        .nth(1)
        .and_then(|it| it.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    call.exit_code = exit_code;
    call.status = match status {
        "completed" => ToolStatus::Ok,
        "failed" => ToolStatus::Failed,
        // Stopped or killed: it never came to its end.
        _ => return,
    };
    if exit_code.is_some_and(|it| it != 0) {
        call.status = ToolStatus::Failed;
    }
    call.end = at;
}

/// Tokens as Anthropic counts them: there the cached ones are not part of `input_tokens`.
pub(crate) fn tokens(usage: &Object<'_>) -> Usage {
    let cached = usage.count("cache_read_input_tokens");
    let details = usage.object("output_tokens_details");
    Usage {
        input_tokens: usage
            .count("input_tokens")
            .saturating_add(cached)
            .saturating_add(usage.count("cache_creation_input_tokens")),
        cached_input_tokens: cached,
        output_tokens: usage.count("output_tokens"),
        reasoning_tokens: details.map_or(0, |it| it.count("thinking_tokens")),
    }
}
