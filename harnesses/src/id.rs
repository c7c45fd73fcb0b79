//! What a user may ask for: `codex`, `codex@0.150.1`, `command`.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::claude_code::ClaudeCode;
use crate::codex::Codex;
use crate::command::Command;
use crate::controls::{Nop, Oracle};
use crate::gemini::Gemini;
use crate::opencode::OpenCode;
use crate::pi::Pi;
use crate::qwen::Qwen;
use crate::{Harness, HarnessError};

/// The harnesses there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarnessName {
    /// `OpenAI`'s Codex CLI.
    Codex,
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// `OpenCode`.
    #[serde(rename = "opencode")]
    OpenCode,
    /// Google's Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
    /// Any command line as the agent.
    Command,
    /// A control that writes the target program: whatever it does not reach is the measuring's fault.
    Oracle,
    /// A control that does nothing.
    Nop,
}

impl HarnessName {
    /// Every harness, in the order of listings.
    pub const ALL: [Self; 9] = [
        Self::Codex,
        Self::ClaudeCode,
        Self::OpenCode,
        Self::Gemini,
        Self::Qwen,
        Self::Pi,
        Self::Command,
        Self::Oracle,
        Self::Nop,
    ];

    /// The name used on the command line, in paths and in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::ClaudeCode => "claude-code",
            Self::OpenCode => "opencode",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Pi => "pi",
            Self::Command => "command",
            Self::Oracle => "oracle",
            Self::Nop => "nop",
        }
    }

    /// The version installed when none is named; none for what is part of proctor.
    pub const fn default_version(self) -> Option<&'static str> {
        match self {
            Self::Codex => Some(crate::codex::DEFAULT_VERSION),
            Self::ClaudeCode => Some(crate::claude_code::DEFAULT_VERSION),
            Self::OpenCode => Some(crate::opencode::DEFAULT_VERSION),
            Self::Gemini => Some(crate::gemini::DEFAULT_VERSION),
            Self::Qwen => Some(crate::qwen::DEFAULT_VERSION),
            Self::Pi => Some(crate::pi::DEFAULT_VERSION),
            Self::Command | Self::Oracle | Self::Nop => None,
        }
    }

    pub(crate) fn listing() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for HarnessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One exact version of a CLI. It becomes part of a path and of an argument of `npm`, so it holds nothing but digits,
/// letters, `.`, `-` and `+`, starts with a digit and never holds `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

impl Version {
    /// Longest version that is accepted, in bytes.
    const CAP: usize = 64;

    /// A version known to be well-formed when proctor was built.
    pub(crate) fn known(text: &'static str) -> Self {
        debug_assert!(text.parse::<Self>().is_ok(), "{text}");
        Self(text.to_owned())
    }
}

impl FromStr for Version {
    type Err = HarnessError;

    fn from_str(text: &str) -> Result<Self, HarnessError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
        let good = text.len() <= Self::CAP
            && text.starts_with(|first: char| first.is_ascii_digit())
            && text.contains('.')
            && text.bytes().all(allowed)
            && !text.contains("..")
            && !text.ends_with('.');
        if good { Ok(Self(text.to_owned())) } else { Err(HarnessError::BadVersion { given: shorten(text) }) }
    }
}

impl TryFrom<String> for Version {
    type Error = HarnessError;

