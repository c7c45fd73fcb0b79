//! Any command line as the agent. What it prints is plain text to us: it is stored raw and counted, and the exit
//! status says how it went.

use proctor_traces::EventKind;

use crate::error::LaunchNeed;
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::stream::{StreamEnd, StreamReader};
use crate::verdict::AgentVerdict;
use crate::{Harness, HarnessError, HarnessName};

/// The command given with `--command`.
#[derive(Debug)]
pub(crate) struct Command;

impl Harness for Command {
    fn kind(&self) -> HarnessName {
        HarnessName::Command
    }

    /// The prompt is on stdin. Whatever client the agent uses finds the model by the variables that the usual ones
    /// read; a command that asks no model leaves them alone.
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let missing = HarnessError::Missing { harness: self.kind(), what: LaunchNeed::COMMAND };
        let command = request.command.as_deref().filter(|argv| !argv.is_empty()).ok_or(missing)?;
        let mut argv = command.to_vec();
        argv.extend(request.settings.extra_args.iter().cloned());

        let base_url = request.base_url.trim_end_matches('/');
        let mut variables = vec![
            env("PROCTOR_BASE_URL", base_url),
            env("OPENAI_BASE_URL", format!("{base_url}/v1")),
            env("OPENAI_API_KEY", NO_KEY),
            env("ANTHROPIC_BASE_URL", base_url),
            env("ANTHROPIC_API_KEY", NO_KEY),
        ];
        if !request.model.is_empty() {
            variables.push(env("PROCTOR_MODEL", request.model.clone()));
        }
        variables.extend(request.settings.extra_env.iter().cloned());
        Ok(Launch {
            argv,
            env: variables,
            home_files: Vec::new(),
            stdin: request.prompt.clone().into_bytes(),
            needs_model: !request.model.is_empty(),
        })
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(PlainText::default())
    }
}

/// Counts lines.
#[derive(Debug, Default)]
pub(crate) struct PlainText {
    lines: u64,
}

impl StreamReader for PlainText {
    fn line(&mut self, _: &[u8]) -> Vec<EventKind> {
        self.lines += 1;
        Vec::new()
    }

    fn end(&mut self) -> StreamEnd {
        StreamEnd {
            events: Vec::new(),
            verdict: AgentVerdict::ByExit,
            recognised: std::mem::take(&mut self.lines),
            unknown: 0,
            malformed: 0,
            session_id: None,
            usage: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_finds_the_model_by_the_usual_variables() {
        let request = LaunchRequest {
            command: Some(vec!["bash".to_owned(), "-c".to_owned(), "env".to_owned()]),
            prompt: "hello".to_owned(),
            model: "m".to_owned(),
            ..LaunchRequest::default()
        };
        let launch = Command.launch(&request).unwrap();
        assert_eq!(launch.argv, ["bash", "-c", "env"]);
        assert_eq!(launch.stdin, b"hello");
        assert!(launch.needs_model);
        assert!(launch.env.contains(&env("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")));
        assert!(launch.env.contains(&env("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080")));
    }

    #[test]
    fn without_a_command_there_is_nothing_to_start() {
        for command in [None, Some(Vec::new())] {
            let error = Command.launch(&LaunchRequest { command, ..LaunchRequest::default() }).unwrap_err();
            assert_eq!(error.to_string(), "the harness `command` needs a command line");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn printed_lines_are_counted_and_make_no_events() {
        let mut reader = Command.stream();
        for _ in 0..3 {
            assert!(reader.line(b"\xff\0 anything").is_empty());
        }
        let end = reader.end();
        assert_eq!((end.recognised, end.verdict), (3, AgentVerdict::ByExit));
    }
}
