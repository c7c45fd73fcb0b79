//! The process to start for one turn.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// What a harness is told for one turn. Every path is a path inside the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Name of the model, as the CLI is to ask for it; empty if there is none.
    pub model: String,
    /// Where the model answers, without a path, as in `http://127.0.0.1:8080`.
    pub base_url: String,
    /// The message to the agent, byte for byte.
    pub prompt: String,
    /// Pictures to attach to the message (`image_delivery = attach|both`).
    pub images: Vec<AttachedImage>,
    /// The agent's HOME.
    pub home: String,
    /// The folder it works in.
    pub workspace: String,
    /// Where the install tree is mounted.
    pub install_dir: Option<String>,
    /// The session to go on with, in a later turn.
    pub resume: Option<SessionId>,
    /// The agent's command line, for `command`.
    pub command: Option<Vec<String>>,
    /// The target program, for `oracle`.
    pub oracle: Option<OracleAnswer>,
    /// What the experiment sets beyond the CLI's defaults.
    pub settings: LaunchSettings,
}

impl Default for LaunchRequest {
    fn default() -> Self {
        Self {
            model: String::new(),
            base_url: "http://127.0.0.1:8080".to_owned(),
            prompt: String::new(),
            images: Vec::new(),
            home: "/home/agent".to_owned(),
            workspace: "/work".to_owned(),
            install_dir: None,
            resume: None,
            command: None,
            oracle: None,
            settings: LaunchSettings::default(),
        }
    }
}

/// A picture that goes with the prompt. Some CLIs are given its path, others its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedImage {
    /// Where it lies in the room.
    pub path: String,
    /// Its media type, as in `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The hidden target program. It reaches the room through stdin of the process and in no other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OracleAnswer {
    /// Name of the designated file, relative to the workspace.
    pub artifact: String,
    /// The program.
    pub program: Vec<u8>,
}

/// What an experiment sets beyond the CLI's own defaults; empty means that the CLI decides (DESIGN §3.10).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LaunchSettings {
    /// How often the CLI asks again after a failed request.
    pub max_retries: Option<u32>,
    /// How long the CLI waits for a silent model server, in milliseconds.
    pub idle_timeout_ms: Option<u64>,
    /// Further arguments, put before the prompt.
    pub extra_args: Vec<String>,
    /// Further environment.
    pub extra_env: Vec<(String, String)>,
}

/// The process to start. HOME, PATH, LANG and TERM are the room's; `env` comes on top of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Environment on top of the room's.
    pub env: Vec<(String, String)>,
    /// Files to put into HOME first, by their path relative to it.
    pub home_files: Vec<(String, Vec<u8>)>,
    /// What stdin yields before it ends; empty means `/dev/null`.
    pub stdin: Vec<u8>,
    /// Whether a model has to answer for the agent to work.
    pub needs_model: bool,
}

/// Name of an agent's session. The agent's own output names it and it goes back into an argument list, so only
/// letters, digits, `-` and `_` are taken, and never a leading `-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// `text` as the name of a session, if it can be one.
    pub fn new(text: &str) -> Option<Self> {
        let good = (1..=128).contains(&text.len())
            && !text.starts_with('-')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        good.then(|| Self(text.to_owned()))
    }
}

impl TryFrom<String> for SessionId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| "not the name of a session".to_owned())
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl Deref for SessionId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of a key where a CLI insists on one. The true key is the gateway's and never enters the room.
pub(crate) const NO_KEY: &str = "held-by-the-gateway";

/// A pair of the environment.
pub(crate) fn env(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_cannot_be_an_option_or_a_path() {
        for text in ["", "-c", "--last", "a b", "../x", "a/b", "é", "a\n", &"a".repeat(129)] {
            assert_eq!(SessionId::new(text), None, "{text:?}");
        }
        let uuid = "01a22c37-c781-7da1-8e6e-ba542c32a109";
        assert_eq!(SessionId::new(uuid).as_deref(), Some(uuid));
    }
}
