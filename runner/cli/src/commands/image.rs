//! `proctor image`: build the toolchain image, or say how it stands.

use std::process::ExitCode;

use proctor_sandbox::image::{self, BuildEvent, BuildOptions, ImageStatus};

use super::print_json;
use crate::args::{ImageVerb, JsonArgs};
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::connect;

pub(crate) async fn image(verb: ImageVerb, environment: &Environment) -> Result<ExitCode, Failure> {
    match verb {
        ImageVerb::Build { base } => build(base, environment).await,
        ImageVerb::Status(args) => status(&args, environment).await,
    }
}

async fn build(base: Option<String>, environment: &Environment) -> Result<ExitCode, Failure> {
    let sandbox = connect(environment).await?;
    let options = BuildOptions { cache_dir: environment.cache().join("image"), base };
    let identity = image::build(sandbox.client(), &options, |event| {
        // What steps print is for those who ask for it.
        if let BuildEvent::Output(line) = event {
            tracing::info!("{line}");
        } else {
            eprintln!("{event}");
        }
    })
    .await?;
    println!("{} {}", identity.reference, identity.id);
    Ok(ExitCode::SUCCESS)
}

async fn status(args: &JsonArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let sandbox = connect(environment).await?;
    let status = image::status(sandbox.client()).await?;
    let ImageStatus::Present(identity) = &status else {
        if args.json {
            print_json(&status)?;
        } else if let ImageStatus::Absent { expected } = &status {
            println!("{expected} has not been built; `proctor image build` builds it");
        }
        return Ok(Kind::Missing.into());
    };
    let packages = image::packages(sandbox.client(), &identity.reference).await?;
    if args.json {
        print_json(&serde_json::json!({ "image": identity, "packages": packages }))?;
    } else {
        println!(
            "{}\n  id        {}\n  inputs    {}\n  packages  {} ({} of them)",
            identity.reference,
            identity.id,
            identity.inputs,
            identity.packages,
            packages.len()
        );
        for (name, version) in packages.iter().filter(|(name, _)| name.starts_with("tool/")) {
            println!("  {:<18}{version}", name.trim_start_matches("tool/"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
