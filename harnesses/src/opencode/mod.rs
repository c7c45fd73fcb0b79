//! `OpenCode`, started as `opencode run --format json`.
//!
//! Its configuration goes into the environment, where an agent that rewrites files cannot reach it.

mod stream;

use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::id::Version;
use crate::install::{InstallSpec, KeptFile, NpmPackage, npm_cpu, pinned};
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::node::ready;
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "1.18.33";

/// Digests of the files of known versions on x86-64: (version, file, SHA-256).
const PINS: [(&str, &str, &str); 1] =
    [(DEFAULT_VERSION, "bin/opencode", "0abbb7c32ab0294c0a7bfa2705f9ff0df5dce5ab721d1f00cccfe393f2a11427")];

/// Name of our provider in its configuration.
const PROVIDER: &str = "proctor";

/// `OpenCode` at one version.
#[derive(Debug)]
pub(crate) struct OpenCode {
    version: Version,
}

impl OpenCode {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }
}

impl Default for OpenCode {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for OpenCode {
    fn kind(&self) -> HarnessName {
        HarnessName::OpenCode
    }

    fn version(&self) -> Option<Version> {
        Some(self.version.clone())
    }

    fn wire(&self) -> Option<WireFormat> {
        Some(WireFormat::OpenaiChat)
    }

    /// The package of the platform alone: it holds the whole CLI as one file and needs no node.
    fn install(&self) -> Option<InstallSpec> {
        let cpu = npm_cpu()?;
        let package = format!("opencode-linux-{cpu}");
        Some(InstallSpec {
            name: self.kind(),
            version: self.version.clone(),
            files: vec![KeptFile {
                from: format!("{package}/bin/opencode"),
                to: "bin/opencode".to_owned(),
                required: true,
                pin: pinned(&PINS, cpu, &self.version, "bin/opencode"),
            }],
            packages: vec![NpmPackage { spec: format!("{package}@{}", self.version), folder: package }],
            tree: None,
            before: None,
        })
    }

    fn default_model(&self) -> &'static str {
        "scripted"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let install = ready(self.kind(), request)?;
        let mut argv = vec![format!("{install}/bin/opencode"), "run".to_owned(), "--format=json".to_owned()];
        argv.extend(request.images.iter().map(|image| format!("--file={}", image.path)));
        argv.push(format!("--model={PROVIDER}/{}", request.model));
        if let Some(session) = &request.resume {
            argv.push(format!("--session={session}"));
        }
        argv.extend(request.settings.extra_args.iter().cloned());
        let mut variables = vec![
            env("OPENCODE_CONFIG_CONTENT", configuration(request).to_string()),
            env("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            env("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            env("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            env("OPENCODE_DISABLE_SHARE", "1"),
        ];
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
        &[".local/share/opencode"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(stream::OpenCodeStream::default())
    }
}

/// A provider of our own, whose package is part of the binary. No limits of the model are named: they would turn up as
/// settings in its requests.
fn configuration(request: &LaunchRequest) -> Value {
    let mut options = json!({
        "baseURL": format!("{}/v1", request.base_url.trim_end_matches('/')),
        "apiKey": NO_KEY,
    });
    if let Some(ms) = request.settings.idle_timeout_ms {
        options["timeout"] = json!(ms);
    }
    let model = json!({
        "name": request.model,
        "attachment": true,
        "tool_call": true,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
    });
    json!({
        "autoupdate": false,
        "share": "disabled",
        "permission": "allow",
        "provider": {PROVIDER: {
            "npm": "@ai-sdk/openai-compatible",
            "name": PROVIDER,
            "options": options,
            "models": {request.model.as_str(): model},
        }},
    })
}
