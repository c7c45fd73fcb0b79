//! `proctor doctor`: everything a run needs, checked, with how to mend it.

use std::path::Path;
use std::process::ExitCode;

use proctor_harnesses::{HarnessName, installed, verify};
use proctor_sandbox::image::{self, ImageStatus};
use proctor_sandbox::{DockerSandbox, EngineFacts};
use serde::Serialize;

use super::print_json;
use crate::args::JsonArgs;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::connect;

/// Oldest API that has everything rooms need (1.41, Docker 20.10).
const OLDEST_API: (u32, u32) = (1, 41);
/// Free disk space below which a run is likely to fail.
const LOW_DISK: u64 = 5 << 30;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Good,
    Warning,
    Bad,
}

impl Finding {
    fn good(what: &'static str, seen: impl Into<String>) -> Self {
        Self { what, state: State::Good, seen: seen.into(), mend: None }
    }

    fn warning(what: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { what, state: State::Warning, seen: seen.into(), mend: Some(mend.into()) }
    }

    fn bad(what: &'static str, seen: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { what, state: State::Bad, seen: seen.into(), mend: Some(mend.into()) }
    }
}

pub(crate) async fn doctor(args: &JsonArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let mut findings = Vec::new();
    match connect(environment).await {
        Ok(sandbox) => {
            let facts = sandbox.facts().await?;
            findings.extend(engine(&facts));
            findings.extend(image_and_fonts(&sandbox).await);
            findings.push(disk("disk of the engine", &facts.root));
        }
        Err(failure) => findings.push(Finding::bad("engine", failure.to_string(), crate::failure::NO_ENGINE)),
    }
    findings.extend(harnesses(environment));
    findings.push(disk("disk of the cache", &environment.cache()));

    for finding in &findings {
        if args.json {
            print_json(finding)?;
        } else {
            let mark = match finding.state {
                State::Good => "good",
                State::Warning => "warn",
                State::Bad => "BAD ",
            };
            println!("{mark}  {:<22}{}", finding.what, finding.seen);
            if let Some(mend) = &finding.mend {
                println!("      {:<22}→ {mend}", "");
            }
        }
    }
    let bad = findings.iter().any(|finding| finding.state == State::Bad);
    Ok(if bad { Kind::Missing.into() } else { ExitCode::SUCCESS })
}

fn engine(facts: &EngineFacts) -> Vec<Finding> {
    let mut findings = vec![Finding::good("engine", format!("{} at {}", facts.version, facts.address))];
    let mut numbers = facts.api_version.split('.').map_while(|part| part.parse().ok());
    let api = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    findings.push(if api >= OLDEST_API {
        Finding::good("API version", &facts.api_version)
    } else {
        Finding::bad("API version", &facts.api_version, "1.41 or newer is needed: Docker 20.10 or later")
    });
    let groups = format!("version {}, {}", facts.cgroup_version, facts.cgroup_driver);
    // The engine warns when it cannot enforce a limit, which rooms rely on.
    let missing: Vec<&String> = facts
        .warnings
        .iter()
        .filter(|it| ["No memory limit", "No cpu cfs", "No pids limit"].iter().any(|bad| it.contains(bad)))
        .collect();
    findings.push(match missing.first() {
        None => Finding::good("control groups", groups),
        Some(warning) => Finding::bad(
            "control groups",
            format!("{groups}; {warning}"),
            "enable the memory, cpu and pids controllers of the kernel (for memory on Debian: kernel parameter cgroup_enable=memory)",
        ),
    });
    findings
}

async fn image_and_fonts(sandbox: &DockerSandbox) -> Vec<Finding> {
    let identity = match image::status(sandbox.client()).await {
        Ok(ImageStatus::Present(identity)) => identity,
        Ok(ImageStatus::Absent { expected }) => {
            return vec![Finding::bad("image", format!("{expected} is not built"), "proctor image build")];
        }
        Err(error) => return vec![Finding::bad("image", crate::failure::chain(&error), error.hint())],
    };
    let good = Finding::good("image", format!("{} {}", identity.reference, identity.id));
    match image::packages(sandbox.client(), &identity.reference).await {
        Ok(packages) => {
            let fonts: Vec<&str> =
                packages.iter().filter_map(|(name, _)| name.strip_prefix("deb/fonts-")).collect();
            let wanted = ["noto-cjk", "noto-color-emoji", "liberation"];
            let missing: Vec<&str> = wanted.into_iter().filter(|it| !fonts.contains(it)).collect();
            let fonts = if missing.is_empty() {
                Finding::good("fonts", format!("{} packages, CJK and emoji among them", fonts.len()))
            } else {
                Finding::bad(
                    "fonts",
                    format!("missing: {}", missing.join(", ")),
                    "proctor image build, without --base",
                )
            };
            vec![good, fonts]
        }
        Err(error) => vec![good, Finding::bad("fonts", crate::failure::chain(&error), error.hint())],
    }
}

fn harnesses(environment: &Environment) -> Vec<Finding> {
    let here = installed(&environment.cache());
    let mut findings = Vec::new();
    for name in HarnessName::ALL {
        let Some(default) = name.default_version() else { continue };
        let versions: Vec<_> = here.iter().filter(|it| it.manifest.name == name).collect();
        if versions.is_empty() {
            let mend = format!("proctor harness install {}", name.as_str());
            findings.push(Finding::warning(name.as_str(), format!("{default} is not installed"), mend));
        }
        for it in versions {
            let version = it.manifest.version.to_string();
            findings.push(match verify(it) {
                Ok(()) => Finding::good(name.as_str(), format!("{version}, every file as installed")),
                Err(error) => Finding::bad(
                    name.as_str(),
                    format!("{version}: {error}"),
                    format!("remove {} and install it again", it.dir.display()),
                ),
            });
        }
    }
    findings
}

fn disk(what: &'static str, folder: &Path) -> Finding {
    // The folder may not exist yet: its nearest ancestor says what there is.
    let existing = folder.ancestors().find(|it| it.exists()).unwrap_or(Path::new("/"));
    match nix::sys::statvfs::statvfs(existing) {
        Ok(it) => {
            let free = it.blocks_available() * it.fragment_size();
            let seen = format!("{} GiB free at {}", free >> 30, existing.display());
            if free >= LOW_DISK {
                Finding::good(what, seen)
            } else {
                Finding::warning(
                    what,
                    seen,
                    "free some space: `docker system prune` removes what no container uses",
                )
            }
        }
        Err(error) => Finding::warning(what, format!("{}: {error}", existing.display()), "is it mounted?"),
    }
}
