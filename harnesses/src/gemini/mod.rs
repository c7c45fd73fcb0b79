//! Google's Gemini CLI, started as `gemini -p '' -o stream-json`.

mod stream;

use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::id::Version;
use crate::install::InstallSpec;
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::node::{NodeCli, folders_of_pictures, prompt_with_pictures};
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "0.61.0";

const PACKAGE: &str = "@google/gemini-cli";

/// Digests of packages of known versions on x86-64: (version, package, SHA-256).
const PINS: [(&str, &str, &str); 1] =
    [(DEFAULT_VERSION, PACKAGE, "412cef3495c740574cb00eaa3cce755821319c2e2d83d88861372b707729711f")];

/// The Gemini CLI at one version.
#[derive(Debug)]
pub(crate) struct Gemini {
    version: Version,
}

impl Gemini {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }

    fn cli(&self) -> NodeCli<'_> {
        NodeCli {
            name: self.kind(),
            version: &self.version,
            package: PACKAGE,
            program: "bundle/gemini.js",
            pins: &PINS,
            looked_at: "2026-11-30",
        }
    }
}

impl Default for Gemini {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for Gemini {
    fn kind(&self) -> HarnessName {
        HarnessName::Gemini
    }

    fn version(&self) -> Option<Version> {
        Some(self.version.clone())
    }

    fn wire(&self) -> Option<WireFormat> {
        Some(WireFormat::GeminiGenerate)
    }

    fn install(&self) -> Option<InstallSpec> {
        self.cli().install()
    }

    fn default_model(&self) -> &'static str {
        "gemini-2.5-pro"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let mut argv = self.cli().start(request)?;
        argv.extend(["--yolo", "--skip-trust", "--output-format=stream-json"].map(str::to_owned));
        argv.push(format!("--model={}", request.model));
        argv.extend(folders_of_pictures(request));
        if let Some(session) = &request.resume {
            argv.push(format!("--resume={session}"));
        }
        argv.extend(request.settings.extra_args.iter().cloned());
        // An empty prompt means that there is nobody to talk to; the prompt itself is on stdin.
        argv.push("--prompt=".to_owned());
        let mut variables = vec![
            env("GEMINI_API_KEY", NO_KEY),
            env("GOOGLE_GEMINI_BASE_URL", request.base_url.trim_end_matches('/')),
        ];
        variables.extend(request.settings.extra_env.iter().cloned());
        Ok(Launch {
            argv,
            env: variables,
            home_files: vec![(
                ".gemini/settings.json".to_owned(),
                settings(request).to_string().into_bytes(),
            )],
            stdin: prompt_with_pictures(request),
            needs_model: true,
        })
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[".gemini/tmp"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(stream::GeminiStream::default())
    }
}

fn settings(request: &LaunchRequest) -> Value {
    let mut general = json!({"enableAutoUpdate": false, "enableAutoUpdateNotification": false});
    if let Some(retries) = request.settings.max_retries {
        general["maxAttempts"] = json!(retries.saturating_add(1));
    }
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "telemetry": {"enabled": false},
        "general": general,
    })
}
