//! The flags of `gake serve`.

use clap::Args;

/// Start the lab.
#[derive(Debug, Args)]
pub struct ServeArgs {}
