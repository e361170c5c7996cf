//! The flags of `gake doctor`.

use clap::{Args, ValueEnum};

use super::values;

/// Show what this machine can generate, and what limits it.
///
/// Reads the limits of the system, measures how late its timers fire, and loads its own server
/// on loopback for a few seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake doctor                          what limits this machine, and what to do about it
  gake doctor --connections 1M         what a million connections would need
  gake doctor --no-load -o json        only the limits, for a program")]
pub struct DoctorArgs {
    /// Show what N concurrent connections would need
    #[arg(short, long, value_name = "N", value_parser = values::at_least_one)]
    pub connections: Option<u64>,

    /// Seconds of load on the loopback interface, 1 to 60
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub seconds: u64,

    /// Skip the measurement under load
    #[arg(long, conflicts_with = "seconds")]
    pub no_load: bool,

    /// Format
    #[arg(short = 'o', long, value_enum, default_value_t = DoctorFormat::Text)]
    pub format: DoctorFormat,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}

/// Formats of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For people
    Text,
    /// The schema gake.doctor/1
    Json,
}

impl DoctorArgs {
    /// Whether the result is for a program.
    pub fn json(&self) -> bool {
        self.format == DoctorFormat::Json
    }
}
