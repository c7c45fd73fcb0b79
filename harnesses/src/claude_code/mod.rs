//! Anthropic's Claude Code, started as `claude -p --output-format stream-json`.

mod results;
pub(crate) mod stream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::error::LaunchNeed;
use crate::id::Version;
use crate::install::{InstallSpec, KeptFile, NpmPackage, npm_cpu, pinned};
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "2.1.332";

/// Digests of the files of known versions on x86-64: (version, file, SHA-256).
const PINS: [(&str, &str, &str); 2] = [
    ("2.1.332", "bin/claude", "a2df1f41bb00250992926420d0063f89b127cb81abdd284dbefb80c50ff1d026"),
    ("2.1.250", "bin/claude", "2be252a00ac56e704d7fbf7e5e9ef1243584093334a861945238a0c27e84bdac"),
];

/// Claude Code at one version.
#[derive(Debug)]
pub(crate) struct ClaudeCode {
    version: Version,
}

impl ClaudeCode {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }
}

impl Default for ClaudeCode {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for ClaudeCode {
    fn kind(&self) -> HarnessName {
        HarnessName::ClaudeCode
    }

    fn version(&self) -> Option<Version> {
        Some(self.version.clone())
    }

    fn wire(&self) -> Option<WireFormat> {
        Some(WireFormat::AnthropicMessages)
    }

    /// The package of the platform alone: it holds the whole CLI as one file and needs no node.
    fn install(&self) -> Option<InstallSpec> {
        let cpu = npm_cpu()?;
        let package = format!("@anthropic-ai/claude-code-linux-{cpu}");
        Some(InstallSpec {
            tree: None,
            before: None,
            name: self.kind(),
            version: self.version.clone(),
            files: vec![KeptFile {
                from: format!("{package}/claude"),
                to: "bin/claude".to_owned(),
                required: true,
                pin: pinned(&PINS, cpu, &self.version, "bin/claude"),
            }],
            packages: vec![NpmPackage { spec: format!("{package}@{}", self.version), folder: package }],
        })
    }

    fn default_model(&self) -> &'static str {
        "claude-opus-5-5"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let missing = |what| HarnessError::Missing { harness: self.kind(), what };
        let install = request.install_dir.as_deref().ok_or(missing(LaunchNeed::INSTALL))?;
        if request.model.is_empty() {
            return Err(missing(LaunchNeed::MODEL));
        }
        if request.prompt.trim().is_empty() {
            return Err(missing(LaunchNeed::PROMPT));
        }

        let mut argv = vec![format!("{install}/bin/claude")];
        argv.extend(
            ["-p", "--output-format=stream-json", "--verbose", "--dangerously-skip-permissions"]
                .map(str::to_owned),
        );
        if !request.images.is_empty() {
            argv.push("--input-format=stream-json".to_owned());
        }
        argv.push(format!("--model={}", request.model));
        if let Some(session) = &request.resume {
            argv.push(format!("--resume={session}"));
        }
        argv.extend(request.settings.extra_args.iter().cloned());

        Ok(Launch {
            argv,
            env: environment(request),
            home_files: Vec::new(),
            stdin: stdin(request),
            needs_model: true,
        })
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[".claude/projects"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(stream::ClaudeStream::default())
    }
}

fn environment(request: &LaunchRequest) -> Vec<(String, String)> {
    let mut variables = vec![
        env("ANTHROPIC_BASE_URL", request.base_url.trim_end_matches('/')),
        env("ANTHROPIC_API_KEY", NO_KEY),
        // Else it asks the model server for more than answers, and looks up names.
        env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        env("DISABLE_AUTOUPDATER", "1"),
        env("DISABLE_TELEMETRY", "1"),
        env("DISABLE_ERROR_REPORTING", "1"),
        // It refuses to skip permissions as root unless it is told that it is in a sandbox, which it is.
        env("IS_SANDBOX", "1"),
    ];
    if let Some(retries) = request.settings.max_retries {
        variables.push(env("CLAUDE_CODE_MAX_RETRIES", retries.to_string()));
    }
    if let Some(ms) = request.settings.idle_timeout_ms {
        variables.push(env("API_TIMEOUT_MS", ms.to_string()));
    }
    variables.extend(request.settings.extra_env.iter().cloned());
    variables
}

/// The prompt; with pictures, the prompt and their bytes in one message. A path behind an `@` would do too, but is
/// shown to the model as a call of the Read tool that the agent never made.
fn stdin(request: &LaunchRequest) -> Vec<u8> {
    if request.images.is_empty() {
        return request.prompt.clone().into_bytes();
    }
    let picture = |image: &crate::AttachedImage| {
        let data = BASE64.encode(&image.bytes);
        json!({"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}})
    };
    let mut content: Vec<Value> = request.images.iter().map(picture).collect();
    content.push(json!({"type": "text", "text": request.prompt}));
    let message = json!({"type": "user", "message": {"role": "user", "content": content}});
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{AttachedImage, LaunchSettings, SessionId};

    fn request() -> LaunchRequest {
        LaunchRequest {
            model: "claude-opus-5-5".to_owned(),
            prompt: "Read TASK.md.".to_owned(),
            install_dir: Some("/opt/harness".to_owned()),
            ..LaunchRequest::default()
        }
    }

    #[test]
    fn the_first_turn() {
        let launch = ClaudeCode::default().launch(&request()).unwrap();
        assert_eq!(
            launch.argv,
            [
                "/opt/harness/bin/claude",
                "-p",
                "--output-format=stream-json",
                "--verbose",
                "--dangerously-skip-permissions",
                "--model=claude-opus-5-5",
            ]
        );
        assert_eq!(launch.stdin, b"Read TASK.md.");
        assert_eq!(launch.env[0], env("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080"));
        assert!(!launch.env.iter().any(|(name, _)| name.contains("RETRIES") || name.contains("TIMEOUT")));
    }

    #[test]
    fn a_later_turn_with_settings() {
        let request = LaunchRequest {
            resume: SessionId::new("8dfe"),
            settings: LaunchSettings {
                max_retries: Some(1),
                idle_timeout_ms: Some(4000),
                extra_args: vec!["--effort=high".to_owned()],
                extra_env: vec![env("A", "b")],
            },
            ..request()
        };
        let launch = ClaudeCode::default().launch(&request).unwrap();
        assert_eq!(launch.argv[6..], ["--resume=8dfe", "--effort=high"]);
        for pair in [env("CLAUDE_CODE_MAX_RETRIES", "1"), env("API_TIMEOUT_MS", "4000"), env("A", "b")] {
            assert!(launch.env.contains(&pair), "{pair:?}");
        }
    }

    #[test]
    fn pictures_go_into_the_message_as_bytes() {
        let image = AttachedImage {
            path: "/work/source.png".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: vec![0, 1, 2],
        };
        let launch =
            ClaudeCode::default().launch(&LaunchRequest { images: vec![image], ..request() }).unwrap();
        assert!(launch.argv.contains(&"--input-format=stream-json".to_owned()));
        let line: Value = serde_json::from_slice(&launch.stdin).unwrap();
        assert_eq!(line["message"]["content"][0]["source"]["data"], "AAEC");
        assert_eq!(line["message"]["content"][1]["text"], "Read TASK.md.");
        assert_eq!(launch.stdin.iter().position(|byte| *byte == b'\n'), Some(launch.stdin.len() - 1));
    }
}
