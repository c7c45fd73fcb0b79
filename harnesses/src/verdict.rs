//! What the end of an agent means: its last words first, its exit status second. Exit statuses alone are never
//! trusted; there are CLIs that exit with 0 after an interrupt and with 1 after an outage of the provider.

use proctor_traces::{Ending, ModelCause};

/// How the agent's own stream says that a turn went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentVerdict {
    /// It says that it finished.
    Finished,
    /// It says that it failed, and not because of the model server.
    Failed {
        /// What it said.
        message: String,
    },
    /// It says that it gave up because of the model server.
    ModelFailed {
        /// Whose failure that was.
        cause: ModelCause,
        /// What it said.
        message: String,
    },
    /// It should have said how it went, and the stream ended without a word.
    Silent,
    /// Its stream never says such things: the exit status is all there is.
    ByExit,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Whether the turn went well, from what the agent said and how its process ended; else the ending of the trial,
/// which is an [`Ending::AgentError`] or an [`Ending::ModelError`]. An end that the runner brought about (deadline,
/// limits, memory, cancel) comes before this and is the caller's to know.
pub fn judge_exit(verdict: &AgentVerdict, exit: ExitStatus) -> Result<(), Ending> {
    let agent_error = |message: String| Err(Ending::AgentError { message });
    match (verdict, exit) {
        (AgentVerdict::Finished | AgentVerdict::ByExit, ExitStatus::Code(0)) => Ok(()),
        (AgentVerdict::Finished, exit) => agent_error(format!("it said that it had finished, then {exit}")),
        (AgentVerdict::ByExit, exit) => agent_error(format!("it {exit}")),
        (AgentVerdict::Silent, exit) => agent_error(format!("it {exit} without saying how it went")),
        (AgentVerdict::Failed { message }, _) => agent_error(message.clone()),
        (AgentVerdict::ModelFailed { cause, message }, _) => {
            Err(Ending::ModelError { cause: *cause, message: message.clone() })
        }
    }
}

impl std::fmt::Display for ExitStatus {
    /// As the end of a sentence: "exited with 1", "was killed by signal 9".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

/// Whose failure an HTTP status of the model server is: 429, 5xx and the time-outs are the provider's, every other
/// refusal is about the request.
pub(crate) fn cause_of_status(status: u64) -> ModelCause {
    match status {
        408 | 409 | 425 | 429 | 500.. => ModelCause::Provider,
        _ => ModelCause::Request,
    }
}

/// Whose failure a CLI's message tells of; none if it does not speak of the model server at all.
pub(crate) fn cause_of_message(message: &str) -> Option<ModelCause> {
    /// Before a status, in the words of the CLIs.
    const STATUS: [&str; 6] =
        ["status ", "status: ", "api error: ", "request rejected (", "\"code\":", "\"code\": "];
    const PROVIDER: [&str; 14] = [
        "rate limit",
        "rate_limit",
        "overloaded",
        "high demand",
        "server_error",
        "quota",
        "stream disconnected",
        "transport error",
        "network",
        "connection",
        "error sending request",
        "timed out",
        "timeout",
        "retry limit",
    ];
    const REQUEST: [&str; 7] = [
        "invalid_request",
        "authentication",
        "permission_error",
        "not_found_error",
        "api key",
        "model_not_found",
        "context_length",
    ];

    let lower = message.to_ascii_lowercase();
    // pi and Qwen Code put the status first.
    let first = leading_status(&lower).filter(|_| lower.get(3..4) == Some(" "));
    let status = first
        .or_else(|| STATUS.iter().find_map(|before| lower.split(before).skip(1).find_map(leading_status)));
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    match status {
        Some(status) => Some(cause_of_status(status)),
        // A refusal is the more specific: its text may well speak of a connection too.
        None if says(&REQUEST) => Some(ModelCause::Request),
        None if says(&PROVIDER) => Some(ModelCause::Provider),
        None => None,
    }
}

/// The HTTP error status that `text` begins with.
fn leading_status(text: &str) -> Option<u64> {
    let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().ok().filter(|status| digits.len() == 3 && (400..600).contains(status))
}

/// The failure that a CLI's last message tells of.
pub(crate) fn failure(message: &str) -> AgentVerdict {
    let message = message.chars().take(2_000).collect::<String>();
    match cause_of_message(&message) {
        Some(cause) => AgentVerdict::ModelFailed { cause, message },
        None => AgentVerdict::Failed { message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_failure_a_message_tells_of() {
        use ModelCause::{Provider, Request};
        let cases = [
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(Provider)),
            (
                "unexpected status 401 Unauthorized: no, url: http://127.0.0.1:8080/v1/responses",
                Some(Request),
            ),
            ("unexpected status 503 Service Unavailable: try later", Some(Provider)),
            ("We’re currently experiencing high demand, which may cause temporary errors.", Some(Provider)),
            ("stream disconnected before completion: Transport error: network error", Some(Provider)),
            (
                r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}"#,
                Some(Request),
            ),
            ("API Error: 400 the picture is too large", Some(Request)),
            ("API Error: Request rejected (429) · slow down", Some(Provider)),
            ("API Error: Connection error.", Some(Provider)),
            ("Failed to authenticate. API Error: 401 no", Some(Request)),
            ("API Error: 529 overloaded", Some(Provider)),
            ("cannot open /work/400", None),
            ("500 scripted 500", Some(Provider)),
            ("401 no such key", Some(Request)),
            ("400", None),
            (
                r#"[API Error: {"error":{"code":401,"message":"no","status":"UNAUTHENTICATED"}}]"#,
                Some(Request),
            ),
            ("status 4000", None),
            ("", None),
        ];
        for (message, cause) in cases {
            assert_eq!(cause_of_message(message), cause, "{message}");
        }
    }

    #[test]
    fn last_words_come_before_the_exit_status() {
        let failed = AgentVerdict::Failed { message: "no".to_owned() };
        let outage = AgentVerdict::ModelFailed { cause: ModelCause::Provider, message: "429".to_owned() };
        let agent = |message: &str| Err(Ending::AgentError { message: message.to_owned() });
        let cases = [
            (AgentVerdict::Finished, ExitStatus::Code(0), Ok(())),
            (AgentVerdict::ByExit, ExitStatus::Code(0), Ok(())),
            (AgentVerdict::ByExit, ExitStatus::Code(3), agent("it exited with 3")),
            (AgentVerdict::ByExit, ExitStatus::Signal(9), agent("it was killed by signal 9")),
            (AgentVerdict::Silent, ExitStatus::Code(0), agent("it exited with 0 without saying how it went")),
            (
                AgentVerdict::Finished,
                ExitStatus::Code(1),
                agent("it said that it had finished, then exited with 1"),
            ),
            (failed.clone(), ExitStatus::Code(0), agent("no")),
            (
                outage,
                ExitStatus::Code(0),
                Err(Ending::ModelError { cause: ModelCause::Provider, message: "429".to_owned() }),
            ),
        ];
        for (verdict, exit, expected) in cases {
            assert_eq!(judge_exit(&verdict, exit), expected, "{verdict:?} {exit:?}");
        }
    }
}
