//! `proctor sweep`: remove what dead runs have left behind.

use std::process::ExitCode;

use super::print_json;
use crate::args::SweepArgs;
use crate::environment::Environment;
use crate::failure::{Failure, Kind};
use crate::laboratory::{connect, is_alive};

pub(crate) async fn sweep(args: &SweepArgs, environment: &Environment) -> Result<ExitCode, Failure> {
    let swept = connect(environment).await?.sweep(args.dry_run, &is_alive).await?;
    if !args.dry_run {
        proctor_store::remove_orphans(&environment.runtime())?;
    }
    if args.json {
        print_json(&swept)?;
    } else if swept.is_empty() {
        println!("nothing was left behind");
    }
    for it in swept.iter().filter(|_| !args.json) {
        match (&it.error, args.dry_run) {
            (Some(error), _) => println!("{} of run {} could not be removed: {error}", it.name, it.run),
            (None, true) => println!("{} of run {} would be removed", it.name, it.run),
            (None, false) => println!("{} of run {} removed", it.name, it.run),
        }
    }
    let failed = swept.iter().any(|it| it.error.is_some());
    Ok(if failed { Kind::Internal.into() } else { ExitCode::SUCCESS })
}
