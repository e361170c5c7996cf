//! `gake doctor`.
use crate::cli::DoctorArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure};
/// Stub.
pub fn run(_: &DoctorArgs, _: &Console) -> Result<Exit, Failure> { Err(Failure::usage("not yet")) }
