//! Tool calls and their results as the model issued and got them.

use serde_json::{Value, json};

use super::Rollout;
use super::results::{Answer, Outcome};
use crate::sources::Unknown;
use crate::sources::content::Content;
use crate::sources::json::Object;
use crate::sources::records::{Builder, Finish};
use crate::{Moment, ToolCallId, ToolKind, ToolStatus, ViewedImage};

impl Rollout {
    pub(super) fn response_item(
        &mut self,
        payload: &Object<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) -> Result<(), Unknown> {
        let kind = payload.text_or_empty("type");
        match &*kind {
            "message" => self.message(payload, at, out),
            "reasoning" => self.reasoning(payload, at, out),
            "function_call" => {
                let arguments = payload.text_or_empty("arguments");
                let input = arguments_of(&arguments).unwrap_or_else(|| payload.value("arguments"));
                self.issue(&payload.text_or_empty("call_id"), &payload.text_or_empty("name"), input, at, out);
            }
            "custom_tool_call" => {
                let input = json!({"input": payload.value("input")});
                self.issue(&payload.text_or_empty("call_id"), &payload.text_or_empty("name"), input, at, out);
            }
            "local_shell_call" => self.local_shell(payload, at, out),
            "tool_search_call" => {
                let key = payload.text("call_id").or_else(|| payload.text("id")).unwrap_or_default();
                self.issue(&key, "tool_search", payload.value("arguments"), at, out);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.answer(&payload.text_or_empty("call_id"), payload, at, out);
            }
            "web_search_call" => self.web_search(payload, at, out),
            "ghost_snapshot" | "compaction" | "compaction_summary" | "context_compaction"
            | "additional_tools" | "compaction_trigger" | "other" => {}
            "" => return Err(Unknown("(no type)".to_owned())),
            _ => return Err(Unknown(format!("response_item/{kind}"))),
        }
        Ok(())
    }

    fn issue(&mut self, key: &str, name: &str, input: Value, at: Option<Moment>, out: &mut Builder) {
        let name = if name.is_empty() { Builder::ORPHAN } else { name };
        let polled = self.polled(name, &input);
        // An item may have told of it before: some versions write that first.
        let is_known = self.told_by_item.contains(key)
            && out.call(key).is_some_and(|call| call.issued.is_none() && call.parent.is_none());
        if is_known {
            if let Some(call) = out.call(key) {
                name.clone_into(&mut call.name);
                call.input = input;
                call.issued = at;
            }
        } else {
            let call = out.start(key, name, input, at);
            call.polls = polled;
        }
        if ToolKind::of(name) == ToolKind::Program {
            self.programs.push(key.to_owned());
        }
    }

    /// The call that this one waits for or feeds.
    fn polled(&self, name: &str, input: &Value) -> Option<ToolCallId> {
        let number = |key: &str| match input.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match name {
            "write_stdin" => self.processes.get(&number("session_id")?).cloned(),
            "wait" => self.cells.get(&number("cell_id")?).cloned(),
            _ => None,
        }
    }

    fn answer(&mut self, key: &str, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        // Where an item has told of it, only the head of a long text is looked at.
        let told =
            self.told_by_item.contains(key) && out.call(key).is_some_and(|call| !call.output.is_empty());
        let raw = payload.get("output");
        let mut content = match raw.filter(|_| told).and_then(|raw| raw.head(HEAD)) {
            Some(head) => Content { bytes: head.len() as u64, text: head.into_owned(), images: Vec::new() },
            None => Content::read(raw),
        };
        let is_truncated = raw.is_some_and(|raw| super::results::is_truncated(raw.as_written()));
        let images = std::mem::take(&mut content.images);
        let answer = Answer::read(&content.text);
        if !matches!(answer.outcome, Outcome::ProgramRuns { .. }) {
            self.programs.retain(|program| program != key);
        }
        let told = self.told_by_item.contains(key);
        let call = out.call_or_orphan(key);
        let (id, polls) = (call.id.clone(), call.polls.clone());
        let status = answer.status(&call.name, images.is_empty());
        let bytes = if images.is_empty() { answer.body.len() as u64 } else { content.bytes };
        if told {
            let path = call.path().map(str::to_owned);
            for image in images {
                add_image(call, ViewedImage { path: image.path.or_else(|| path.clone()), ..image });
            }
            if call.output.is_empty() {
                call.set_output(answer.body.to_string(), bytes);
            }
            call.truncated |= is_truncated;
        } else {
            let finish = Finish {
                status,
                exit_code: answer.exit_code,
                output: answer.body.to_string(),
                bytes: Some(bytes),
                images,
                at,
            };
            let call = out.finish(key, finish);
            call.truncated |= is_truncated;
        }
        match &answer.outcome {
            Outcome::Over => {}
            Outcome::Runs { process } => self.goes_on(key, polls.clone().unwrap_or(id), process, told, out),
            Outcome::ProgramRuns { cell } => {
                self.cells.insert(cell.clone(), polls.clone().unwrap_or(id));
                if polls.is_none() {
                    goes_on(key, out);
                }
            }
        }
        if let Some(polled) = polls {
            self.polled_answer(&polled, &answer, at, out);
        }
        pair_images(key, out);
    }

