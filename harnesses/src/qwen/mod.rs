//! Qwen Code, started as `qwen -o stream-json`. It prints what Claude Code prints, in a dialect of its own.

use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::claude_code::stream::{ClaudeStream, Dialect};
use crate::id::Version;
use crate::install::InstallSpec;
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::node::{NodeCli, folders_of_pictures, prompt_with_pictures};
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "0.24.4";

const PACKAGE: &str = "@qwen-code/qwen-code";

/// Digests of packages of known versions on x86-64: (version, package, SHA-256).
const PINS: [(&str, &str, &str); 1] =
    [(DEFAULT_VERSION, PACKAGE, "d460476c46552a50cf2cbde1504be5e9ad9b9f5b1fa8efa6b4e01626cfd48ceb")];

/// Qwen Code at one version.
#[derive(Debug)]
pub(crate) struct Qwen {
    version: Version,
}

impl Qwen {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }

    fn cli(&self) -> NodeCli<'_> {
        NodeCli {
            name: self.kind(),
            version: &self.version,
            package: PACKAGE,
            program: "cli-entry.js",
            pins: &PINS,
            looked_at: "2026-11-30",
        }
    }
}

impl Default for Qwen {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for Qwen {
    fn kind(&self) -> HarnessName {
        HarnessName::Qwen
    }

    fn version(&self) -> Option<Version> {
        Some(self.version.clone())
    }

    fn wire(&self) -> Option<WireFormat> {
        Some(WireFormat::OpenaiChat)
    }

    fn install(&self) -> Option<InstallSpec> {
        self.cli().install()
    }

    fn default_model(&self) -> &'static str {
        "qwen3.5-plus"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let mut argv = self.cli().start(request)?;
        argv.extend(["--yolo", "--output-format=stream-json", "--auth-type=openai"].map(str::to_owned));
        argv.push(format!("--openai-base-url={}/v1", request.base_url.trim_end_matches('/')));
        argv.push(format!("--model={}", request.model));
        argv.extend(folders_of_pictures(request));
        if let Some(session) = &request.resume {
            argv.push(format!("--resume={session}"));
        }
        argv.extend(request.settings.extra_args.iter().cloned());
        let mut variables = vec![
            env("OPENAI_API_KEY", NO_KEY),
            // It would warn that there is no sandbox around it; there is.
            env("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
        ];
        variables.extend(request.settings.extra_env.iter().cloned());
        Ok(Launch {
            argv,
            env: variables,
            home_files: vec![(".qwen/settings.json".to_owned(), settings(request).to_string().into_bytes())],
            stdin: prompt_with_pictures(request),
            needs_model: true,
        })
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[".qwen/projects"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(ClaudeStream::new(Dialect::Qwen))
    }
}

/// Of models that it does not know by name it believes that they see no pictures, and sends none. Every task here is
/// about one.
fn settings(request: &LaunchRequest) -> Value {
    let mut generation = json!({"modalities": {"image": true}});
    if let Some(retries) = request.settings.max_retries {
        generation["maxRetries"] = json!(retries);
    }
    if let Some(ms) = request.settings.idle_timeout_ms {
        generation["timeout"] = json!(ms);
    }
    json!({
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false},
        "telemetry": {"enabled": false},
        "model": {"generationConfig": generation},
    })
}
