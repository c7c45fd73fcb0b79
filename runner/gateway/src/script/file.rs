//! The text of `script.toml`, and what may not be said in it.

use std::collections::HashSet;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use proctor_traces::Usage;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::{Call, Fault, FaultKind, PlainAnswer, ScriptError, Step};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    step: Vec<Spanned<RawStep>>,
    #[serde(default)]
    answer: Vec<Spanned<RawAnswer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    #[serde(default)]
    contains: Vec<String>,
    times: Option<u32>,
    text: Option<String>,
    from: Option<Spanned<String>>,
    image: Option<Spanned<String>>,
    delay: Option<Spanned<String>>,
    chunk_delay: Option<Spanned<String>>,
    usage: Option<RawUsage>,
    fault: Option<Spanned<RawFault>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Defaults {
    delay: Option<Spanned<String>>,
    chunk_delay: Option<Spanned<String>>,
    usage: Option<RawUsage>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawUsage {
    input: u64,
    cached: u64,
    output: u64,
    reasoning: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    prompt: Option<Spanned<u32>>,
    reasoning: Option<String>,
    text: Option<String>,
    delay: Option<Spanned<String>>,
    chunk_delay: Option<Spanned<String>>,
    usage: Option<RawUsage>,
    #[serde(default)]
    calls: Vec<Spanned<RawCall>>,
    fault: Option<Spanned<RawFault>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    shell: Option<String>,
    timeout: Option<Spanned<String>>,
    view_image: Option<String>,
    write: Option<String>,
    from: Option<Spanned<String>>,
    content: Option<String>,
    tool: Option<String>,
    arguments: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFault {
    kind: Spanned<String>,
    times: Option<u32>,
    status: Option<Spanned<u16>>,
    retry_after: Option<Spanned<String>>,
    body: Option<String>,
    after_bytes: Option<u64>,
}

/// The steps that `text` describes, and the answers to requests without tools; files are read from `dir`.
pub(super) fn read(text: &str, dir: &Path) -> Result<(Vec<Step>, Vec<PlainAnswer>), ScriptError> {
    let reader = Reader { text, dir };
    let file: File = toml::from_str(text)
        .map_err(|error| reader.invalid(error.message(), error.span().unwrap_or_default()))?;
    let delay = reader.duration(file.defaults.delay)?.unwrap_or_default();
    let chunk_delay = reader.duration(file.defaults.chunk_delay)?.unwrap_or_default();
    let usage = file.defaults.usage.unwrap_or_default();
    let mut ended = HashSet::new();
    let mut steps = Vec::new();
    for raw in file.step {
        let span = raw.span();
        let raw = raw.into_inner();
        let prompt = match raw.prompt {
            Some(prompt) if *prompt.as_ref() == 0 => {
                return Err(reader.invalid("prompts are counted from 1", prompt.span()));
            }
            Some(prompt) => prompt.into_inner(),
            None => 1,
        };
        if ended.contains(&prompt) {
            let message = format!(
                "this step is never reached: an earlier step of prompt {prompt} has no calls, which ends the turn"
            );
            return Err(reader.invalid(&message, span));
        }
        let calls = raw.calls.into_iter().map(|call| reader.call(call)).collect::<Result<Vec<_>, _>>()?;
        if calls.is_empty() {
            ended.insert(prompt);
        }
        steps.push(Step {
            prompt,
            reasoning: raw.reasoning,
            text: raw.text,
            picture: None,
            calls,
            delay: reader.duration(raw.delay)?.unwrap_or(delay),
            chunk_delay: reader.duration(raw.chunk_delay)?.unwrap_or(chunk_delay),
            usage: raw.usage.unwrap_or(usage).into(),
            fault: raw.fault.map(|fault| reader.fault(fault)).transpose()?,
        });
    }
    let mut answers = Vec::new();
    for raw in file.answer {
        let span = raw.span();
        let raw = raw.into_inner();
        let (text, picture) = match (raw.text, raw.from, raw.image) {
            (Some(text), None, None) => (Some(text), None),
            (None, Some(from), None) => (Some(reader.file(&from)?), None),
            (None, None, Some(image)) => (None, Some(reader.bytes("image", &image)?.into())),
            _ => return Err(reader.invalid("an answer needs one of `text`, `from` and `image`", span)),
        };
        let step = Step {
            prompt: 1,
            reasoning: None,
            text,
            picture,
            calls: Vec::new(),
            delay: reader.duration(raw.delay)?.unwrap_or(delay),
            chunk_delay: reader.duration(raw.chunk_delay)?.unwrap_or(chunk_delay),
            usage: raw.usage.unwrap_or(usage).into(),
            fault: raw.fault.map(|fault| reader.fault(fault)).transpose()?,
        };
        answers.push(PlainAnswer { contains: raw.contains, times: raw.times, step });
    }
    Ok((steps, answers))
}

struct Reader<'a> {
    text: &'a str,
    dir: &'a Path,
}

impl Reader<'_> {
    fn invalid(&self, message: &str, span: Range<usize>) -> ScriptError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ScriptError::Invalid {
            message: message.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            span,
        }
    }

    fn duration(&self, text: Option<Spanned<String>>) -> Result<Option<Duration>, ScriptError> {
        let Some(text) = text else { return Ok(None) };
        let parsed = text.as_ref().parse::<SignedDuration>().ok();
        match parsed.and_then(|duration| Duration::try_from(duration).ok()) {
            Some(duration) => Ok(Some(duration)),
            None => Err(self.invalid("a duration is written like `200ms`, `1.5s` or `2m`", text.span())),
        }
    }

    fn call(&self, raw: Spanned<RawCall>) -> Result<Call, ScriptError> {
        let span = raw.span();
        let raw = raw.into_inner();
        let wrong = |message: &str| Err(self.invalid(message, span.clone()));
        if raw.shell.is_none() && raw.timeout.is_some() && (raw.view_image.is_some() || raw.write.is_some()) {
            return wrong("`timeout` belongs to `shell`");
        }
        if raw.write.is_none() && (raw.from.is_some() || raw.content.is_some()) {
            return wrong("`from` and `content` belong to `write`");
        }
        if raw.tool.is_none() && raw.arguments.is_some() {
            return wrong("`arguments` belong to `tool`");
        }
        match (raw.shell, raw.view_image, raw.write, raw.tool) {
            (Some(command), None, None, None) => {
                Ok(Call::Shell { command, timeout: self.duration(raw.timeout)? })
            }
            (None, Some(path), None, None) => Ok(Call::ViewImage { path }),
            (None, None, Some(path), None) => match (raw.from, raw.content) {
                (Some(from), None) => Ok(Call::Write { path, content: self.file(&from)? }),
                (None, Some(content)) => Ok(Call::Write { path, content }),
                _ => wrong("`write` needs its content: either `from` or `content`"),
            },
            (None, None, None, Some(name)) if raw.timeout.is_none() => {
                Ok(Call::Tool { name, arguments: raw.arguments.unwrap_or_default() })
            }
            _ => wrong("a call is exactly one of `shell`, `view_image`, `write` and `tool`"),
        }
    }

    /// A script may come with a foreign task: it reads what lies beside it and nothing else.
    fn file(&self, name: &Spanned<String>) -> Result<String, ScriptError> {
        let path = self.beside("from", name)?;
        std::fs::read_to_string(&path).map_err(|source| ScriptError::Read { path, source })
    }

    fn bytes(&self, key: &str, name: &Spanned<String>) -> Result<Vec<u8>, ScriptError> {
        let path = self.beside(key, name)?;
        std::fs::read(&path).map_err(|source| ScriptError::Read { path, source })
    }

    fn beside(&self, key: &str, name: &Spanned<String>) -> Result<PathBuf, ScriptError> {
        let relative = Path::new(name.as_ref());
        if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(self.invalid(&format!("`{key}` names a file beside the script"), name.span()));
        }
        Ok(self.dir.join(relative))
    }

    fn fault(&self, raw: Spanned<RawFault>) -> Result<Fault, ScriptError> {
        let span = raw.span();
        let raw = raw.into_inner();
        let kind = raw.kind.as_ref().as_str();
        let given = [
            ("status", raw.status.is_some()),
            ("retry_after", raw.retry_after.is_some()),
            ("body", raw.body.is_some()),
            ("after_bytes", raw.after_bytes.is_some()),
        ];
        let allowed: &[&str] = match kind {
            "status" => &["status", "retry_after", "body"],
            "truncate" | "stall" => &["after_bytes"],
            _ => &[],
        };
        if let Some((name, _)) = given.iter().find(|(name, given)| *given && !allowed.contains(name)) {
            return Err(self.invalid(&format!("a fault of kind `{kind}` has no `{name}`"), span));
        }
        let after_bytes = || {
            raw.after_bytes
                .ok_or_else(|| self.invalid(&format!("`{kind}` needs `after_bytes`"), span.clone()))
        };
        let kind = match kind {
            "status" => match raw.status {
                Some(status) if (400..600).contains(status.as_ref()) => FaultKind::Status {
                    status: status.into_inner(),
                    retry_after: self.duration(raw.retry_after)?,
                    body: raw.body,
                },
                _ => return Err(self.invalid("`status` needs a `status` from 400 to 599", span)),
            },
            "drop" => FaultKind::Drop,
            "hang" => FaultKind::Hang,
            "truncate" => FaultKind::Truncate { after_bytes: after_bytes()? },
            "stall" => FaultKind::Stall { after_bytes: after_bytes()? },
            other => {
                let message = format!(
                    "`{other}` is no kind of fault: use `status`, `drop`, `hang`, `truncate` or `stall`"
                );
                return Err(self.invalid(&message, raw.kind.span()));
            }
        };
        Ok(Fault { kind, times: raw.times })
    }
}

impl From<RawUsage> for Usage {
    fn from(raw: RawUsage) -> Self {
        Self {
            input_tokens: raw.input,
            cached_input_tokens: raw.cached,
            output_tokens: raw.output,
            reasoning_tokens: raw.reasoning,
        }
    }
}
