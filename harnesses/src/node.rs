//! What the CLIs that run on node share. Each brings a node of its own: rooms have none, and which one runs a CLI is
//! part of what the CLI is.

use crate::error::LaunchNeed;
use crate::id::Version;
use crate::install::{InstallSpec, KeptFile, NpmPackage, npm_cpu, pinned};
use crate::kept_tree::{KeptTree, PackagePin};
use crate::launch::LaunchRequest;
use crate::{HarnessError, HarnessName};

/// The node that CLIs run on. Qwen Code asks for 22, the others for 20 or newer.
const NODE_VERSION: &str = "22.23.5";

/// Its digest on x86-64.
const NODE_PINS: [(&str, &str, &str); 1] =
    [(NODE_VERSION, "bin/node", "2f822d544601dfff107f57d945b649d15c5bf6302595735a6bd9cdc7ee9669bd")];

/// A CLI that is a package of npm's.
pub(crate) struct NodeCli<'a> {
    pub(crate) name: HarnessName,
    pub(crate) version: &'a Version,
    /// Name of its package.
    pub(crate) package: &'a str,
    /// The program in it.
    pub(crate) program: &'a str,
    /// Digests of packages of known versions on x86-64: (version, package, SHA-256).
    pub(crate) pins: &'a [(&'a str, &'a str, &'a str)],
    /// The day on which the versions in `pins` were looked at.
    pub(crate) looked_at: &'a str,
}

impl NodeCli<'_> {
    /// Its packages and a node. Of a version that was looked at, everything is as it was on that day.
    pub(crate) fn install(&self) -> Option<InstallSpec> {
        let cpu = npm_cpu()?;
        let node = format!("node-linux-{cpu}");
        let pins: Vec<PackagePin> = self
            .pins
            .iter()
            .filter_map(|(_, folder, _)| {
                let digest = pinned(self.pins, cpu, self.version, folder)?;
                Some(PackagePin { folder: (*folder).to_owned(), digest })
            })
            .collect();
        let is_known = self.pins.iter().any(|(version, ..)| *version == &**self.version);
        let package = |name: &str, version: &str| NpmPackage {
            spec: format!("{name}@{version}"),
            folder: name.to_owned(),
        };
        Some(InstallSpec {
            name: self.name,
            version: self.version.clone(),
            packages: vec![package(self.package, self.version), package(&node, NODE_VERSION)],
            files: vec![KeptFile {
                from: format!("{node}/bin/node"),
                to: "bin/node".to_owned(),
                required: true,
                pin: pinned(&NODE_PINS, cpu, NODE_VERSION, "bin/node"),
            }],
            tree: Some(KeptTree { except: vec![node, ".bin".to_owned()], pins }),
            before: is_known.then(|| self.looked_at.to_owned()),
        })
    }

    /// The words that start it.
    pub(crate) fn start(&self, request: &LaunchRequest) -> Result<Vec<String>, HarnessError> {
        let install = ready(self.name, request)?;
        Ok(vec![
            format!("{install}/bin/node"),
            format!("{install}/node_modules/{}/{}", self.package, self.program),
        ])
    }
}

/// Where the CLI is installed, if nothing that a launch needs is missing.
pub(crate) fn ready(name: HarnessName, request: &LaunchRequest) -> Result<&str, HarnessError> {
    let missing = |what| HarnessError::Missing { harness: name, what };
    if request.model.is_empty() {
        return Err(missing(LaunchNeed::MODEL));
    }
    if request.prompt.trim().is_empty() {
        return Err(missing(LaunchNeed::PROMPT));
    }
    request.install_dir.as_deref().ok_or(missing(LaunchNeed::INSTALL))
}

/// The prompt, with each picture named behind an `@`, which is how these CLIs take files into a message.
pub(crate) fn prompt_with_pictures(request: &LaunchRequest) -> Vec<u8> {
    let mut prompt = request.prompt.clone();
    for image in &request.images {
        prompt.push_str("\n@");
        prompt.push_str(&image.path.replace(' ', "\\ "));
    }
    prompt.into_bytes()
}

/// The folders of attached pictures, which these CLIs must be told of: they take no file from elsewhere than the workspace.
pub(crate) fn folders_of_pictures(request: &LaunchRequest) -> Vec<String> {
    let mut folders: Vec<&str> =
        request.images.iter().filter_map(|image| Some(image.path.rsplit_once('/')?.0)).collect();
    folders.sort_unstable();
    folders.dedup();
    folders.iter().map(|folder| format!("--include-directories={folder}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HarnessId;
    use crate::launch::{AttachedImage, SessionId};

    #[test]
    fn every_cli_is_told_model_address_session_and_pictures() {
        let image = AttachedImage {
            path: "/run/proctor/a.png".to_owned(),
            media_type: "image/png".to_owned(),
            bytes: Vec::new(),
        };
        let request = LaunchRequest {
            model: "vendor/m:free".to_owned(),
            base_url: "http://127.0.0.1:9999/".to_owned(),
            prompt: "Draw it.".to_owned(),
            images: vec![image],
            install_dir: Some("/opt/harness".to_owned()),
            resume: SessionId::new("ses_1"),
            ..LaunchRequest::default()
        };
        for (name, picture) in [
            ("opencode", "--file=/run/proctor/a.png"),
            ("gemini", "--include-directories=/run/proctor"),
            ("qwen", "--include-directories=/run/proctor"),
            ("pi", "@/run/proctor/a.png"),
        ] {
            let harness = name.parse::<HarnessId>().unwrap().harness();
            let launch = harness.launch(&request).unwrap();
            let files =
                launch.home_files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
            let told = format!("{:?} {:?} {:?}", launch.argv, launch.env, files.collect::<Vec<_>>());
            assert!(told.contains("http://127.0.0.1:9999") && !told.contains("9999//"), "{told}");
            assert!(told.contains("vendor/m:free") && told.contains("ses_1"), "{told}");
            assert!(launch.argv.iter().any(|word| word == picture), "{told}");
            assert!(launch.argv[0].starts_with("/opt/harness/bin/"), "{told}");
            assert!(launch.stdin.starts_with(b"Draw it.") && launch.needs_model, "{name}");
            for lacking in [
                LaunchRequest { model: String::new(), ..request.clone() },
                LaunchRequest { prompt: " ".to_owned(), ..request.clone() },
                LaunchRequest { install_dir: None, ..request.clone() },
            ] {
                assert!(matches!(harness.launch(&lacking), Err(HarnessError::Missing { .. })), "{name}");
            }
        }
    }

    #[test]
    fn only_versions_that_were_looked_at_are_held_to_a_day() {
        let pins = [("1.2.3", "cli", "00")];
        let spec = |version: &str| {
            let version = version.parse().unwrap();
            let cli = NodeCli {
                name: HarnessName::Pi,
                version: &version,
                package: "cli",
                program: "cli.js",
                pins: &pins,
                looked_at: "2026-11-30",
            };
            cli.install().unwrap()
        };
        assert_eq!(spec("1.2.3").before.as_deref(), Some("2026-11-30"));
        let newer = spec("1.2.4");
        assert_eq!((newer.before, newer.tree.unwrap().pins), (None, Vec::new()));
    }
}
