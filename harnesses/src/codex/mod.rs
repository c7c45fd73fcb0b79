//! `OpenAI`'s Codex CLI, started as `codex exec --json`.
//!
//! Everything it needs to know goes into its arguments, where an agent that rewrites its own configuration cannot
//! reach it. A provider of our own is declared, since the built-in one tries web sockets first and loses seconds.

mod stream;

use proctor_traces::WireFormat;

use crate::error::LaunchNeed;
use crate::id::Version;
use crate::install::{InstallSpec, KeptFile, NpmPackage, npm_cpu, pinned};
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "0.171.0";

/// Digests of the files of known versions on x86-64: (version, file, SHA-256).
const PINS: [(&str, &str, &str); 6] = [
    ("0.171.0", "bin/codex", "b76a027d6b210f9a8da7aaf321dd235c700f0ef7a794d4a5314b9af6c134f0f0"),
    (
        "0.171.0",
        "bin/codex-code-mode-host",
        "f49bd4f0c0cc73cf1ec3a719009e07ce5b6e100520d023c760cc203fb37e5c6f",
    ),
    ("0.171.0", "codex-path/rg", "e62198eb19b136b88c330af83647b5a962cb99b6b1f066758568f12de1974849"),
    ("0.150.1", "bin/codex", "abf1bb1643a79f73aa78ee627e111e02d4f8c98f25813a0cf6ce277709664386"),
    (
        "0.150.1",
        "bin/codex-code-mode-host",
        "b3d633427c8c75057fba11dad6051714d44886440305e86ba9d2c0366f4dd63b",
    ),
    ("0.150.1", "codex-path/rg", "e62198eb19b136b88c330af83647b5a962cb99b6b1f066758568f12de1974849"),
];

/// Name of our provider in Codex's configuration, and of the variable that it reads its key from.
const PROVIDER: &str = "proctor";
const KEY_VARIABLE: &str = "PROCTOR_MODEL_KEY";

/// The Codex CLI at one version.
#[derive(Debug)]
pub(crate) struct Codex {
    version: Version,
}