    fn goes_on(&mut self, key: &str, started: ToolCallId, process: &str, told: bool, out: &mut Builder) {
        let is_poll = out.call(key).is_some_and(|call| call.polls.is_some());
        self.processes.insert(process.to_owned(), started);
        if !is_poll && !told {
            goes_on(key, out);
        } else if let Some(call) = out.call(key).filter(|_| is_poll) {
            call.status = ToolStatus::Ok;
        }
    }

    /// What an answer to a poll says of the call that is polled.
    fn polled_answer(
        &mut self,
        polled: &ToolCallId,
        answer: &Answer<'_>,
        at: Option<Moment>,
        out: &mut Builder,
    ) {
        let Some(call) = out.records.calls.iter_mut().rev().find(|call| call.id == *polled) else { return };
        if self.told_by_item.contains(&call.id.0) {
            return;
        }
        if !answer.body.is_empty() {
            let all = format!("{}{}", call.output, answer.body);
            let bytes = call.output_bytes.saturating_add(answer.body.len() as u64);
            let was_cut = call.truncated;
            call.set_output(all, bytes);
            call.truncated |= was_cut;
        }
        if answer.outcome == Outcome::Over && call.returned.is_some() && call.end.is_none() {
            call.end = at;
            call.exit_code = answer.exit_code;
            call.status = answer.status(&call.name, true);
            self.programs.retain(|program| *program != call.id.0);
        }
    }

    fn local_shell(&mut self, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        let key = payload.text("call_id").or_else(|| payload.text("id")).unwrap_or_default();
        if out.has(&key) {
            return;
        }
        let action = payload.object("action");
        let field = |name: &str| action.as_ref().map_or(Value::Null, |it| it.value(name));
        let input = json!({"command": field("command"), "workdir": field("working_directory")});
        self.issue(&key, "local_shell", input, at, out);
    }

    /// A search by the provider: the item is told once, when it is over.
    fn web_search(&mut self, payload: &Object<'_>, at: Option<Moment>, out: &mut Builder) {
        let id = payload.text("id").or_else(|| payload.text("call_id")).map(String::from);
        let key = id.unwrap_or_else(|| format!("web_search_{}", out.records.calls.len()));
        if !out.has(&key) {
            self.issue(&key, "web_search", payload.value("action"), at, out);
        }
        let status = match &*payload.text_or_empty("status") {
            "failed" => ToolStatus::Failed,
            _ => ToolStatus::Ok,
        };
        let finish =
            Finish { status, exit_code: None, output: String::new(), bytes: None, images: Vec::new(), at };
        out.finish(&key, finish);
    }
}

/// Bytes of an answer that hold all that Codex writes above the output.
const HEAD: usize = 1_024;

/// Arguments are JSON inside a text.
fn arguments_of(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// The model got an answer while the work goes on.
fn goes_on(key: &str, out: &mut Builder) {
    if let Some(call) = out.call(key) {
        call.returned = call.end.take();
        call.status = ToolStatus::Unfinished;
        call.exit_code = None;
    }
}

/// A picture is told by an item (its path) and by the answer (its bytes): that is one picture.
fn add_image(call: &mut crate::Call, image: ViewedImage) {
    match call.images.iter_mut().find(|it| it.digest.is_none() && it.bytes == 0) {
        Some(known) => {
            known.media_type = image.media_type;
            known.bytes = image.bytes;
            known.digest = image.digest;
        }
        None => call.images.push(image),
    }
}

/// A program's answer holds the pictures, its operations know the paths.
fn pair_images(key: &str, out: &mut Builder) {
    let Some(outer) =
        out.call(key).filter(|call| call.kind() == ToolKind::Program && !call.images.is_empty())
    else {
        return;
    };
    let (program, mut pictures) = (outer.id.clone(), outer.images.clone());
    let later = out.records.calls.iter_mut().rev().take_while(|call| call.id != program);
    let inner = later.filter(|call| call.parent.as_ref() == Some(&program));
    let mut seen: Vec<&mut ViewedImage> = inner.filter_map(|call| call.images.first_mut()).collect();
    if seen.len() != pictures.len() {
        return;
    }
    seen.reverse();
    for (picture, seen) in pictures.iter_mut().zip(seen) {
        picture.path.clone_from(&seen.path);
        *seen = picture.clone();
    }
    if let Some(outer) = out.call(key) {
        outer.images = pictures;
    }
}
