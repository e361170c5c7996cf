//! The flags of `gake doctor`.

use clap::Args;

/// Say what this machine can generate.
#[derive(Debug, Args)]
pub struct DoctorArgs {}
