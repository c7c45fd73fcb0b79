//! The identity of a harness in every outcome: the bytes that run, and how they are started.

use proctor_traces::Digest;

use crate::launch::{LaunchRequest, LaunchSettings, OracleAnswer};
use crate::manifest::InstallManifest;
use crate::{Harness, HarnessError};

/// Digest over the installed files, and over arguments, environment and files of HOME for a first turn in which prompt
/// and model are placeholders. Two methods with equal digests run the same program in the same way; a change of how
/// this crate starts a CLI changes it too. `manifest` is none for what needs no installation.
pub fn harness_digest(
    harness: &dyn Harness,
    manifest: Option<&InstallManifest>,
    command: Option<&[String]>,
    settings: &LaunchSettings,
) -> Result<Digest, HarnessError> {
    let template = LaunchRequest {
        model: "MODEL".to_owned(),
        prompt: "PROMPT".to_owned(),
        install_dir: Some("/opt/harness".to_owned()),
        command: command.map(<[String]>::to_vec),
        oracle: Some(OracleAnswer { artifact: "ARTIFACT".to_owned(), program: Vec::new() }),
        settings: settings.clone(),
        ..LaunchRequest::default()
    };
    let launch = harness.launch(&template)?;
    let files = manifest.map(|manifest| manifest.digest().to_string()).unwrap_or_default();
    let mut parts: Vec<(&str, &[u8])> =
        vec![("harness", harness.name().as_bytes()), ("files", files.as_bytes())];
    parts.extend(launch.argv.iter().map(|word| ("argument", word.as_bytes())));
    parts.extend(launch.env.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
    parts.extend(launch.home_files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())));
    Ok(Digest::of_parts(parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HarnessId, HarnessName};

    fn digest(id: &str, command: Option<&[String]>, settings: &LaunchSettings) -> Digest {
        let id: HarnessId = id.parse().unwrap();
        harness_digest(&*id.harness(), None, command, settings).unwrap()
    }

    #[test]
    fn it_changes_with_the_settings_and_the_command_and_with_nothing_else() {
        let plain = LaunchSettings::default();
        let retrying = LaunchSettings { max_retries: Some(2), ..LaunchSettings::default() };
        for id in ["codex", "claude-code", "gemini", "qwen", "pi"] {
            assert_eq!(digest(id, None, &plain), digest(id, None, &plain));
            assert_ne!(digest(id, None, &plain), digest(id, None, &retrying), "{id}");
        }
        let command = |word: &str| [word.to_owned()];
        assert_ne!(
            digest("command", Some(&command("a")), &plain),
            digest("command", Some(&command("b")), &plain)
        );
    }

    #[test]
    fn every_harness_has_one_and_no_two_share_it() {
        let command = ["true".to_owned()];
        let mut all: Vec<Digest> = HarnessName::ALL
            .map(|name| digest(name.as_str(), Some(&command), &LaunchSettings::default()))
            .to_vec();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), HarnessName::ALL.len());
    }
}
