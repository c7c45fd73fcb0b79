//! pi, started as `pi -p --mode json`.

mod stream;

use proctor_traces::WireFormat;
use serde_json::{Value, json};

use crate::id::Version;
use crate::install::InstallSpec;
use crate::launch::{Launch, LaunchRequest, NO_KEY, env};
use crate::node::NodeCli;
use crate::stream::StreamReader;
use crate::{Harness, HarnessError, HarnessName};

/// The version that is installed when none is named.
pub(crate) const DEFAULT_VERSION: &str = "0.73.1";

const PACKAGE: &str = "@mariozechner/pi-coding-agent";

/// Digests of packages of known versions on x86-64: (version, package, SHA-256).
const PINS: [(&str, &str, &str); 3] = [
    (DEFAULT_VERSION, PACKAGE, "c5966afeafb8b25d8d6455c07b322661bc701df26e5cf57ea964b5b6139db221"),
    (
        DEFAULT_VERSION,
        "@mariozechner/pi-agent-core",
        "df757477fdf78ce97731ec615ac751b1a584d067e725109307ab3a6289975343",
    ),
    (
        DEFAULT_VERSION,
        "@mariozechner/pi-ai",
        "8298876c4fad6baff73bf153bfdb05bda1a6cd7ab0f87ada478f064c6df766c2",
    ),
];

/// Name of our provider in its configuration.
const PROVIDER: &str = "proctor";

/// pi at one version.
#[derive(Debug)]
pub(crate) struct Pi {
    version: Version,
}

impl Pi {
    pub(crate) fn new(version: Version) -> Self {
        Self { version }
    }

    fn cli(&self) -> NodeCli<'_> {
        NodeCli {
            name: self.kind(),
            version: &self.version,
            package: PACKAGE,
            program: "dist/cli.js",
            pins: &PINS,
            looked_at: "2026-11-30",
        }
    }
}

impl Default for Pi {
    fn default() -> Self {
        Self::new(Version::known(DEFAULT_VERSION))
    }
}

impl Harness for Pi {
    fn kind(&self) -> HarnessName {
        HarnessName::Pi
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
        "scripted"
    }

    fn launch(&self, request: &LaunchRequest) -> Result<Launch, HarnessError> {
        let mut argv = self.cli().start(request)?;
        argv.extend(["-p", "--mode", "json", "--offline", "--provider", PROVIDER].map(str::to_owned));
        argv.extend(["--model".to_owned(), request.model.clone()]);
        if let Some(session) = &request.resume {
            argv.extend(["--session".to_owned(), session.to_string()]);
        }
        argv.extend(request.settings.extra_args.iter().cloned());
        argv.extend(request.images.iter().map(|image| format!("@{}", image.path)));
        let mut variables = vec![env("PI_OFFLINE", "1"), env("PI_TELEMETRY", "0")];
        variables.extend(request.settings.extra_env.iter().cloned());
        let file = |name: &str, value: &Value| (format!(".pi/agent/{name}"), value.to_string().into_bytes());
        let mut home_files = vec![file("models.json", &models(request))];
        if let Some(retries) = request.settings.max_retries {
            let retry = json!({"enabled": retries > 0, "maxRetries": retries});
            home_files.push(file("settings.json", &json!({ "retry": retry })));
        }
        Ok(Launch {
            argv,
            env: variables,
            home_files,
            stdin: request.prompt.clone().into_bytes(),
            needs_model: true,
        })
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[".pi/agent/sessions"]
    }

    fn stream(&self) -> Box<dyn StreamReader> {
        Box::new(stream::PiStream::default())
    }
}

/// A provider of our own. Of the model, only that it sees pictures is said; all else is as pi takes it to be.
fn models(request: &LaunchRequest) -> Value {
    json!({"providers": {PROVIDER: {
        "baseUrl": format!("{}/v1", request.base_url.trim_end_matches('/')),
        "api": "openai-completions",
        "apiKey": NO_KEY,
        "models": [{"id": request.model, "input": ["text", "image"]}],
    }}})
}
