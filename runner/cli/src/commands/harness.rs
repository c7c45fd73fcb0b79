//! `proctor harness`: list and install agent CLIs.

use std::process::ExitCode;

use proctor_harnesses::{HarnessId, HarnessName, InstallStep, NpmCommand, install, installed};

use super::print_json;
use crate::args::{HarnessVerb, JsonArgs};
use crate::environment::Environment;
use crate::failure::Failure;

pub(crate) fn harness(verb: HarnessVerb, environment: &Environment) -> Result<ExitCode, Failure> {
    match verb {
        HarnessVerb::List(args) => list(&args, environment),
        HarnessVerb::Install { harnesses } => install_all(&harnesses, environment),
    }
}

fn list(args: &JsonArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let here = installed(&environment.cache());
    if args.json {
        let manifests: Vec<_> =
            here.iter().map(|it| serde_json::json!({ "dir": it.dir, "manifest": it.manifest })).collect();
        let names: Vec<&str> = HarnessName::ALL.iter().map(|name| name.as_str()).collect();
        print_json(&serde_json::json!({ "harnesses": names, "installed": manifests }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in HarnessName::ALL {
        let default = name.default_version();
        let Some(default) = default else {
            println!("{:<14}nothing to install", name.as_str());
            continue;
        };
        let versions: Vec<String> = here
            .iter()
            .filter(|it| it.manifest.name == name)
            .map(|it| it.manifest.version.to_string())
            .collect();
        let versions = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
        println!("{:<14}default {default}, installed: {versions}", name.as_str());
    }
    Ok(ExitCode::SUCCESS)
}

fn install_all(harnesses: &[HarnessId], environment: &Environment) -> Result<ExitCode, Failure> {
    for id in harnesses {
        let Some(spec) = id.harness().install() else {
            println!("{id}: nothing to install");
            continue;
        };
        let done = install(&spec, &environment.cache(), &NpmCommand::default(), &mut |step| {
            eprintln!("{id}: {}", describe(&step));
        })?;
        println!("{}@{} in {}", done.manifest.name, done.manifest.version, done.dir.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(step: &InstallStep) -> String {
    match step {
        InstallStep::Downloading { specs } => format!("downloading {} (some hundred MB)", specs.join(", ")),
        InstallStep::Checking => "checking the files against their pins".to_owned(),
        InstallStep::Done { already: true } => "installed already".to_owned(),
        InstallStep::Done { already: false } => "installed".to_owned(),
    }
}