impl Codex {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }

    /// The `-c` settings, as `key=value` with the value in TOML.
    fn settings(request: &LaunchRequest) -> Vec<String> {
        let base_url = toml_string(&format!("{}/v1", request.base_url.trim_end_matches('/')));
        let mut provider = vec![
            format!(r#"name="{PROVIDER}""#),
            format!("base_url={base_url}"),
            r#"wire_api="responses""#.to_owned(),
            format!(r#"env_key="{KEY_VARIABLE}""#),
        ];
        if let Some(retries) = request.settings.max_retries {
            provider.push(format!("request_max_retries={retries}"));
            provider.push(format!("stream_max_retries={retries}"));
        }
        provider.extend(request.settings.idle_timeout_ms.map(|ms| format!("stream_idle_timeout_ms={ms}")));
        let provider = provider.join(",");
        vec![
            format!(r#"model_provider="{PROVIDER}""#),
            format!("model_providers.{PROVIDER}={{{provider}}}"),
            "check_for_update_on_startup=false".to_owned(),
            "analytics.enabled=false".to_owned(),
        ]
    }
}

impl Default for Codex {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for Codex {
    fn kind(&self) -> HarnessName {
        HarnessName::Codex
    }

    fn version(&self) -> Option<Version> {
        Some(self.version.clone())
    }

    fn wire(&self) -> Option<WireFormat> {
        Some(WireFormat::OpenaiResponses)
    }

    /// The package of the platform alone, under an alias: the main package would bring every platform and a launcher
    /// that needs node. The folders keep Codex's own layout, by which it finds its `rg` and its code-mode host.
    fn install(&self) -> Option<InstallSpec> {
        let cpu = npm_cpu()?;
        let alias = "codex-cli";
        let vendor = format!("{alias}/vendor/{}-unknown-linux-musl", std::env::consts::ARCH);
        let kept = |to: &str, required| KeptFile {
            from: format!("{vendor}/{to}"),
            to: to.to_owned(),
            required,
            pin: pinned(&PINS, cpu, &self.version, to),
        };
        Some(InstallSpec {
            tree: None,
            before: None,
            name: self.kind(),
            version: self.version.clone(),
            packages: vec![NpmPackage {
                spec: format!("{alias}@npm:@openai/codex@{}-linux-{cpu}", self.version),
                folder: alias.to_owned(),
            }],
            files: vec![
                kept("bin/codex", true),
                kept("bin/codex-code-mode-host", false),
                kept("codex-path/rg", false),
                kept("codex-package.json", false),
            ],
        })
    }

    fn default_model(&self) -> &'static str {
        "gpt-5.5"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let missing = |what| HarnessError::Missing { harness: self.kind(), what };
        let install = request.install_dir.as_deref().ok_or(missing(LaunchNeed::INSTALL))?;
        if request.model.is_empty() {
            return Err(missing(LaunchNeed::MODEL));
        }
        // Without a prompt Codex fails in words that say nothing of the task.
        if request.prompt.trim().is_empty() {
            return Err(missing(LaunchNeed::PROMPT));
        }

        let mut argv = vec![format!("{install}/bin/codex"), "exec".to_owned()];
        if request.resume.is_some() {
            argv.push("resume".to_owned());
        }
        argv.extend(
            ["--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
                .map(str::to_owned),
        );
        // `--image` takes every word after it that is no option, so an option must follow.
        argv.extend(request.images.iter().map(|image| format!("--image={}", image.path)));
        argv.push("--disable=plugins".to_owned());
        argv.push(format!("--model={}", request.model));
        argv.extend(Self::settings(request).into_iter().flat_map(|setting| ["-c".to_owned(), setting]));
        argv.extend(request.settings.extra_args.iter().cloned());
        if let Some(session) = &request.resume {
            argv.extend([session.to_string(), "-".to_owned()]);
        }

        let mut variables = vec![env(KEY_VARIABLE, NO_KEY)];
        variables.extend(request.settings.extra_env.iter().cloned());
        Ok(Launch {
            argv,
            env: variables,
            home_files: Vec::new(),
            stdin: request.prompt.clone().into_bytes(),
            needs_model: true,
        })
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[".codex/sessions"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(stream::CodexStream::default())
    }
}

/// `text` as a TOML string. JSON's escapes are TOML's too.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{AttachedImage, LaunchSettings, SessionId};

    fn request() -> LaunchRequest {
        LaunchRequest {
            model: "gpt-5.5".to_owned(),
            prompt: "Read TASK.md.".to_owned(),
            install_dir: Some("/opt/harness".to_owned()),
            ..LaunchRequest::default()
        }
    }

    #[test]
    fn the_first_turn() {
        let launch = Codex::default().launch(&request()).unwrap();
        let expected = r#"/opt/harness/bin/codex
exec
--json
--skip-git-repo-check
--dangerously-bypass-approvals-and-sandbox
--disable=plugins
--model=gpt-5.5
-c
model_provider="proctor"
-c
model_providers.proctor={name="proctor",base_url="http://127.0.0.1:8080/v1",wire_api="responses",env_key="PROCTOR_MODEL_KEY"}
-c
check_for_update_on_startup=false
-c
analytics.enabled=false"#;
        assert_eq!(launch.argv.join("\n"), expected);
        assert_eq!(launch.stdin, b"Read TASK.md.");
        assert!(launch.needs_model);
    }

    #[test]
    fn an_option_stands_between_the_pictures_and_the_words_after_them() {
        let image = |path: &str| AttachedImage {
            path: path.to_owned(),
            media_type: "image/png".to_owned(),
            bytes: Vec::new(),
        };
        let request = LaunchRequest {
            images: vec![image("/work/a.png"), image("/work/b.png")],
            resume: SessionId::new("01a2"),
            settings: LaunchSettings { max_retries: Some(1), ..LaunchSettings::default() },
            ..request()
        };
        let argv = Codex::default().launch(&request).unwrap().argv;
        assert_eq!(argv[1..3], ["exec", "resume"]);
        let at = argv.iter().position(|word| word == "--image=/work/a.png").unwrap();
        assert_eq!(argv[at + 1], "--image=/work/b.png");
        assert!(argv[at + 2].starts_with("--"));
        assert_eq!(argv[argv.len() - 2..], ["01a2", "-"]);
        assert!(argv.iter().any(|word| word.contains("request_max_retries=1,stream_max_retries=1")));
    }

    #[test]
    fn what_it_cannot_do_without_is_named() {
        let without_install = LaunchRequest { install_dir: None, ..request() };
        let without_prompt = LaunchRequest { prompt: " \n".to_owned(), ..request() };
        for request in [without_install, without_prompt, LaunchRequest { model: String::new(), ..request() }]
        {
            assert!(matches!(Codex::default().launch(&request), Err(HarnessError::Missing { .. })));
        }
    }

    #[test]
    fn the_defaults_and_the_papers_version_are_pinned() {
        for version in [DEFAULT_VERSION, "0.150.1"] {
            assert!(pinned(&PINS, "x64", version, "bin/codex").is_some(), "{version}");
        }
        assert_eq!(pinned(&PINS, "arm64", DEFAULT_VERSION, "bin/codex"), None);
        assert_eq!(pinned(&PINS, "x64", "0.1.0", "bin/codex"), None);
    }
}