    fn try_from(text: String) -> Result<Self, HarnessError> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl Deref for Version {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A harness and, where the user named one, its version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HarnessId {
    /// Which harness.
    pub name: HarnessName,
    /// Which version of it; none means [`HarnessName::default_version`].
    pub version: Option<Version>,
}

impl HarnessId {
    /// The version that will run: the one named, else the default; none for what is part of proctor.
    pub fn resolved_version(&self) -> Option<Version> {
        self.version.clone().or_else(|| self.name.default_version().map(Version::known))
    }

    /// The harness itself.
    pub fn harness(&self) -> Box<dyn Harness> {
        let version = self.resolved_version();
        match (self.name, version) {
            (HarnessName::Codex, Some(version)) => Box::new(Codex::new(version)),
            (HarnessName::ClaudeCode, Some(version)) => Box::new(ClaudeCode::new(version)),
            (HarnessName::OpenCode, Some(version)) => Box::new(OpenCode::new(version)),
            (HarnessName::Gemini, Some(version)) => Box::new(Gemini::new(version)),
            (HarnessName::Qwen, Some(version)) => Box::new(Qwen::new(version)),
            (HarnessName::Pi, Some(version)) => Box::new(Pi::new(version)),
            (HarnessName::Codex, None) => Box::new(Codex::default()),
            (HarnessName::ClaudeCode, None) => Box::new(ClaudeCode::default()),
            (HarnessName::OpenCode, None) => Box::new(OpenCode::default()),
            (HarnessName::Gemini, None) => Box::new(Gemini::default()),
            (HarnessName::Qwen, None) => Box::new(Qwen::default()),
            (HarnessName::Pi, None) => Box::new(Pi::default()),
            (HarnessName::Command, _) => Box::new(Command),
            (HarnessName::Oracle, _) => Box::new(Oracle),
            (HarnessName::Nop, _) => Box::new(Nop),
        }
    }
}

impl From<HarnessName> for HarnessId {
    fn from(name: HarnessName) -> Self {
        Self { name, version: None }
    }
}

impl FromStr for HarnessId {
    type Err = HarnessError;

    fn from_str(text: &str) -> Result<Self, HarnessError> {
        let (name, version) = match text.split_once('@') {
            Some((name, version)) => (name, Some(version)),
            None => (text, None),
        };
        let name = HarnessName::ALL
            .into_iter()
            .find(|known| known.as_str() == name)
            .ok_or_else(|| HarnessError::Unknown { given: shorten(name) })?;
        let version = version.map(str::parse::<Version>).transpose()?;
        if version.is_some() && name.default_version().is_none() {
            return Err(HarnessError::NoVersions { name });
        }
        Ok(Self { name, version })
    }
}

impl TryFrom<String> for HarnessId {
    type Error = HarnessError;

    fn try_from(text: String) -> Result<Self, HarnessError> {
        text.parse()
    }
}

impl From<HarnessId> for String {
    fn from(id: HarnessId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for HarnessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{}", self.name),
        }
    }
}

/// What a message shows of a text of any length.
fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_is_found_by_its_name_and_prints_it() {
        for name in HarnessName::ALL {
            let id: HarnessId = name.as_str().parse().unwrap();
            assert_eq!(id, HarnessId::from(name));
            assert_eq!(id.to_string(), name.as_str());
            assert_eq!(id.harness().name(), name.as_str());
        }
    }

    #[test]
    fn a_version_may_be_named_for_a_cli() {
        let id: HarnessId = "claude-code@2.1.250".parse().unwrap();
        assert_eq!(id.version.as_deref(), Some("2.1.250"));
        assert_eq!(id.to_string(), "claude-code@2.1.250");
        assert_eq!(id.harness().version().as_deref(), Some("2.1.250"));
        assert_eq!(
            "nop@1.0.0".parse::<HarnessId>(),
            Err(HarnessError::NoVersions { name: HarnessName::Nop })
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names_there_are() {
        let error = "codec".parse::<HarnessId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no harness `codec`; there are codex, claude-code, opencode, gemini, qwen, pi, command, oracle, nop"
        );
        assert!(error.hint().is_some());
    }

    #[test]
    fn no_version_is_a_path_an_option_or_a_range() {
        for text in
            ["", "..", "1.0/../..", "../1.0", "-rf.", "latest", "^1.2", "1.0 2.0", "1.0\n", "1..0", "1.0."]
        {
            assert!(text.parse::<Version>().is_err(), "{text:?}");
        }
        assert!("1.".repeat(40).parse::<Version>().is_err());
        for text in ["0.171.0", "2.1.332", "1.0.0-alpha.1", "1.0.0+b"] {
            assert!(text.parse::<Version>().is_ok(), "{text}");
        }
    }
}
