//! `proctor preflight`.

use std::process::ExitCode;

use crate::args::PreflightArgs;
use crate::environment::Environment;
use crate::failure::Failure;

pub(crate) async fn preflight(_: PreflightArgs, _: &Environment) -> Result<ExitCode, Failure> {
    Err(Failure::internal("not yet"))
}
